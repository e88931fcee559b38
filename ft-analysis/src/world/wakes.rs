//! The wake-ups of a thread: since when it can run, and who woke it.
//!
//! **Rule.** A waking of a thread that is blocked starts a wake-up; the next switch to it ends it. `sched_waking`
//! is the start because it fires on the waker's side, before any queue is touched, so the time to move
//! the thread to another CPU counts.
//!
//! **Situations.**
//! - *Woken while it runs*: a race between its going to sleep and the waker, since who is not about to sleep is not
//!   woken (`ttwu_state_match`, kernel/sched/core.c). Mostly the kernel undoes the sleep: there is nothing to wait for,
//!   and it is counted as [`Races::woken_while_awake`]. But when the scheduler has taken the thread off its queue
//!   before, the waker must wait until it has left the CPU, and from then on it can run. Which of the two it was, the
//!   switch away says ([`SchedSwitch::prev_woken`](ft_trace::tables::SchedSwitch)): in between the thread may have
//!   run on for long, and begun to sleep for another reason. Such a wake-up has a row, which begins when the thread has
//!   left the CPU, because it waits for one from then on; counted as [`Races::woken_on_the_way`].
//! - *Woken once more after that*: it had slept after all, and somebody else had the lock by which the switch judges
//!   that it was being woken. The wake-up begins anew, and what lies in between is a lower bound;
//!   [`Races::slept_after_all`].
//! - *Woken while it is preempted*: the kernel undoes the sleep in any case.
//! - *Woken again before it runs*: the first waking counts.
//! - *Switched in from blocked without a waking*: it was lost, or the switch away did not say that one was under way
//!   (where the kernel does not let it be seen); counted as [`Races::dispatched_without_waking`], no row, and what lies
//!   in between is a lower bound.
//! - *Its state is unknown* (start, loss): a waking starts anew, since what came before may be missing.

use super::account::State;
use ft_trace::ids::{Cpu, Name, Tid};
use serde::{Deserialize, Serialize};

/// Wakings that did not come while the thread slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Races {
    /// Woken while running or runnable, and not put to sleep: no row.
    pub woken_while_awake: u64,
    /// Switched in from blocked, and no waking was seen.
    pub dispatched_without_waking: u64,
    /// Woken, but the switch to it was not recorded.
    pub never_dispatched: u64,
    /// Woken on its way off the CPU: the row begins at the switch.
    pub woken_on_the_way: u64,
    /// Of these, it had slept all the same: the row begins at the waking that shows it.
    pub slept_after_all: u64,
}

/// A wake-up whose thread does not run yet.
#[derive(Clone, Debug)]
pub struct Wake {
    /// Since when it can run.
    pub(crate) ts: i64,
    pub(crate) waker_tid: Tid,
    pub(crate) waker_comm: Name,
    pub(crate) prio: i32,
    /// CPU on which the thread last ran.
    pub(crate) cpu: Cpu,
    pub(crate) migrated: bool,
    /// Call chain of the waker.
    pub(crate) stack: Option<i64>,
}

/// The wake-ups of one thread.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// The one that it waits on.
    wake: Option<Wake>,
    /// That one came before the thread had left its CPU.
    on_the_way: bool,
    /// The last one since it got its CPU.
    early: Option<Wake>,
}

impl Wakes {
    /// The thread, in `state`, is woken. Returns whether it waits for a CPU from now on.
    pub(crate) fn woken(&mut self, state: State, wake: Wake, races: &mut Races) -> bool {
        match state {
            State::Running => {
                races.woken_while_awake += u64::from(self.early.replace(wake).is_some());
                return false;
            }
            State::Woken if self.may_sleep() => races.slept_after_all += 1,
            State::Preempted | State::Woken => {
                races.woken_while_awake += 1;
                return false;
            }
            State::Blocked => {}
            State::Unknown => races.never_dispatched += u64::from(self.wake.is_some()),
        }
        self.wake = Some(wake);
        self.on_the_way = false;
        true
    }

    /// Nothing but its switch away says that the thread was woken: one more waking shows that it sleeps.
    pub(crate) fn may_sleep(&self) -> bool {
        self.on_the_way
    }

    /// The call chain from which `waker` woke the thread just now.
    pub(crate) fn add_chain(&mut self, waker: Tid, stack: Option<i64>) {
        let newest = self.early.as_mut().or(self.wake.as_mut());
        if let Some(wake) = newest.filter(|wake| wake.waker_tid == waker) {
            wake.stack = wake.stack.or(stack);
        }
    }

