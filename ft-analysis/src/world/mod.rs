//! What is known of the machine at a moment of the trace: its threads, its CPUs, its locks, and what was lost.
//!
//! The [`World`] takes each event once and reports to the analyses what happened ([`Change`]). What more than one analysis
//! wants to know of is here, and what only one does is not.

mod account;
mod begun;
mod blocked;
mod change;
mod context;
mod counted;
mod cpus;
mod culprit;
mod doubts;
mod held;
mod history;
mod interrupts;
mod interval;
mod kernel_events;
mod load_event;
mod lock_events;
mod locks;
mod log;
mod losses;
mod overhead;
mod parked;
mod parts;
mod per_cpu;
mod places;
mod polls;
mod returns;
mod ring_waits;
mod spans;
mod spent;
mod sums;
mod threads;
mod turns;
mod user_events;
mod wakes;

pub use account::State;
pub(crate) use begun::Nest;
pub use blocked::BlockedOn;
pub use change::{Change, Outcome, Over};
pub use context::{Context, Site, place_text};
pub use cpus::{Occupant, Share, Shares};
pub use culprit::{Culprit, Unknown};
pub use held::{Hold, Incomplete, Wait};
pub use history::Past;
use interrupts::Interrupts;
pub use interval::Interval;
pub(crate) use load_event::{LoadEvent, LoopEvent};
pub use locks::Overlaps;
pub(crate) use locks::{Holder, Process};
pub use log::{Occupancy, Stretch};
pub use overhead::{HeldUp, Overhead};
#[cfg(test)]
pub(crate) use parked::MAX_PARKED;
pub(crate) use parked::{GoesOn, Parked};
pub use parts::Began;
pub(crate) use per_cpu::{PerCpu, index as cpu_index};
pub(crate) use places::{At, Sum as PlaceSum};
pub use polls::{Left, Poll, TaskId};
pub use ring_waits::RingWaits;
pub(crate) use spans::{Count, Spans};
pub(crate) use spent::Sum as Spent;
pub use sums::{Sum, Sums};
pub(crate) use threads::PerThread;
pub use threads::Thread;
pub use turns::Spell;
pub use wakes::{Races, Wake};

use std::collections::HashMap;

use crate::analysis::{Analysis, Audience};
use crate::{Tally, VERSION};
use cpus::Cpus;
use ft_trace::Mark;
use ft_trace::event::Event;
use ft_trace::ids::{Cpu, Name, Pid, ThreadKey, Tid};
use ft_trace::tables::Decomposition;
use locks::Locks;
use log::Log;
use losses::Losses;
use overhead::Sums as OverheadSums;
use returns::Returns;
use threads::{Slot, Threads};
use turns::Turns;

/// What the tests of analyses make without a world.
#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::account::Stretches;
    pub(crate) use super::cpus::Cpus;
    pub(crate) use super::history::History;
}

/// The world at the time of the newest event.
#[derive(Debug)]
pub struct World {
    context: Context,
    threads: Threads,
    cpus: Cpus,
    locks: Locks,
    losses: Losses,
    /// When calls about futexes return, and waits for locks of the kernel end.
    returns: Returns,
    /// What the recording itself did.
    overhead: OverheadSums,
    /// The interrupts that CPUs are in.
    interrupts: Interrupts,
    /// When the tracer held up a thread of each process last.
    disturbed: HashMap<Pid, i64>,
    now: i64,
    /// Holds that have begun.
    holds: u64,
    /// Polls of tasks that have begun.
    polls: u64,
    /// What those have taken, by task.
    turns: Turns,
    /// What tasks hold that no thread runs.
    parked: Parked<Hold>,
    /// System calls are recorded.
    calls: bool,
    /// Page faults are recorded.
    faults: bool,
    /// Waits for locks of the kernel that have begun.
    kernel_waits: u64,
    /// What the world counts itself.
    tally: Tally,
    /// What is settled, and was not reported yet.
    log: Log,
}

impl World {
    /// The world before the first event, for analyses that draw it or not.
    pub(crate) fn new(context: Context, draws: bool) -> Self {
        let tally = Tally { version: VERSION, kernel: context.kernel, ..Tally::default() };
        let cpus = Cpus::new(context.agent, draws);
        World {
            context,
            threads: Threads::default(),
            cpus,
            locks: Locks::default(),
            losses: Losses::default(),
            returns: Returns::default(),
            overhead: OverheadSums::default(),
            interrupts: Interrupts::default(),
            disturbed: HashMap::new(),
            now: i64::MIN,
            holds: 0,
            polls: 0,
            turns: Turns::default(),
            parked: Parked::default(),
            calls: false,
            faults: false,
            kernel_waits: 0,
            tally,
            log: Log::new(draws),
        }
    }

