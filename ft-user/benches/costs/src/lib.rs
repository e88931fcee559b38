//! What the measured programs have in common: the clock, the loops, the statistics, and the way in
//! which they tell their figures.
//!
//! A *subject* is a program that measures itself and prints lines `figure NAME VALUE`. The driver
//! (`main.rs`) starts subjects, with or without a tracer, in turns, and takes the median of each figure.

pub mod cold;
pub mod cpu;
pub mod cycles;
pub mod event_loop;
pub mod loops;
pub mod produce;
pub mod signed_rank;
pub mod startup;

/// Set in the environment of a subject for a short try; its figures mean little.
pub const QUICK: &str = "FT_COSTS_QUICK";

/// Divides a count when this is a short try.
pub fn fewer(count: u64, divisor: u64) -> u64 {
    if std::env::var_os(QUICK).is_some() { count / divisor } else { count }
}

/// Prints one figure.
pub fn tell(name: &str, value: f64) {
    println!("figure {name} {value}");
}

/// The middle value; of an even number the upper one.
///
/// # Panics
///
/// When there is no value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
