//! What counters counted in functions, where threads read them with their events (`record --counter`).

use serde::Serialize;

use super::{FunctionTime, SHOWN};
use crate::document::{N, Ns, Number, Section, Table, Word};
use crate::stats::counted::{self, amount, by_counter, is_time};
use crate::text;

/// What a counter counted inside of a function and of none that it called, in the threads of which it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionCount {
    /// Its name.
    pub counter: String,
    /// Its place among those that were asked for.
    #[serde(skip)]
    pub(super) at: usize,
    /// Calls in these threads.
    pub calls: u64,
    /// What it counted; of `task-clock`, ns.
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
        let counted = |((at, name), sum): ((usize, &String), Option<(i64, u64)>)| {
            sum.map(|(total, calls)| FunctionCount { counter: name.clone(), at, calls, total })
        };
        names.iter().enumerate().zip(self.0).filter_map(counted).collect()
    }
}

/// Adds a table of what each counter counted, in the order that they were asked for, the functions with most first, if it did.
pub(super) fn tables(s: &mut Section, functions: &[FunctionTime]) {
    // A counter may count less than once a call.
    let per_calls =
        |c: &FunctionCount| c.total.checked_mul(1000)?.checked_div(i64::try_from(c.calls).ok()?);
    let counted = functions.iter().flat_map(|f| f.counted.iter().map(move |c| (f, c)));
    for rows in by_counter(counted, |(_, c)| (c.at, c.total)) {
        let name = &rows[0].1.counter;
        let t = Table::first(SHOWN, rows)
            .counted("rows")
            .column("function", |(f, _)| Word(&f.name))
            .column("calls", |(_, c)| N(c.calls));
        let t = amount(t, name, "total", |(_, c)| Some(c.total));
        let t = if is_time(name) {
            t.column("per 1000 calls", |(_, c)| per_calls(c).map(Ns))
        } else {
            t.column("per 1000 calls", |(_, c)| per_calls(c).map(Number))
        };
        s.table(t.titled(text!(
            "What counters counted, inside the function and in none that it called, {}",
            counted::what(name)
        )));
    }
    if functions.iter().any(|f| !f.counted.is_empty()) {
        counted::say_what_is_in_it(s);
    }
}
