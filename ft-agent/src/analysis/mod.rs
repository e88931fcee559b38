//! The analyses: pure state machines. Events in, rows and counts out; no I/O and no clock.
//!
//! [`Analysis`] takes the merged events of a trace in the order of their time and drives, for each observed
//! thread, a time account ([`ledger`]) and the machines that ask it: what the thread holds ([`locks`]), which
//! wake-up it waits on ([`dispatch`]), which gaps it saw ([`gaps`], and without the kernel [`infer`]).
//! [`displaced`] knows who has each CPU, for all of them. Threads of processes that are not observed exist
//! only as occupants of CPUs.
//!
//! An interval (a hold, a wake-up, a gap) whose records may be incomplete is marked ([`loss`]); what
//! gives no row is counted ([`tally`]).
//!
//! Memory: per observed thread that lives, at most 256 holds, 16 interrupts, and for a
//! polling thread 4096 stretches; per CPU, the waiting threads. Nothing grows with the length of the trace.

mod context;
mod dispatch;
mod displaced;
pub mod distribution;
mod gaps;
mod infer;
mod ledger;
mod locks;
mod loss;
mod tally;
#[cfg(test)]
mod tests;
mod thread;
#[cfg(test)]
pub(crate) mod timeline;

use std::collections::HashMap;

use ft_user::layout::SiteKind;

pub use context::Context;
pub(crate) use context::place_text;
pub use dispatch::Races;
pub use gaps::Untold;
pub use locks::Incomplete;
pub use tally::{Tally, VERSION};

use crate::event::{Event, LeanUserEvent};
use crate::model::{Pid, Tid};
use crate::store::rows::{
    CriticalSection, DispatchLatency, Gap, Irq, LossRow, NameRow, SchedMigrate, SchedSwitch,
    SchedWaking, SiteRow, TaskEvent, ThreadRow,
};
use dispatch::Wake;
use displaced::Cpus;
use infer::Inference;
use ledger::{Part, State};
use locks::{Acquisition, SEMAPHORE};
use loss::{Hides, Losses};
use thread::Thread;

/// Rows that are finished, in the order in which their intervals ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Of `critical_sections`.
    pub critical_sections: Vec<CriticalSection>,
    /// Of `dispatch_latency`.
    pub dispatch_latency: Vec<DispatchLatency>,
    /// Of `gaps`.
    pub gaps: Vec<Gap>,
}

/// All analyses of one trace.
#[derive(Debug)]
pub struct Analysis {
    context: Context,
    threads: HashMap<Tid, Thread>,
    cpus: Cpus,
    inference: Inference,
    losses: Losses,
    /// Losses that a thread not seen yet must know of, when it appears.
    dark_until: i64,
    blind_until: i64,
    now: i64,
    rows: Rows,
    tally: Tally,
}

impl Analysis {
    /// Analyses of a trace of which nothing was read yet.
    pub fn new(context: Context) -> Self {
        let tally = Tally { version: VERSION, kernel: context.kernel, ..Tally::default() };
        Analysis {
            context,
            threads: HashMap::new(),
            cpus: Cpus::default(),
            inference: Inference::default(),
            losses: Losses::default(),
            dark_until: i64::MIN,
            blind_until: i64::MIN,
            now: i64::MIN,
            rows: Rows::default(),
            tally,
        }
    }

    /// Takes what a trace that is still being recorded has told since the last time: for events to come.
    pub fn learn(
        &mut self,
        clock_bound_ns: i64,
        threads: &[ThreadRow],
        sites: &[SiteRow],
        names: &[NameRow],
    ) {
        self.context.learn(clock_bound_ns, threads, sites, names);
    }

    /// Takes the next event. One that is older than its predecessor is counted and left out: accounts never
    /// go back, and that is what makes every sum exact.
    pub fn push(&mut self, event: &Event) {
        self.tally.events += 1;
        let ts = event.ts().0;
        if ts < self.now {
            self.tally.disordered += 1;
            return;
        }
        self.now = ts;
        match event {
            Event::Switch(e) => self.switch(e),
            Event::Waking(e) => self.waking(e),
            Event::Migrate(e) => self.migrate(e),
            Event::Irq(e) => self.irq(e),
            Event::User(e) => self.user(e),
            Event::Task(e) => self.task(e),
            Event::Loss(e) => self.loss(e),
        }
    }

