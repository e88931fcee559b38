//! The observed threads, and what is known of each.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use super::account::{Account, State};
use super::begun::Begun;
use super::context::Program;
use super::counted::Counted;
use super::cpus::{Cpus, Shares};
use super::held::Held;
use super::history::{History, Past};
use super::interval::Interval;
use super::locks::Process;
use super::log::{Log, Logged};
use super::places::{At, Places};
use super::polls::Polls;
use super::ring_waits::Disturbed;
use super::spent::Spent;
use super::wakes::Wakes;
use ft_trace::event::LeanFutex;
use ft_trace::ids::{Cpu, Name, ThreadKey};
use ft_trace::tables::{Decomposition, Sleep};

/// Place of a thread among those that live; used again when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// The observed threads that live.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    by_key: HashMap<ThreadKey, Slot>,
    slots: Vec<Option<Thread>>,
    free: Vec<Slot>,
    /// Threads that there have been.
    begun: u64,
}

impl Threads {
    /// Where a thread is, if it is known.
    pub(crate) fn find(&self, key: ThreadKey) -> Option<Slot> {
        self.by_key.get(&key).copied()
    }

    /// A thread, if it is known.
    pub(crate) fn get_mut(&mut self, key: ThreadKey) -> Option<&mut Thread> {
        self.find(key).map(|slot| &mut self[slot])
    }

    /// Adds a thread that was not known.
    pub(crate) fn insert(&mut self, mut thread: Thread) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot(self.slots.len() - 1)
        });
        self.begun += 1;
        (thread.slot, thread.serial) = (slot, self.begun);
        self.by_key.insert(thread.key, slot);
        self.slots[slot.0] = Some(thread);
        slot
    }

    /// Forgets a thread.
    pub(crate) fn remove(&mut self, slot: Slot) -> Thread {
        let thread = self.slots[slot.0].take().expect("a slot in use");
        self.by_key.remove(&thread.key);
        self.free.push(slot);
        thread
    }

    /// All slots in use.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.slots.iter().flatten().map(|thread| thread.slot).collect()
    }

    /// All slots in use, in the order of the keys of their threads.
    pub(crate) fn by_key(&self) -> Vec<Slot> {
        let mut slots = self.slots();
        slots.sort_unstable_by_key(|&slot| self[slot].key);
        slots
    }
}

impl Index<Slot> for Threads {
    type Output = Thread;

    fn index(&self, slot: Slot) -> &Thread {
        self.slots[slot.0].as_ref().expect("a slot in use")
    }
}

impl IndexMut<Slot> for Threads {
    fn index_mut(&mut self, slot: Slot) -> &mut Thread {
        self.slots[slot.0].as_mut().expect("a slot in use")
    }
}

/// What an analysis remembers of each thread. It forgets by itself what it remembered of a thread that has ended, when
/// another one takes its slot.
#[derive(Debug)]
pub(crate) struct PerThread<T>(Vec<(u64, T)>);

impl<T> Default for PerThread<T> {
    fn default() -> Self {
        PerThread(Vec::new())
    }
}

impl<T: Default> PerThread<T> {
    /// What is remembered of a thread.
    pub(crate) fn of(&mut self, thread: &Thread) -> &mut T {
        let i = thread.slot.0;
        if i >= self.0.len() {
            self.0.resize_with(i + 1, Default::default);
        }
        let (serial, value) = &mut self.0[i];
        if *serial != thread.serial {
            (*serial, *value) = (thread.serial, T::default());
        }
        value
    }

    /// The same, if anything was ever remembered of it.
    pub(crate) fn get(&mut self, thread: &Thread) -> Option<&mut T> {
        let (serial, value) = self.0.get_mut(thread.slot.0)?;
        (*serial == thread.serial).then_some(value)
    }
}

