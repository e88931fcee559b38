//! What the workers of a load did, `ft-load hourglass`, beside what they were to do.
//!
//! **Goal.** A row for each worker ([`LoadWorker`]), for each time in which it had the CPU without a gap ([`runs`]), for each
//! of its jobs, with the parts of its response ([`jobs`]), for each of its sleeps ([`timers`]), and for what lies between
//! neighbouring runs on a CPU ([`switches`]).
//!
//! **Rule.** A worker announces itself ([`plan`]), and what follows is reported by its thread; the list of its events is in
//! the documentation of `ft_load::hourglass`. It is over when it says so, or when its thread, its memory or the trace
//! ends: then it is `censored`.
//!
//! **What gives no row** is counted, [`WithoutRow`].
//!
//! Memory: of each worker, what is open of it; nothing grows with the length of the trace.
//!
//! Cost, in instructions by callgrind: 2.5 for each event of a trace without a load (0.13 % of `ft-agent analyze`), 780 for each
//! of one that has little else, with the kernel's switches and interrupts (10 %).

mod cpus;
mod jobs;
mod plan;
mod runs;
mod switches;
mod timers;

pub use switches::SwitchCell;

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::world::{Change, Interval, LoadEvent, Over, Past, PerThread, Thread, World};
use crate::{Rows, Tally};
use cpus::Cpus;
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::{Cpu, Nanos, Pid};
use ft_trace::tables::{LoadJob, LoadRun, LoadWorker, Workload};
use jobs::Jobs;
use plan::Plan;
use runs::Runs;
use serde::{Deserialize, Serialize};
use switches::{Begin, End, Left, Process};
use timers::Timers;

/// What workers did, with rows and without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worked {
    /// Workers with a row.
    pub workers: u64,
    /// Runs with a row.
    pub runs: u64,
    /// Jobs with a row.
    pub jobs: u64,
    /// Sleeps with a row.
    pub sleeps: u64,
    /// Times between neighbouring runs, with a row.
    pub switches: u64,
    /// What has none.
    #[serde(alias = "untold")]
    pub without_row: WithoutRow,
}

impl Worked {
    /// There was no load.
    pub fn is_none(&self) -> bool {
        *self == Worked::default()
    }
}

/// Runs and jobs without a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WithoutRow {
    /// Runs whose begin was recorded, and not their end: events were lost, or the worker or the recording ended.
    pub runs: u64,
    /// Finishes without the job's begin.
    pub finishes: u64,
    /// Runs, jobs and sleeps that end before they begin, or later than their event was written.
    pub impossible: u64,
}

/// A worker that has announced itself.
#[derive(Debug)]
struct Worker {
    plan: Plan,
    runs: Runs,
    jobs: Jobs,
    timers: Timers,
    /// When it left its CPU first since its run began.
    left: Option<Left>,
    /// Events of it were lost.
    lost: bool,
}

impl Worker {
    fn new(e: &LeanUserEvent, now: i64) -> Worker {
        let (runs, jobs, timers) = (Runs::default(), Jobs::default(), Timers::default());
        Worker { plan: Plan::new(e, now), runs, jobs, timers, left: None, lost: false }
    }
}

/// A moment of a worker.
#[derive(Clone, Copy)]
struct Moment<'a> {
    thread: &'a Thread,
    world: &'a World,
}

impl Moment<'_> {
    fn now(self) -> i64 {
        self.world.now()
    }

    /// What the kernel recorded of an interval that is over.
    fn past(self, from: i64, to: i64) -> Option<Past> {
        self.thread.past(Interval::told(from, to, self.now())?)
    }

    /// `lower bound` if records were lost since then, or for another reason.
    fn mark(self, since: i64, doubtful: bool) -> Mark {
        let lost = self.world.losses().any_since(self.thread.key, since);
        Mark::lower_bound_if(lost || doubtful).max(self.thread.disturbed.mark(since))
    }
}

/// Makes the tables of loads.
#[derive(Debug, Default)]
pub struct Loads {
    workers: PerThread<Option<Box<Worker>>>,
    /// Processes that have workers.
    processes: HashMap<Pid, Process>,
    /// Kept while there are any.
    cpus: Cpus,
    agreement: switches::SwitchMatrix,
    worked: Worked,
}

