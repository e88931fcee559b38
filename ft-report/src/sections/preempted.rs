//! Statistics of holders that could have run and did not: per lock and per preemptor.

mod preemptor;

use std::cmp::Reverse;

use serde::Serialize;

use super::called::Called;
use super::{Input, NO_SCHEDULER, unknown};
use crate::document::{Id, Interval, Lock, N, Ns, Of, Place, Section, Share, Table, Thread, Word};
use crate::stats::{Groups, IDLE, Marks, Own, Top, own};
use crate::text;
use ft_analysis::{Mark, Tally, Unfinished};
use ft_trace::ids::{Name, Pid};
use ft_trace::store::Result;
use ft_trace::tables::{LockPreemption, PreemptionCause};
pub use preemptor::Preemptor;

/// Locks, and preemptors, with a group of their own; further ones are in one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`, `pollers_that_do_not_fit_are_others`.
const MAX_GROUPS: usize = 16_384;

/// Rows of the longer tables that are shown; the machine values have all.
const SHOWN: usize = 15;

/// Longest preemptions that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PreemptedReport {
    /// There is a kernel stream; without one nothing is known.
    pub kernel: bool,
    /// Times that a holder was off the CPU while runnable; each once, however many locks it held.
    pub times: u64,
    /// Of these, preempted; the others had slept and waited for a CPU.
    pub preempted: u64,
    /// Sum of these times, ns.
    pub total_ns: i64,
    /// Of this, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Times whose end was not recorded; in no statistic.
    pub unfinished: Unfinished,
    /// Holds of semaphores in which the holder was off the CPU while runnable; these times are in no statistic.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub semaphores: u64,
    /// How many are exact, lower bounds, censored.
    pub marks: Marks,
    /// Each lock, the longest total first. A time counts for every lock that was held.
    pub locks: Vec<PreemptedLock>,
    /// Who had the CPU longest of each time; the longest total first. A time counts once.
    pub preemptors: Vec<Preemptor>,
    /// The longest.
    pub longest: Vec<LongPreemption>,
}

/// Sums of one lock, or of locks of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PreemptedLock {
    /// Process.
    pub pid: i32,
    /// Name of the lock.
    pub lock: String,
    /// Its kind.
    pub kind: String,
    /// Times that a holder could have run and did not.
    pub times: u64,
    /// Sum, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Waits that this prolonged: a wait counts each time.
    pub waiters: u64,
    /// By how much, in all, ns.
    pub delayed_ns: i64,
}

/// One of the longest.
#[derive(Clone, Debug, Serialize)]
pub struct LongPreemption {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Address of the innermost lock.
    #[serde(skip)]
    pub address: i64,
    /// Innermost lock.
    pub lock: String,
    /// Where it was acquired.
    pub place: String,
    /// Locks held beside it.
    pub depth: i32,
    /// Holder.
    pub holder: String,
    /// Its thread id.
    pub holder_tid: i32,
    /// Why it was off the CPU.
    pub cause: PreemptionCause,
    /// Who had the CPU longest.
    pub preemptor: Option<String>,
    /// Its thread id.
    pub preemptor_tid: Option<i32>,
    /// Its kernel priority.
    pub preemptor_prio: Option<i32>,
    /// Waiters for the lock that it delayed.
    pub waiters: i32,
    /// By how much in all, ns.
    pub delayed_ns: i64,
    /// What the hold ran afterwards, ns.
    pub ran_after_ns: Option<i64>,
    /// Functions in which it left the CPU, the innermost first; missing where there is none.
    #[serde(skip_serializing_if = "Called::is_unknown")]
    pub called: Called,
    /// Of `dur_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// How far it can be believed.
    pub mark: Mark,
}

impl From<&LockPreemption> for LongPreemption {
    fn from(r: &LockPreemption) -> Self {
        LongPreemption {
            ts: r.ts.0,
            dur_ns: r.dur,
            address: r.lock,
            lock: r.lock_name.to_string(),
            place: r.place.to_string(),
            depth: r.depth,
            holder: r.comm.to_string(),
            holder_tid: r.tid.0,
            cause: r.cause,
            preemptor: r.preemptor_comm.as_ref().map(ToString::to_string),
            preemptor_tid: r.preemptor_tid,
            preemptor_prio: r.preemptor_prio,
            waiters: r.waiters,
            delayed_ns: r.delayed_ns,
            ran_after_ns: r.ran_after_ns,
            called: Called::of(r.stack),
            agent_ns: Own(r.agent_ns),
            mark: r.mark,
        }
    }
}

