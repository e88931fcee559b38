//! What counters counted in functions, where threads read them with their events (`record --counter`).

use std::cmp::Reverse;

use serde::Serialize;

use super::{FunctionTime, SHOWN};
use crate::document::{N, Number, Section, Table, Word};
use crate::stats::counted;

/// What a counter counted inside of a function and of none that it called, in the threads of which it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionCount {
    /// Its name.
    pub counter: String,
    /// Calls in these threads.
    pub calls: u64,
    /// What it counted.
    pub total: i64,
}

/// Of each counter what it counted, and in how many calls.
#[derive(Debug, Default)]
pub(super) struct Sums([Option<(i64, u64)>; 2]);

impl Sums {
    /// Adds those of a row of so many calls.
    pub(super) fn add(&mut self, counts: [Option<i64>; 2], calls: u64) {
        for (sum, count) in self.0.iter_mut().zip(counts) {
            if let Some(count) = count {
                let (total, calls_before) = sum.unwrap_or_default();
                *sum = Some((total.saturating_add(count), calls_before.saturating_add(calls)));
            }
        }
    }

    /// By the counters of these names.
    pub(super) fn finish(self, names: &[String]) -> Vec<FunctionCount> {
        let counted = |(name, sum): (&String, Option<(i64, u64)>)| {
            sum.map(|(total, calls)| FunctionCount { counter: name.clone(), calls, total })
        };
        names.iter().zip(self.0).filter_map(counted).collect()
    }
}

/// Adds the table of what was counted, of each counter the functions with most first, if anything was.
pub(super) fn table(s: &mut Section, functions: &[FunctionTime]) {
    let mut rows: Vec<(&FunctionTime, &FunctionCount)> =
        functions.iter().flat_map(|f| f.counted.iter().map(move |c| (f, c))).collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|(_, a), (_, b)| {
        (&a.counter, Reverse(a.total)).cmp(&(&b.counter, Reverse(b.total)))
    });
    // A counter may count less than once a call.
    let per_calls =
        |c: &FunctionCount| c.total.checked_mul(1000)?.checked_div(i64::try_from(c.calls).ok()?);
    let t = Table::first(SHOWN, rows)
        .counted("rows")
        .column("counter", |(_, c)| Word(&c.counter))
        .column("function", |(f, _)| Word(&f.name))
        .column("calls", |(_, c)| N(c.calls))
        .column("total", |(_, c)| N(c.total as u64))
        .column("per 1000 calls", |(_, c)| per_calls(c).map(Number));
    s.table(t.titled(
        "What counters counted, inside the function and in none that it called, in user space",
    ));
    counted::say_what_is_in_it(s);
}