    /// Hands over the rows that were finished since the last call.
    pub fn take_rows(&mut self) -> Rows {
        std::mem::take(&mut self.rows)
    }

    /// Rows that wait to be taken.
    pub fn pending(&self) -> usize {
        let r = &self.rows;
        r.critical_sections.len() + r.dispatch_latency.len() + r.gaps.len()
    }

    /// Ends the trace: what is open is counted as incomplete.
    pub fn finish(mut self) -> (Rows, Tally) {
        for (_, mut thread) in self.threads.drain() {
            thread.locks.end(&mut self.tally.incomplete);
            thread.dispatch.end(&mut self.tally.races);
        }
        self.tally.lost_user_events = self.losses.user_records;
        self.tally.lost_kernel_records = self.losses.kernel_records;
        (self.rows, self.tally)
    }

    /// The observed thread `tid` of `pid`, with its account advanced to now.
    fn thread(&mut self, tid: Tid, pid: Pid) -> &mut Thread {
        let now = self.now;
        if self.threads.get(&tid).is_some_and(|t| t.pid != pid) {
            self.remove(tid);
        }
        let thread = self.threads.entry(tid).or_insert_with(|| {
            let comm = self.context.comm(tid);
            Thread::new(tid, pid, comm, now, self.dark_until, self.blind_until)
        });
        thread.advance(now);
        thread
    }

    fn remove(&mut self, tid: Tid) {
        if let Some(mut thread) = self.threads.remove(&tid) {
            thread.leave_queue(&mut self.cpus, self.now);
            thread.locks.end(&mut self.tally.incomplete);
            thread.dispatch.end(&mut self.tally.races);
        }
    }

    fn switch(&mut self, e: &SchedSwitch) {
        let ts = self.now;
        let prev_observed = self.context.observes(e.prev_pid);
        if let Some(last) = self.cpus.unseen(e.cpu, ts, e.prev_tid) {
            self.unseen_switch(e, last, prev_observed);
        }
        if prev_observed {
            self.switched_out(e);
        }
        self.cpus.switch(e.cpu, ts, e.next_tid, &e.next_comm);
        if prev_observed {
            match e.prev_state.bytes().next() {
                Some(b'X' | b'Z') => self.remove(e.prev_tid),
                Some(b'R') => {
                    self.cpus.wait(e.prev_tid, e.cpu, ts);
                    self.thread(e.prev_tid, e.prev_pid).waits_on = Some(e.cpu);
                }
                _ => {}
            }
        }
        if self.context.observes(e.next_pid) {
            self.switched_in(e);
        }
    }

    /// `last` was given the CPU that another thread leaves now. It left unseen, and the other came unseen: what
    /// their accounts say of the time since cannot be trusted.
    fn unseen_switch(&mut self, e: &SchedSwitch, last: Tid, prev_observed: bool) {
        let ts = self.now;
        self.tally.unseen_switches += 1;
        if prev_observed {
            self.thread(e.prev_tid, e.prev_pid).unseen = ts;
        }
        if let Some(thread) = self.threads.get_mut(&last)
            && thread.runs_on == Some(e.cpu)
        {
            thread.advance(ts);
            thread.account.forget();
            thread.runs_on = None;
            thread.unseen = ts;
        }
    }

    fn switched_out(&mut self, e: &SchedSwitch) {
        let ts = self.now;
        self.thread(e.prev_tid, e.prev_pid);
        let Some(thread) = self.threads.get_mut(&e.prev_tid) else { return };
        // Still waiting, although it had a CPU: the switch to it is missing.
        thread.leave_queue(&mut self.cpus, ts);
        thread.dispatch.end(&mut self.tally.races);
        thread.runs_on = None;
        thread.left = ts;
        let runnable = e.prev_state.starts_with('R');
        thread.account.enter(if runnable { State::Runnable } else { State::Blocked }, ts);
    }

