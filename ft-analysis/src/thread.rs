//! One observed thread: its account and the machines that ask it, and the rows that they give.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use crate::agreement;
use crate::contention::Moment;
use crate::dispatch::{Dispatcher, Wake};
use crate::displaced::{Cpus, Shares};
use crate::gaps::{Culprit, Explanation, History};
use crate::infer::Seen;
use crate::ledger::{Account, difference};
use crate::locks::{Hold, Holder};
use crate::time::{self, Spent, Sum};
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Name, Nanos, ThreadKey};
use ft_trace::tables::{CriticalSection, DispatchLatency, Gap, InferredCause, ThreadTime};

/// The observed threads.
#[derive(Debug, Default)]
pub(super) struct Threads(HashMap<ThreadKey, Thread>);

impl Deref for Threads {
    type Target = HashMap<ThreadKey, Thread>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Threads {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Threads {
    /// The threads at the time `now`.
    pub(super) fn at(&mut self, now: i64) -> Moment<'_> {
        Moment { now, threads: self }
    }
}

/// All that is known of one thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) key: ThreadKey,
    pub(super) comm: Name,
    pub(super) account: Account,
    /// CPU that it has.
    pub(super) runs_on: Option<Cpu>,
    /// When it left its CPU last.
    pub(super) left: i64,
    /// Since when it can run and does not, when it is runnable; and it was woken, not preempted.
    pub(super) runnable: (i64, bool),
    /// When a missing switch of it was noticed last.
    pub(super) unseen: i64,
    /// When it left the queue of a CPU last of which it was found since that who had it is not sure.
    pub(super) unsure: i64,
    /// Who had the CPUs in whose queues it stood before it was moved to the present one.
    pub(super) moved: Shares,
    /// CPU in whose queue it stands.
    pub(super) waits_on: Option<Cpu>,
    pub(super) locks: Holder,
    pub(super) dispatch: Dispatcher,
    /// Where its time went so far.
    pub(super) spent: Spent,
    /// It began in the trace.
    pub(super) born: bool,
    /// Kept for polling threads.
    pub(super) history: Option<Box<History>>,
    /// It has polled.
    pub(super) polled: bool,
}

impl Thread {
    /// A thread that is seen for the first time at `now`, while records up to the given times may be missing.
    pub(super) fn new(
        key: ThreadKey,
        comm: Name,
        now: i64,
        dark_until: i64,
        blind_until: i64,
    ) -> Self {
        let mut account = Account::new(now);
        account.lose_state(dark_until);
        account.lose_interrupts(blind_until);
        Thread {
            key,
            comm,
            account,
            runs_on: None,
            left: i64::MIN,
            runnable: (i64::MIN, false),
            unseen: i64::MIN,
            unsure: i64::MIN,
            moved: Shares::default(),
            waits_on: None,
            locks: Holder::default(),
            dispatch: Dispatcher::default(),
            spent: Spent::new(now),
            born: false,
            history: None,
            polled: false,
        }
    }

    /// Brings the account to `now`.
    pub(super) fn advance(&mut self, now: i64) {
        self.account.advance(now, &mut (&mut self.history, &mut self.spent));
    }

    /// It holds a lock, can run, and does not.
    pub(super) fn is_held_up(&self) -> bool {
        self.account.state().is_runnable() && self.locks.locks().next().is_some()
    }

    /// Switches that concern it, or the CPU that it waited for, were found missing since `since`.
    pub(super) fn doubtful_since(&self, since: i64) -> bool {
        self.unseen.max(self.unsure) >= since
    }

    /// Takes the thread out of the queue in which it stands; who ran while it stood there.
    pub(super) fn leave_queue(&mut self, cpus: &mut Cpus, now: i64) -> Shares {
        let waited = self.waits_on.take();
        let mut shares = waited.map_or_else(Shares::default, |cpu| cpus.leave(self.key, cpu, now));
        if !self.moved.is_empty() {
            shares.merge(&std::mem::take(&mut self.moved));
        }
        self.spent.waited(&shares);
        shares
    }

    /// Starts to keep a history. Returns whether this is a poller not seen before.
    pub(super) fn begin_polling(&mut self, now: i64, kernel: bool) -> bool {
        if kernel && self.history.is_none() {
            self.history = Some(Box::new(History::new(now)));
        }
        !std::mem::replace(&mut self.polled, true)
    }

