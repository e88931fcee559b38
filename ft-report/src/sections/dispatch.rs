//! Statistics of the dispatch latency: per thread and over all (Hourglass, section 5.3).

use std::cmp::Reverse;

use serde::Serialize;

use super::apart::apart;
use super::called::Called;
use super::{Input, NO_SCHEDULER, unknown};
use crate::document::{
    Data, Histogram, Id, Interval, Kind, N, Ns, Of, Section, Table, Thread, Typed, Word,
};
use crate::stats::{
    Bins, Distribution, Groups, Marks, OTHERS, Own, OwnRows, Tail, Thresholds, Top, own,
};
use crate::text;
use ft_analysis::{Mark, Races, Tally};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::DispatchLatency;

/// How late is late, ns: the columns of Hourglass's table 1.
pub(super) const LATE_NS: [i64; 4] = [1_000_000, 5_000_000, 10_000_000, 50_000_000];

/// Their titles.
const LATE: [&str; 4] = [">1 ms", ">5 ms", ">10 ms", ">50 ms"];

/// Threads with a line of their own; further ones are in one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others` in `stats/groups.rs`.
const MAX_THREADS: usize = 16_384;

/// Threads that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Worst wake-ups that are kept.
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
    /// What of them is the recording's own, of threads of its agent; null where it is not known who recorded.
    pub of_recording: Option<OwnRows>,
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
    /// Sum of the latencies, ns.
    pub total_ns: i64,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Percentiles of the latency.
    #[serde(flatten)]
    pub tail: Tail,
    /// Later than 1, 5, 10, 50 ms.
    pub later_than: [u64; 4],
    /// Histogram: (lower edge in ns, wake-ups) of each bin of 0.1 µs that is not empty.
    pub histogram_100ns: Vec<(i64, u64)>,
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
    /// Functions of the waker, the innermost first; missing where there is none.
    #[serde(skip_serializing_if = "Called::is_unknown")]
    pub called: Called,
    /// Of `dur_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
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
            called: Called::of_waker(r.stack),
            agent_ns: Own(r.agent_ns),
        }
    }
}

impl WorstWake {
    /// Who had the CPU longest meanwhile, by name and number.
    pub(in crate::sections) fn behind(&self) -> Option<(&str, i32)> {
        self.behind.as_deref().zip(self.behind_tid)
    }

    /// Where it lies in the trace.
    pub(in crate::sections) fn interval(&self) -> Interval {
        Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.tid, lock: None }
    }
}

#[derive(Debug)]
struct WakeSums {
    comm: Name,
    latencies: Distribution,
    own: Own,
    within: Thresholds<4>,
    bins: Bins,
}

impl WakeSums {
    fn new(comm: Name) -> Self {
        let (latencies, within) = (Distribution::default(), Thresholds::new(LATE_NS));
        WakeSums { comm, latencies, own: Own::default(), within, bins: Bins::default() }
    }

    fn add(&mut self, r: &DispatchLatency) {
        self.latencies.add(r.dur);
        self.own.add(r.agent_ns);
        self.within.add(r.dur);
        self.bins.add(r.dur);
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
            total_ns: self.latencies.sum(),
            agent_ns: self.own,
            tail: Tail::of(&mut self.latencies),
            later_than,
            histogram_100ns: self.bins.iter().collect(),
        }
    }
}

/// Makes a [`DispatchReport`] of rows, in memory that does not grow with their number.
#[derive(Debug)]
pub struct Dispatch {
    all: WakeSums,
    threads: Groups<MAX_THREADS, (Pid, Tid), WakeSums>,
    marks: Marks,
    worst: Top<WorstWake>,
    own: own::Rows,
}