    fn switched_in(&mut self, e: &SchedSwitch) {
        let ts = self.now;
        self.thread(e.next_tid, e.next_pid);
        let Some(thread) = self.threads.get_mut(&e.next_tid) else { return };
        if thread.comm != e.next_comm {
            thread.comm = e.next_comm.clone();
        }
        let state = thread.account.state();
        let shares = thread.leave_queue(&mut self.cpus, ts);
        thread.account.enter(State::Running, ts);
        thread.runs_on = Some(e.cpu);
        thread.locks.displaced(&shares);
        if let Some(history) = &mut thread.history {
            history.displaced(&shares);
        }
        if let Some(wake) = thread.dispatch.dispatched(state, e.cpu, &mut self.tally.races) {
            self.tally.dispatches += 1;
            let touched = self.losses.kernel_since(wake.ts) || thread.unseen >= wake.ts;
            self.rows.dispatch_latency.push(thread.dispatch_row(wake, &shares, e.cpu, ts, touched));
        }
    }

    fn waking(&mut self, e: &SchedWaking) {
        let ts = self.now;
        if let Some(waker) = self.threads.get_mut(&e.waker_tid) {
            waker.advance(ts);
            waker.account.seen_running(ts);
        }
        if !self.context.observes(e.pid) {
            return;
        }
        let waker_comm = match self.cpus.occupant(e.cpu) {
            Some(o) if o.tid == e.waker_tid => o.comm.clone(),
            _ => self.context.comm(e.waker_tid),
        };
        let wake = Wake {
            ts,
            waker_tid: e.waker_tid,
            waker_comm,
            prio: e.prio,
            cpu: e.target_cpu,
            migrated: false,
        };
        self.thread(e.tid, e.pid);
        let Some(thread) = self.threads.get_mut(&e.tid) else { return };
        if thread.dispatch.woken(thread.account.state(), wake, &mut self.tally.races) {
            thread.account.enter(State::Runnable, ts);
            thread.leave_queue(&mut self.cpus, ts);
            self.cpus.wait(e.tid, e.target_cpu, ts);
            thread.waits_on = Some(e.target_cpu);
        }
    }

    fn migrate(&mut self, e: &SchedMigrate) {
        let Some(thread) = self.threads.get_mut(&e.tid) else { return };
        if let Some(from) = thread.waits_on {
            self.cpus.migrate(e.tid, from, e.to_cpu, self.now);
            thread.waits_on = Some(e.to_cpu);
            thread.dispatch.migrated();
        }
    }

    fn irq(&mut self, e: &Irq) {
        if !self.context.observes(e.pid) {
            return;
        }
        let Some(part) = Part::of_interrupt(&e.kind) else { return };
        let entry = self.now;
        let exit = entry.saturating_add(e.dur.max(0));
        let thread = self.thread(e.tid, e.pid);
        let possible = thread.account.interrupted(entry, exit, part, e.name.clone());
        self.tally.interrupts_off_cpu += u64::from(!possible);
    }

    fn task(&mut self, e: &TaskEvent) {
        match &*e.kind {
            // The last switch away from it, in state X or Z, removes it.
            "exit" => {
                if let Some(thread) = self.threads.get_mut(&e.tid) {
                    thread.locks.end(&mut self.tally.incomplete);
                }
            }
            "exec" | "rename" => {
                if let Some(thread) = self.threads.get_mut(&e.tid) {
                    thread.comm = e.comm.clone();
                    if &*e.kind == "exec" {
                        // The memory that held its locks is gone.
                        thread.locks.end(&mut self.tally.incomplete);
                    }
                }
            }
            _ => {}
        }
    }

    fn loss(&mut self, e: &LossRow) {
        let end = e.ts.0.saturating_add(e.dur.max(0));
        let hides = self.losses.add(e);
        let (scheduling, interrupts) = match hides {
            Hides::Scheduling | Hides::Everything => (true, true),
            Hides::Interrupts => (false, true),
            _ => (false, false),
        };
        if scheduling {
            self.dark_until = self.dark_until.max(end);
            self.cpus.lose(self.now);
        }
        if interrupts {
            self.blind_until = self.blind_until.max(end);
        }
        for thread in self.threads.values_mut() {
            thread.advance(self.now);
            if scheduling {
                thread.leave_queue(&mut self.cpus, self.now);
                thread.account.lose_state(end);
            }
            if interrupts {
                thread.account.lose_interrupts(end);
            }
            let user = match hides {
                Hides::Thread(tid) => tid == thread.tid,
                Hides::Process(pid) => pid == thread.pid,
                other => other == Hides::Everything,
            };
            if user {
                thread.locks.lose(&mut self.tally.incomplete);
            }
        }
    }

