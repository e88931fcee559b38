//! The analyses: pure state machines. Events in, rows and counts out; no I/O and no clock.
//!
//! [`Analysis`] takes the merged events of a trace in the order of their time and drives, for each observed
//! thread, a time account ([`ledger`]) and the machines that ask it: what the thread holds ([`locks`]), which
//! wake-up it waits on ([`dispatch`]), which gaps it saw ([`gaps`], and without the kernel [`infer`]).
//! [`time`] sums up where all the time of a thread went, by culprit. [`displaced`] knows who has each CPU,
//! [`contention`] who holds and waits for each lock, [`order`] in which order locks are acquired, for all of them.
//! Threads of processes that are not observed exist only as occupants of CPUs.
//!
//! An interval (a hold, a wake-up, a gap) whose records may be incomplete is marked ([`mark`], [`loss`]); what
//! gives no row is counted ([`tally`]).
//!
//! Memory: per observed thread that lives, at most 256 holds with 32 preemptions each, 16 interrupts, 64 culprits
//! of each part, and for a polling thread 4096 stretches; per thread that waits for a lock or a CPU, at most 1024 sums;
//! 65,536 locks, and as many edges between those of each process. Nothing grows with the length of the trace. `LIMITS.md` lists every
//! bound and what is seen when it bites.

pub mod agreement;
mod blame;
mod blocked;
mod contention;
mod context;
mod dispatch;
mod displaced;
mod gaps;
mod grid;
mod host_tick;
mod infer;
mod interval;
mod kernel_events;
mod ledger;
mod lock_events;
mod locks;
mod loss;
mod order;
mod preemptions;
mod spans;
mod sums;
mod tally;
#[cfg(test)]
mod tests;
mod thread;
mod time;
#[cfg(test)]
mod time_tests;
#[cfg(any(test, feature = "timeline"))]
pub mod timeline;
mod user_events;
mod wait_rows;

pub use context::Context;
pub use context::place_text;
pub use dispatch::Races;
pub use ft_trace::Mark;
pub use gaps::Unaccounted;
pub use locks::Incomplete;
pub use preemptions::Unfinished;
pub use tally::{Tally, VERSION};
pub use time::PARTS as TIME_PARTS;

use contention::Locks;
use displaced::Cpus;
use ft_trace::event::Event;
use ft_trace::ids::ThreadKey;
use ft_trace::tables::{
    CriticalSection, DispatchLatency, Gap, LockOrder, LockPreemption, LockWait, NameRow, SiteRow,
    ThreadRow, ThreadTime, UnfinishedWait,
};
use host_tick::HostTick;
use infer::Inference;
use lock_events::Over;
use loss::Losses;
use order::Order;
use thread::{Thread, Threads};

/// Rows that are finished, in the order in which their intervals ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Of `critical_sections`.
    pub critical_sections: Vec<CriticalSection>,
    /// Of `dispatch_latency`.
    pub dispatch_latency: Vec<DispatchLatency>,
    /// Of `gaps`.
    pub gaps: Vec<Gap>,
    /// Of `thread_time`: all of a thread together, when it ended.
    pub thread_time: Vec<ThreadTime>,
    /// Of `lock_waits`.
    pub lock_waits: Vec<LockWait>,
    /// Of `unfinished_waits`.
    pub unfinished_waits: Vec<UnfinishedWait>,
    /// Of `lock_preemptions`.
    pub lock_preemptions: Vec<LockPreemption>,
    /// Of `lock_order`; all at the end.
    pub lock_order: Vec<LockOrder>,
}

/// All analyses of one trace.
#[derive(Debug)]
pub struct Analysis {
    context: Context,
    threads: Threads,
    locks: Locks,
    order: Order,
    cpus: Cpus,
    inference: Inference,
    host_tick: HostTick,
    losses: Losses,
    /// Losses that a thread not seen yet must know of, when it appears.
    dark_until: i64,
    blind_until: i64,
    now: i64,
    rows: Rows,
    agreement: agreement::Counts,
    tally: Tally,
}

