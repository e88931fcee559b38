//! Two traces, or two sets of traces: what differs between them, and which differences are more than chance.
//!
//! # What is compared
//!
//! Each [`Quantity`](subject::Quantity) of each [`Subject`](subject::Subject) that both sides have: median, 99 %, mean, sum
//! and rate of holds and waits (by lock, by place and by thread), of wake-ups and gaps by thread and of scopes by name; the
//! parts of each thread's time; the length of the recordings. How subjects are matched is in `matching.rs`.
//!
//! # Units
//!
//! A unit is a recording, and a row's value in it one number. Events are no units: those of one run have its phases, its
//! neighbours and its memory layout in common, so that any two runs differ if their events are taken for independent.
//! [`permute`] tells which differences of units are more than chance, for all rows at once.
//!
//! With too few recordings to tell anything ([`permute::can_tell`]: fewer than four and four, or three and four) each is
//! cut into slices of equal time, and those are the units. What is shown then is that *these recordings* differ: slices
//! are long enough for what passes quickly, but how much one run of a program differs from the next, they cannot show.
//!
//! # Scale
//!
//! A row whose values are all above 0 is compared by their logarithms: its difference is a ratio, A and B are geometric
//! means, and one recording that was disturbed weighs no more than it should. Else by the values themselves.
//!
//! # Marks
//!
//! Intervals that the tracer disturbed, and wake-ups across a loss, are in no statistic of lengths. A unit in which they
//! are more than one in a thousand has no value, nor a sum or a rate where lost events could change it by as much, nor the
//! parts of the time of a thread of which records were lost. A row of which fewer than half of the units of a side have a
//! value is shown and not tested, with the reason.

mod condition;
mod lengths;
mod matching;
mod measure;
mod names;
pub mod permute;
mod row;
mod section;
pub mod subject;
mod values;

use std::cmp::Reverse;

pub use condition::{Condition, Outcome, Verdict};
pub use measure::Run;
pub use row::{Row, Untested};

use matching::Matched;
use names::Names;
use permute::{Chance, Sides};
use row::Values;

/// Slices of all traces of one side together, where there are too few traces.
const SLICES: usize = 12;

/// Into how many slices each trace of so many is cut: one where there are enough of them.
pub fn slices(a: usize, b: usize) -> usize {
    if permute::can_tell(a, b) { 1 } else { SLICES / a.min(b).clamp(1, SLICES) }
}

/// What differs.
#[derive(Debug)]
pub struct Comparison {
    /// The recordings of each side.
    pub sides: [Vec<Run>; 2],
    /// Slices of each; 1: recordings were compared.
    pub slices: usize,
    /// All rows: those that differ first, by the least by which they do; then the others, the least likely chance first;
    /// then those that are not tested, by the difference that was seen.
    pub rows: Vec<Row>,
    /// Labelings that were looked at, and whether these are all that there are.
    pub labelings: (usize, bool),
    /// Subjects that only one side has, and how many intervals of each.
    pub unmatched: [Vec<(subject::Subject, u64)>; 2],
    /// Subjects that both have.
    pub matched: usize,
    /// Places of A, and of B that were taken for them, in their order.
    pub moved: Vec<(String, String)>,
    /// The program, where A and B call it differently.
    pub program: Option<(String, String)>,
    /// What was asked, and the answers.
    pub outcomes: Vec<Outcome>,
    /// What the subjects of all these are called.
    names: Names,
}

impl Comparison {
    /// Compares traces that were read in as many slices as [`slices`] says.
    pub fn of(a: Vec<Run>, b: Vec<Run>, conditions: &[Condition]) -> Comparison {
        let slices = a.iter().chain(&b).map(|run| run.units.len()).max().unwrap_or(1);
        let matched = matching::matched(&a, &b);
        let sides = [a, b];
        let values = row::values(&matched, &sides);
        let tested: Vec<&Values> = values.iter().filter(|row| row.untested.is_none()).collect();
        let units_of_a = matched.units[0].len();
        let for_chance: Vec<permute::Row> = tested.iter().map(|row| row.scaled()).collect();
        let chance = Chance::of(&for_chance, units_of_a, Sides::Both);
        let mut rows: Vec<Row> = values.iter().map(|row| row.judge(&chance)).collect();
        rows.sort_by_cached_key(|row| {
            let rank = |size: f64| Reverse((size * 1e9) as i64);
            let t = row.t.map_or(0.0, f64::abs);
            (
                rank(row.surely()),
                row.p.is_none(),
                rank(t),
                rank(row.size()),
                row.label(),
                row.quantity,
            )
        });
        let alone = matched.unmatched.iter().flatten().map(|(subject, _)| subject);
        let names = Names::of(matched.subjects.iter().chain(alone));
        let outcomes = condition::outcomes(conditions, &values, units_of_a, &names);
        let Matched { subjects, unmatched, moved, program, .. } = matched;
        Comparison {
            sides,
            slices,
            rows,
            labelings: (chance.labelings(), chance.all),
            unmatched,
            matched: subjects.len(),
            moved,
            program: program.map(|(a, b)| (a.to_string(), b.to_string())),
            outcomes,
            names,
        }
    }

    /// Rows that differ.
    pub fn differing(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.differs)
    }
}

#[cfg(test)]
mod tests;
