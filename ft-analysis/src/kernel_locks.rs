//! Waits for locks of the kernel.
//!
//! **Goal.** One row for each wait of an observed thread whose begin was recorded: how long it took and where that time went,
//! how it ended and who woke it, and what of the application it delayed: the lock that the thread held, and the request that
//! it was in.
//!
//! **Rule.** A wait lasts from the tracepoint `contention_begin` to `contention_end`. Its parts are the account at the end
//! minus the account at the begin: what spins for a lock runs. Waits of one thread enclose each other: within the wait for a mutex
//! lies that for the lock of its queue, and on top of either may come an interrupt's. Each has a row; those within others
//! say so, and sums of time leave them out. The wake-up that ended a wait is the first of a thread that was not yet
//! runnable, after which it did not sleep again.
//!
//! **What cannot be known so.** Who holds a lock of the kernel: acquisitions that did not wait are not recorded. Who wakes a
//! waiter has mostly given the lock back. Who waits alone for a spinlock, and who spins for a semaphore of readers and writers,
//! is not announced by the kernel.
//!
//! **Situations.**
//! - *An end alone*: the wait began before the recording, or its record was displaced. No row, and counted.
//! - *The thread ends in the wait*: the row says so. *The recording ends*: so does the row, censored.
//! - *In the name of a thread that is not observed*, or of an idle CPU: counted.
//!
//! Memory: 16 waits and 256 scopes for each thread that lives.

use crate::analysis::Analysis;
use crate::requests::Does;
use crate::scopes::MAX_OPEN;
use crate::world::{Began, Change, Over, PerThread, Site, Thread, Wake, World};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::event::LeanContention;
use ft_trace::ids::{Name, Nanos};
use ft_trace::tables::{ContentionEnd, KernelLockWait, KernelWaitEnd, SiteKind};

/// A wait that goes on.
#[derive(Clone, Debug)]
struct Open {
    id: u64,
    wait: LeanContention,
    began: Began,
    nested: bool,
    woken: Option<Wake>,
    depth: i32,
    /// Address, name and place of the innermost lock of the application that the thread held.
    hold: Option<(i64, Name, Name)>,
    request: Option<Name>,
    /// Of a time in which the thread waited for a CPU, it is not known who had it.
    unsure: bool,
}

/// Of one thread.
#[derive(Debug, Default)]
struct Waiter {
    /// The outermost first.
    waits: Vec<Open>,
    /// Names of the scopes and requests in which it is, the outermost first.
    requests: Vec<Name>,
    /// Such as began when there was no room.
    beyond: u64,
}

/// Makes the table `kernel_lock_waits`.
#[derive(Debug, Default)]
pub struct KernelLocks {
    waiters: PerThread<Waiter>,
    rows: u64,
}

impl Analysis for KernelLocks {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Contends { thread, wait, id } => self.begins(thread, wait, id, world),
            Change::Contended { thread, id } => self.ends(thread, id, world, rows),
            Change::Waking { thread, wake, .. } => self.woken(thread, wake),
            Change::Dispatched { thread, shares, .. } if !shares.is_exact() => {
                let waits = self.waiters.get(thread).into_iter().flat_map(|w| &mut w.waits);
                waits.for_each(|open| open.unsure = true);
            }
            Change::Own { thread, site, .. } => self.own(thread, site, world),
            Change::Dropping { thread, why } => self.dropped(thread, why, world, rows),
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.kernel_waits = self.rows;
    }
}

impl KernelLocks {
    fn begins(&mut self, thread: &Thread, wait: &LeanContention, id: u64, world: &World) {
        let (pid, context) = (thread.key.pid, world.context());
        let innermost = thread.locks.locks().next_back();
        let waiter = self.waiters.of(thread);
        waiter.waits.push(Open {
            id,
            wait: wait.clone(),
            began: Began::now(thread, world),
            nested: !waiter.waits.is_empty(),
            woken: None,
            depth: thread.locks.locks().count() as i32,
            hold: innermost.map(|hold| {
                let name = context.lock_name(pid, hold.lock, hold.site, hold.word);
                (hold.lock, name, context.place(pid, hold.site, hold.word))
            }),
            request: waiter.requests.first().cloned(),
            unsure: false,
        });
    }

