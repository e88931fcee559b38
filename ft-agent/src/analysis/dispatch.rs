//! How long a woken thread waits for a CPU (Hourglass, section 5.3).
//!
//! **Goal.** One row for each wake-up of an observed thread, from the waking to the switch that let it run.
//!
//! **Rule.** A waking of a thread that is blocked starts a wake-up; the next switch to it ends it. `sched_waking`
//! is the start because it fires on the waker's side, before any queue is touched, so the time to move
//! the thread to another CPU counts.
//!
//! **Situations.**
//! - *Woken while it runs or is runnable already*: a race between its going to sleep and the waker. The kernel
//!   undoes the sleep; there is nothing to wait for, and it is counted as [`Races::woken_while_awake`].
//! - *Woken again before it runs*: the first waking counts.
//! - *Switched in from blocked without a waking*: the waking fell between its decision to sleep and its
//!   switch, or was lost; counted as [`Races::dispatched_without_waking`], no row.
//! - *Its state is unknown* (start, loss): a waking starts anew, since what came before may be missing.

use crate::analysis::ledger::State;
use crate::model::{Cpu, Name, Tid};
use serde::{Deserialize, Serialize};

/// Wake-ups that give no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Races {
    /// Woken while running or runnable.
    pub woken_while_awake: u64,
    /// Switched in from blocked, and no waking was seen.
    pub dispatched_without_waking: u64,
    /// Woken, but the switch to it was not recorded.
    pub never_dispatched: u64,
}

/// A wake-up whose thread does not run yet.
#[derive(Clone, Debug)]
pub(crate) struct Wake {
    pub(crate) ts: i64,
    pub(crate) waker_tid: Tid,
    pub(crate) waker_comm: Name,
    pub(crate) prio: i32,
    /// CPU on which the thread last ran.
    pub(crate) cpu: Cpu,
    pub(crate) migrated: bool,
}

/// The wake-up, if any, that one thread is waiting on.
#[derive(Debug, Default)]
pub(crate) struct Dispatcher(Option<Wake>);

impl Dispatcher {
    /// The thread, in `state`, is woken. Returns whether it waits for a CPU from now on.
    pub(crate) fn woken(&mut self, state: State, wake: Wake, races: &mut Races) -> bool {
        match state {
            State::Running | State::Preempted | State::Woken => {
                races.woken_while_awake += 1;
                return false;
            }
            State::Blocked => {}
            State::Unknown => races.never_dispatched += u64::from(self.0.is_some()),
        }
        self.0 = Some(wake);
        true
    }

    /// The thread was moved to another CPU.
    pub(crate) fn migrated(&mut self) {
        if let Some(wake) = &mut self.0 {
            wake.migrated = true;
        }
    }

    /// The thread, until now in `state`, was given `cpu`; the wake-up that this ends.
    pub(crate) fn dispatched(&mut self, state: State, cpu: Cpu, races: &mut Races) -> Option<Wake> {
        let Some(mut wake) = self.0.take() else {
            races.dispatched_without_waking += u64::from(state == State::Blocked);
            return None;
        };
        wake.migrated |= wake.cpu != cpu;
        Some(wake)
    }

    /// The thread, or the recording, has ended; or the thread left a CPU that it was never seen to get.
    pub(crate) fn end(&mut self, races: &mut Races) {
        races.never_dispatched += u64::from(self.0.take().is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(ts: i64) -> Wake {
        let waker_comm = "waker".into();
        Wake { ts, waker_tid: Tid(2), waker_comm, prio: 120, cpu: Cpu(0), migrated: false }
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
            let (mut d, mut races) = (Dispatcher::default(), Races::default());
            assert_eq!(d.woken(state, wake(1), &mut races), starts, "{state:?}");
            assert_eq!(races.woken_while_awake, u64::from(!starts));
            assert_eq!(d.dispatched(state, Cpu(0), &mut races).is_some(), starts);
        }
    }

    #[test]
    fn the_first_waking_counts() {
        // b |waking 5|waking 7|==
        let (mut d, mut races) = (Dispatcher::default(), Races::default());
        assert!(d.woken(State::Blocked, wake(5), &mut races));
        assert!(!d.woken(State::Woken, wake(7), &mut races));
        let wake = d.dispatched(State::Woken, Cpu(0), &mut races);
        assert_eq!(wake.map(|w| w.ts), Some(5));
    }

    #[test]
    fn a_move_is_told_with_or_without_its_record() {
        let (mut d, mut races) = (Dispatcher::default(), Races::default());
        d.woken(State::Blocked, wake(5), &mut races);
        assert!(d.dispatched(State::Woken, Cpu(1), &mut races).is_some_and(|w| w.migrated));
        d.woken(State::Blocked, wake(5), &mut races);
        d.migrated();
        assert!(d.dispatched(State::Woken, Cpu(0), &mut races).is_some_and(|w| w.migrated));
    }

    #[test]
    fn what_has_no_start_or_no_end_is_counted() {
        let (mut d, mut races) = (Dispatcher::default(), Races::default());
        assert!(d.dispatched(State::Blocked, Cpu(0), &mut races).is_none());
        d.woken(State::Blocked, wake(5), &mut races);
        d.end(&mut races);
        let expected =
            Races { dispatched_without_waking: 1, never_dispatched: 1, ..Races::default() };
        assert_eq!(races, expected);
    }
}
