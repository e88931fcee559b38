//! Threads that leave the CPU to others, until somebody waits for them.
//!
//! What nobody waits for has time. A thread of the lowest priority has seldom a CPU that another one wants, but it keeps it from a thread
//! that wakes up for as long as a slice, some milliseconds. One of the policy `SCHED_IDLE` (sched(7)) gives it up at once. Beside an ordinary
//! thread that is always busy it gets a 340th of its time, and one of the lowest priority a 68th (`WEIGHT_IDLEPRIO`, `sched_prio_to_weight`,
//! kernel/sched). So whoever waits for such a thread lends it its own priority, and the processes that read names for it, too.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use ft_trace::helper;
use rustix::process::{Pid, getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// Lowest priority of the ordinary scheduler (sched(7)).
pub(crate) const LOWEST: i32 = 19;

/// To whom a thread leaves the CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaves {
    /// To whoever has a lower number (setpriority(2)), but for its share.
    Most(i32),
    /// To everybody, if it can be raised again, and else as with [`LOWEST`].
    All,
}

/// A thread that has a lower priority than others.
pub(crate) struct Background<T> {
    thread: JoinHandle<T>,
    priority: Arc<Mutex<Priority>>,
}

impl<T> fmt::Debug for Background<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("priority", &self.priority).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
enum Priority {
    /// To be lowered when the thread begins.
    New,
    /// Lowered, of the thread with this number.
    Low(Pid),
    /// Raised; or the thread has ended, and its number may be another's.
    Settled,
}

impl<T: Send + 'static> Background<T> {
    /// Does `work` in a thread of this name. Where a priority is refused it has that of the caller: slower for others, not wrong.
    ///
    /// # Errors
    ///
    /// When no thread can be made.
    pub(crate) fn spawn(
        name: &'static str,
        leaves: Leaves,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Background<T>> {
        let priority = Arc::new(Mutex::new(Priority::New));
        let own = Settle(priority.clone());
        let run = move || {
            own.lower(leaves);
            work()
        };
        let thread = super::spawn(name, run)?;
        Ok(Background { thread, priority })
    }

    /// Gives it the priority of the caller, for good, if that is allowed: who has no CAP_SYS_NICE may not raise what
    /// was lowered.
    pub(crate) fn raise(&self) {
        let mut priority = lock(&self.priority);
        if let (Priority::Low(thread), Ok(nice)) = (*priority, getpriority_process(None)) {
            raise(thread, nice);
            helper::beside(|helpers| {
                let helpers = helpers.iter().filter_map(|&helper| Pid::from_raw(helper as i32));
                helpers.for_each(|helper| raise(helper, nice));
            });
        }
        *priority = Priority::Settled;
    }

    /// Waits for what its work returns, with the priority of the caller from now on.
    ///
    /// # Panics
    ///
    /// If the work has.
    pub(crate) fn finish(self) -> T {
        self.raise();
        super::finish(self.thread)
    }
}

/// The thread's own end: whatever becomes of its work, nobody changes the priority of its number afterwards.
struct Settle(Arc<Mutex<Priority>>);

impl Settle {
    fn lower(&self, leaves: Leaves) {
        let mut priority = lock(&self.0);
        let own = getpriority_process(None).unwrap_or(0);
        let (nice, is_idle) = match leaves {
            Leaves::Most(nice) => (nice, false),
            Leaves::All => (LOWEST, true),
        };
        if let Priority::New = *priority
            && setpriority_process(None, nice).is_ok()
        {
            *priority = Priority::Low(gettid());
            // Who may not be raised would stay there for ever.
            if is_idle && setpriority_process(None, own).is_ok() {
                let _ = setpriority_process(None, nice);
                set_policy(gettid(), libc::SCHED_IDLE);
            }
        }
    }
}

impl Drop for Settle {
    fn drop(&mut self) {
        *lock(&self.0) = Priority::Settled;
    }
}

/// As far as that is allowed. A process is its first thread here.
fn raise(thread: Pid, nice: i32) {
    set_policy(thread, libc::SCHED_OTHER);
    let _ = setpriority_process(Some(thread), nice);
}

/// Where it is refused the thread goes on as it was: slower, not wrong.
fn set_policy(thread: Pid, policy: libc::c_int) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameters.
    unsafe { libc::sched_setscheduler(thread.as_raw_pid(), policy, &raw const parameters) };
}

fn lock(priority: &Mutex<Priority>) -> MutexGuard<'_, Priority> {
    priority.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn nice() -> i32 {
        getpriority_process(None).unwrap()
    }

    fn policy() -> libc::c_int {
        // SAFETY: asks for the policy of this thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    /// Priority of a thread that this one has lowered and raised again.
    fn raised() -> i32 {
        let own = nice();
        let try_it = move || {
            setpriority_process(None, LOWEST).unwrap();
            let _ = setpriority_process(None, own);
            nice()
        };
        std::thread::spawn(try_it).join().unwrap()
    }

    #[test]
    fn whoever_waits_lends_its_priority() {
        let (go, wait) = channel::<()>();
        let (tell, told) = channel();
        let work = move || {
            tell.send((nice(), policy())).unwrap();
            let _ = wait.recv();
            tell.send((nice(), policy())).unwrap();
            let _ = wait.recv();
        };
        let thread = Background::spawn("low", Leaves::All, work).unwrap();
        // Only who can be raised again waits until a CPU has nothing else to do.
        let low = if raised() == nice() { libc::SCHED_IDLE } else { libc::SCHED_OTHER };
        assert_eq!(told.recv(), Ok((LOWEST, low)));
        thread.raise();
        go.send(()).unwrap();
        assert_eq!(told.recv(), Ok((raised(), libc::SCHED_OTHER)));
        drop(go);
        thread.finish();
    }

    /// However far the thread has come.
    #[test]
    fn it_is_not_lowered_afterwards() {
        for _ in 0..200 {
            let (go, wait) = channel::<()>();
            let work = move || {
                let _ = wait.recv();
                nice()
            };
            let thread = Background::spawn("low", Leaves::All, work).unwrap();
            thread.raise();
            drop(go);
            let found = thread.thread.join().unwrap();
            assert!(found == nice() || found == raised(), "{found}");
        }
    }

    #[test]
    fn a_number_that_may_be_anothers_is_left_alone() {
        let thread = Background::spawn("low", Leaves::All, || panic!("in a test")).unwrap();
        while !thread.thread.is_finished() {
            std::thread::yield_now();
        }
        assert!(matches!(*lock(&thread.priority), Priority::Settled));
        thread.raise();
        assert!(thread.thread.join().is_err());
    }
}
