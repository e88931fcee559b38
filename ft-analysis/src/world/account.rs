//! Where the time of one thread went.
//!
//! **Goal.** For any interval between two moments of a thread, say how much of it the thread ran, was
//! preempted, was blocked, was interrupted (by what), and how much no record explains; the parts must
//! sum to the interval to the nanosecond.
//!
//! **Rule.** An [`Account`] accumulates. [`Account::advance`] attributes everything up to a time, once, and
//! never goes back. An interval's decomposition is the account at its end minus the account at its start,
//! so the sum holds by construction and an interval costs a copy of eight numbers, however long it is.
//! Rejected: to keep the segments of each thread and to cut them per interval. Nested locks would cut the
//! same segments many times, and a long hold would keep all of its segments in memory.
//!
//! **Situations.**
//! - *Switched out in state `R`*: preempted until it is switched in again, on whatever CPU.
//! - *Switched out in any other state*: blocked until it is woken, then in *dispatch* until it is switched in.
//! - *Interrupted*: the row of an interrupt comes at its entry and has its length, so the split is exact at
//!   once. Interrupts nest (a vector inside a softirq inside …): each nanosecond belongs to the
//!   innermost one, which is the one that was entered last. A moment in the middle of an interrupt counts
//!   only the part before it.
//! - *Before the first record of the thread, and from a loss until the next record of it*: unknown, so
//!   unexplained. A record that only a running thread can cause (its own event, an interrupt that struck
//!   it, a wake-up that it did) ends that.
//! - *Its own event while the scheduler says that it is off the CPU*, by more than the clock can be wrong: the
//!   switch to it is missing; it runs from then on.
//! - *During a loss of interrupt records*: unexplained while it runs, but the thread's state survives.

use ft_trace::ids::Name;
use ft_trace::tables::{Decomposition, IrqKind, Part};

/// What the kernel said last about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing yet, or nothing since records were lost.
    Unknown,
    /// On a CPU.
    Running,
    /// Off the CPU and ready to run, because it had to leave it.
    Preempted,
    /// Off the CPU and ready to run, because it was woken.
    Woken,
    /// Off the CPU and waiting for something.
    Blocked,
}

impl State {
    /// Off the CPU and ready to run.
    pub(crate) fn is_runnable(self) -> bool {
        matches!(self, State::Preempted | State::Woken)
    }

    /// Off the CPU, for whatever reason.
    pub(crate) fn is_off_cpu(self) -> bool {
        self.is_runnable() || self == State::Blocked
    }
}

/// The part that a handler of this kind takes.
pub(crate) fn interrupt_part(kind: IrqKind) -> Part {
    match kind {
        IrqKind::Hard => Part::Hardirq,
        IrqKind::Soft => Part::Softirq,
        IrqKind::Vector => Part::Vector,
    }
}

/// Receives each stretch of time as it is attributed.
pub(crate) trait Stretches {
    /// `start .. end` went to `part`, inside the interrupt `which` if it is one.
    fn stretch(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>);
}

/// Both get them.
impl<A: Stretches, B: Stretches> Stretches for (&mut A, &mut B) {
    fn stretch(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>) {
        self.0.stretch(start, end, part, which);
        self.1.stretch(start, end, part, which);
    }
}

/// For threads whose stretches nobody needs.
impl Stretches for () {
    fn stretch(&mut self, _: i64, _: i64, _: Part, _: Option<&Name>) {}
}

/// Most interrupts that nest on one CPU: a softirq, and hard interrupts and vectors that each disable
/// further ones; more can only come from damaged data.
///
/// Limit: cannot be reached: softirq, hard interrupt and vectors, each of which keeps its own kind out. The record of a
/// further one is counted (`interrupts_off_cpu`); for a CPU that wakes a worker of a load the outermost is forgotten,
/// and the innermost counts.
/// Shown by: `more_interrupts_than_can_nest_are_refused`, `the_innermost_interrupt_of_the_wakers_cpu_has_woken`.
const MAX_NESTED: usize = 16;

#[derive(Debug)]
struct Interrupt {
    entry: i64,
    exit: i64,
    part: Part,
    which: Name,
}

/// The time account of one thread.
#[derive(Debug)]
pub(crate) struct Account {
    state: State,
    /// Everything before is attributed.
    now: i64,
    total: Decomposition,
    /// Interrupts that were entered and may not have ended, innermost last.
    interrupts: Vec<Interrupt>,
    /// Interrupt records may be missing before this time.
    blind_until: i64,
    /// Scheduler records may be missing before this time, so no record before it fixes the state.
    dark_until: i64,
}

