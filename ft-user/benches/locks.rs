//! What an uncontended lock and unlock cost: `cargo bench --bench locks`.
//!
//! In one run, so that the ratios hold on any machine: `std`, the traced lock off, and on.
//! Overwrite mode, since nobody reads.

use std::hint::black_box;
use std::time::Instant;

use ft_user::{Config, Mode};

// Short rounds, so that most of them see no other program.
const PAIRS: u32 = 10_000;
const ROUNDS: usize = 501;

static PLAIN: std::sync::Mutex<u64> = std::sync::Mutex::new(0);
static PLAIN_RW: std::sync::RwLock<u64> = std::sync::RwLock::new(0);
static TRACED: ft_user::sync::Mutex<u64> = ft_user::sync::Mutex::named("bench", 0);
static TRACED_RW: ft_user::sync::RwLock<u64> = ft_user::sync::RwLock::named("bench", 0);

/// What is locked; the plain pair, and the traced one.
type Row = (&'static str, fn(), fn());

/// Nanoseconds per pair.
fn time(pair: fn()) -> f64 {
    let start = Instant::now();
    for _ in 0..PAIRS {
        pair();
    }
    start.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}

/// Minimum and median.
fn summary(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    format!("{:6.1} / {:6.1}", times[0], times[times.len() / 2])
}

fn main() {
    let config = Config { mode: Mode::Overwrite, ..Config::default() };
    ft_user::init_with(config).expect("tracing starts");
    ft_user::thread_init();
    let rows: [Row; 3] = [
        (
            "Mutex::lock",
            || *black_box(&PLAIN).lock().unwrap() += 1,
            || {
                *black_box(&TRACED).lock().unwrap() += 1;
            },
        ),
        (
            "RwLock::read",
            || {
                black_box(*black_box(&PLAIN_RW).read().unwrap());
            },
            || {
                black_box(*black_box(&TRACED_RW).read().unwrap());
            },
        ),
        (
            "RwLock::write",
            || *black_box(&PLAIN_RW).write().unwrap() += 1,
            || {
                *black_box(&TRACED_RW).write().unwrap() += 1;
            },
        ),
    ];
    println!("ns per uncontended pair, minimum / median of {ROUNDS} rounds");
    println!("{:14} {:>15} {:>15} {:>15}", "", "std", "off", "on");
    for (name, plain, traced) in rows {
        let (mut std, mut off, mut on) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            std.push(time(plain));
            off.push(time(traced));
        }
        ft_user::enable("lock.*");
        on.extend((0..ROUNDS).map(|_| time(traced)));
        ft_user::disable("lock.*");
        println!("{name:14} {} {} {}", summary(std), summary(off), summary(on));
    }
}