impl Analysis for Loads {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Own { thread, event, site } => {
                if let Some(what) = site.load {
                    self.told(what, event, Moment { thread, world }, rows);
                }
            }
            Change::Gap { thread, cpu, interval, .. } => {
                let moment = Moment { thread, world };
                if let Some(Some(worker)) = self.workers.get(thread) {
                    let run = worker.runs.gap(&worker.plan, moment, interval, cpu);
                    worker.jobs.gap(moment, interval);
                    let run = self.worked.count(run);
                    let end = run.as_ref().map(|run| (run.cpu, End::of(run)));
                    rows.runs.extend(run);
                    self.next_run(end, cpu, interval.after(), moment, rows);
                }
            }
            Change::Switched { cpu, prev } if !self.processes.is_empty() => {
                let nth = self.cpus.switched(cpu, world.now());
                if let Some(prev) = prev
                    && let Some(Some(worker)) = self.workers.get(prev)
                {
                    worker.left.get_or_insert(Left { cpu, at: world.now(), nth });
                    worker.timers.leaves(prev.is_blocked(), world.now());
                }
            }
            Change::Waking { thread, cpu, .. } => {
                if let Some(Some(worker)) = self.workers.get(thread) {
                    worker.timers.wakes(cpu, world);
                }
            }
            Change::Dispatched { thread, shares, cpu, .. } => {
                if let Some(Some(worker)) = self.workers.get(thread) {
                    worker.timers.runs(cpu, shares, world.now());
                }
            }
            Change::Dropping { thread, why: Over::Loss } => {
                if let Some(Some(worker)) = self.workers.get(thread) {
                    worker.lost = true;
                    self.worked.without_row.runs += u64::from(worker.runs.lose());
                    if let Some(process) = self.processes.get_mut(&thread.key.pid) {
                        process.loses(thread.key.tid);
                    }
                }
            }
            Change::Dropping { thread, .. } | Change::Ended { thread, .. } => {
                self.over(Moment { thread, world }, Mark::Censored, rows);
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.worked = self.worked;
        tally.agreement.switches = self.agreement.finish();
    }
}

impl End {
    fn of(run: &LoadRun) -> End {
        End { at: run.ts.0 + run.dur, how: run.ended }
    }
}

impl Worked {
    /// Counts a job that does not finish, if there is one.
    fn given_up(&mut self, job: Option<LoadJob>) -> Option<LoadJob> {
        self.jobs += u64::from(job.is_some());
        job
    }

    /// Counts a run with a row; what its events say may be impossible.
    fn count<T>(&mut self, run: Option<Result<T, Impossible>>) -> Option<T> {
        match run? {
            Ok(run) => {
                self.runs += 1;
                Some(run)
            }
            Err(Impossible) => {
                self.without_row.impossible += 1;
                None
            }
        }
    }
}

/// What its events say cannot have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Impossible;

impl Loads {
    fn told(&mut self, what: LoadEvent, e: &LeanUserEvent, moment: Moment<'_>, rows: &mut Rows) {
        if what == LoadEvent::Worker {
            // Where it was another one before, that one's end was not recorded.
            self.over(moment, Mark::Censored, rows);
            *self.workers.of(moment.thread) = Some(Box::new(Worker::new(e, moment.now())));
            self.processes.entry(e.pid).or_default().workers += 1;
            return;
        }
        let Some(Some(worker)) = self.workers.get(moment.thread) else { return };
        let Worker { plan, runs, jobs, timers, .. } = &mut **worker;
        let process = self.processes.entry(e.pid).or_default();
        let tid = moment.thread.key.tid;
        let [first, second, third] = e.arg;
        match what {
            LoadEvent::Worker | LoadEvent::Loop(_) => {}
            LoadEvent::Reserved | LoadEvent::Demand | LoadEvent::Bound => plan.told(what, e.arg),
            LoadEvent::Class => {
                plan.told(what, e.arg);
                process.scheduled(tid, plan.policy, plan.priority);
            }
            LoadEvent::Span => {
                plan.told(what, e.arg);
                jobs.first_release(plan, moment);
            }
            LoadEvent::First => {
                if runs.first(first, e.cpu, moment.now()) {
                    self.next_run(None, e.cpu, first, moment, rows);
                }
            }
            LoadEvent::Last => {
                let run = runs.last(plan, moment, first);
                rows.runs.extend(self.worked.count(run));
                process.loses(tid);
            }
            LoadEvent::Sleep => {
                runs.sleeps(moment.now());
                timers.sleeps(first);
            }
            LoadEvent::Yield => runs.yields(moment.now()),
            LoadEvent::Woke => match timers.over(plan, moment, first, second) {
                Ok(sleep) => {
                    self.worked.sleeps += 1;
                    rows.timer_latency.push(sleep);
                }
                Err(Impossible) => self.worked.without_row.impossible += 1,
            },
            LoadEvent::Job => {
                rows.jobs.extend(self.worked.given_up(jobs.give_up(plan, moment)));
                let begun = jobs.begin(plan, moment, first, second, third);
                self.worked.without_row.impossible += u64::from(begun == Err(Impossible));
            }
            LoadEvent::Finish => match jobs.finish(plan, moment, first, second) {
                Some(Ok(job)) => {
                    self.worked.jobs += 1;
                    rows.jobs.push(job);
                }
                Some(Err(Impossible)) => self.worked.without_row.impossible += 1,
                None => self.worked.without_row.finishes += 1,
            },
            LoadEvent::JobOver => {
                rows.jobs.extend(self.worked.given_up(jobs.give_up(plan, moment)));
            }
            LoadEvent::Done => {
                let told_all = [runs.count, jobs.begun, timers.count] == e.arg;
                let mark = Mark::lower_bound_if(worker.lost || !told_all);
                self.over(moment, mark, rows);
            }
        }
    }

