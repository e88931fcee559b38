//! What counters counted in intervals of a kind, where threads read them with their events (`record --counter`).

use std::cmp::Reverse;

use serde::Serialize;

use super::Distribution;
use crate::document::{Builder, N, Section, Table, Word};

/// Of one counter, what it counted in each interval of a group; of those of which that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Its name.
    pub counter: String,
    /// Intervals.
    pub intervals: u64,
    /// Of all of them together.
    pub total: i64,
    /// The smallest number that half of them do not exceed.
    pub p50: i64,
    /// The same of 99 %; missing where there are too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<i64>,
    /// The largest.
    pub max: i64,
}

/// Counts of a group while rows come.
#[derive(Debug, Default)]
pub(crate) struct CountedSums([Distribution; 2]);

impl CountedSums {
    /// Adds those of a row.
    pub(crate) fn add(&mut self, counts: [Option<i64>; 2]) {
        for (sum, count) in self.0.iter_mut().zip(counts) {
            count.into_iter().for_each(|count| sum.add(count));
        }
    }

    /// By the counters of these names; what was counted in no interval is not there.
    pub(crate) fn finish(self, names: &[String]) -> Vec<Counted> {
        let counted = |(name, mut sum): (&String, Distribution)| {
            (sum.count() > 0).then(|| Counted {
                counter: name.clone(),
                intervals: sum.count(),
                total: sum.sum(),
                p50: sum.percentile(50.0),
                p99: sum.supported_percentile(99.0),
                max: sum.max(),
            })
        };
        names.iter().zip(self.0).filter_map(counted).collect()
    }
}

/// Adds the table of what was counted, of each counter the groups with most first, if anything was; `begin` adds the columns that name a
/// group, and `intervals` is what theirs are called.
pub(crate) fn table<'a, T>(
    s: &mut Section,
    groups: &'a [T],
    shown: usize,
    of: fn(&T) -> &[Counted],
    begin: impl FnOnce(Builder<(&'a T, &'a Counted)>) -> Builder<(&'a T, &'a Counted)>,
    intervals: &'static str,
) {
    let mut rows: Vec<(&T, &Counted)> = groups
        .iter()
        .flat_map(|group| of(group).iter().map(move |counted| (group, counted)))
        .collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|(_, a), (_, b)| {
        (&a.counter, Reverse(a.total)).cmp(&(&b.counter, Reverse(b.total)))
    });
    let t = begin(
        Table::first(shown, rows).counted("rows").column("counter", |(_, c)| Word(&c.counter)),
    )
    .column(intervals, |(_, c)| N(c.intervals))
    .column("total", |(_, c)| N(c.total as u64))
    .column("p50", |(_, c)| N(c.p50 as u64))
    .column("p99", |(_, c)| c.p99.map(|n| N(n as u64)))
    .column("max", |(_, c)| N(c.max as u64));
    s.table(t.titled("What counters counted in each, in user space"));
    say_what_is_in_it(s);
}

/// Says what counts contain that is not the program's.
pub(crate) fn say_what_is_in_it(s: &mut Section) {
    s.say(
        "Counted of the thread itself, with what recording the events in between executed. Where a counter was not read at both ends, or \
         did not count all the time, nothing is counted.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_counted_by_the_names_of_counters() {
        let mut sums = CountedSums::default();
        (1..=100).for_each(|n| sums.add([Some(n), None]));
        sums.add([None, None]);
        let names = ["cycles", "instructions"].map(String::from);
        let counted = Counted {
            counter: "cycles".into(),
            intervals: 100,
            total: 5050,
            p50: 50,
            p99: Some(99),
            max: 100,
        };
        assert_eq!(sums.finish(&names), [counted]);
        assert_eq!(CountedSums::default().finish(&names), []);
    }
}