    /// The thread leaves its CPU at `ts`; `being_woken`: it was to sleep, but a waking was under way. Returns whether
    /// it can run because of that.
    pub(crate) fn left(&mut self, ts: i64, being_woken: bool, races: &mut Races) -> bool {
        races.never_dispatched += u64::from(self.wake.take().is_some());
        let early = self.early.take();
        self.on_the_way = being_woken && early.is_some();
        races.woken_while_awake += u64::from(!being_woken && early.is_some());
        races.woken_on_the_way += u64::from(self.on_the_way);
        self.wake = early.filter(|_| self.on_the_way).map(|wake| Wake { ts, ..wake });
        self.on_the_way
    }

    /// Scheduler records were lost: what came before says nothing of what comes.
    pub(crate) fn lose(&mut self, races: &mut Races) {
        races.woken_while_awake += u64::from(self.early.take().is_some());
    }

    /// The thread was moved to another CPU.
    pub(crate) fn migrated(&mut self) {
        if let Some(wake) = &mut self.wake {
            wake.migrated = true;
        }
    }

    /// The thread, until now in `state`, was given `cpu`; the wake-up that this ends.
    pub(crate) fn dispatched(&mut self, state: State, cpu: Cpu, races: &mut Races) -> Option<Wake> {
        let Some(mut wake) = self.wake.take() else {
            races.dispatched_without_waking += u64::from(state == State::Blocked);
            return None;
        };
        wake.migrated |= wake.cpu != cpu;
        Some(wake)
    }

    /// The thread, or the recording, has ended; or the thread has a CPU that it was never seen to get.
    pub(crate) fn end(&mut self, races: &mut Races) {
        races.never_dispatched += u64::from(self.wake.take().is_some());
        self.lose(races);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(ts: i64) -> Wake {
        let waker_comm = "waker".into();
        Wake {
            ts,
            waker_tid: Tid(2),
            waker_comm,
            prio: 120,
            cpu: Cpu(0),
            migrated: false,
            stack: None,
        }
    }

    #[test]
    fn only_a_sleeping_thread_is_woken() {
        for (state, starts) in [
            (State::Running, false),
            (State::Preempted, false),
            (State::Woken, false),
            (State::Blocked, true),
            (State::Unknown, true),
        ] {
            let (mut d, mut races) = (Wakes::default(), Races::default());
            assert_eq!(d.woken(state, wake(1), &mut races), starts, "{state:?}");
            assert_eq!(d.dispatched(state, Cpu(0), &mut races).is_some(), starts);
            d.end(&mut races);
            assert_eq!(races.woken_while_awake, u64::from(!starts));
        }
    }

    #[test]
    fn the_first_waking_counts() {
        // b |waking 5|waking 7|==
        let (mut d, mut races) = (Wakes::default(), Races::default());
        assert!(d.woken(State::Blocked, wake(5), &mut races));
        assert!(!d.woken(State::Woken, wake(7), &mut races));
        let wake = d.dispatched(State::Woken, Cpu(0), &mut races);
        assert_eq!(wake.map(|w| w.ts), Some(5));
    }

    #[test]
    fn a_move_is_told_with_or_without_its_record() {
        let (mut d, mut races) = (Wakes::default(), Races::default());
        d.woken(State::Blocked, wake(5), &mut races);
        assert!(d.dispatched(State::Woken, Cpu(1), &mut races).is_some_and(|w| w.migrated));
        d.woken(State::Blocked, wake(5), &mut races);
        d.migrated();
        assert!(d.dispatched(State::Woken, Cpu(0), &mut races).is_some_and(|w| w.migrated));
    }

    #[test]
    fn the_switch_away_says_what_became_of_a_waking_while_running() {
        // = |waking 5|left 9 ……|=    what it waits for begins at 9, or there is nothing
        for being_woken in [true, false] {
            let (mut d, mut races) = (Wakes::default(), Races::default());
            assert!(!d.woken(State::Running, wake(5), &mut races));
            assert_eq!(d.left(9, being_woken, &mut races), being_woken);
            let row = d.dispatched(State::Woken, Cpu(0), &mut races);
            assert_eq!(row.map(|w| w.ts), being_woken.then_some(9));
            let n = u64::from(being_woken);
            assert_eq!((races.woken_on_the_way, races.woken_while_awake), (n, 1 - n));
        }
        // Without a waking there is nothing that could be under way.
        assert!(!Wakes::default().left(9, true, &mut Races::default()));
    }

    #[test]
    fn what_has_no_start_or_no_end_is_counted() {
        let (mut d, mut races) = (Wakes::default(), Races::default());
        assert!(d.dispatched(State::Blocked, Cpu(0), &mut races).is_none());
        d.woken(State::Blocked, wake(5), &mut races);
        d.end(&mut races);
        let expected =
            Races { dispatched_without_waking: 1, never_dispatched: 1, ..Races::default() };
        assert_eq!(races, expected);
    }
}
