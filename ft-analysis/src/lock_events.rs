//! What the events of locks mean to the analyses: waits, holds and their ends.

use super::Analysis;
use super::contention::Held;
use super::locks::{Acquisition, Ended, Hold, SEMAPHORE, Wait};
use super::preemptions::{self, on_cpu_ns};
use super::wait_rows;
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::{Name, ThreadKey};
use ft_trace::tables::{SiteKind, WaitEnd};

/// Why what a thread holds and waits for is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The thread has ended.
    Thread,
    /// Its memory was replaced.
    Exec,
    /// The recording has ended.
    Trace,
    /// Its events were lost.
    Loss,
}

impl Analysis {
    /// An event of a lock. The thread is there, with its account advanced to now.
    pub(super) fn lock(&mut self, e: &LeanUserEvent, what: SiteKind, kind: Name) {
        let (ts, lock) = (self.now, e.arg[0]);
        let Some(thread) = self.threads.get_mut(&e.thread()) else { return };
        let bad = &mut self.tally.incomplete;
        match what {
            SiteKind::LockWait => self.lock_wait(e, kind),
            SiteKind::LockAcquire | SiteKind::CondWake => {
                let account = thread.account.total();
                let a = Acquisition { ts, lock, word: e.arg[1], site: e.site, kind, account };
                let ended = match what {
                    SiteKind::CondWake => thread.locks.wake(a, bad),
                    _ => thread.locks.acquire(a, bad),
                };
                self.lock_acquired(e, ended);
            }
            SiteKind::LockAbandon => {
                if let Some(wait) = thread.locks.abandon(lock, bad) {
                    let held = thread.locks.addresses();
                    self.leave_lock(e.thread(), &wait, &held);
                }
            }
            SiteKind::LockRelease if kind.as_ref() == SEMAPHORE => {
                if let Some(hold) = thread.locks.post(lock) {
                    self.hold_ended(e.thread(), hold, true);
                }
            }
            _ => {
                let in_order = thread.locks.newest() == Some(lock);
                let hold = match what {
                    SiteKind::CondWait => thread.locks.park(lock, bad),
                    _ => thread.locks.release(lock, bad),
                };
                self.locks.released((e.pid, lock), e.tid, &mut self.threads.at(ts));
                if let Some(hold) = hold {
                    self.hold_ended(e.thread(), hold, in_order);
                }
            }
        }
    }

    fn lock_wait(&mut self, e: &LeanUserEvent, kind: Name) {
        let (ts, lock) = (self.now, e.arg[0]);
        let semaphore = kind.as_ref() == SEMAPHORE;
        self.tally.incomplete.semaphore_waits += u64::from(semaphore);
        let Some(thread) = self.threads.get_mut(&e.thread()) else { return };
        let held = thread.locks.addresses();
        if let Some(before) = thread.locks.wait_over(&mut self.tally.incomplete) {
            self.leave_lock(e.thread(), &before, &held);
        }
        let Some(thread) = self.threads.get_mut(&e.thread()) else { return };
        let (word, site) = (e.arg[1], e.site);
        thread.locks.wait(Wait { ts, lock, word, site, kind, queued: None, cycle: None });
        if !semaphore {
            let start = self.locks.wait((e.pid, lock), e.tid, &held, &mut self.threads.at(ts));
            if let Some(thread) = self.threads.get_mut(&e.thread()) {
                thread.locks.queued(start);
            }
        }
    }

    fn lock_acquired(&mut self, e: &LeanUserEvent, ended: Ended) {
        let (ts, lock) = (self.now, e.arg[0]);
        if let Some(wait) = ended.wait {
            if wait.lock == lock {
                self.waited(e.thread(), &wait);
            }
            let held =
                self.threads.get(&e.thread()).map(|t| t.locks.addresses()).unwrap_or_default();
            self.leave_lock(e.thread(), &wait, &held);
        }
        if let Some(over) = ended.hold {
            if over.lock != lock && !over.is_semaphore() {
                self.locks.released((e.pid, over.lock), e.tid, &mut self.threads.at(ts));
            }
            self.preemption_rows(e.thread(), over, None);
        }
        let Some(thread) = self.threads.get(&e.thread()) else { return };
        let Some(hold) = thread.locks.locks().next_back().filter(|h| h.lock == lock) else {
            return;
        };
        if hold.depth > 0 {
            self.order.acquired((e.pid, e.tid), thread.locks.locks());
        }
        let held = Held {
            tid: e.tid,
            lock,
            since: ts,
            word: hold.word,
            site: hold.site,
            shared: hold.kind.ends_with("-read"),
            gone: false,
        };
        self.locks.acquired(e.pid, held, &mut self.threads.at(ts));
    }

    /// The row of a wait that has ended with the lock.
    fn waited(&mut self, key: ThreadKey, wait: &Wait) {
        let Some(start) = &wait.queued else { return };
        let at = &mut self.threads.at(self.now);
        let Some(verdict) = self.locks.judge((key.pid, wait.lock), key.tid, start, at) else {
            return;
        };
        let Some(thread) = self.threads.get(&key) else { return };
        let unseen = thread.unseen >= wait.ts || verdict.touched;
        // Who was to blame has been seen before; so what is not known of it was lost, if only before the wait began.
        let hidden = self.context.kernel && verdict.blame.parts.unexplained_ns > 0;
        let touched = unseen || hidden || self.losses.process_since(key.pid, wait.ts);
        let names = wait_rows::Names { context: &mut self.context, threads: &self.threads };
        let row = wait_rows::row(thread, wait, self.now, &verdict, names, touched);
        self.tally.waits += 1;
        self.rows.lock_waits.push(row);
    }

