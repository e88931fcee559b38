//! Statistics of the dispatch latency: per thread and over all (Hourglass, section 5.3).

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::format::{dur, short_count, things};
use super::locks_text::{reasons, who};
use super::marks::Marks;
use super::table::{Table, width};
use super::tail::{self, Tail, percentile};
use super::top::Top;
use crate::stats::{Distribution, Thresholds};
use ft_analysis::{Mark, Races, Tally};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::tables::DispatchLatency;

/// How late is late, ns: the columns of Hourglass's table 1.
const LATE_NS: [i64; 4] = [1_000_000, 5_000_000, 10_000_000, 50_000_000];

/// Threads that are told apart; further ones go into one line `(others)`.
const MAX_THREADS: usize = 16_384;

/// Threads that are shown; `--json` has all.
const SHOWN: usize = 20;

/// Worst wake-ups that are shown.
const WORST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct DispatchReport {
    /// There is a kernel stream; without one there are no wake-ups.
    pub kernel: bool,
    /// Wake-ups that are in no statistic.
    pub races: Races,
    /// Wake-ups during which scheduler records were lost; censored.
    pub lost: u64,
    /// How sure they are. Censored wake-ups are in no statistic.
    pub marks: Marks,
    /// All threads together.
    pub all: Latency,
    /// Each thread, the worst latency first.
    pub threads: Vec<Latency>,
    /// The worst wake-ups.
    pub worst: Vec<WorstWake>,
}

/// Statistics of the wake-ups of one thread.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Process; 0 over all.
    pub pid: i32,
    /// Thread; 0 over all.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Wake-ups.
    pub wakeups: u64,
    /// Percentiles of the latency.
    #[serde(flatten)]
    pub tail: Tail,
    /// Later than 1, 5, 10, 50 ms.
    pub later_than: [u64; 4],
}

/// One of the worst wake-ups.
#[derive(Clone, Debug, Serialize)]
pub struct WorstWake {
    /// Waking, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Latency, ns.
    pub dur_ns: i64,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// CPU on which it then ran.
    pub cpu: i32,
    /// Its kernel priority.
    pub prio: i32,
    /// Name of the thread that was current where it was woken.
    pub waker: String,
    /// That thread's id; 0: idle, so an interrupt woke it.
    pub waker_tid: i32,
    /// Who had the CPU longest meanwhile.
    pub behind: Option<String>,
    /// That thread's id.
    pub behind_tid: Option<i32>,
    /// For how long.
    pub behind_ns: Option<i64>,
    /// It was moved to another CPU meanwhile.
    pub migrated: bool,
}

impl From<&DispatchLatency> for WorstWake {
    fn from(r: &DispatchLatency) -> Self {
        WorstWake {
            ts: r.ts.0,
            dur_ns: r.dur,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            cpu: r.cpu.0,
            prio: r.prio,
            waker: r.waker_comm.to_string(),
            waker_tid: r.waker_tid.0,
            behind: r.running_comm.as_ref().map(ToString::to_string),
            behind_tid: r.running_tid,
            behind_ns: r.running_ns,
            migrated: r.migrated,
        }
    }
}

#[derive(Debug)]
struct Counts {
    comm: Name,
    latencies: Distribution,
    within: Thresholds<4>,
}

impl Counts {
    fn new(comm: Name) -> Self {
        let (latencies, within) = (Distribution::default(), Thresholds::new(LATE_NS));
        Counts { comm, latencies, within }
    }

    fn add(&mut self, ns: i64) {
        self.latencies.add(ns);
        self.within.add(ns);
    }

    fn latency(mut self, pid: i32, tid: i32) -> Latency {
        let n = self.latencies.count();
        let mut later_than = [0; 4];
        for (later, (_, within)) in later_than.iter_mut().zip(self.within.iter()) {
            *later = n - within;
        }
        Latency {
            pid,
            tid,
            comm: self.comm.to_string(),
            wakeups: n,
            tail: Tail::of(&mut self.latencies),
            later_than,
        }
    }
}

/// Makes a [`DispatchReport`] of rows, in memory that does not grow with their number.
#[derive(Debug)]
pub struct Dispatch {
    all: Counts,
    threads: HashMap<(Pid, Tid), Counts>,
    marks: Marks,
    worst: Top<WorstWake>,
}

impl Default for Dispatch {
    fn default() -> Self {
        Dispatch {
            all: Counts::new("all".into()),
            threads: HashMap::new(),
            marks: Marks::default(),
            worst: Top::default(),
        }
    }
}

