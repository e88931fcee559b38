//! The jobs of a load's periodic workers: deadlines, responses beside the bound by analysis, and where the time went.

use std::cmp::Reverse;

use serde::Serialize;

use super::workers::{Announced, ByCulprit, ByWorker};
use super::{Input, without_kernel};
use crate::document::{Id, Interval, N, Ns, Section, Share, Table, Word};
use crate::stats::{Distribution, Marks, Own, Tail, Top, own, parts};
use ft_analysis::{Mark, Tally, Worked};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{Deadline, Decomposition, LoadJob, LoadWorker};

/// Lines that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Longest responses that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct JobsReport {
    /// There is a kernel stream; without one there are no parts.
    pub kernel: bool,
    /// What has rows and what has none.
    pub worked: Worked,
    /// How sure the jobs are.
    pub marks: Marks,
    /// Each worker with jobs, by its number.
    pub workers: Vec<WorkerJobs>,
    /// Who or what took the largest part of a job, by what they took in all.
    pub culprits: Vec<JobCulprit>,
    /// The jobs with the longest responses.
    pub longest: Vec<LongJob>,
}

/// The jobs of one worker.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerJobs {
    /// Which.
    #[serde(flatten)]
    pub worker: Announced,
    /// CPU time that a job needs, ns.
    pub amount_ns: Option<i64>,
    /// Period, ns.
    pub period_ns: Option<i64>,
    /// Deadlines that were met.
    pub hit: i64,
    /// Deadlines that were missed, those of jobs that never began among them.
    pub missed: i64,
    /// Jobs that finished.
    pub jobs: u64,
    /// Of these, those whose parts are at least what is stated.
    pub lower_bounds: u64,
    /// Percentiles of their responses.
    #[serde(flatten)]
    pub tail: Tail,
    /// The longest response by analysis, ns.
    pub bound_ns: Option<i64>,
    /// All responses together.
    #[serde(flatten)]
    pub all: Spent,
    /// Those of jobs that finished too late.
    pub late: Spent,
}

/// Where responses went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Sum of the responses, ns.
    pub total_ns: i64,
    /// Of that, waiting for the worker's own earlier jobs, ns.
    pub backlog_ns: i64,
    /// Where the rest went.
    pub parts: Decomposition,
    /// What of the rest threads of the agent had the CPU.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
}

impl Spent {
    fn add(&mut self, r: &LoadJob) {
        self.total_ns = self.total_ns.saturating_add(r.dur);
        self.backlog_ns = self.backlog_ns.saturating_add(r.backlog_ns);
        self.parts += r.parts.unwrap_or_default();
        self.agent_ns.add(r.agent_ns);
    }
}

/// What one took of jobs from which it took most.
#[derive(Clone, Debug, Serialize)]
pub struct JobCulprit {
    /// Thread or interrupt, or `late timer`.
    pub culprit: String,
    /// Jobs.
    pub jobs: u64,
    /// Those of them that finished too late.
    pub late: u64,
    /// What it took of them, ns.
    pub total_ns: i64,
    /// The most that it took of one, ns.
    pub max_ns: i64,
}

/// A job with one of the longest responses.
#[derive(Clone, Debug, Serialize)]
pub struct LongJob {
    /// Release, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Response, ns.
    pub dur_ns: i64,
    /// Worker.
    pub worker: i32,
    /// Its thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Number of the job.
    pub number: i64,
    /// What became of its deadline.
    pub deadline: &'static str,
    /// Waiting for the worker's own earlier jobs, ns.
    pub backlog_ns: i64,
    /// Where the rest went.
    pub parts: Option<Decomposition>,
    /// Who or what took the largest part of it.
    pub culprit: Option<String>,
    /// How long, ns.
    pub culprit_ns: Option<i64>,
    /// What of it threads of the agent had the CPU, ns.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// How sure it is.
    pub mark: Mark,
}

impl From<&LoadJob> for LongJob {
    fn from(r: &LoadJob) -> Self {
        LongJob {
            ts: r.ts.0,
            dur_ns: r.dur,
            worker: r.worker,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            number: r.number,
            deadline: r.deadline.word(),
            backlog_ns: r.backlog_ns,
            parts: r.parts,
            culprit: r.culprit.as_ref().map(ToString::to_string),
            culprit_ns: r.culprit_ns,
            agent_ns: Own(r.agent_ns),
            mark: r.mark,
        }
    }
}