    /// A thread, which holds `held`, is in the queue of a lock no longer.
    fn leave_lock(&mut self, key: ThreadKey, wait: &Wait, held: &[i64]) {
        if wait.queued.is_none() {
            return;
        }
        let (now, pid) = (self.now, key.pid);
        self.locks.leave((pid, wait.lock), key.tid, held, &mut self.threads.at(now));
        let Some(cycle) = wait.cycle else { return };
        // The circle is open: the others in it wait for someone who does not.
        let in_it = |t: &&mut super::thread::Thread| {
            t.key.pid == pid && t.locks.waiting().is_some_and(|w| w.cycle == Some(cycle))
        };
        let mut others = Vec::new();
        for thread in self.threads.values_mut().filter(in_it) {
            thread.locks.waits_in(None);
            others.push(thread.locks.addresses());
        }
        for held in others {
            self.locks.redirect(pid, &held, &mut self.threads.at(now));
        }
    }

    /// The row of a hold that was released.
    fn hold_ended(&mut self, key: ThreadKey, hold: Hold, in_order: bool) {
        let Some(thread) = self.threads.get(&key) else { return };
        let pid = key.pid;
        self.tally.holds += 1;
        self.tally.out_of_order_releases += u64::from(!in_order);
        let lost = self.losses.any_since(key, hold.ts) || thread.doubtful_since(hold.ts);
        let lost = lost || !hold.shares.is_exact();
        let mark = Mark::lower_bound_if(lost);
        let name = self.context.lock_name(pid, hold.lock, hold.site, hold.word);
        let place = self.context.place(pid, hold.site, hold.word);
        let row = thread.hold_row(&hold, self.now, self.context.kernel, name, place, mark);
        self.rows.critical_sections.push(row);
        let on_cpu = on_cpu_ns(&thread.account.total());
        self.preemption_rows(key, hold, Some(on_cpu));
    }

    /// The rows of what interrupted a hold, when it is over.
    fn preemption_rows(&mut self, key: ThreadKey, mut hold: Hold, released: Option<i64>) {
        for preemption in hold.preemptions.take() {
            self.preemption_row(key, &hold, preemption, released);
        }
    }

    pub(super) fn preemption_row(
        &mut self,
        key: ThreadKey,
        hold: &Hold,
        preemption: (i32, preemptions::Preemption),
        released: Option<i64>,
    ) {
        let Some(thread) = self.threads.get(&key) else { return };
        let name = self.context.lock_name(key.pid, hold.lock, hold.site, hold.word);
        let place = self.context.place(key.pid, hold.site, hold.word);
        let row = preemptions::row(thread, hold, preemption, (name, place), released);
        self.rows.lock_preemptions.push(row);
    }

    /// What a thread holds and waits for is over, or not known any more.
    pub(super) fn drop_locks(&mut self, key: ThreadKey, why: Over) {
        if matches!(why, Over::Thread | Over::Exec) {
            self.unfinished_wait(key, why);
        }
        let now = self.now;
        let Some(thread) = self.threads.get_mut(&key) else { return };
        let ThreadKey { pid, tid } = key;
        let (wait, held) = (thread.locks.waiting().cloned(), thread.locks.addresses());
        let off_cpu = thread.account.state().is_runnable() && !held.is_empty();
        let bad = &mut self.tally.incomplete;
        let holds = match why {
            Over::Loss => thread.locks.lose(bad),
            _ => thread.locks.end(bad),
        };
        self.tally.unfinished_preemptions.at_end += u64::from(off_cpu && why != Over::Loss);
        for hold in holds {
            self.preemption_rows(key, hold, None);
        }
        for &lock in &held {
            let at = &mut self.threads.at(now);
            match why {
                Over::Thread | Over::Trace => self.locks.abandoned((pid, lock), tid, at),
                Over::Exec | Over::Loss => self.locks.released((pid, lock), tid, at),
            }
        }
        if let Some(mut wait) = wait {
            if why != Over::Loss {
                // The others still wait in the circle that it was in.
                wait.cycle = None;
            }
            self.leave_lock(key, &wait, &held);
        }
    }

    /// The row of a wait that goes on when its thread or the trace ends.
    pub(super) fn unfinished_wait(&mut self, key: ThreadKey, why: Over) {
        let Some(thread) = self.threads.get(&key) else { return };
        let Some(wait) = thread.locks.waiting().filter(|w| w.queued.is_some()) else { return };
        let ended = match why {
            Over::Thread => WaitEnd::Thread,
            Over::Exec => WaitEnd::Exec,
            Over::Trace | Over::Loss => WaitEnd::Trace,
        };
        let holder = self.locks.holder((key.pid, wait.lock));
        let names = wait_rows::Names { context: &mut self.context, threads: &self.threads };
        let row = wait_rows::unfinished_row(thread, wait, self.now, ended, holder, names);
        self.rows.unfinished_waits.push(row);
    }
}
