//! The time ledger: where all the time of each observed thread went, and whether it balances.

use std::collections::HashMap;

use serde::Serialize;

use super::marks::Marks;
use super::steal::Steal;
use ft_analysis::{Mark, TIME_PARTS, Tally};
use ft_trace::ids::{Name, Nanos, Pid, Tid};
use ft_trace::tables::ThreadTime;

/// Threads that are told apart; the time of further ones is in the sums over all threads alone.
const MAX_THREADS: usize = 16_384;

/// Pairs of part and culprit that are told apart over all threads; further ones are `(others)`.
const MAX_CULPRITS: usize = 16_384;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct TimeReport {
    /// There is a kernel stream; without one nothing is known.
    pub kernel: bool,
    /// Threads of which every part sums to the wall time.
    pub balanced: u64,
    /// Threads of which they do not: a fault of this program.
    pub unbalanced: u64,
    /// Threads by their mark; the censored are in all sums, with what of them lies in the trace.
    pub marks: Marks,
    /// Each thread, longest wall time first.
    pub threads: Vec<ThreadBalance>,
    /// Time of further threads, ns: more than 16,384 are not told apart, and these are only in what follows.
    pub others_ns: i64,
    /// Over all threads, by part and then by time.
    pub culprits: Vec<TimeCulprit>,
    /// What the hypervisor took, by the kernel's account.
    pub steal: Steal,
}

/// One thread.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadBalance {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its newest name.
    pub comm: String,
    /// First sight, CLOCK_MONOTONIC ns.
    pub from_ns: i64,
    /// First sight to last, ns.
    pub wall_ns: i64,
    /// Sum of the parts, ns.
    pub sum_ns: i64,
    /// `sum_ns - wall_ns`; 0.
    pub difference_ns: i64,
    /// `exact`, `lower bound` or `censored`.
    pub mark: Mark,
    /// (part, ns), all parts in their order.
    pub parts: Vec<(&'static str, i64)>,
    /// Who or what took it.
    pub culprits: Vec<TimeCulprit>,
}

impl ThreadBalance {
    /// Time of a part, ns.
    pub(super) fn part(&self, name: &str) -> i64 {
        self.parts.iter().find(|p| p.0 == name).map_or(0, |p| p.1)
    }

    /// Time in interrupts, ns.
    pub(super) fn interrupts_ns(&self) -> i64 {
        ["hardirq", "softirq", "vector"].map(|part| self.part(part)).iter().sum()
    }
}

/// The time that one culprit took.
#[derive(Clone, Debug, Serialize)]
pub struct TimeCulprit {
    /// Part.
    pub part: &'static str,
    /// Who or what; null for the thread itself.
    pub culprit: Option<String>,
    /// Thread id of who ran instead; null over all threads.
    pub culprit_tid: Option<i32>,
    /// Time, ns.
    pub spent_ns: i64,
    /// Uninterrupted stretches.
    pub stretches: i64,
}

/// Makes a [`TimeReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Times {
    threads: HashMap<(Pid, Tid, Nanos), ThreadBalance>,
    culprits: HashMap<(&'static str, Option<Name>), TimeCulprit>,
    /// Time of threads that did not fit, ns.
    others_ns: i64,
}

