//! How late the sleeping workers of a load ran, and whether that was the timer, the interrupt or the scheduler.

use serde::Serialize;

use super::Input;
use super::workers::{ByWorker, WorkerId};
use crate::document::{Builder, Id, Interval, N, Ns, Section, Share, Table, Thread, Word};
use crate::stats::{Distribution, Marks, Tail, Top};
use crate::text;
use ft_analysis::{Mark, Tally};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::TimerLatency;

/// Lines that are shown; the machine values have all.
const SHOWN: usize = 20;

/// The latest that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The parts, in their order.
const PARTS: [&str; 4] = ["timer", "interrupt", "dispatch", "return"];

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct TimersReport {
    /// There is a kernel stream; without one there are no parts.
    pub kernel: bool,
    /// How sure the sleeps are.
    pub marks: Marks,
    /// Sleeps that were divided, and the interrupt that ended them was not recorded.
    pub unnamed: u64,
    /// Each worker that slept, by its number.
    pub workers: Vec<WorkerTimer>,
    /// Those that ran latest.
    pub longest: Vec<LateTimer>,
}

/// The sleeps of one worker.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerTimer {
    /// Which.
    #[serde(flatten)]
    pub worker: WorkerId,
    /// What wakes it.
    pub timer: &'static str,
    /// Sleeps.
    pub sleeps: u64,
    /// Percentiles of how late it ran.
    #[serde(flatten)]
    pub tail: Tail,
    /// Sum of that, of the sleeps that are divided, ns.
    pub divided_ns: i64,
    /// Sums of timer, interrupt, dispatch and return, ns.
    pub parts_ns: [i64; 4],
    /// The longest of each, ns.
    pub parts_max_ns: [i64; 4],
}

/// A sleep that ended late.
#[derive(Clone, Debug, Serialize)]
pub struct LateTimer {
    /// Until when it was to last, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// How late it was, ns.
    pub dur_ns: i64,
    /// Worker.
    pub worker: i32,
    /// Its thread.
    pub tid: i32,
    /// Timer, interrupt, dispatch and return, ns.
    pub parts_ns: Option<[i64; 4]>,
    /// The interrupt in which it was woken.
    pub interrupt: Option<String>,
    /// Who had the CPU longest during the dispatch.
    pub running: Option<String>,
    /// That thread's id.
    pub running_tid: Option<i32>,
    /// How sure it is.
    pub mark: Mark,
}

fn parts(r: &TimerLatency) -> Option<[i64; 4]> {
    Some([r.timer_ns?, r.interrupt_ns?, r.dispatch_ns?, r.return_ns?])
}

#[derive(Debug, Default)]
struct Sums {
    worker: Option<(i32, Name)>,
    timer: &'static str,
    lengths: Distribution,
    divided_ns: i64,
    parts_ns: [i64; 4],
    parts_max_ns: [i64; 4],
}

/// Makes a [`TimersReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Timers {
    workers: ByWorker<Sums>,
    marks: Marks,
    unnamed: u64,
    longest: Top<LateTimer>,
}

impl Timers {
    /// Counts a sleep.
    pub fn add(&mut self, r: &TimerLatency) {
        self.marks.add(r.mark);
        let sums = self.workers.entry((r.pid, r.tid));
        (sums.worker, sums.timer) = (Some((r.worker, r.comm.clone())), r.timer.word());
        sums.lengths.add(r.dur);
        let parts = parts(r);
        if let Some(parts) = parts {
            self.unnamed += u64::from(r.interrupt.is_none());
            sums.divided_ns = sums.divided_ns.saturating_add(r.dur);
            for (i, ns) in parts.into_iter().enumerate() {
                sums.parts_ns[i] = sums.parts_ns[i].saturating_add(ns);
                sums.parts_max_ns[i] = sums.parts_max_ns[i].max(ns);
            }
        }
        self.longest.offer(LONGEST, r.dur, || LateTimer {
            ts: r.ts.0,
            dur_ns: r.dur,
            worker: r.worker,
            tid: r.tid.0,
            parts_ns: parts,
            interrupt: r.interrupt.as_ref().map(ToString::to_string),
            running: r.running_comm.as_ref().map(ToString::to_string),
            running_tid: r.running_tid,
            mark: r.mark,
        });
    }