#[derive(Debug, Default)]
struct Sums {
    plan: Option<Box<LoadWorker>>,
    responses: Distribution,
    lower_bounds: u64,
    all: Spent,
    late: Spent,
}

#[derive(Debug, Default)]
struct Taken {
    jobs: u64,
    late: u64,
    total_ns: i64,
    max_ns: i64,
}

/// Makes a [`JobsReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Jobs {
    workers: ByWorker<Sums>,
    culprits: ByCulprit<Taken>,
    marks: Marks,
    longest: Top<LongJob>,
}

impl Jobs {
    /// A worker.
    pub fn worker(&mut self, r: LoadWorker) {
        if r.jobs > 0 || r.hit.saturating_add(r.missed) > 0 {
            let sums = self.workers.entry((r.pid, r.tid));
            sums.plan = Some(Box::new(r));
        }
    }

    /// Counts a job.
    pub fn add(&mut self, r: &LoadJob) {
        self.marks.add(r.mark);
        if r.mark == Mark::Censored {
            return;
        }
        let sums = self.workers.entry((r.pid, r.tid));
        sums.responses.add(r.dur);
        sums.lower_bounds += u64::from(r.mark != Mark::Exact);
        sums.all.add(r);
        let is_late = r.deadline == Deadline::Missed;
        if is_late {
            sums.late.add(r);
        }
        if let Some((culprit, ns)) = r.culprit.clone().zip(r.culprit_ns) {
            let taken = self.culprits.entry(culprit);
            taken.jobs += 1;
            taken.late += u64::from(is_late);
            taken.total_ns = taken.total_ns.saturating_add(ns);
            taken.max_ns = taken.max_ns.max(ns);
        }
        self.longest.offer(LONGEST, r.dur, || LongJob::from(r));
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(self, tally: &Tally) -> JobsReport {
        let culprit = |(culprit, taken): (Name, Taken)| JobCulprit {
            culprit: culprit.to_string(),
            jobs: taken.jobs,
            late: taken.late,
            total_ns: taken.total_ns,
            max_ns: taken.max_ns,
        };
        JobsReport {
            kernel: tally.kernel,
            worked: tally.worked,
            marks: self.marks,
            workers: self.workers.into_ranked(worker, |w| w.worker.id.clone()),
            culprits: self
                .culprits
                .into_ranked(culprit, |c| (Reverse(c.total_ns), c.culprit.clone())),
            longest: self.longest.into_sorted(),
        }
    }
}

fn worker((thread, mut sums): ((Pid, Tid), Sums)) -> WorkerJobs {
    let plan = sums.plan.as_deref();
    WorkerJobs {
        worker: Announced::new(thread, plan),
        amount_ns: plan.and_then(|w| w.amount_ns),
        period_ns: plan.and_then(|w| w.period_ns),
        hit: plan.map_or(0, |w| w.hit),
        missed: plan.map_or(0, |w| w.missed),
        jobs: sums.responses.count(),
        lower_bounds: sums.lower_bounds,
        bound_ns: plan.and_then(|w| w.bound_ns),
        all: sums.all,
        late: sums.late,
        tail: Tail::of(&mut sums.responses),
    }
}

impl JobsReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<JobsReport> {
        let mut jobs = Jobs::default();
        input.rows(|r: LoadWorker| jobs.worker(r))?;
        input.rows(|r: LoadJob| jobs.add(&r))?;
        Ok(jobs.finish(input.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("jobs", "deadlines and responses of a load's periodic workers");
        if self.workers.is_empty() {
            s.say("No periodic worker was recorded: `ft-agent record -- ft-load hourglass -n 1 -w PERIODIC 3ms 8ms`.");
            return s.with(self);
        }
        self.coverage(&mut s);
        self.deadlines(&mut s);
        if self.kernel {
            self.parts(
                &mut s,
                |w| w.all,
                "Where the responses went; backlog: at earlier jobs; blocked: the timer was late; unexpl.: not running its code, \
                 without a record",
            );
            self.parts(&mut s, |w| w.late, "Where those of jobs went that finished too late");
            self.culprits(&mut s);
        }
        self.longest(&mut s);
        own::explain(&mut s, "");
        self.marks.legend(&mut s);
        if self.kernel { s.with(self) } else { s.with(without_kernel(self, &["parts"])) }
    }

    fn coverage(&self, s: &mut Section) {
        let without_row = &self.worked.without_row;
        s.say(self.marks.line("job").reasons(&[
            (without_row.finishes, "with no recorded begin"),
            (without_row.impossible, "impossible times"),
        ]));
        if self.workers.iter().any(|w| w.bound_ns.is_some()) {
            s.say(
                "The bound is the longest response by analysis; it knows no switches, no interrupts and no late timers: what \
                 a response has beyond it is in its parts.",
            );
        }
    }

    fn deadlines(&self, s: &mut Section) {
        let bounded = self.workers.iter().any(|w| w.bound_ns.is_some());
        let t = Table::first(SHOWN, &self.workers)
            .counted("workers")
            .marks(|w| w.worker.mark)
            .column("worker", |w| w.worker.id.thread())
            .column("workload", |w| Word(w.worker.workload))
            .column("needs", |w| w.amount_ns.map(Ns))
            .column("period", |w| w.period_ns.map(Ns))
            .column("hit", |w| N(w.hit.unsigned_abs()))
            .column("missed", |w| N(w.missed.unsigned_abs()))
            .column("p50", |w| Ns(w.tail.p50_ns))
            .column("p99", |w| w.tail.p99_ns.map(Ns))
            .column("max", |w| Ns(w.tail.max_ns))
            .when(bounded, |t| {
                t.column("bound", |w| w.bound_ns.map(Ns)).column("beyond", |w| {
                    w.bound_ns.map(|bound| Ns((w.tail.max_ns - bound).max(0)))
                })
            });
        s.table(t.titled(
            "Deadlines by the load's own count, of censored jobs, too, and responses from release to finish, without these",
        ));
    }

    fn parts(&self, s: &mut Section, of: fn(&WorkerJobs) -> Spent, title: &str) {
        let some: Vec<&WorkerJobs> = self.workers.iter().filter(|w| of(w).total_ns > 0).collect();
        if some.is_empty() {
            return;
        }
        let t = Table::first(SHOWN, &some)
            .marks(|w| Mark::lower_bound_if(w.lower_bounds > 0))
            .column("worker", |w| w.worker.id.thread())
            .column("responses", |w| Ns(of(w).total_ns))
            .column("backlog", |w| Share(of(w).backlog_ns, of(w).total_ns));
        let t = parts::shares(t, |w| (of(w).parts, of(w).total_ns));
        s.table(own::beside(t, |w| (of(w).agent_ns, of(w).total_ns)).titled(title));
    }

    fn culprits(&self, s: &mut Section) {
        if self.culprits.is_empty() {
            return;
        }
        let t = Table::first(LONGEST, &self.culprits)
            .counted("culprits")
            .column("culprit", |c| Word(&c.culprit))
            .column("jobs", |c| N(c.jobs))
            .column("late", |c| N(c.late))
            .column("took", |c| Ns(c.total_ns))
            .column("max", |c| Ns(c.max_ns));
        s.table(t.titled(
            "Who or what took the largest part of a job; late: of how many that finished too late",
        ));
    }

    fn longest(&self, s: &mut Section) {
        let interval =
            |l: &LongJob| Interval { ts: l.ts, dur_ns: l.dur_ns, tid: l.tid, lock: None };
        let t = Table::of(&self.longest)
            .marks(|l| l.mark)
            .column("worker", |l| Id(l.worker))
            .column("job", |l| N(l.number.unsigned_abs()))
            .column("response", |l| interval(l))
            .column("deadline", |l| Word(l.deadline))
            .column("backlog", |l| Ns(l.backlog_ns))
            .when(self.kernel, |t| {
                parts::durations(t, |l| l.parts)
                    .column("culprit", |l| l.culprit.as_deref().map(Word))
                    .column("took", |l| l.culprit_ns.map(Ns))
            });
        s.table(own::beside(t, |l| (l.agent_ns, l.dur_ns)).titled("The longest responses"));
    }
}

#[cfg(test)]
mod tests;
