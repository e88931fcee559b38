//! What counters counted in intervals of a kind, where threads read them with their events (`record --counter`).

use std::cmp::Reverse;

use ft_user::layout::{COUNTERS_AT_ONCE, Counter};
use serde::Serialize;

use super::Distribution;
use crate::document::{Builder, N, Ns, Section, Table, Text, Word};
use crate::text;

/// Of one counter, what it counted in each interval of a group; of those of which that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Its name.
    pub counter: String,
    /// Its place among those that were asked for.
    #[serde(skip)]
    pub(crate) at: usize,
    /// Intervals.
    pub intervals: u64,
    /// Of all of them together; of `task-clock` this and the others are ns.
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
        let counted = |((at, name), mut sum): ((usize, &String), Distribution)| {
            (sum.count() > 0).then(|| Counted {
                counter: name.clone(),
                at,
                intervals: sum.count(),
                total: sum.sum(),
                p50: sum.percentile(50.0),
                p99: sum.supported_percentile(99.0),
                max: sum.max(),
            })
        };
        names.iter().enumerate().zip(self.0).filter_map(counted).collect()
    }
}

/// Adds a table of what each counter counted, in the order that they were asked for, the groups with most first, if it did;
/// `begin` adds the columns that name a group, and `intervals` is what theirs are called.
pub(crate) fn tables<'a, T>(
    s: &mut Section,
    groups: &'a [T],
    shown: usize,
    of: fn(&T) -> &[Counted],
    begin: impl Fn(Builder<(&'a T, &'a Counted)>) -> Builder<(&'a T, &'a Counted)>,
    intervals: &'static str,
) {
    let counted = groups.iter().flat_map(|group| of(group).iter().map(move |c| (group, c)));
    for rows in by_counter(counted, |(_, c)| (c.at, c.total)) {
        let name = &rows[0].1.counter;
        let t = begin(Table::first(shown, rows).counted("rows"))
            .column(intervals, |(_, c)| N(c.intervals));
        let t = amount(t, name, "total", |(_, c)| Some(c.total));
        let t = amount(t, name, "p50", |(_, c)| Some(c.p50));
        let t = amount(t, name, "p99", |(_, c)| c.p99);
        let t = amount(t, name, "max", |(_, c)| Some(c.max));
        s.table(t.titled(text!("What counters counted in each, {}", what(name))));
    }
    if groups.iter().any(|group| !of(group).is_empty()) {
        say_what_is_in_it(s);
    }
}

/// The rows of each counter that has any, in the order of their places, most first, by the place and the number that `key` has of one.
pub(crate) fn by_counter<T>(
    rows: impl Iterator<Item = T>,
    key: impl Fn(&T) -> (usize, i64),
) -> impl Iterator<Item = Vec<T>> {
    let mut counters = [const { Vec::new() }; COUNTERS_AT_ONCE];
    rows.for_each(|row| counters[key(&row).0].push(row));
    counters.into_iter().filter(|rows| !rows.is_empty()).map(move |mut rows| {
        rows.sort_by_key(|row| Reverse(key(row).1));
        rows
    })
}

/// A column of what a counter of this name counted.
pub(crate) fn amount<T>(
    t: Builder<T>,
    counter: &str,
    title: &str,
    of: impl Fn(&T) -> Option<i64>,
) -> Builder<T> {
    if is_time(counter) {
        t.column(title, |row| of(row).map(Ns))
    } else {
        t.column(title, |row| of(row).map(|n| N(n as u64)))
    }
}

/// Where a counter of this name counts, and its name.
pub(crate) fn what(counter: &str) -> Text {
    let place =
        if is_time(counter) { "on a CPU in user space and in the kernel" } else { "in user space" };
    text!("{}: {}", place, Word(counter))
}

/// Whether it counts nanoseconds, and not in user space alone.
pub(crate) fn is_time(counter: &str) -> bool {
    Counter::named(counter).is_some_and(Counter::is_time)
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
            at: 0,
            intervals: 100,
            total: 5050,
            p50: 50,
            p99: Some(99),
            max: 100,
        };
        assert_eq!(sums.finish(&names), [counted]);
        assert_eq!(CountedSums::default().finish(&names), []);
    }

    #[test]
    fn each_counter_has_a_table_with_the_rows_of_most_in_it() {
        let names = ["task-clock", "page-faults"].map(String::from);
        let groups: Vec<(String, Vec<Counted>)> = (1..=9)
            .map(|n| {
                let mut sums = CountedSums::default();
                sums.add([Some(n * 1_000_000), Some(100 + n)]);
                (format!("lock{n}"), sums.finish(&names))
            })
            .collect();
        let mut s = Section::new("locks", "");
        tables(&mut s, &groups, 2, |g| &g.1, |t| t.column("lock", |(g, _)| Word(&g.0)), "holds");
        let text = format!("{s:140}");
        let (time, faults) = text.split_once("page-faults").expect("the second counter");
        let has = |table: &str, said: &[&str], not: &str| {
            assert!(said.iter().all(|said| table.contains(said)) && !table.contains(not), "{text}");
        };
        has(time, &["in the kernel: task-clock", "lock9", "9.00 ms", "lock8"], "lock7");
        has(faults, &["lock9", " 109 ", "lock8", " 108 "], "lock7");
    }
}