/// All that is known of one observed thread.
#[derive(Debug)]
pub struct Thread {
    pub(crate) key: ThreadKey,
    pub(crate) process: Process,
    slot: Slot,
    /// No two threads of a trace have the same.
    serial: u64,
    pub(crate) comm: Name,
    pub(super) account: Account,
    /// CPU that it has.
    pub(super) runs_on: Option<Cpu>,
    /// When it left its CPU last.
    pub(crate) left: i64,
    /// Call chain at which it left its CPU, until it has one again.
    pub(crate) left_at: Option<i64>,
    /// What it was in when it left its CPU to wait, until it has one again.
    pub(crate) asleep: Option<Sleep>,
    /// Since when it can run and does not, when it is runnable; and it was woken, not preempted.
    pub(crate) runnable: (i64, bool),
    /// Its newest kernel priority, by its switches and wake-ups; while it waits for a CPU, that with which it began to.
    pub(crate) prio: Option<i32>,
    /// It was in the kernel when it left its CPU last, and was made to leave it.
    pub(crate) cut_off: bool,
    /// When a missing switch of it was noticed last.
    pub(crate) unseen: i64,
    /// When it left the queue of a CPU last of which it was found since that who had it is not sure.
    pub(crate) unsure: i64,
    /// Who had the CPUs in whose queues it stood before it was moved to the present one.
    pub(super) moved: Shares,
    /// CPU in whose queue it stands.
    pub(super) waits_on: Option<Cpu>,
    /// Of the time in which it waited for a CPU, what the agent had it; without the wait that goes on.
    pub(super) agent_ns: i64,
    /// What that CPU's count of the agent's time was when it came.
    agent_then: i64,
    pub(crate) locks: Held,
    /// Whether all is known that it is in.
    pub(crate) begun: Begun,
    /// How often something happened to it.
    pub(super) counted: Counted,
    /// The polls of tasks in which it is.
    pub(crate) polls: Polls,
    pub(super) wakes: Wakes,
    /// The call about a futex in which it is.
    pub(crate) calling: Option<LeanFutex>,
    /// The waits for locks of the kernel in which it is: when each ends, and its number.
    pub(super) contends: Vec<(i64, u64)>,
    /// Where its time went so far.
    pub(crate) spent: Spent,
    /// The same by system call, of a thread that has made one.
    pub(crate) places: Option<Box<Places>>,
    /// It began in the trace.
    pub(crate) born: bool,
    /// What it runs, by its newest own event.
    pub(super) program: Option<Program>,
    /// Kept for polling threads, and for workers of loads.
    pub(super) history: Option<Box<History>>,
    /// It has polled.
    pub(crate) polled: bool,
    /// When the tracer held it up.
    pub(crate) disturbed: Disturbed,
}

impl Thread {
    /// A thread that is seen for the first time at `now`.
    pub(super) fn new(key: ThreadKey, process: Process, comm: Name, now: i64) -> Self {
        Thread {
            key,
            process,
            slot: Slot(usize::MAX),
            serial: 0,
            comm,
            account: Account::new(now),
            runs_on: None,
            left: i64::MIN,
            left_at: None,
            asleep: None,
            runnable: (i64::MIN, false),
            prio: None,
            cut_off: false,
            unseen: i64::MIN,
            unsure: i64::MIN,
            moved: Shares::default(),
            waits_on: None,
            agent_ns: 0,
            agent_then: 0,
            locks: Held::default(),
            begun: Begun::default(),
            counted: Counted::default(),
            polls: Polls::default(),
            wakes: Wakes::default(),
            calling: None,
            contends: Vec::new(),
            spent: Spent::new(now),
            places: None,
            born: false,
            program: None,
            history: None,
            polled: false,
            disturbed: Disturbed::default(),
        }
    }

    /// It leaves this CPU, which by all that was recorded of it it did not have: the switch to it is missing.
    pub(super) fn comes_unseen(&self, cpu: Cpu) -> bool {
        match self.account.state() {
            State::Running => self.runs_on.is_some_and(|on| on != cpu),
            state => state.is_off_cpu(),
        }
    }

    /// Its process and number.
    pub fn key(&self) -> ThreadKey {
        self.key
    }

    /// Its newest name.
    pub fn comm(&self) -> &Name {
        &self.comm
    }

    /// Where its time went from its first sight up to `t`, which is not before its newest record. The difference of two
    /// is where the time between them went.
    pub fn account(&self, t: i64) -> Decomposition {
        self.account.at(t)
    }

    /// What it was doing, as a waking shows that comes now.
    pub(crate) fn state_when_woken(&self) -> State {
        match self.account.state() {
            State::Woken if self.wakes.may_sleep() => State::Blocked,
            state => state,
        }
    }

    /// Brings the account to `now`.
    pub(super) fn advance(&mut self, now: i64, log: &mut Log) {
        let mut logged = Logged { thread: self.key, spent: &mut self.spent, log };
        self.account.advance(now, &mut (&mut (&mut self.history, &mut self.places), &mut logged));
    }

