//! Waits at futexes and semaphores: the locks of any program, whatever it is written in.
//!
//! **Goal.** One row for each call that may wait: how long it took and where that time went, how it ended, who ended it
//! and by what call, and behind whom the thread then waited for a CPU.
//!
//! **Rule.** A wait begins with the system call and ends with its return. Its parts are the account at the end minus the
//! account at the begin. The wake-up that ended it is the first of a thread that was not yet runnable, after which it did
//! not sleep again. Who is woken by a thread that is in a call which can wake was woken by that call.
//!
//! **What cannot be known so.** A lock that nobody waits for makes no system call: holds are not seen, nor who holds a
//! futex, unless its value says so (priority inheritance), or the waker is the one who had it. A waker in an interrupt is
//! the thread that it struck: it counts only where the wait did not time out. A thread whose time was over may find that it was
//! woken as well, when it has a CPU: whose call that was shows nowhere, as it made nobody runnable.
//!
//! **Situations.**
//! - *The value had changed*: no sleep, no waker.
//! - *A semaphore, or a futex with priority inheritance, that was free*: had at once; of these nobody is the waker.
//! - *The thread ends in the wait* (it is killed): the row says so. *The recording ends*: so does the row, censored.
//!
//! Memory: a wait for each thread that lives.

use crate::analysis::Analysis;
use crate::world::{Began, Change, Over, PerThread, Shares, State, Thread, Wake, World};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::event::{LeanChain, LeanFutex};
use ft_trace::ids::{Name, Nanos, Pid, ThreadKey, Tid};
use ft_trace::tables::{ChainKind, FutexEnd, FutexKind, FutexResult, FutexWait};

/// Of the value of a futex with priority inheritance, what is the number of its owner (`FUTEX_TID_MASK`,
/// include/uapi/linux/futex.h).
const TID_MASK: i32 = 0x3fff_ffff;

/// A wait that goes on.
#[derive(Clone, Debug)]
struct Open {
    began: Began,
    again: bool,
    own: Option<(Name, Name)>,
    woken: Option<Woken>,
    /// Who ran while the thread was woken and waited for a CPU.
    shares: Shares,
    stack: Option<i64>,
}

/// The wake-up that ended a wait, as far as it is known.
#[derive(Clone, Debug)]
struct Woken {
    ts: i64,
    tid: Tid,
    pid: Option<Pid>,
    comm: Name,
    /// Its call that can wake, if it was in one.
    call: Option<(FutexKind, i64)>,
    stack: Option<i64>,
}

/// Of one thread.
#[derive(Debug, Default)]
struct Waiter {
    open: Option<Open>,
    /// Where it waited last, if it was woken there and has made no other call since.
    woken_at: Option<i64>,
}

/// Makes the table `futex_waits`.
#[derive(Debug, Default)]
pub struct Futexes {
    waiters: PerThread<Waiter>,
    rows: u64,
}

impl Analysis for Futexes {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Called { thread, call } => self.called(thread, call, world),
            Change::Returned { thread, call } => self.returned(thread, call, world, rows),
            Change::Waking { thread, wake, waker, .. } => {
                self.woken(thread, wake, waker, world);
            }
            Change::Dispatched { thread, after: State::Woken, shares, .. } => {
                if let Some(open) = self.open(thread) {
                    open.shares.merge(shares);
                }
            }
            Change::Chain { thread, chain, woken } => self.chain(thread, chain, woken),
            Change::Dropping { thread, why } => {
                let end = match why {
                    Over::Thread | Over::Exec => FutexEnd::Thread,
                    Over::Trace => FutexEnd::Trace,
                    Over::Loss => return,
                };
                if let Some(open) = self.waiters.get(thread).and_then(|w| w.open.take()) {
                    self.row(thread, open, end, world, rows);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.futex_waits = self.rows;
    }
}

/// A call of this kind waits, or wakes, at the one address that is known of it alone.
fn has_one_address(kind: FutexKind) -> bool {
    use FutexKind::*;
    matches!(kind, Wait | LockPi | Wake | Requeue | UnlockPi)
}

impl Futexes {
    fn open(&mut self, thread: &Thread) -> Option<&mut Open> {
        self.waiters.get(thread)?.open.as_mut()
    }

    fn called(&mut self, thread: &Thread, call: &LeanFutex, world: &World) {
        let waiter = self.waiters.of(thread);
        let before = waiter.woken_at.take();
        waiter.open = call.kind.waits().then(|| Open {
            began: Began::now(thread, world),
            again: before == Some(call.address),
            own: thread.spent.waits.own().map(|(on, name)| (on.word().into(), name.clone())),
            woken: None,
            shares: Shares::default(),
            stack: None,
        });
    }