impl Times {
    /// Counts a row.
    pub fn add(&mut self, r: &ThreadTime) {
        let part = r.part.word();
        let culprit = || TimeCulprit {
            part,
            culprit: r.culprit.as_deref().map(str::to_owned),
            culprit_tid: r.culprit_tid,
            spent_ns: r.spent_ns,
            stretches: r.stretches,
        };
        let mut key = (part, r.culprit.clone());
        if self.culprits.len() >= MAX_CULPRITS && !self.culprits.contains_key(&key) {
            key.1 = Some("(others)".into());
        }
        let name = key.1.as_deref().map(str::to_owned);
        let nothing = || TimeCulprit {
            culprit: name,
            culprit_tid: None,
            spent_ns: 0,
            stretches: 0,
            ..culprit()
        };
        let over_all = self.culprits.entry(key).or_insert_with(nothing);
        over_all.spent_ns += r.spent_ns;
        over_all.stretches += r.stretches;

        let key = (r.pid, r.tid, r.ts);
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&key) {
            self.others_ns += r.spent_ns;
            return;
        }
        let thread = self.threads.entry(key).or_insert_with(|| ThreadBalance {
            pid: r.pid.0,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            from_ns: r.ts.0,
            wall_ns: r.wall_ns,
            sum_ns: 0,
            difference_ns: 0,
            mark: r.mark,
            parts: TIME_PARTS.map(|p| (p, 0)).to_vec(),
            culprits: Vec::new(),
        });
        thread.sum_ns += r.spent_ns;
        thread.difference_ns = thread.sum_ns - thread.wall_ns;
        thread.parts.iter_mut().filter(|p| p.0 == part).for_each(|p| p.1 += r.spent_ns);
        thread.culprits.push(culprit());
    }

    /// Finishes the statistics.
    pub fn finish(self, tally: &Tally, steal: Steal) -> TimeReport {
        let mut threads: Vec<ThreadBalance> = self.threads.into_values().collect();
        threads.sort_by_key(|t| (std::cmp::Reverse(t.wall_ns), t.from_ns, t.tid));
        for thread in &mut threads {
            thread.culprits.sort_by(|a, b| order(a).cmp(&order(b)));
        }
        let mut culprits: Vec<TimeCulprit> = self.culprits.into_values().collect();
        culprits.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut marks = Marks::default();
        threads.iter().for_each(|t| marks.add(t.mark));
        let wrong = threads.iter().filter(|t| t.difference_ns != 0).count() as u64;
        TimeReport {
            kernel: tally.kernel,
            balanced: threads.len() as u64 - wrong,
            unbalanced: wrong,
            marks,
            threads,
            others_ns: self.others_ns,
            culprits,
            steal,
        }
    }
}

/// By part, then most time first.
fn order(c: &TimeCulprit) -> (Option<usize>, i64, &Option<String>, Option<i32>) {
    let part = TIME_PARTS.iter().position(|p| *p == c.part);
    (part, -c.spent_ns, &c.culprit, c.culprit_tid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::tables::Part;

    fn row(part: &str, spent_ns: i64, wall_ns: i64) -> ThreadTime {
        ThreadTime {
            ts: Nanos(5),
            pid: Pid(1),
            tid: Tid(2),
            comm: "a".into(),
            part: Part::of(part),
            culprit: None,
            culprit_tid: None,
            spent_ns,
            stretches: 1,
            wall_ns,
            mark: Mark::Exact,
        }
    }

    #[test]
    fn a_thread_that_does_not_balance_is_not_hidden() {
        let check = |rows: &[ThreadTime], difference: i64| {
            let mut times = Times::default();
            rows.iter().for_each(|r| times.add(r));
            let report =
                times.finish(&Tally { kernel: true, ..Tally::default() }, Steal::default());
            assert_eq!(report.threads[0].difference_ns, difference);
            assert_eq!(report.unbalanced, u64::from(difference != 0));
            assert_eq!(report.to_string().contains("NOT BALANCED"), difference != 0);
        };
        check(&[row("running", 70, 100), row("blocked", 30, 100)], 0);
        check(&[row("running", 70, 100), row("blocked", 31, 100)], 1);
        check(&[row("running", 70, 100)], -30);
    }

    #[test]
    fn threads_that_do_not_fit_are_told() {
        let mut times = Times::default();
        for tid in 1..=MAX_THREADS as i32 + 2 {
            times.add(&ThreadTime { tid: Tid(tid), ..row("running", 100, 100) });
        }
        let report = times.finish(&Tally { kernel: true, ..Tally::default() }, Steal::default());
        assert_eq!((report.threads.len(), report.others_ns), (MAX_THREADS, 200));
        assert!(report.to_string().contains("further threads: 200 ns in all"));
    }
}