impl LongPreemption {
    /// Where it lies in the trace.
    pub(in crate::sections) fn interval(&self) -> Interval {
        Interval {
            ts: self.ts,
            dur_ns: self.dur_ns,
            tid: self.holder_tid,
            lock: Some(self.address),
        }
    }
}

/// Makes a [`PreemptedReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Preempted {
    report: PreemptedReport,
    locks: Groups<MAX_GROUPS, (Pid, Name, Name), PreemptedLock>,
    /// By cause, whether it is the idle task, which no program can be by taking a name, and name.
    preemptors: Groups<MAX_GROUPS, ((PreemptionCause, bool), Option<Name>), Preemptor>,
    longest: Top<LongPreemption>,
}

impl Preempted {
    /// Counts a row.
    pub fn add(&mut self, r: &LockPreemption) {
        self.add_lock(r);
        self.add_preemptor(r);
        if !r.innermost {
            return;
        }
        self.report.marks.add(r.mark);
        self.report.times += 1;
        self.report.preempted += u64::from(r.cause == PreemptionCause::Preempted);
        self.report.total_ns += r.dur;
        self.report.agent_ns.add(r.agent_ns);
        self.longest.offer(LONGEST, r.dur, || LongPreemption::from(r));
    }

    fn add_lock(&mut self, r: &LockPreemption) {
        let key = (r.pid, r.lock_name.clone(), r.kind.clone());
        let lock = self.locks.entry(key);
        lock.times += 1;
        lock.total_ns += r.dur;
        lock.max_ns = lock.max_ns.max(r.dur);
        lock.agent_ns.add(r.agent_ns);
        lock.waiters += u64::try_from(r.waiters).unwrap_or(0);
        lock.delayed_ns += r.delayed_ns;
    }

    fn add_preemptor(&mut self, r: &LockPreemption) {
        let idle = r.preemptor_tid == Some(0);
        let comm = if idle { Some(IDLE.into()) } else { r.preemptor_comm.clone() };
        let first = || Preemptor::new(r.cause, r.preemptor_tid);
        let p = self.preemptors.entry_or(((r.cause, idle), comm), first);
        // A thread waits for one lock only, so the delays of all locks that were held add up.
        p.delayed_ns += r.delayed_ns;
        if !r.innermost {
            return;
        }
        p.tid = p.tid.filter(|tid| r.preemptor_tid == Some(*tid));
        p.prio = r.preemptor_prio;
        p.times += 1;
        p.total_ns += r.dur;
        p.own_ns += r.preemptor_ns.unwrap_or(0);
        p.max_ns = p.max_ns.max(r.dur);
        p.agent_ns.add(r.agent_ns);
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(self, tally: &Tally) -> PreemptedReport {
        let locks = self.locks.into_ranked(
            |((pid, lock, kind), sums)| PreemptedLock {
                pid: pid.0,
                lock: lock.to_string(),
                kind: kind.to_string(),
                ..sums
            },
            |l| (Reverse(l.total_ns), l.lock.clone(), l.kind.clone(), l.pid),
        );
        let preemptors = self.preemptors.into_ranked(
            |((_, comm), sums)| Preemptor {
                comm: comm.as_deref().unwrap_or_default().to_owned(),
                ..sums
            },
            |p| (Reverse(p.total_ns), p.comm.clone(), p.cause, p.tid),
        );
        let mut marks = self.report.marks;
        let unfinished = tally.unfinished_preemptions;
        marks.add_many(Mark::Censored, unfinished.at_end + unfinished.at_loss);
        PreemptedReport {
            marks,
            kernel: tally.kernel,
            semaphores: tally.semaphores_held_up,
            unfinished,
            locks,
            preemptors,
            longest: self.longest.into_sorted(),
            ..self.report
        }
    }
}

impl PreemptedReport {
    /// Of all these times, those of one cause, ns.
    pub(super) fn lost_ns(&self, cause: PreemptionCause) -> i64 {
        let of_cause = self.preemptors.iter().filter(|p| p.cause == cause);
        of_cause.map(|p| p.total_ns).sum()
    }

