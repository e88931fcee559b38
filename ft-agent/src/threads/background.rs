//! Threads that leave the CPU to others, until somebody waits for them.
//!
//! What nobody waits for has time. But beside an ordinary thread that is always busy, one of the lowest priority gets a
//! 68th of its time (`sched_prio_to_weight`, `kernel/sched/core.c`). So whoever waits for such a thread lends it its
//! own priority.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// Lowest priority of the ordinary scheduler (sched(7)).
pub(crate) const LOWEST: i32 = 19;

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
    /// Does `work` in a thread of this name, at `nice` (setpriority(2)). Where that is refused it has the priority of
    /// the caller: slower for others, not wrong.
    ///
    /// # Errors
    ///
    /// When no thread can be made.
    pub(crate) fn spawn(
        name: &'static str,
        nice: i32,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Background<T>> {
        let priority = Arc::new(Mutex::new(Priority::New));
        let own = Settle(priority.clone());
        let run = move || {
            own.lower(nice);
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
            let _ = setpriority_process(Some(thread), nice);
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
    fn lower(&self, nice: i32) {
        let mut priority = lock(&self.0);
        if let Priority::New = *priority
            && setpriority_process(None, nice).is_ok()
        {
            *priority = Priority::Low(gettid());
        }
    }
}

impl Drop for Settle {
    fn drop(&mut self) {
        *lock(&self.0) = Priority::Settled;
    }
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
            tell.send(nice()).unwrap();
            let _ = wait.recv();
            tell.send(nice()).unwrap();
            let _ = wait.recv();
        };
        let thread = Background::spawn("low", LOWEST, work).unwrap();
        assert_eq!(told.recv(), Ok(LOWEST));
        thread.raise();
        go.send(()).unwrap();
        assert_eq!(told.recv(), Ok(raised()));
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
            let thread = Background::spawn("low", LOWEST, work).unwrap();
            thread.raise();
            drop(go);
            let found = thread.thread.join().unwrap();
            assert!(found == nice() || found == raised(), "{found}");
        }
    }

    #[test]
    fn a_number_that_may_be_anothers_is_left_alone() {
        let thread = Background::spawn("low", LOWEST, || panic!("in a test")).unwrap();
        while !thread.thread.is_finished() {
            std::thread::yield_now();
        }
        assert!(matches!(*lock(&thread.priority), Priority::Settled));
        thread.raise();
        assert!(thread.thread.join().is_err());
    }
}
