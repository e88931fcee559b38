//! The kernel's own account of reservations that were used up: with `SCHED_FLAG_DL_OVERRUN` it sends `SIGXCPU` to a thread
//! that wanted more than it had reserved (sched_setattr(2)).
//!
//! The kernel takes note when it finds the amount used up, and tells it at a clock interrupt that finds the thread on the CPU
//! (`check_dl_overrun` in `kernel/time/posix-cpu-timers.c`); what it notes before that is told at once. So there are at
//! most as many signals as overruns. The signal comes before the thread goes on in its code, so within a gap.

use std::cell::Cell;

use super::class::Class;
use super::scenario::Scenario;

thread_local! {
    /// Signals of this thread: a handler may touch it, because it is there from the start and nothing is made for it.
    static TOLD: Cell<u64> = const { Cell::new(0) };
}

/// How often the kernel has told the calling thread.
#[inline]
pub(super) fn told() -> u64 {
    TOLD.get()
}

extern "C" fn count(_: libc::c_int) {
    TOLD.set(TOLD.get() + 1);
}

/// As long as this is there, the signal is counted; then it does again what it did before.
pub(super) struct Heeded(libc::sigaction);

impl Heeded {
    /// `None` where no thread of the scenario has a reservation.
    pub(super) fn of(scenario: &Scenario) -> Option<Self> {
        let is_reserved = |class: Option<Class>| matches!(class, Some(Class::Reservation { .. }));
        if !scenario.threads.iter().any(|plan| is_reserved(plan.class)) {
            return None;
        }
        // SAFETY: zeroes are a value of both; the handler does nothing but to count.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGXCPU, &raw const action, &raw mut before);
            Some(Heeded(before))
        }
    }
}

impl Drop for Heeded {
    fn drop(&mut self) {
        // SAFETY: what the kernel has handed out before.
        unsafe { libc::sigaction(libc::SIGXCPU, &raw const self.0, std::ptr::null_mut()) };
    }
}