    fn woken(&mut self, thread: &Thread, wake: &Wake, waker: Option<ThreadKey>, world: &World) {
        let Some(open) = self.open(thread) else { return };
        if open.woken.is_some() && thread.state_when_woken().is_runnable() {
            return;
        }
        let by = waker.and_then(|key| world.thread(key.pid, key.tid));
        let call = by.and_then(|by| by.calling).filter(|call| call.kind.wakes());
        let call = call.map(|call| (call.kind, call.address));
        open.woken = Some(Woken {
            ts: world.now(),
            tid: wake.waker_tid,
            pid: waker.map(|key| key.pid),
            comm: wake.waker_comm.clone(),
            call,
            stack: None,
        });
    }

    /// A chain of the waiter, or of who has just woken one.
    fn chain(&mut self, thread: &Thread, chain: &LeanChain, woken: Option<&Thread>) {
        if chain.kind == ChainKind::Wait
            && let Some(open) = self.open(thread)
        {
            open.stack = open.stack.or(chain.stack);
        }
        let woken = woken.and_then(|woken| self.open(woken)?.woken.as_mut());
        if let Some(woken) = woken.filter(|woken| woken.tid == chain.tid) {
            woken.stack = chain.stack;
        }
    }

    fn returned(&mut self, thread: &Thread, call: &LeanFutex, world: &World, rows: &mut Rows) {
        let Some(waiter) = self.waiters.get(thread) else { return };
        let Some(open) = waiter.open.take() else { return };
        let certain = world.context().kernel && !world.losses().scheduling_since(open.began.ts);
        let at_once = matches!(call.kind, FutexKind::LockPi | FutexKind::SemaphoreWait)
            && open.woken.is_none()
            && certain;
        let end = match call.result {
            FutexResult::Done if at_once => FutexEnd::AtOnce,
            FutexResult::Done => FutexEnd::Woken,
            FutexResult::TimedOut => FutexEnd::TimedOut,
            FutexResult::Interrupted => FutexEnd::Interrupted,
            FutexResult::Changed => FutexEnd::Changed,
            FutexResult::Failed => FutexEnd::Failed,
            FutexResult::Unfinished => FutexEnd::Trace,
        };
        if end == FutexEnd::Woken {
            waiter.woken_at = Some(call.address);
        }
        self.row(thread, open, end, world, rows);
    }

    /// The row of a wait, whose thread is still in the call.
    fn row(&mut self, thread: &Thread, open: Open, end: FutexEnd, world: &World, rows: &mut Rows) {
        let Some(call) = &thread.calling else { return };
        self.rows += 1;
        let (key, ts) = (thread.key, open.began.ts);
        let missing = world.losses().kernel_since(ts) || thread.doubtful_since(ts);
        let lost = missing || !open.shares.is_exact();
        let by_nobody = matches!(end, FutexEnd::TimedOut | FutexEnd::Changed | FutexEnd::AtOnce);
        // Of one process, an address is a futex.
        let elsewhere = |woken: &Woken, (kind, address): (FutexKind, i64)| {
            has_one_address(call.kind)
                && has_one_address(kind)
                && woken.pid == Some(key.pid)
                && address != call.address
        };
        // No call that could, and it had waited for as long as it would: the timer's, whomever that struck.
        let is_timer = |woken: &Woken| {
            woken.call.is_none_or(|of| elsewhere(woken, of))
                && call.timeout_ns.is_some_and(|timeout| woken.ts - ts >= timeout)
        };
        let woken = open.woken.filter(|woken| !by_nobody && !is_timer(woken));
        let parts = open.began.parts(thread, world);
        let waited = parts.is_some_and(|parts| parts.dispatch_ns > 0);
        let running = open.shares.longest().filter(|_| waited);
        let (own_kind, own_name) = open.own.unzip();
        let mark = match end {
            FutexEnd::Trace => Mark::Censored,
            _ => Mark::lower_bound_if(lost).max(thread.disturbed.mark(ts)),
        };
        rows.futex_waits.push(FutexWait {
            ts: Nanos(ts),
            dur: world.now() - ts,
            pid: key.pid,
            tid: key.tid,
            comm: thread.comm.clone(),
            kind: call.kind,
            address: call.address,
            name: world.context().futex_name(call),
            own_kind,
            own_name,
            timeout_ns: call.timeout_ns,
            end,
            again: open.again,
            owner_tid: call
                .word
                .filter(|_| call.kind.has_owner())
                .map(|word| word & TID_MASK)
                .filter(|tid| *tid != 0),
            parts,
            woken_ns: woken.as_ref().map(|woken| woken.ts - ts),
            waker_tid: woken.as_ref().map(|woken| woken.tid.0),
            waker_pid: woken.as_ref().and_then(|woken| woken.pid).map(|pid| pid.0),
            waker_comm: woken.as_ref().map(|woken| woken.comm.clone()),
            waker_call: woken.as_ref().and_then(|woken| woken.call).map(|(kind, _)| kind),
            waker_stack: woken.as_ref().and_then(|woken| woken.stack),
            behind_tid: running.map(|share| share.who.thread.tid.0),
            behind_comm: running.map(|share| share.who.comm.clone()),
            behind_ns: running.map(|share| share.ns),
            stack: open.stack,
            agent_ns: open.began.agent_ns(thread, world),
            mark,
        });
    }
}

#[cfg(test)]
mod tests;