    /// Time of the newest event, CLOCK_MONOTONIC ns.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// What sites, numbers and addresses mean.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What sites, numbers and addresses mean, to add to it.
    pub(crate) fn context_mut(&mut self) -> &mut Context {
        &mut self.context
    }

    /// What was lost.
    pub(crate) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// `disturbed` if the tracer held up any thread of the process since then, else `exact`: each may be the one that
    /// another waits for.
    pub(crate) fn disturbed_since(&self, pid: Pid, since: i64) -> Mark {
        let disturbed = self.disturbed.get(&pid).is_some_and(|&until| until > since);
        if disturbed { Mark::Disturbed } else { Mark::Exact }
    }

    /// Of the waits of a thread for a CPU until now, what threads of the agent had it.
    pub(crate) fn agent_ns(&self, thread: &Thread) -> i64 {
        thread.agent_until(&self.cpus, self.now)
    }

    /// What the agent had the CPU of an interval's *preempted* and *dispatch*, as a figure of a row; not known where it is
    /// not known who it is. Where switches are missing, the count may not fit the parts.
    pub(crate) fn agent_part(&self, ns: i64, parts: &Decomposition) -> Option<i64> {
        let most = parts.preempted_ns.saturating_add(parts.dispatch_ns).max(0);
        (self.context.agent.is_some() && self.context.kernel).then(|| ns.clamp(0, most))
    }

    /// What of a wait for a CPU threads of the agent had it.
    pub(crate) fn agent_share(&self, shares: &Shares) -> Option<i64> {
        self.context.agent?;
        Some(shares.of(|who| self.cpus.is_agents(who.thread)))
    }

    /// The thread belongs to the agent that recorded.
    pub(crate) fn is_agents(&self, thread: ThreadKey) -> bool {
        self.cpus.is_agents(thread)
    }

    /// Who has a CPU, if that is known.
    pub(crate) fn occupant(&self, cpu: Cpu) -> Option<&Occupant> {
        self.cpus.occupant(cpu)
    }

    /// The interrupts that CPUs are in.
    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// Page faults are recorded, and none since then is known to be lost.
    pub(crate) fn knows_faults_since(&self, since: i64) -> bool {
        self.faults && !self.losses.calls_since(since)
    }

    /// System calls are recorded.
    pub(crate) fn knows_calls(&self) -> bool {
        self.calls
    }

    /// Who holds each lock and who waits for it.
    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Newest name of a thread; empty when it was never seen.
    pub(crate) fn comm(&self, thread: ThreadKey) -> Name {
        let known = self.thread(thread.pid, thread.tid).map(|thread| thread.comm.clone());
        known.unwrap_or_else(|| self.context.comm(thread))
    }

    /// A thread that is observed and has not ended.
    pub fn thread(&self, pid: Pid, tid: Tid) -> Option<&Thread> {
        Some(&self.threads[self.threads.find(ThreadKey { pid, tid })?])
    }

