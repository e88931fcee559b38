//! What counters of the CPUs counted of threads, where they were read at switches (`record --switch-counter`).

use serde::Serialize;

use super::{MAX_THREADS, SHOWN};
use crate::document::{Id, N, Ns, Rate, Section, Table, Thread, Word};
use crate::stats::counted::{amount, what};
use crate::stats::{Groups, OTHERS, ranked};
use crate::text;
use ft_trace::ids::{Pid, Tid};
use ft_trace::tables::CpuCount;

/// What one counter counted while a thread had a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadCount {
    /// Process.
    pub pid: i32,
    /// Thread; of those that have no room of their own, 0.
    pub tid: i32,
    /// Its newest name.
    pub comm: String,
    /// Name of the counter.
    pub counter: String,
    /// Its place among those that were asked for.
    #[serde(skip)]
    at: usize,
    /// Times that it had a CPU of which the count is known.
    pub stretches: u64,
    /// How long these took, ns.
    pub counted_ns: i64,
    /// What was counted in them.
    pub total: i64,
    /// Times of which it is not known.
    pub unknown: u64,
}

impl ThreadCount {
    /// How many in a second on a CPU.
    fn rate(&self) -> Option<f64> {
        (self.counted_ns > 0).then(|| self.total as f64 / self.counted_ns as f64 * 1e9)
    }
}

/// Of one counter of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    stretches: u64,
    ns: i64,
    total: i64,
    unknown: u64,
}

/// Makes them of rows.
#[derive(Debug, Default)]
pub(super) struct Sums(Groups<MAX_THREADS, (Pid, Tid), (String, [Sum; 2])>);

impl Sums {
    pub(super) fn add(&mut self, r: &CpuCount) {
        let (comm, sums) = self.0.entry((r.pid, r.tid));
        if **comm != *r.comm {
            *comm = r.comm.to_string();
        }
        for (sum, count) in sums.iter_mut().zip(r.counter) {
            match count {
                Some(count) => {
                    sum.stretches += 1;
                    sum.ns = sum.ns.saturating_add(r.dur);
                    sum.total = sum.total.saturating_add(count);
                }
                None => sum.unknown += 1,
            }
        }
    }

    /// By the counters of these names, those with most first.
    pub(super) fn finish(self, names: &[String]) -> Vec<ThreadCount> {
        let of = |((pid, tid), (comm, sums)): ((Pid, Tid), (String, [Sum; 2]))| {
            let counts = names.iter().zip(sums).enumerate();
            let counts = counts.map(move |(at, (counter, sum))| ThreadCount {
                pid: pid.0,
                tid: tid.0,
                comm: if tid.0 == 0 { OTHERS.to_owned() } else { comm.clone() },
                counter: counter.clone(),
                at,
                stretches: sum.stretches,
                counted_ns: sum.ns,
                total: sum.total,
                unknown: sum.unknown,
            });
            counts.collect::<Vec<_>>()
        };
        let counts = self.0.into_ranked(of, |_| ()).into_iter().flatten().collect();
        ranked(counts, |c: &ThreadCount| (c.at, -c.total, c.pid, c.tid))
    }
}

/// Adds a table of each of these counters, of threads in which it counted anything; they had a CPU for so long in all.
pub(super) fn say(s: &mut Section, counters: &[String], counts: &[ThreadCount], on_cpu_ns: i64) {
    let unknown: u64 = counts.iter().map(|c| c.unknown).sum();
    for (at, name) in counters.iter().enumerate() {
        let of_counter = || counts.iter().filter(move |c| c.at == at);
        let counted_ns: i64 = of_counter().map(|c| c.counted_ns).sum();
        let rows: Vec<&ThreadCount> = of_counter().filter(|c| c.total > 0).collect();
        s.say(text!(
            "{}, counted in {} of the {} that threads had a CPU: {} in all.",
            Word(name),
            Ns(counted_ns),
            Ns(on_cpu_ns),
            N(rows.iter().map(|c| c.total as u64).sum())
        ));
        if rows.is_empty() {
            continue;
        }
        let t = Table::first(SHOWN, rows)
            .counted("threads")
            .column("thread", |c| Thread::named(&c.comm))
            .column("tid", |c| Id(c.tid))
            .column("times on a CPU", |c| N(c.stretches))
            .column("counted in", |c| Ns(c.counted_ns));
        let t = amount(t, name, "total", |c| Some(c.total)).column("rate", |c| c.rate().map(Rate));
        s.table(t.titled(text!("What counters counted while threads had a CPU, {}", what(name))));
    }
    if !counters.is_empty() {
        s.say("Stretches on a CPU that had begun before the recording, or had not ended with it, are not counted.");
    }
    if unknown > 0 {
        s.say(text!(
            "Not counted, times on a CPU by counter: {}; the CPU had no room for the counter for a part of the time, or had come during the recording.",
            N(unknown)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Cpu, Nanos};

    fn row(tid: i32, comm: &str, dur: i64, counter: [Option<i64>; 2]) -> CpuCount {
        CpuCount {
            ts: Nanos(100),
            dur,
            cpu: Cpu(0),
            tid: Tid(tid),
            pid: Pid(1),
            comm: comm.into(),
            prio: 120,
            counter,
        }
    }

    #[test]
    fn counts_of_a_thread_are_summed_where_they_are_known() {
        let mut sums = Sums::default();
        sums.add(&row(7, "old", 1_000, [Some(3), Some(100)]));
        sums.add(&row(7, "new", 3_000, [Some(5), None]));
        sums.add(&row(8, "more", 500, [Some(9), None]));
        let counters = ["page-faults", "instructions", "cycles"].map(str::to_owned);
        let counts = sums.finish(&counters[..2]);
        let said: Vec<_> = counts
            .iter()
            .map(|c| (&*c.counter, &*c.comm, c.stretches, c.counted_ns, c.total, c.unknown))
            .collect();
        assert_eq!(
            said,
            [
                ("page-faults", "more", 1, 500, 9, 0),
                ("page-faults", "new", 2, 4_000, 8, 0),
                ("instructions", "new", 1, 1_000, 100, 1),
                ("instructions", "more", 0, 0, 0, 1),
            ]
        );
        assert_eq!(counts.iter().map(ThreadCount::rate).next(), Some(Some(18e6)));
        assert_eq!(counts.last().map(ThreadCount::rate), Some(None));
        let mut s = Section::new("time", "");
        say(&mut s, &counters, &counts, 20_000);
        let text = s.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "in user space: page-faults",
            "page-faults, counted in 4.50 µs of the 20.0 µs that threads had a CPU: 17 in all",
            "cycles, counted in 0 ns",
            "by counter: 2;",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