    /// A run begins on a CPU, behind one of the worker's own or as its first.
    fn next_run(
        &mut self,
        own: Option<(Cpu, End)>,
        cpu: Cpu,
        at: i64,
        moment: Moment<'_>,
        rows: &mut Rows,
    ) {
        let key = moment.thread.key;
        let Some(Some(worker)) = self.workers.get(moment.thread) else { return };
        let Some(process) = self.processes.get_mut(&key.pid) else { return };
        let left = worker.left.take();
        let ended = match own {
            Some((cpu, end)) => process.ends(cpu, key.tid, end, left, moment),
            None => None,
        };
        let begun = self.cpus.of(cpu).and_then(|records| {
            let (switches, switched) = (records.switches, records.last);
            let (number, own) = (worker.plan.number, own.map(|(_, end)| end));
            let begin = Begin { tid: key.tid, worker: number, cpu, at, own, switches, switched };
            process.begins(begin, moment)
        });
        for switch in ended.into_iter().chain(begun) {
            self.worked.switches += 1;
            self.agreement.add(&switch);
            rows.switches.push(switch);
        }
    }

    /// The worker is over, if there is one.
    fn over(&mut self, moment: Moment<'_>, mark: Mark, rows: &mut Rows) {
        let Some(mut worker) = self.workers.get(moment.thread).and_then(Option::take) else {
            return;
        };
        rows.jobs.extend(self.worked.given_up(worker.jobs.give_up(&worker.plan, moment)));
        self.worked.without_row.runs += u64::from(worker.runs.lose());
        let key = moment.thread.key;
        if let Some(process) = self.processes.get_mut(&key.pid) {
            process.loses(key.tid);
            process.workers -= 1;
            if process.workers == 0 {
                self.processes.remove(&key.pid);
            }
        }
        self.worked.workers += 1;
        rows.workers.push(row(&worker, moment, mark));
    }
}

fn row(worker: &Worker, moment: Moment<'_>, mark: Mark) -> LoadWorker {
    let Worker { plan, runs, jobs, timers, .. } = worker;
    let whole = if mark == Mark::Censored { 0 } else { plan.periods() };
    let missed = match plan.workload {
        Workload::Periodic => jobs.missed.max(whole.saturating_sub(jobs.hit)),
        _ => jobs.missed,
    };
    LoadWorker {
        ts: Nanos(plan.start),
        dur: plan.finish - plan.start,
        pid: moment.thread.key.pid,
        tid: moment.thread.key.tid,
        comm: moment.thread.comm.clone(),
        worker: plan.number,
        workload: plan.workload,
        amount_ns: plan.amount_ns,
        period_ns: plan.period_ns,
        timer: plan.timer,
        policy: plan.policy,
        priority: plan.priority,
        reserved_ns: plan.reserved.map(|(amount, _)| amount),
        reserved_period_ns: plan.reserved.map(|(_, period)| period),
        only_cpu: plan.only_cpu.map(|Cpu(cpu)| cpu),
        bound_ns: plan.bound_ns,
        runs: runs.count,
        run_ns: runs.run_ns,
        gap_ns: runs.gap_ns,
        jobs: jobs.begun,
        hit: jobs.hit,
        missed,
        sleeps: timers.count,
        mark,
    }
}

#[cfg(test)]
mod tests;