    fn user(&mut self, e: &LeanUserEvent) {
        if e.pid.0 <= 0 {
            return;
        }
        let ts = self.now;
        self.context.observe(e.pid);
        self.thread(e.tid, e.pid);
        let Some(thread) = self.threads.get_mut(&e.tid) else { return };
        if self.context.kernel {
            let off_cpu = matches!(thread.account.state(), State::Runnable | State::Blocked);
            if off_cpu && ts.saturating_sub(thread.left) > self.context.clock_bound_ns {
                // The switch to it is missing: an event of its own shows that it runs.
                thread.account.forget();
                thread.leave_queue(&mut self.cpus, ts);
                thread.dispatch.end(&mut self.tally.races);
                thread.unseen = ts;
                self.tally.ran_unseen += 1;
            }
            thread.account.seen_running(ts);
        }
        let Some(site) = self.context.site(e.site) else { return };
        let (lock, bad) = (e.arg[0], &mut self.tally.incomplete);
        let acquisition = || Acquisition {
            ts,
            lock,
            word: e.arg[1],
            site: e.site,
            kind: site.lock_kind.clone(),
            account: thread.account.total(),
        };
        let newest = thread.locks.newest();
        let ended = match site.kind {
            SiteKind::LockWait => {
                thread.locks.wait(lock, ts, bad);
                None
            }
            SiteKind::LockAcquire => {
                thread.locks.acquire(acquisition(), bad);
                None
            }
            SiteKind::CondWake => {
                thread.locks.wake(acquisition(), bad);
                None
            }
            SiteKind::LockAbandon => {
                thread.locks.abandon(lock);
                None
            }
            SiteKind::LockRelease if site.lock_kind.as_ref() == SEMAPHORE => {
                thread.locks.post(lock)
            }
            SiteKind::LockRelease => thread.locks.release(lock, bad),
            SiteKind::CondWait => thread.locks.park(lock, bad),
            SiteKind::PollBegin => {
                self.tally.pollers += u64::from(thread.begin_polling(ts, self.context.kernel));
                self.inference.polls(e.pid, e.tid, e.cpu, ts);
                None
            }
            SiteKind::PollGap => {
                self.gap(e);
                return;
            }
            SiteKind::PollEnd => {
                thread.history = None;
                None
            }
            SiteKind::Event | SiteKind::ScopeBegin | SiteKind::ScopeEnd => None,
        };
        if let Some(hold) = ended {
            self.tally.holds += 1;
            let in_order = hold.is_semaphore() || newest == Some(lock);
            self.tally.out_of_order_releases += u64::from(!in_order);
            let touched = self.losses.any_since(e.pid, e.tid, hold.ts) || thread.unseen >= hold.ts;
            let name = self.context.lock_name(e.pid, lock, hold.site, hold.word);
            let place = self.context.place(e.pid, hold.site, hold.word);
            let row = thread.hold_row(hold, ts, self.context.kernel, name, place, touched);
            self.rows.critical_sections.push(row);
        }
    }

    fn gap(&mut self, e: &LeanUserEvent) {
        let [before, after, _] = e.arg;
        if before > after || after > self.now {
            self.tally.untold.impossible += 1;
            return;
        }
        let Some(thread) = self.threads.get_mut(&e.tid) else { return };
        self.tally.gaps += 1;
        let explanation = thread.history.as_mut().and_then(|h| h.explain(before, after));
        if self.context.kernel && explanation.is_none() {
            self.tally.untold.before_history += 1;
        }
        self.tally.pollers += u64::from(thread.begin_polling(self.now, self.context.kernel));
        let seen = infer::Seen { pid: e.pid, tid: e.tid, cpu: e.cpu, before, after };
        let inferred = self.inference.gap(seen);
        let touched = self.losses.any_since(e.pid, e.tid, before) || thread.unseen >= before;
        self.rows.gaps.push(thread.gap_row(seen, explanation, inferred, touched));
    }
}
