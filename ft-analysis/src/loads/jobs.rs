//! Jobs of periodic workers, and where their response times went.
//!
//! **Rule.** A job responds from its release to its finish. While the worker is still at an earlier job the time is
//! *backlog*; the rest is accounted for piece by piece, as the worker tells of its gaps: between them it had the CPU,
//! and what the kernel recorded of the time is what it was. In a gap the worker did not run its code, so time on the CPU
//! there without another record is unexplained; so it is before the job has begun.
//!
//! When a job is released is known before: a period after the one before it, the first at the worker's start. So the time
//! between its release and its start is looked at when the worker tells of the gap in which it slept.
//!
//! **Situations.**
//! - *Released by its start* (`CPU_PERIODIC`): nothing comes before.
//! - *A job that does not finish*: the worker's end came first; its row is censored.
//! - *The release is another one than expected*: events were lost, or the program says what is not so. Of the time before
//!   its start nothing is known then, and it is a lower bound.

use super::{Impossible, Moment, Plan};
use crate::world::{Interval, Shares};
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos};
use ft_trace::tables::{Deadline, Decomposition, LoadJob, Workload};

/// The time of a response that is accounted for.
#[derive(Clone, Debug, Default)]
struct Response {
    /// From when on; not before the release.
    from: i64,
    /// Until when.
    until: i64,
    parts: Decomposition,
    /// Who ran while the worker could.
    shares: Shares,
    interrupts: Vec<(Name, i64)>,
    /// Of some of it nothing is known.
    hidden: bool,
}

impl Response {
    fn new(from: i64) -> Response {
        Response { from, until: from, ..Response::default() }
    }

    /// Accounts for the time until `to`, in which the worker polled or not.
    fn spend(&mut self, to: i64, polled: bool, moment: Moment<'_>) {
        if to <= self.until {
            return;
        }
        let past = moment.past(self.until, to);
        self.hidden |= past.as_ref().is_none_or(|past| past.hidden);
        let mut past = past.unwrap_or_default();
        past.parts.unexplained_ns += to - self.until - past.parts.total_ns();
        if !polled {
            past.parts.unexplained_ns += std::mem::take(&mut past.parts.running_ns);
        }
        self.parts += past.parts;
        self.shares.merge(&past.shares);
        for (_, name, ns) in past.interrupts {
            match self.interrupts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += ns,
                None => self.interrupts.push((name, ns)),
            }
        }
        self.until = to;
    }

    /// Who or what took most of it, its thread id if it is one, and how long.
    fn culprit(&self) -> Option<(Name, Option<i32>, i64)> {
        let Decomposition { preempted_ns, dispatch_ns, blocked_ns, .. } = self.parts;
        let thread = self.shares.longest().map(|s| {
            (s.who.comm.clone(), Some(s.who.thread.tid.0), s.ns.min(preempted_ns + dispatch_ns))
        });
        let interrupt = self.interrupts.iter().max_by_key(|(_, ns)| *ns);
        let interrupt = interrupt.map(|(name, ns)| (name.clone(), None, *ns));
        let timer = ("late timer".into(), None, blocked_ns);
        let all = [Some(timer), interrupt, thread].into_iter().flatten();
        all.max_by_key(|(.., ns)| *ns).filter(|(.., ns)| *ns > 0)
    }
}

/// A job that goes on.
#[derive(Debug)]
struct Job {
    number: i64,
    release: i64,
    due: i64,
    start: i64,
    response: Response,
}

/// The jobs of one worker.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// When the next one is released, and what became of the time since.
    next: Option<(i64, Response)>,
    open: Option<Job>,
    /// When the last one finished.
    finished: i64,
    pub(super) begun: i64,
    pub(super) hit: i64,
    pub(super) missed: i64,
}

impl Jobs {
    /// The worker knows when it begins.
    pub(super) fn first_release(&mut self, plan: &Plan, moment: Moment<'_>) {
        if plan.workload == Workload::Periodic {
            let mut response = Response::new(plan.start);
            // That it announces itself too late is known, and not why.
            response.spend(moment.now(), false, moment);
            self.next = Some((plan.start, response));
        }
    }

    /// The worker did not run in the interval.
    pub(super) fn gap(&mut self, moment: Moment<'_>, gap: Interval) {
        if let Some(job) = &mut self.open {
            job.response.spend(gap.before(), true, moment);
            job.response.spend(gap.after(), false, moment);
        } else if let Some((_, response)) = &mut self.next {
            response.spend(gap.after(), false, moment);
        }
    }

