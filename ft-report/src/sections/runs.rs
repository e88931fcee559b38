//! The gap-free runs of a load's workers: how much of the CPU each had, in what pieces, and why those ended.

use serde::Serialize;

use super::Input;
use super::workers::{Announced, ByWorker};
use crate::document::{N, Ns, Of, Section, Share, Table, Word};
use crate::stats::{Distribution, Marks, Tail};
use crate::text;
use ft_analysis::{Tally, Worked};
use ft_trace::ids::{Cpu, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{LoadRun, LoadWorker, RunEnd};

/// Lines that are shown; the machine values have all.
const SHOWN: usize = 20;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct RunsReport {
    /// What has rows and what has none.
    pub worked: Worked,
    /// How sure the runs are.
    pub marks: Marks,
    /// Each worker that polled, by its number.
    pub workers: Vec<WorkerRuns>,
}

/// The runs of one worker.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerRuns {
    /// Which.
    #[serde(flatten)]
    pub worker: Announced,
    /// Runs.
    pub runs: u64,
    /// Their sum, ns.
    pub run_ns: i64,
    /// Sum of the gaps between them, ns: with `run_ns`, the time from its first reading of the counter to its last.
    pub gap_ns: i64,
    /// Percentiles of their lengths.
    #[serde(flatten)]
    pub tail: Tail,
    /// Interrupts within runs, too short for the worker to notice, ns.
    pub unnoticed_ns: i64,
    /// Runs that the worker did nothing to end.
    pub unasked: u64,
    /// Runs that it ended by yielding.
    pub yielded: u64,
    /// Runs that it ended by sleeping.
    pub slept: u64,
    /// How often the next run was on another CPU.
    pub moved: u64,
}

#[derive(Debug, Default)]
struct Sums {
    plan: Option<Box<LoadWorker>>,
    lengths: Distribution,
    gap_ns: i64,
    unnoticed_ns: i64,
    ends: [u64; 3],
    cpu: Option<Cpu>,
    moved: u64,
}

/// Makes a [`RunsReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Runs {
    workers: ByWorker<Sums>,
    marks: Marks,
}

impl Runs {
    /// A worker.
    pub fn worker(&mut self, r: LoadWorker) {
        if r.runs > 0 {
            let sums = self.workers.entry((r.pid, r.tid));
            sums.plan = Some(Box::new(r));
        }
    }

    /// Counts a run; those of one worker come in their order.
    pub fn add(&mut self, r: &LoadRun) {
        self.marks.add(r.mark);
        let sums = self.workers.entry((r.pid, r.tid));
        sums.lengths.add(r.dur);
        sums.gap_ns = sums.gap_ns.saturating_add(r.gap_ns.unwrap_or(0));
        sums.unnoticed_ns += r.parts.map_or(0, |parts| parts.interrupts_ns());
        sums.moved += u64::from(sums.cpu.replace(r.cpu).is_some_and(|cpu| cpu != r.cpu));
        match r.ended {
            RunEnd::Unasked => sums.ends[0] += 1,
            RunEnd::Yielded => sums.ends[1] += 1,
            RunEnd::Slept => sums.ends[2] += 1,
            RunEnd::Finished => {}
        }
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(self, tally: &Tally) -> RunsReport {
        let workers = self.workers.into_ranked(worker, |w| w.worker.id.clone());
        RunsReport { worked: tally.worked, marks: self.marks, workers }
    }
}

fn worker((thread, mut sums): ((Pid, Tid), Sums)) -> WorkerRuns {
    let [unasked, yielded, slept] = sums.ends;
    WorkerRuns {
        worker: Announced::new(thread, sums.plan.as_deref()),
        runs: sums.lengths.count(),
        run_ns: sums.lengths.sum(),
        gap_ns: sums.gap_ns,
        unnoticed_ns: sums.unnoticed_ns,
        unasked,
        yielded,
        slept,
        moved: sums.moved,
        tail: Tail::of(&mut sums.lengths),
    }
}

impl RunsReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<RunsReport> {
        let mut runs = Runs::default();
        input.rows(|r: LoadWorker| runs.worker(r))?;
        input.rows(|r: LoadRun| runs.add(&r))?;
        Ok(runs.finish(input.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("runs", "when a load's workers had the CPU without a gap");
        if self.workers.is_empty() {
            s.say("No worker polled: `ft-agent record -- ft-load hourglass -n 2 -w CPU` records two that do.");
            return s.with(self);
        }
        s.say(text!(
            "{}; runs and the gaps between them tile each worker's time, and the report `gaps` says what the gaps were",
            self.marks.line("run")
        ));
        let without_row = self.worked.without_row.runs;
        if without_row > 0 {
            s.say(text!("{} without a recorded end not counted", Of(without_row, "run")));
        }
        let t = Table::first(SHOWN, &self.workers)
            .counted("workers")
            .marks(|w| w.worker.mark)
            .column("worker", |w| w.worker.id.thread())
            .column("workload", |w| Word(w.worker.workload))
            .column("runs", |w| N(w.runs))
            .column("had", |w| Ns(w.run_ns))
            .column("of all", |w| Share(w.run_ns, w.run_ns.saturating_add(w.gap_ns)))
            .column("in gaps", |w| Ns(w.gap_ns))
            .column("p50", |w| Ns(w.tail.p50_ns))
            .column("p99", |w| w.tail.p99_ns.map(Ns))
            .column("max", |w| Ns(w.tail.max_ns))
            .column("unnoticed", |w| Ns(w.unnoticed_ns));
        s.table(t.titled("Runs (unnoticed: interrupts that were too short for a gap)"));
        let t = Table::first(SHOWN, &self.workers)
            .counted("workers")
            .column("worker", |w| w.worker.id.thread())
            .column("unasked", |w| N(w.unasked))
            .column("yielded", |w| N(w.yielded))
            .column("slept", |w| N(w.slept))
            .column("moved", |w| N(w.moved));
        s.table(t.titled("Why runs ended, and how often the next was on another CPU"));
        self.marks.legend(&mut s);
        s.with(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::run;

    fn report(timeline: &str) -> RunsReport {
        let (rows, tally) = run(true, timeline);
        let mut runs = Runs::default();
        rows.workers.into_iter().for_each(|r| runs.worker(r));
        rows.runs.iter().for_each(|r| runs.add(r));
        runs.finish(&tally)
    }

    #[test]
    fn runs_and_gaps_are_the_time_of_a_worker() {
        let report = report(
            "0 0 .>a S
             10 worker a 1 2 0
             11 poll a 0
             12 first a 12
             50 gap a 0 20 50
             60 irq a soft 5
             100 yield a
             120 gap a 1 100 120
             200 last a 190
             210 done a 3 0 0",
        );
        let [w] = &report.workers[..] else { panic!("{:?}", report.workers) };
        assert_eq!((w.runs, w.run_ns, w.gap_ns, w.run_ns + w.gap_ns), (3, 128, 50, 190 - 12));
        assert_eq!((w.unasked, w.yielded, w.slept, w.moved, w.unnoticed_ns), (1, 1, 0, 1, 5));
        let text = format!("{:120}", report.section());
        for line in ["3 runs, all exact", "CPU_YIELD", "71.9 %", "Why runs ended"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn without_a_load_there_is_a_sentence() {
        let text = format!("{:120}", report("0 0 .>a S").section());
        assert!(text.contains("No worker polled"), "{text}");
    }
}
