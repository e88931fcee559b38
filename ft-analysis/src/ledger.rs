//! Where the time of one thread went.
//!
//! **Goal.** For any interval between two moments of a thread, tell how much of it the thread ran, was
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
//! - *Interrupted*: the row of an interrupt comes at its entry and tells its length, so the split is exact at
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
pub(crate) enum State {
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

/// `later - earlier`, part by part.
pub(crate) fn difference(later: &Decomposition, earlier: &Decomposition) -> Decomposition {
    Decomposition {
        running_ns: later.running_ns - earlier.running_ns,
        preempted_ns: later.preempted_ns - earlier.preempted_ns,
        dispatch_ns: later.dispatch_ns - earlier.dispatch_ns,
        blocked_ns: later.blocked_ns - earlier.blocked_ns,
        hardirq_ns: later.hardirq_ns - earlier.hardirq_ns,
        softirq_ns: later.softirq_ns - earlier.softirq_ns,
        vector_ns: later.vector_ns - earlier.vector_ns,
        unexplained_ns: later.unexplained_ns - earlier.unexplained_ns,
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

    /// Time up to which it was advanced.
    pub(crate) fn now(&self) -> i64 {
        self.now
    }

    /// The account at the time up to which it was advanced.
    pub(crate) fn total(&self) -> Decomposition {
        self.total
    }

    /// Attributes the time up to `t`, tells `to` every stretch, and returns the account at `t`.
    /// A `t` in the past changes nothing.
    pub(crate) fn advance(&mut self, t: i64, to: &mut impl Stretches) -> Decomposition {
        while self.now < t {
            while self.interrupts.last().is_some_and(|i| i.exit <= self.now) {
                self.interrupts.pop();
            }
            // Off the CPU no interrupt is missed.
            let on_cpu = self.state == State::Running;
            let hidden_until =
                self.dark_until.max(if on_cpu { self.blind_until } else { i64::MIN });
            let (part, end, which) = match self.interrupts.last() {
                _ if self.now < hidden_until => (Part::Unexplained, hidden_until, None),
                Some(i) if on_cpu => (i.part, i.exit, Some(&i.which)),
                _ => (self.part_of_state(), t, None),
            };
            let end = end.min(t);
            to.stretch(self.now, end, part, which);
            *self.total.part_mut(part) += end - self.now;
            self.now = end;
        }
        self.total
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
mod tests {
    use super::*;

    /// What happens to the thread, at a time.
    enum Do {
        Enter(i64, State),
        Irq(i64, i64, Part),
        LoseState(i64, i64),
        LoseInterrupts(i64, i64),
    }
    use Do::*;

    fn check(timeline: &[Do], from: i64, to: i64, expected: [i64; 8]) {
        let mut account = Account::new(0);
        let mut start = None;
        let mut go = |account: &mut Account, t: i64| {
            if t >= from && start.is_none() {
                start = Some(account.advance(from, &mut ()));
            }
            account.advance(t, &mut ())
        };
        for step in timeline {
            match *step {
                Enter(t, state) => {
                    go(&mut account, t);
                    account.enter(state, t);
                }
                Irq(t, exit, part) => {
                    go(&mut account, t);
                    account.interrupted(t, exit, part, "x".into());
                }
                LoseState(t, end) => {
                    go(&mut account, t);
                    account.lose_state(end);
                }
                LoseInterrupts(t, end) => {
                    go(&mut account, t);
                    account.lose_interrupts(end);
                }
            }
        }
        let end = go(&mut account, to);
        let d = difference(&end, &start.expect("`from` lies before the end"));
        assert_eq!(d.total_ns(), to - from);
        let parts = [
            d.running_ns,
            d.preempted_ns,
            d.dispatch_ns,
            d.blocked_ns,
            d.hardirq_ns,
            d.softirq_ns,
            d.vector_ns,
            d.unexplained_ns,
        ];
        assert_eq!(
            parts, expected,
            "running, preempted, dispatch, blocked, hard, soft, vector, unexplained"
        );
    }

    // Legend of the timelines: `?` unknown, `=` running, `r` preempted, `w` woken, `b` blocked,
    // `h` hardirq, `s` softirq, `v` vector, `[` and `]` the interval that is decomposed.

    #[test]
    fn states_are_told_apart() {
        // 0    10    20    30    40   50
        //  ????|=====|rrrrr|=====|bbbb|ww
        //   [                           ]
        let t = [
            Enter(10, State::Running),
            Enter(20, State::Preempted),
            Enter(30, State::Running),
            Enter(40, State::Blocked),
            Enter(50, State::Woken),
        ];
        check(&t, 5, 53, [20, 10, 3, 10, 0, 0, 0, 5]);
    }

    #[test]
    fn nested_interrupts_go_to_the_innermost() {
        // 0   10   15   17  18   20   30
        //  ===|ssss|hhhh|vvv|hhhh|ssss|===
        let t = [
            Enter(0, State::Running),
            Irq(10, 30, Part::Softirq),
            Irq(15, 20, Part::Hardirq),
            Irq(17, 18, Part::Vector),
        ];
        check(&t, 0, 40, [20, 0, 0, 0, 4, 15, 1, 0]);
    }

    #[test]
    fn an_interval_may_begin_and_end_inside_interrupts() {
        // 0   10      20     30     40
        //  ===|sss[sss|======|hhh]hhh|
        let t = [Enter(0, State::Running), Irq(10, 20, Part::Softirq), Irq(30, 40, Part::Hardirq)];
        check(&t, 15, 35, [10, 0, 0, 0, 5, 5, 0, 0]);
    }

    #[test]
    fn of_two_with_one_entry_the_shorter_is_inside() {
        let inner_last =
            [Enter(0, State::Running), Irq(5, 15, Part::Softirq), Irq(5, 8, Part::Hardirq)];
        check(&inner_last, 0, 20, [10, 0, 0, 0, 3, 7, 0, 0]);
        let inner_first =
            [Enter(0, State::Running), Irq(5, 8, Part::Hardirq), Irq(5, 15, Part::Softirq)];
        check(&inner_first, 0, 20, [10, 0, 0, 0, 3, 7, 0, 0]);
    }

    #[test]
    fn an_interrupt_ends_where_the_thread_leaves_the_cpu() {
        // Damaged or missing exit: the row says 10..50, the switch says that the thread left at 20.
        let t = [
            Enter(0, State::Running),
            Irq(10, 50, Part::Hardirq),
            Enter(20, State::Preempted),
            Enter(30, State::Running),
        ];
        check(&t, 0, 60, [40, 10, 0, 0, 10, 0, 0, 0]);
    }

    #[test]
    fn more_interrupts_than_can_nest_are_refused() {
        let mut account = Account::new(0);
        account.enter(State::Running, 0);
        let mut strike = |entry, exit| {
            account.advance(entry, &mut ());
            account.interrupted(entry, exit, Part::Hardirq, "x".into())
        };
        let most = MAX_NESTED as i64;
        assert!((0..most).all(|t| strike(t, 1000 - t)));
        assert!(!strike(most, 1000 - most));
        assert!(strike(1000, 1010), "those that have ended make room");
        assert_eq!(account.advance(1020, &mut ()).hardirq_ns, 1010);
    }

    #[test]
    fn an_interrupt_shows_that_an_unknown_thread_runs() {
        check(&[Irq(10, 12, Part::Vector)], 0, 20, [8, 0, 0, 0, 0, 0, 2, 10]);
    }

    #[test]
    fn a_loss_of_scheduler_records_lasts_until_a_record_after_it() {
        // 0    10          20      30   40
        //  ====|..lost.....|???????|====|
        //           ^ 15: in again, but the records that follow may be lost
        let t = [
            Enter(0, State::Running),
            LoseState(10, 20),
            Enter(15, State::Running),
            Enter(30, State::Running),
        ];
        check(&t, 0, 40, [20, 0, 0, 0, 0, 0, 0, 20]);
    }

    #[test]
    fn a_loss_of_interrupt_records_keeps_the_state() {
        let t = [Enter(0, State::Running), LoseInterrupts(10, 20), Irq(12, 14, Part::Hardirq)];
        check(&t, 0, 40, [30, 0, 0, 0, 0, 0, 0, 10]);
    }
}