impl Dispatch {
    /// Counts a wake-up.
    pub fn add(&mut self, r: &DispatchLatency) {
        let mark = r.mark;
        self.marks.add(mark);
        if mark == Mark::Censored {
            return;
        }
        self.all.add(r.dur);
        let (mut key, mut comm) = ((r.pid, r.tid), &r.comm);
        let others = "(others)".into();
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&key) {
            (key, comm) = ((Pid(0), Tid(0)), &others);
        }
        let counts = self.threads.entry(key).or_insert_with(|| Counts::new(comm.clone()));
        if counts.comm != *comm {
            counts.comm = comm.clone();
        }
        counts.add(r.dur);
        self.worst.offer(WORST, r.dur, || WorstWake::from(r));
    }

    /// Finishes the statistics; `tally` tells what is not in them.
    pub fn finish(mut self, tally: &Tally) -> DispatchReport {
        let lost = self.marks.censored;
        self.marks.add_many(Mark::Censored, tally.races.never_dispatched);
        let mut threads: Vec<Latency> =
            self.threads.into_iter().map(|((pid, tid), c)| c.latency(pid.0, tid.0)).collect();
        threads.sort_by_key(|t| (std::cmp::Reverse(t.tail.max_ns), t.tid));
        DispatchReport {
            kernel: tally.kernel,
            races: tally.races,
            lost,
            marks: self.marks,
            all: self.all.latency(0, 0),
            threads,
            worst: self.worst.into_sorted(),
        }
    }
}

impl fmt::Display for DispatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "DISPATCH LATENCY: from waking to running, of every wake-up")?;
        if !self.kernel {
            return writeln!(
                f,
                "  No scheduler records: record with the kernel group `sched` (see `ft-agent doctor`)."
            );
        }
        let r = &self.races;
        writeln!(
            f,
            "  {}{}",
            self.marks.line("wake-up"),
            reasons(&[
                (self.lost, "across a loss"),
                (r.never_dispatched, "not dispatched by the end"),
            ])
        )?;
        let no_wait = r.woken_while_awake + r.dispatched_without_waking;
        if no_wait > 0 {
            let why = reasons(&[
                (r.woken_while_awake, "of threads already awake"),
                (r.dispatched_without_waking, "dispatched without a recorded waking"),
            ]);
            writeln!(f, "  {} without a wait{why}", things(no_wait, "waking"))?;
        }
        if r.woken_on_the_way > 0 {
            let woken = things(r.woken_on_the_way, "wake-up");
            writeln!(
                f,
                "  {woken} of threads on their way off the CPU: they count from the switch"
            )?;
        }
        if !self.all.tail.percentiles_exact {
            writeln!(f, "  percentiles of more than 65,536 wake-ups are at most 0.1 % too high")?;
        }
        if self.all.wakeups == 0 {
            return writeln!(f, "  No observed thread was woken: none of them slept.");
        }
        self.threads_table(f)?;
        self.tails_table(f)?;
        self.worst_table(f)
    }
}

impl DispatchReport {
    fn threads_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<thread", "tid", "wake-ups", "median", "p99", "max", ">1 ms", ">5 ms", ">10 ms",
            ">50 ms",
        ]);
        let all = (self.threads.len() > 1).then_some(&self.all);
        for l in self.threads.iter().take(SHOWN).chain(all) {
            let tid = if l.tid == 0 { String::new() } else { l.tid.to_string() };
            let mut cells = vec![l.comm.clone(), tid, short_count(l.wakeups)];
            cells.extend([dur(l.tail.p50_ns), percentile(l.tail.p99_ns), dur(l.tail.max_ns)]);
            cells.extend(l.later_than.map(short_count));
            t.row(cells);
        }
        write!(f, "\nThreads, the worst first\n{t:w$}")?;
        match self.threads.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more threads (--json has all)"),
        }
    }

    fn tails_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let all = (self.threads.len() > 1).then_some(&self.all);
        let rows = self.threads.iter().take(SHOWN).chain(all);
        let rows = rows.filter(|l| l.tail.p99_ns.is_some());
        let mut rows = rows.map(|l| (l.comm.clone(), l.wakeups, &l.tail)).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let t = tail::table("<thread", "n", rows);
        write!(f, "\nTails of the latency (-: too few for this percentile)\n{t:w$}")
    }

    fn worst_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<thread",
            "latency",
            "cpu",
            "prio",
            "<woken by",
            "<ran instead",
            "for",
            "<",
        ]);
        for w in &self.worst {
            t.row([
                w.comm.clone(),
                dur(w.dur_ns),
                w.cpu.to_string(),
                w.prio.to_string(),
                who(Some(w.waker_tid), Some(&w.waker)),
                who(w.behind_tid, w.behind.as_deref()),
                w.behind_ns.map_or("-".into(), dur),
                if w.migrated { "migrated".into() } else { String::new() },
            ]);
        }
        write!(f, "\nThe worst wake-ups\n{t:w$}")
    }
}