impl Default for Dispatch {
    fn default() -> Self {
        Dispatch {
            all: WakeSums::new("all".into()),
            threads: Groups::default(),
            marks: Marks::default(),
            worst: Top::default(),
            own: own::Rows::default(),
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
        self.all.add(r);
        self.own.add(r.pid, 1, r.dur);
        let sums = self.threads.entry_or((r.pid, r.tid), || WakeSums::new(r.comm.clone()));
        if sums.comm != r.comm {
            sums.comm = r.comm.clone();
        }
        sums.add(r);
        self.worst.offer(WORST, r.dur, || WorstWake::from(r));
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(mut self, tally: &Tally) -> DispatchReport {
        let lost = self.marks.censored;
        self.marks.add_many(Mark::Censored, tally.races.never_dispatched);
        let threads = self.threads.into_ranked(
            |((pid, tid), c)| match tid {
                Tid(0) => Latency { comm: OTHERS.into(), ..c.latency(0, 0) },
                tid => c.latency(pid.0, tid.0),
            },
            |t| (Reverse(t.tail.max_ns), t.tid, t.pid),
        );
        DispatchReport {
            kernel: tally.kernel,
            races: tally.races,
            lost,
            marks: self.marks,
            all: self.all.latency(0, 0),
            of_recording: self.own.finish(),
            threads,
            worst: self.worst.into_sorted(),
        }
    }
}

impl DispatchReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<DispatchReport> {
        let own = own::Rows::of(input.agent());
        let mut dispatch = Dispatch { own, ..Dispatch::default() };
        input.rows(|r: DispatchLatency| dispatch.add(&r))?;
        let mut report = dispatch.finish(input.tally);
        Called::name(input, report.worst.iter_mut().map(|w| &mut w.called))?;
        Ok(report)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("dispatch", "latency of every wake-up, from waking to running");
        if self.kernel {
            self.coverage(&mut s);
        } else {
            s.say(NO_SCHEDULER);
        }
        if self.all.wakeups > 0 {
            self.threads(&mut s);
            self.figure(&mut s);
            self.worst(&mut s);
            own::explain(&mut s, "");
        }
        if self.kernel { s.with(self) } else { s.with(unknown(self)) }
    }

    fn coverage(&self, s: &mut Section) {
        let r = &self.races;
        if self.marks.any() {
            s.say(self.marks.line("wake-up").reasons(&[
                (self.lost, "across a loss"),
                (r.never_dispatched, "not dispatched by the end"),
            ]));
        }
        let no_wait = r.woken_while_awake + r.dispatched_without_waking;
        if no_wait > 0 {
            s.say(text!("{} without a wait", Of(no_wait, "waking")).reasons(&[
                (r.woken_while_awake, "of threads already awake"),
                (r.dispatched_without_waking, "dispatched without a recorded waking"),
            ]));
        }
        if r.woken_on_the_way > 0 {
            s.say(text!(
                "{} while the thread was on its way off the CPU: counted from the switch",
                Of(r.woken_on_the_way, "wake-up")
            ));
        }
        OwnRows::say(self.of_recording, "wake-up", s);
        Tail::legend(s, "wake-up", std::iter::once(&self.all.tail));
        if self.all.wakeups == 0 {
            s.say("No observed thread was woken: none of them slept.");
        }
    }

    /// All threads together, where there are several.
    fn total(&self) -> Option<&Latency> {
        (self.threads.len() > 1).then_some(&self.all)
    }

    /// The threads that are shown, and all of them together.
    fn shown(&self) -> impl Iterator<Item = &Latency> {
        self.threads.iter().take(SHOWN).chain(self.total())
    }

    fn threads(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.threads)
            .total(self.total())
            .column("thread", |l| Thread::named(&l.comm))
            .column("tid", |l| (l.tid > 0).then_some(Id(l.tid)))
            .column("wake-ups", |l| N(l.wakeups))
            .column("p50", |l| Ns(l.tail.p50_ns))
            .column("p99", |l| l.tail.p99_ns.map(Ns))
            .column("max", |l| Ns(l.tail.max_ns));
        let late = |t: crate::document::Builder<_>, (i, title)| {
            t.column(title, move |l: &&Latency| N(l.later_than[i]))
        };
        let t = LATE.into_iter().enumerate().fold(t, late);
        let t = own::beside(t, |l| (l.agent_ns, l.total_ns));
        s.table(t.counted("threads").titled("By thread, the worst first"));
        let names = apart(self.shown().map(|l| (&*l.comm, l.tid)), "");
        let tail =
            |(l, name): (&Latency, String)| (Thread::named(&name).value(), l.wakeups, l.tail);
        let tails = self.shown().zip(names).map(tail);
        s.tails("Tails of the latency", ("thread", Kind::Thread), tails);
    }

    fn figure(&self, s: &mut Section) {
        let each = if self.threads.len() > 1 { SHOWN } else { 0 };
        let drawn = || [&self.all].into_iter().chain(self.threads.iter().take(each));
        let names = apart(drawn().map(|l| (&*l.comm, l.tid)), "");
        let histogram = |(l, name): (&Latency, String)| Histogram {
            of: Thread::named(&name).value(),
            bins: l.histogram_100ns.clone(),
        };
        let each = drawn().zip(names).map(histogram).collect();
        s.figure("Distribution of the latency", Data::Histograms { counted: "wake-ups", each });
    }

    fn worst(&self, s: &mut Section) {
        let t = Table::of(&self.worst)
            .column("thread", |w| Thread::named(&w.comm))
            .tids("tid", |w| Some((&*w.comm, w.tid)))
            .column("latency", |w| w.interval())
            .column("cpu", |w| Id(w.cpu))
            .column("prio", |w| Id(w.prio))
            .column("current", |w| Thread::of(Some(w.waker_tid), Some(&w.waker)))
            .notes("in, called from", |w| w.called.way().map(Word))
            .column("ran instead", |w| Thread::of(w.behind_tid, w.behind.as_deref()))
            .column("for", |w| w.behind_ns.map(Ns))
            .column("migrated", |w| Word(if w.migrated { "yes" } else { "no" }));
        let what = "The worst wake-ups (current: on the CPU where it was woken, by that thread or by an interrupt)";
        s.table(own::beside(t, |w| (w.agent_ns, w.dur_ns)).titled(what));
    }
}