    /// In which system call it is, if any, at `t`, which is not before its newest record; `None` where nothing is known.
    pub(crate) fn place(&self, t: i64) -> Option<&At> {
        Some(self.places.as_ref()?.at(t))
    }

    /// System calls that it has begun, as far as they were recorded.
    pub(crate) fn calls(&self) -> i64 {
        self.places.as_ref().map_or(0, |places| places.entered())
    }

    /// Its places, from now on told apart.
    pub(super) fn places(&mut self, now: i64) -> &mut Places {
        let account = &self.account;
        self.places.get_or_insert_with(|| Box::new(Places::new(account.at(now))))
    }

    /// Whether it can run, and others have the CPU.
    pub(crate) fn is_runnable(&self) -> bool {
        self.account.state().is_runnable()
    }

    /// It is off the CPU, and waits for something.
    pub(crate) fn is_blocked(&self) -> bool {
        self.account.state() == State::Blocked
    }

    /// It had to leave its CPU, and has none.
    pub(crate) fn is_preempted(&self) -> bool {
        self.account.state() == State::Preempted
    }

    /// It has recorded an event itself.
    pub(crate) fn has_recorded(&self) -> bool {
        self.program.is_some()
    }

    /// It holds a lock, can run, and does not.
    pub(crate) fn is_held_up(&self) -> bool {
        self.account.state().is_runnable() && self.locks.locks().next().is_some()
    }

    /// Switches that concern it, or the CPU that it waited for, were found missing since `since`.
    pub(crate) fn doubtful_since(&self, since: i64) -> bool {
        self.unseen.max(self.unsure) >= since
    }

    /// Puts the thread into the queue of a CPU.
    pub(super) fn join_queue(&mut self, cpu: Cpu, cpus: &mut Cpus, now: i64) {
        cpus.wait(self.key, cpu, now);
        self.waits_on = Some(cpu);
        self.agent_then = cpus.agent_ns(cpu, now);
    }

    /// The thread, which stands in a queue, is moved to that of another CPU.
    pub(super) fn change_queue(&mut self, cpu: Cpu, cpus: &mut Cpus, now: i64) {
        let Some(from) = self.waits_on else { return };
        self.agent_ns += self.agent_waiting(cpus, now);
        let shares = cpus.migrate(self.key, from, cpu, now);
        self.moved.merge(&shares);
        self.waits_on = Some(cpu);
        self.agent_then = cpus.agent_ns(cpu, now);
    }

    /// What the agent has had the CPU since the thread stands in its queue.
    fn agent_waiting(&self, cpus: &Cpus, now: i64) -> i64 {
        self.waits_on.map_or(0, |cpu| (cpus.agent_ns(cpu, now) - self.agent_then).max(0))
    }

    /// Of the time in which it waited for a CPU until now, what the agent had it.
    pub(super) fn agent_until(&self, cpus: &Cpus, now: i64) -> i64 {
        self.agent_ns + self.agent_waiting(cpus, now)
    }

    /// Takes the thread out of the queue in which it stands; who ran while it stood there.
    pub(super) fn leave_queue(&mut self, cpus: &mut Cpus, now: i64, log: &mut Log) -> Shares {
        self.agent_ns += self.agent_waiting(cpus, now);
        let waited = self.waits_on.take();
        let mut shares = waited.map_or_else(Shares::default, |cpu| cpus.leave(self.key, cpu, now));
        if !self.moved.is_empty() {
            shares.merge(&std::mem::take(&mut self.moved));
        }
        log.waited(self.key, &self.spent, &shares);
        self.spent.waited(&shares, cpus);
        shares
    }

    /// Starts to keep a history of a thread that does not poll yet.
    pub(super) fn keep_history(&mut self, now: i64) {
        self.history.get_or_insert_with(|| Box::new(History::quiet(now)));
    }

    /// What the kernel recorded of an interval that is over; `None` without a history, or where it is older.
    pub(crate) fn past(&self, interval: Interval) -> Option<Past> {
        self.history.as_ref()?.past(interval)
    }

    /// Starts to keep a history of gaps. Returns whether this is a poller not seen before.
    pub(super) fn begin_polling(&mut self, now: i64, kernel: bool) -> bool {
        if kernel {
            self.history.get_or_insert_with(|| Box::new(History::new(now))).polls(now);
        }
        !std::mem::replace(&mut self.polled, true)
    }
}