    /// Finishes the statistics.
    pub fn finish(self, tally: &Tally) -> TimersReport {
        let worker = |(thread, mut sums): ((Pid, Tid), Sums)| WorkerTimer {
            worker: WorkerId::new(thread, sums.worker.as_ref().map(|(n, comm)| (*n, comm))),
            timer: sums.timer,
            sleeps: sums.lengths.count(),
            tail: Tail::of(&mut sums.lengths),
            divided_ns: sums.divided_ns,
            parts_ns: sums.parts_ns,
            parts_max_ns: sums.parts_max_ns,
        };
        TimersReport {
            kernel: tally.kernel,
            marks: self.marks,
            unnamed: self.unnamed,
            workers: self.workers.into_ranked(worker, |w| w.worker.clone()),
            longest: self.longest.into_sorted(),
        }
    }
}

impl TimersReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<TimersReport> {
        let mut timers = Timers::default();
        input.rows(|r: TimerLatency| timers.add(&r))?;
        Ok(timers.finish(input.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("timers", "how late a load's sleeping workers ran");
        if self.workers.is_empty() {
            s.say("No worker slept: `ft-agent record -- ft-load hourglass -n 1 -w LAT 1ms -i HR` records one that does.");
            return s.with(self);
        }
        s.say(self.marks.line("sleep"));
        if self.unnamed > 0 {
            s.say(text!(
                "Of {} the interrupt was not recorded, so until the waking all is called the timer; `record -a` has interrupts \
                 that strike threads of others.",
                N(self.unnamed)
            ));
        }
        let thread = |w: &&WorkerTimer| w.worker.thread();
        let t = Table::first(SHOWN, &self.workers)
            .counted("workers")
            .column("worker", thread)
            .column("timer", |w| Word(w.timer))
            .column("sleeps", |w| N(w.sleeps))
            .column("p50", |w| Ns(w.tail.p50_ns))
            .column("p99", |w| w.tail.p99_ns.map(Ns))
            .column("p99.9", |w| w.tail.p999_ns.map(Ns))
            .column("max", |w| Ns(w.tail.max_ns));
        s.table(t.titled(
            "From the time for which the timer was set until the worker had read the clock",
        ));
        if self.kernel {
            let t = Table::first(SHOWN, &self.workers).counted("workers").column("worker", thread);
            let share = |t, i: usize| {
                Builder::column(t, PARTS[i], move |w: &&WorkerTimer| {
                    Share(w.parts_ns[i], w.divided_ns)
                })
            };
            let t = (0..4).fold(t, share);
            let most = |t, i: usize| {
                let title = format!("max {}", PARTS[i]);
                Builder::column(t, &title, move |w: &&WorkerTimer| Ns(w.parts_max_ns[i]))
            };
            s.table((0..4).fold(t, most).titled(
                "Where that went: late timer, interrupt until the waking, dispatch, return to the program",
            ));
        }
        let t = Table::of(&self.longest)
            .marks(|l| l.mark)
            .column("worker", |l| Id(l.worker))
            .column("late by", |l| Interval { ts: l.ts, dur_ns: l.dur_ns, tid: l.tid, lock: None });
        let t = t.when(self.kernel, |t| {
            let part = |t, i: usize| {
                Builder::column(t, PARTS[i], move |l: &&LateTimer| l.parts_ns.map(|p| Ns(p[i])))
            };
            (0..4)
                .fold(t, part)
                .column("woken in", |l| l.interrupt.as_deref().map(Word))
                .column("behind", |l| {
                    l.running.as_deref().map(|comm| Thread::of(l.running_tid, Some(comm)))
                })
        });
        s.table(t.titled("The latest"));
        self.marks.legend(&mut s);
        s.with(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::run;

    fn report(timeline: &str) -> TimersReport {
        let (rows, tally) = run(true, timeline);
        let mut timers = Timers::default();
        rows.timer_latency.iter().for_each(|r| timers.add(r));
        timers.finish(&tally)
    }

    #[test]
    fn what_a_worker_is_late_by_is_divided() {
        let report = report(
            "0 0 .>a S
             10 worker a 2 6 1
             20 sleep a 1000
             25 0 a>. S
             1010 wake . a 0
             1040 0 .>a S
             1055 woke a 1000 1050",
        );
        let [w] = &report.workers[..] else { panic!("{:?}", report.workers) };
        assert_eq!((w.worker.worker, w.timer, w.sleeps, w.divided_ns), (2, "HR", 1, 50));
        assert_eq!((w.parts_ns, w.parts_max_ns), ([10, 0, 30, 10], [10, 0, 30, 10]));
        let text = format!("{:120}", report.section());
        for line in ["1 sleep, exact", "`record -a`", "60.0 %", "The latest", "max dispatch"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn without_a_load_there_is_a_sentence() {
        let text = format!("{:120}", report("0 0 .>a S").section());
        assert!(text.contains("No worker slept"), "{text}");
    }
}