    fn ends(&mut self, thread: &Thread, id: u64, world: &World, rows: &mut Rows) {
        let Some(waiter) = self.waiters.get(thread) else { return };
        let Some(at) = waiter.waits.iter().rposition(|open| open.id == id) else { return };
        let open = waiter.waits.remove(at);
        let end = match open.wait.end {
            ContentionEnd::Failed => KernelWaitEnd::Failed,
            _ => KernelWaitEnd::Acquired,
        };
        self.row(thread, open, end, world, rows);
    }

    fn woken(&mut self, thread: &Thread, wake: &Wake) {
        let waits = self.waiters.get(thread).into_iter().flat_map(|waiter| &mut waiter.waits);
        let runnable = thread.state_when_woken().is_runnable();
        waits
            .filter(|open| open.woken.is_none() || !runnable)
            .for_each(|open| open.woken = Some(wake.clone()));
    }

    /// An event of the thread itself, which may begin or end a scope or a request.
    fn own(&mut self, thread: &Thread, site: &Site, world: &World) {
        let is_scope = matches!(site.kind, SiteKind::ScopeBegin | SiteKind::ScopeEnd);
        if !is_scope && site.roles.is_empty() {
            return;
        }
        let waiter = self.waiters.of(thread);
        match site.kind {
            SiteKind::ScopeBegin => waiter.enters(&site.event),
            SiteKind::ScopeEnd => waiter.leaves(&site.event),
            _ => {}
        }
        // One with a key may end in another thread.
        for role in site.roles.iter().filter(|role| role.key.is_none()) {
            let name = || world.context().request_name(role.kind).clone();
            match role.does {
                Does::Begins => waiter.enters(&name()),
                Does::Ends => waiter.leaves(&name()),
                Does::Names | Does::Causes | Does::Answers => {}
            }
        }
    }

    fn dropped(&mut self, thread: &Thread, why: Over, world: &World, rows: &mut Rows) {
        let Some(waiter) = self.waiters.get(thread) else { return };
        // Events of the thread that are missing may have ended what it was in.
        waiter.requests.clear();
        waiter.beyond = 0;
        let end = match why {
            Over::Thread => KernelWaitEnd::Thread,
            Over::Trace => KernelWaitEnd::Trace,
            Over::Exec | Over::Loss => return,
        };
        for open in std::mem::take(&mut waiter.waits) {
            self.row(thread, open, end, world, rows);
        }
    }

    fn row(
        &mut self,
        thread: &Thread,
        open: Open,
        end: KernelWaitEnd,
        world: &World,
        rows: &mut Rows,
    ) {
        self.rows += 1;
        let (key, ts) = (thread.key, open.began.ts);
        let missing = world.losses().kernel_since(ts) || thread.doubtful_since(ts);
        let lost = missing || open.unsure;
        let (hold_lock, hold_name, hold_place) = match open.hold {
            Some((lock, name, place)) => (Some(lock), Some(name), Some(place)),
            None => (None, None, None),
        };
        rows.kernel_lock_waits.push(KernelLockWait {
            ts: Nanos(ts),
            dur: world.now() - ts,
            pid: key.pid,
            tid: key.tid,
            comm: thread.comm.clone(),
            lock: open.wait.lock,
            name: open.wait.name,
            caller: open.wait.caller,
            kind: open.wait.kind,
            end,
            nested: open.nested,
            parts: open.began.parts(thread, world),
            woken_ns: open.woken.as_ref().map(|wake| wake.ts - ts),
            waker_tid: open.woken.as_ref().map(|wake| wake.waker_tid.0),
            waker_comm: open.woken.map(|wake| wake.waker_comm),
            depth: open.depth,
            hold_lock,
            hold_name,
            hold_place,
            request: open.request,
            stack: open.wait.stack,
            agent_ns: open.began.agent_ns(thread, world),
            mark: match end {
                KernelWaitEnd::Trace => Mark::Censored,
                _ => Mark::lower_bound_if(lost).max(thread.disturbed.mark(ts)),
            },
        });
    }
}

impl Waiter {
    /// Of more than there is room for, the innermost are left out, which no row names.
    fn enters(&mut self, name: &Name) {
        match self.requests.len() {
            MAX_OPEN => self.beyond += 1,
            _ => self.requests.push(name.clone()),
        }
    }

    /// The newest of that name is over.
    fn leaves(&mut self, name: &Name) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(at) = self.requests.iter().rposition(|open| open == name) {
            self.requests.remove(at);
        }
    }
}

#[cfg(test)]
mod tests;