impl Analysis {
    /// Analyses of a trace of which nothing was read yet.
    pub fn new(context: Context) -> Self {
        let tally = Tally { version: VERSION, kernel: context.kernel, ..Tally::default() };
        Analysis {
            context,
            threads: Threads::default(),
            locks: Locks::default(),
            order: Order::default(),
            cpus: Cpus::default(),
            inference: Inference::default(),
            host_tick: HostTick::default(),
            losses: Losses::default(),
            dark_until: i64::MIN,
            blind_until: i64::MIN,
            now: i64::MIN,
            rows: Rows::default(),
            agreement: agreement::Counts::default(),
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
        // CLOCK_MONOTONIC is never negative, so no two times are too far apart for their difference.
        if ts < self.now.max(0) {
            self.tally.disordered += 1;
            return;
        }
        self.now = ts;
        match event {
            Event::Switch(e) => self.switch(e),
            Event::Waking(e) => self.waking(e),
            Event::Migrate(e) => self.migrate(e),
            Event::Irq(e) => self.irq(e),
            Event::Syscall(e) => self.syscall(e),
            Event::Contention(e) => self.contention(e),
            Event::Fault(e) => self.fault(e),
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
        r.critical_sections.len()
            + r.dispatch_latency.len()
            + r.gaps.len()
            + r.thread_time.len()
            + r.lock_waits.len()
            + r.lock_preemptions.len()
    }

    /// Ends the trace: what is open is counted as incomplete.
    pub fn finish(mut self) -> (Rows, Tally) {
        let mut alive: Vec<ThreadKey> = self.threads.keys().copied().collect();
        alive.sort_unstable();
        for key in &alive {
            // What the kernel said last of a thread holds until the trace ends.
            if let Some(thread) = self.threads.get_mut(key) {
                thread.advance(self.now);
            }
        }
        // All before the first thread is dropped: a deadlock is told as it stands.
        alive.iter().for_each(|&key| self.unfinished_wait(key, Over::Trace));
        alive.iter().for_each(|&key| self.drop_locks(key, Over::Trace));
        alive.iter().for_each(|&key| self.remove(key, false));
        self.rows.lock_order = self.order.rows(&mut self.context);
        self.tally.order_not_kept = self.order.not_kept;
        self.tally.last_ns = self.now.max(0);
        self.tally.agreement = self.agreement.finish();
        self.tally.lost_user_events = self.losses.user_records;
        self.tally.lost_kernel_records = self.losses.kernel_records;
        (self.rows, self.tally)
    }

    /// An observed thread, with its account advanced to now.
    fn thread(&mut self, key: ThreadKey) -> &mut Thread {
        let now = self.now;
        let thread = self.threads.entry(key).or_insert_with(|| {
            let comm = self.context.comm(key);
            let mut thread = Thread::new(key, comm, now, self.dark_until, self.blind_until);
            if self.losses.of_events(key, i64::MIN) {
                thread.locks.began_in_loss();
            }
            thread
        });
        thread.advance(now);
        thread
    }

    /// Forgets a thread of which there is no more to come, or whose end was `seen`.
    fn remove(&mut self, key: ThreadKey, seen: bool) {
        self.drop_locks(key, Over::Thread);
        let Some(mut thread) = self.threads.remove(&key) else { return };
        if self.inference.knows(key.pid) && self.threads.keys().all(|k| k.pid != key.pid) {
            self.inference.forget(key.pid);
            self.host_tick.forget(key.pid);
        }
        self.losses.ended(key);
        thread.leave_queue(&mut self.cpus, self.now);
        thread.dispatch.end(&mut self.tally.races);
        thread.end_polling(&mut self.agreement);
        if self.context.kernel {
            let first = thread.spent.first();
            let lost = self.losses.kernel_since(first) || thread.unseen >= first;
            let mark = match () {
                () if lost => Mark::LowerBound,
                () if seen && thread.born => Mark::Exact,
                () => Mark::Censored,
            };
            self.rows.thread_time.extend(thread.time_rows(mark));
        }
    }
}