    /// No observed thread lives.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.slots().is_empty()
    }

    /// The thread is the only one of its process that is known.
    pub(crate) fn is_alone(&self, thread: &Thread) -> bool {
        self.locks.threads_of(thread.process) == 1
    }

    /// Takes the next event. One that is older than its predecessor is counted and left out: accounts never
    /// go back, and that is what makes every sum exact.
    pub(crate) fn push<A: Analysis>(&mut self, event: &Event, to: &mut Audience<'_, A>) {
        self.tally.events += 1;
        let ts = event.ts().0;
        // CLOCK_MONOTONIC is never negative, so no two times are too far apart for their difference.
        if ts < self.now.max(0) {
            self.tally.disordered += 1;
            return;
        }
        self.log.on = to.analysis.follows();
        self.return_until(ts, to);
        self.now = ts;
        match event {
            Event::Sleep(e) => self.sleep(e),
            Event::Throttle(e) => self.throttle(e, to),
            Event::Switch(e) => self.switch(e, to),
            Event::Waking(e) => self.waking(e, to),
            Event::Migrate(e) => self.migrate(e),
            Event::Irq(e) => self.irq(e, to),
            Event::Syscall(e) => self.syscall(e, to),
            Event::Futex(e) => self.futex(e, to),
            Event::Contention(e) => self.contention(e, to),
            Event::Fault(e) => self.fault(e, to),
            Event::Chain(e) => self.chain(e, to),
            Event::Sample(e) => self.sample(e, to),
            Event::Probe(e) => self.probe(e, to),
            Event::User(e) => self.user(e, to),
            Event::Task(e) => self.task(e, to),
            Event::Loss(e) => self.loss(e, to),
        }
        if self.log.on {
            self.settle(to);
        }
    }

    /// Nothing was recorded until `t`.
    pub(crate) fn pass(&mut self, t: i64) {
        self.now = self.now.max(t);
    }

    /// Tells what is settled of threads and CPUs.
    fn settle<A: Analysis>(&mut self, to: &mut Audience<'_, A>) {
        let mut stretches = std::mem::take(&mut self.log.stretches);
        for mut stretch in stretches.drain(..) {
            if let Some(slot) = self.threads.find(stretch.thread) {
                let (thread, from) = (&self.threads[slot], stretch.from);
                // What was found missing at its begin concerns the time before.
                let lost = thread.doubtful_since(from + 1) || self.losses.kernel_since(from);
                stretch.mark = Mark::lower_bound_if(lost).max(thread.disturbed.mark(from));
            }
            to.tell(self, Change::Spent(&stretch));
        }
        self.log.stretches = stretches;
        for occupancy in self.cpus.take_over() {
            to.tell(self, Change::Occupied(&occupancy));
        }
    }

    /// Ends the trace, and all threads; what was counted.
    pub(crate) fn finish<A: Analysis>(&mut self, to: &mut Audience<'_, A>) -> Tally {
        let alive = self.threads.by_key();
        for &slot in &alive {
            // What the kernel said last of a thread holds until the trace ends.
            self.threads[slot].advance(self.now, &mut self.log);
        }
        // All before the first thread is dropped: a deadlock is reported as it stands.
        for &slot in &alive {
            to.tell(self, Change::Dropping { thread: &self.threads[slot], why: Over::Trace });
        }
        alive.iter().for_each(|&slot| self.drop_locks(slot, Over::Trace, to));
        alive.iter().for_each(|&slot| self.remove(slot, false, to));
        self.cpus.end(self.now);
        self.settle(to);
        self.tally.last_ns = self.now.max(0);
        self.tally.overhead = self.cpus.agent_time(self.now).map(|time| self.overhead.total(time));
        self.tally.lost_user_events = self.losses.user_records;
        self.tally.lost_kernel_records = self.losses.kernel_records;
        std::mem::take(&mut self.tally)
    }

    /// An observed thread, with its account advanced to now.
    fn thread_now(&mut self, key: ThreadKey) -> Slot {
        let slot = match self.threads.find(key) {
            Some(slot) => slot,
            None => self.appear(key),
        };
        self.threads[slot].advance(self.now, &mut self.log);
        slot
    }

    /// A thread is seen for the first time.
    fn appear(&mut self, key: ThreadKey) -> Slot {
        let comm = self.context.comm(key);
        let process = self.locks.join(key.pid);
        let mut thread = Thread::new(key, process, comm, self.now);
        thread.account.lose_state(self.losses.dark_until);
        thread.account.lose_interrupts(self.losses.blind_until);
        if self.losses.of_events(key, i64::MIN) {
            thread.begun.lose();
        }
        self.threads.insert(thread)
    }

    /// Forgets a thread of which there is no more to come, or whose end was `seen`.
    fn remove<A: Analysis>(&mut self, slot: Slot, seen: bool, to: &mut Audience<'_, A>) {
        self.drop_locks(slot, Over::Thread, to);
        let thread = &mut self.threads[slot];
        thread.leave_queue(&mut self.cpus, self.now, &mut self.log);
        thread.wakes.end(&mut self.tally.races);
        if !self.cpus.is_agents(thread.key) {
            self.overhead.ended(&thread.account(self.now));
        }
        self.end_polling(slot, to);
        self.settle(to);
        to.tell(self, Change::Ended { thread: &self.threads[slot], seen });
        if self.is_alone(&self.threads[slot]) {
            self.disturbed.remove(&self.threads[slot].key.pid);
            self.turns.process_over(self.threads[slot].process);
        }
        self.forget_returns(slot);
        let thread = self.threads.remove(slot);
        self.losses.ended(thread.key);
        self.locks.leave(thread.process);
    }
}