impl Account {
    /// An account that begins at `now`, of a thread about which nothing is known.
    pub(crate) fn new(now: i64) -> Self {
        Account {
            state: State::Unknown,
            now,
            total: Decomposition::default(),
            interrupts: Vec::new(),
            blind_until: i64::MIN,
            dark_until: i64::MIN,
        }
    }

    /// What the kernel said last.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Attributes the time up to `t`, tells `to` every stretch, and returns the account at `t`.
    /// A `t` in the past changes nothing.
    pub(crate) fn advance(&mut self, t: i64, to: &mut impl Stretches) -> Decomposition {
        while self.now < t {
            while self.interrupts.last().is_some_and(|i| i.exit <= self.now) {
                self.interrupts.pop();
            }
            let (part, end, which) = self.next(self.now, self.interrupts.last(), t);
            to.stretch(self.now, end, part, which);
            *self.total.part_mut(part) += end - self.now;
            self.now = end;
        }
        self.total
    }

    /// What the account will be at `t` if nothing is recorded until then.
    pub(crate) fn at(&self, t: i64) -> Decomposition {
        let (mut total, mut now, mut interrupts) = (self.total, self.now, &self.interrupts[..]);
        while now < t {
            while let [outer @ .., innermost] = interrupts
                && innermost.exit <= now
            {
                interrupts = outer;
            }
            let (part, end, _) = self.next(now, interrupts.last(), t);
            *total.part_mut(part) += end - now;
            now = end;
        }
        total
    }

    /// What the time from `now` on goes to, until when, at most until `t`, and in which interrupt.
    fn next<'a>(
        &self,
        now: i64,
        innermost: Option<&'a Interrupt>,
        t: i64,
    ) -> (Part, i64, Option<&'a Name>) {
        // Off the CPU no interrupt is missed.
        let on_cpu = self.state == State::Running;
        let hidden_until = self.dark_until.max(if on_cpu { self.blind_until } else { i64::MIN });
        let (part, end, which) = match innermost {
            _ if now < hidden_until => (Part::Unexplained, hidden_until, None),
            Some(i) if on_cpu => (i.part, i.exit, Some(&i.which)),
            _ => (self.part_of_state(), t, None),
        };
        (part, end.min(t), which)
    }

    fn part_of_state(&self) -> Part {
        match self.state {
            State::Unknown => Part::Unexplained,
            State::Running => Part::Running,
            State::Preempted => Part::Preempted,
            State::Woken => Part::Dispatch,
            State::Blocked => Part::Blocked,
        }
    }

    /// The kernel says that the thread is in `state` from `t` on. The caller has advanced to `t`.
    pub(crate) fn enter(&mut self, state: State, t: i64) {
        if state != State::Running {
            self.interrupts.clear();
        }
        self.state = if t < self.dark_until { State::Unknown } else { state };
    }

    /// Something at `t` shows that the thread is on a CPU. Counts only when nothing is known: else a user
    /// event whose time is off by the clock's error would undo what the kernel said exactly.
    pub(crate) fn seen_running(&mut self, t: i64) {
        if self.state == State::Unknown && t >= self.dark_until {
            self.state = State::Running;
        }
    }

    /// An interrupt struck the thread at `entry` and ends at `exit`. The caller has advanced to `entry`.
    /// Returns false when it cannot be: the kernel had said that the thread was off the CPU, or interrupts do not nest
    /// so deep.
    pub(crate) fn interrupted(&mut self, entry: i64, exit: i64, part: Part, which: Name) -> bool {
        self.seen_running(entry);
        if self.state.is_off_cpu() {
            return false;
        }
        if self.interrupts.len() == MAX_NESTED {
            self.interrupts.retain(|i| i.exit > entry);
            if self.interrupts.len() == MAX_NESTED {
                return false;
            }
        }
        // Of two that were entered in the same nanosecond, the one that ends first is the inner one.
        let inner = self.interrupts.iter().rev();
        let above = inner.take_while(|i| i.entry == entry && i.exit < exit).count();
        let at = self.interrupts.len() - above;
        self.interrupts.insert(at, Interrupt { entry, exit, part, which });
        true
    }

    /// A switch of the thread was not recorded: its state is unknown from now until its next record.
    pub(crate) fn forget(&mut self) {
        self.state = State::Unknown;
        self.interrupts.clear();
    }

    /// Scheduler records were lost up to `end`: the state is unknown until a record after `end`.
    pub(crate) fn lose_state(&mut self, end: i64) {
        self.forget();
        self.dark_until = self.dark_until.max(end);
    }

    /// Interrupt records were lost up to `end`: of the time on the CPU before it, nothing can be attributed.
    pub(crate) fn lose_interrupts(&mut self, end: i64) {
        self.blind_until = self.blind_until.max(end);
    }
}

#[cfg(test)]
mod tests;
