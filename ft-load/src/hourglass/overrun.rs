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
        scenario.threads.iter().any(|plan| is_reserved(plan.class)).then(Self::begin)
    }

    fn begin() -> Self {
        Heeded(set(count as extern "C" fn(libc::c_int) as libc::sighandler_t))
    }
}

/// Has the signal do this from now on; what it did before.
fn set(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: zeroes are a value of both; the handlers do nothing but to count.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXCPU, &raw const action, &raw mut before);
        before
    }
}

impl Drop for Heeded {
    fn drop(&mut self) {
        // The kernel tells the process. What a worker has left untaken at its end is for a thread that may not have had a CPU
        // since, and would end the program: a signal that is ignored is discarded, also where it waits (POSIX).
        set(libc::SIG_IGN);
        // SAFETY: what the kernel has handed out before.
        unsafe { libc::sigaction(libc::SIGXCPU, &raw const self.0, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_yet_ends_nobody() {
        let heeded = Heeded::begin();
        // SAFETY: the set is made before it is used; only this thread's signals are blocked.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut set, libc::SIGXCPU);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::pthread_kill(libc::pthread_self(), libc::SIGXCPU);
            drop(heeded);
            // By default it would end the process here.
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        }
        assert_eq!(told(), 0);
    }
}