    /// Ends the history, and counts what of it no gap told.
    pub(super) fn end_polling(&mut self, agreement: &mut agreement::Counts) {
        if let Some(history) = self.history.take() {
            agreement.missed(&history.end());
        }
    }

    /// The row of a hold that ends at `end`.
    pub(super) fn hold_row(
        &self,
        hold: &Hold,
        end: i64,
        kernel: bool,
        lock_name: Name,
        place: Name,
        mark: Mark,
    ) -> CriticalSection {
        let parts = kernel.then(|| difference(&self.account.total(), &hold.account));
        let preempted = parts.is_some_and(|p| p.preempted_ns > 0);
        let preemptor = hold.shares.longest().filter(|_| preempted);
        CriticalSection {
            ts: Nanos(hold.ts),
            dur: end - hold.ts,
            pid: self.key.pid,
            tid: self.key.tid,
            lock: hold.lock,
            lock_name,
            kind: hold.kind.clone(),
            site: hold.site,
            place,
            depth: hold.depth,
            depth_mark: hold.depth_mark,
            wait_ns: hold.wait_ns,
            condition: hold.condition,
            parts,
            preemptor_tid: preemptor.map(|s| s.who.thread.tid.0),
            preemptor_comm: preemptor.map(|s| s.who.comm.clone()),
            preemptor_ns: preemptor.map(|s| s.ns),
            mark,
        }
    }

    /// The row of a wake-up that ends with the dispatch at `end`.
    pub(super) fn dispatch_row(
        &self,
        wake: Wake,
        shares: &Shares,
        cpu: Cpu,
        end: i64,
        mark: Mark,
    ) -> DispatchLatency {
        let longest = shares.longest();
        DispatchLatency {
            ts: Nanos(wake.ts),
            dur: end - wake.ts,
            pid: self.key.pid,
            tid: self.key.tid,
            comm: self.comm.clone(),
            cpu,
            prio: wake.prio,
            waker_tid: wake.waker_tid,
            waker_comm: wake.waker_comm,
            running_tid: longest.map(|s| s.who.thread.tid.0),
            running_comm: longest.map(|s| s.who.comm.clone()),
            running_ns: longest.map(|s| s.ns),
            migrated: wake.migrated,
            mark,
        }
    }

    /// The rows that say where its time went, in the order of the parts, most time first.
    pub(super) fn time_rows(&self, mark: Mark) -> Vec<ThreadTime> {
        let first = self.spent.first();
        let row = |sum: &Sum| ThreadTime {
            ts: Nanos(first),
            pid: self.key.pid,
            tid: self.key.tid,
            comm: self.comm.clone(),
            part: sum.part,
            culprit: sum.culprit.name(),
            culprit_tid: match &sum.culprit {
                time::Culprit::Thread(o) => Some(o.thread.tid.0),
                _ => None,
            },
            spent_ns: sum.ns,
            stretches: sum.stretches,
            wall_ns: self.account.now() - first,
            mark,
        };
        let mut rows: Vec<ThreadTime> = self.spent.sums().map(row).collect();
        rows.sort_by_key(|r| (r.part, -r.spent_ns, r.culprit_tid));
        rows
    }

    /// The row of a gap.
    pub(super) fn gap_row(
        &self,
        seen: Seen,
        explanation: Option<Explanation>,
        inferred: InferredCause,
        mark: Mark,
    ) -> Gap {
        let culprit = explanation.as_ref().and_then(|e| e.culprit.as_ref());
        Gap {
            ts: Nanos(seen.interval.before()),
            dur: seen.interval.len_ns(),
            pid: self.key.pid,
            tid: self.key.tid,
            comm: self.comm.clone(),
            cpu: seen.cpu,
            cause: explanation.as_ref().map(|e| e.cause),
            culprit: culprit.map(|c| match c {
                Culprit::Thread(o) => o.comm.clone(),
                Culprit::Interrupt(name) => name.clone(),
                Culprit::HostTick(period) => host_tick(*period),
            }),
            culprit_tid: culprit.and_then(|c| match c {
                Culprit::Thread(o) => Some(o.thread.tid.0),
                Culprit::Interrupt(_) | Culprit::HostTick(_) => None,
            }),
            parts: explanation.as_ref().map(|e| e.parts),
            inferred,
            mark,
        }
    }
}

/// `host tick, 10.0 ms`.
fn host_tick(period_ns: i64) -> Name {
    format!("host tick, {}.{} ms", period_ns / 1_000_000, period_ns / 100_000 % 10).into()
}