    /// What all these times delayed waiters, ns.
    pub(super) fn delayed_ns(&self) -> i64 {
        self.preemptors.iter().map(|p| p.delayed_ns).sum()
    }

    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<PreemptedReport> {
        let mut preempted = Preempted::default();
        input.rows(|r: LockPreemption| preempted.add(&r))?;
        let mut report = preempted.finish(input.tally);
        Called::name(input, report.longest.iter_mut().map(|p| &mut p.called))?;
        Ok(report)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("preempted", "holders of locks that could have run and did not");
        if !self.kernel {
            s.say(NO_SCHEDULER);
            return s.with(unknown(self));
        }
        let u = &self.unfinished;
        if self.marks.any() {
            s.say(self.marks.line("interval").reasons(&[
                (u.at_end, "without an end"),
                (u.at_loss, "in which switches were lost"),
            ]));
        }
        self.marks.legend(&mut s);
        if self.semaphores > 0 {
            s.say(text!(
                "{} of semaphores, whose holders could have run and did not, are not among them: a semaphore is known to have \
                 been held only when it is posted.",
                Of(self.semaphores, "hold")
            ));
        }
        if self.times == 0 {
            s.say("No holder of a traced lock was off the CPU while it could have run.");
            return s.with(self);
        }
        s.say(text!(
            "{} in all{}; {} preempted, {} woken and waiting for a CPU",
            Ns(self.total_ns),
            self.agent_ns.of_it(self.total_ns),
            N(self.preempted),
            N(self.times - self.preempted)
        ));
        self.locks(&mut s);
        self.preemptors(&mut s);
        self.longest(&mut s);
        own::explain(&mut s, "");
        s.with(self)
    }

    fn locks(&self, s: &mut Section) {
        let t = Table::first(SHOWN, self.locks.iter())
            .column("lock", |l| Lock::named(&l.lock))
            .column("kind", |l| Word(&l.kind))
            .processes(|l| l.pid)
            .column("times", |l| N(l.times))
            .column("total", |l| Ns(l.total_ns))
            .column("max", |l| Ns(l.max_ns))
            .column("waits delayed", |l| N(l.waiters))
            .column("delay in all", |l| Ns(l.delayed_ns))
            .counted("locks");
        let t = own::beside(t, |l| (l.agent_ns, l.total_ns));
        s.table(t.titled("By lock: an interval counts for every lock that was held"));
    }

    fn preemptors(&self, s: &mut Section) {
        let t = Table::first(SHOWN, self.preemptors.iter())
            .column("ran instead", |p| p.thread())
            .column("cause", |p| Word(p.cause.word()))
            .column("tid", |p| p.tid.map(Id))
            .column("prio", |p| p.prio.map(Id))
            .column("times", |p| N(p.times))
            .column("total", |p| Ns(p.total_ns))
            .column("share", |p| Share(p.total_ns, self.total_ns))
            .column("max", |p| Ns(p.max_ns))
            .column("itself", |p| Ns(p.own_ns))
            .column("delay of waiters", |p| Ns(p.delayed_ns))
            .counted("threads");
        let t = own::beside(t, |p| (p.agent_ns, p.total_ns));
        s.table(t.titled(
            "By the thread that had the CPU longest meanwhile, and the cause, preempted, or woken and \
             waiting for a CPU: an interval counts once",
        ));
    }

    fn longest(&self, s: &mut Section) {
        let t = Table::of(&self.longest)
            .marks(|p| p.mark)
            .column("lock", |p| Lock::named(&p.lock))
            .column("place", |p| Place(&p.place))
            .column("holder", |p| Thread::named(&p.holder))
            .tids("tid", |p| Some((&*p.holder, p.holder_tid)))
            .column("off CPU", |p| p.interval())
            .notes("in, called from", |p| p.called.way().map(Word))
            .column("cause", |p| Word(p.cause.word()))
            .column("ran instead", |p| Thread::of(p.preemptor_tid, p.preemptor.as_deref()))
            .column("preemptor prio", |p| p.preemptor_prio.map(Id))
            .column("waiters", |p| N(p.waiters.unsigned_abs().into()))
            .column("delay", |p| Ns(p.delayed_ns))
            .column("ran after", |p| p.ran_after_ns.map(Ns));
        let t = own::beside(t, |p| (p.agent_ns, p.dur_ns));
        s.table(t.titled("The longest, with the innermost lock"));
    }
}