    /// A job begins.
    pub(super) fn begin(
        &mut self,
        plan: &Plan,
        moment: Moment<'_>,
        number: i64,
        start: i64,
        release: i64,
    ) -> Result<(), Impossible> {
        let now = moment.now();
        let expected = self.next.take();
        let release = if release == 0 { start } else { release };
        if !(0..=now).contains(&start) || !(0..=now).contains(&release) {
            return Err(Impossible);
        }
        let expected = expected.filter(|(at, _)| *at == release).map(|(_, response)| response);
        let mut response =
            expected.unwrap_or_else(|| Response::new(release.max(self.finished).min(now)));
        response.spend(start, false, moment);
        let due = release.saturating_add(plan.period_ns.unwrap_or(0));
        self.begun += 1;
        self.open = Some(Job { number, release, due, start, response });
        Ok(())
    }

    /// The job has had its time; `None`: there is none of this number.
    pub(super) fn finish(
        &mut self,
        plan: &Plan,
        moment: Moment<'_>,
        number: i64,
        finish: i64,
    ) -> Option<Result<LoadJob, Impossible>> {
        let job = self.open.take_if(|job| job.number == number)?;
        if !(job.response.until..=moment.now()).contains(&finish) {
            return Some(Err(Impossible));
        }
        self.finished = finish;
        if plan.workload == Workload::Periodic {
            self.next = Some((job.due, Response::new(job.due.max(finish))));
        }
        Some(Ok(self.row(job, Some(finish), plan, moment)))
    }

    /// A job that goes on does not finish.
    pub(super) fn give_up(&mut self, plan: &Plan, moment: Moment<'_>) -> Option<LoadJob> {
        let job = self.open.take()?;
        self.finished = moment.now();
        Some(self.row(job, None, plan, moment))
    }

    fn row(&mut self, job: Job, finish: Option<i64>, plan: &Plan, moment: Moment<'_>) -> LoadJob {
        let Job { number, release, due, start, mut response } = job;
        let end = finish.unwrap_or(moment.now());
        response.spend(end, true, moment);
        let deadline = match finish {
            _ if plan.workload == Workload::Periodic && due > plan.finish => Deadline::Open,
            _ if end > due => Deadline::Missed,
            Some(_) => Deadline::Hit,
            None => Deadline::Open,
        };
        let dur = end - release;
        match (plan.workload, plan.period_ns) {
            (Workload::CpuPeriodic, Some(period)) => {
                self.hit += i64::from(finish.is_some());
                // Ending with a period is in time.
                let late = dur - i64::from(finish.is_some());
                self.missed = self.missed.saturating_add(late.max(0) / period);
            }
            _ => {
                self.hit += i64::from(deadline == Deadline::Hit);
                self.missed += i64::from(deadline == Deadline::Missed);
            }
        }
        let kernel = moment.world.context().kernel;
        let thread = moment.thread;
        let culprit = response.culprit().filter(|_| kernel);
        // Of a wait that began before the release it is not known who of several had the CPU when.
        let waited = response.parts.runnable_ns();
        let known = response.shares.is_exact() && response.shares.of(|_| true) <= waited;
        let known = known && !response.hidden && !thread.doubtful_since(release);
        let mark = moment.mark(release, kernel && !known);
        let agent_ns = moment.world.agent_share(&response.shares);
        let agent_ns = agent_ns.and_then(|ns| moment.world.agent_part(ns, &response.parts));
        LoadJob {
            ts: Nanos(release),
            dur,
            pid: thread.key.pid,
            tid: thread.key.tid,
            comm: thread.comm.clone(),
            worker: plan.number,
            number,
            due: Nanos(due),
            start: Nanos(start),
            finish,
            deadline,
            backlog_ns: response.from - release,
            parts: kernel.then_some(response.parts),
            culprit: culprit.as_ref().map(|(name, ..)| name.clone()),
            culprit_tid: culprit.as_ref().and_then(|(_, tid, _)| *tid),
            culprit_ns: culprit.as_ref().map(|(.., ns)| *ns),
            agent_ns,
            mark: if finish.is_some() { mark } else { Mark::Censored },
        }
    }
}
