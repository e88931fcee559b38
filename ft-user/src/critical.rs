//! Sections of the set-up code that a signal handler or a fork must not cut in two.
//!
//! None of this is on the event path: the lock serves `init`, `enable` and fork.

use core::sync::atomic::{AtomicU32, Ordering::*};
use core::time::Duration;

use crate::kernel::Deadline;
use crate::{at_fork, kernel};

/// Signals that an instruction brings upon its own thread: where one is blocked, the kernel kills.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Those that the C library keeps for itself: 32 and 33, and of musl 34 (`SIGRTMIN`).
const OF_C_LIBRARY: u64 = (if cfg!(target_env = "musl") { 7 } else { 3 }) << 31;

/// As pthread_sigmask(3), signal 1 by the lowest bit; the mask of before. The C library's sets would take eight times the stack of all
/// signals that there are.
fn change_mask(how: libc::c_int, mask: u64) -> u64 {
    let mut before = 0u64;
    let (set, old) = ((&raw const mask).expose_provenance(), (&raw mut before).expose_provenance());
    let arguments = [how as usize, set, old, size_of::<u64>()];
    // SAFETY: both are sets of that size; the call cannot fail with valid arguments.
    let _ = unsafe { kernel::call(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// All signals of this thread are blocked while this lives, but [`OF_C_LIBRARY`] and [`FAULTS`], which stay as they are: an allocator of the
/// program's may run meanwhile, whose pages a handler of SIGSEGV opens.
pub(crate) struct SignalsBlocked(u64);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let blocked = FAULTS.iter().fold(!OF_C_LIBRARY, |all, signal| all & !(1 << (signal - 1)));
        SignalsBlocked(change_mask(libc::SIG_BLOCK, blocked))
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, self.0);
    }
}

/// Somebody has the lock.
const HELD: u32 = 1;
/// Others may wait for it.
const WAITED_FOR: u32 = 2;
/// A thread that forks; the bits from here on say how many.
const FORK: u32 = 4;

/// How long a thread waits for those that fork. They run the fork handlers of others meanwhile, and one of them may wait for a lock that
/// the first thread has.
const FORK_TAKES: Duration = Duration::from_millis(100);

/// How long a thread that forks waits for the lock. Who has it may wait for a lock of an allocator's that the fork handlers before ours
/// have taken.
const FORK_WAITS: Duration = Duration::from_secs(1);

/// How long a thread that has the linker's lock waits for this one. Who has it does then what the thread has come for.
const IS_LONG: Duration = Duration::from_millis(10);

/// A lock that nobody has in hand where a thread forks, as a rule. Who has it has its signals blocked, so that no handler that forks can
/// wait for its own thread.
///
/// Not a pthread mutex: a library that interposes those, as Feather-Trace's own does, would be called from within its set-up.
pub(crate) struct Lock {
    state: AtomicU32,
}

/// The lock is held while this lives.
pub(crate) struct Held<'a> {
    lock: &'a Lock,
    signals: Option<SignalsBlocked>,
}

/// What no other thread has, without a system call.
pub(crate) fn this_thread() -> usize {
    // SAFETY: takes nothing.
    unsafe { libc::pthread_self() as usize }
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Lock { state: AtomicU32::new(0) }
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        loop {
            if let Some(held) = self.try_hold().or_else(|| self.wait(None)) {
                return held;
            }
        }
    }

    /// The same; `None` where another thread has it for long.
    pub(crate) fn hold_soon(&self) -> Option<Held<'_>> {
        self.try_hold().or_else(|| self.wait(Some(IS_LONG)))
    }

    /// The same, if nobody has it and no thread forks.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let signals = SignalsBlocked::new();
        // SYNC: process-lock
        self.state.compare_exchange(0, HELD, Acquire, Relaxed).ok()?;
        Some(Held { lock: self, signals: Some(signals) })
    }

    /// Waits for the lock; `None` where one thread or another has it for so long.
    #[cold]
    fn wait(&self, most: Option<Duration>) -> Option<Held<'_>> {
        let own = u32::from(at_fork::is_forking());
        let (mut held_until, mut forks_until) = (None, None);
        loop {
            let signals = SignalsBlocked::new();
            let state = self.state.load(Relaxed);
            let forks = state / FORK;
            let left = if state & HELD != 0 {
                let until = most.map(|most| *held_until.get_or_insert(Deadline::after(most)));
                until.map(Deadline::left)
            } else if forks > own {
                Some(forks_until.get_or_insert(Deadline::after(FORK_TAKES)).left())
            } else {
                Some(None)
            };
            match left {
                Some(None) if state & HELD != 0 => return None,
                Some(None) => {
                    // Those that have taken too long are waited for no more: a thread can have left its fork by a jump, or ended in it.
                    let next = (forks.min(own) * FORK) | (state & WAITED_FOR) | HELD;
                    // SYNC: process-lock
                    if self.state.compare_exchange(state, next, Acquire, Relaxed).is_ok() {
                        return Some(Held { lock: self, signals: Some(signals) });
                    }
                }
                left => {
                    // Meanwhile it can be stopped by a signal, for which those that it waits for may wait.
                    drop(signals);
                    self.sleep(state, left.flatten());
                }
            }
        }
    }

    /// Sleeps while the state is this one, for so long at most.
    fn sleep(&self, state: u32, most: Option<Duration>) {
        let waited_for = state | WAITED_FOR;
        if state != waited_for
            && self.state.compare_exchange(state, waited_for, Relaxed, Relaxed).is_err()
        {
            return;
        }
        let time = most.map(|most| libc::timespec {
            tv_sec: most.as_secs() as libc::time_t,
            tv_nsec: most.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(0, |time| core::ptr::from_ref(time).expose_provenance());
        self.futex(libc::FUTEX_WAIT, waited_for, time);
    }

    fn wake_all_if(&self, some_wait: bool) {
        if some_wait {
            self.futex(libc::FUTEX_WAKE, i32::MAX as u32, 0);
        }
    }

    fn futex(&self, operation: libc::c_int, value: u32, time: usize) {
        let word = self.state.as_ptr().expose_provenance();
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        let arguments = [word, operation as usize, value as usize, time];
        // SAFETY: the word lives as long as the lock, and the time is null or valid.
        let _ = unsafe { kernel::call(libc::SYS_futex, arguments) };
    }

    /// Before a fork: whoever has it is waited for, and whoever wants it waits for the fork, both for a while. So a child finds what the
    /// lock is for as nobody has it in hand, as a rule, and no thread waits for ever. Threads that fork do not wait for each other.
    pub(crate) fn begin_fork(&self) {
        self.state.fetch_add(FORK, Relaxed);
        let mut until = None;
        loop {
            let state = self.state.load(Acquire); // SYNC: process-lock
            if state & HELD == 0 {
                return;
            }
            let until = *until.get_or_insert(Deadline::after(FORK_WAITS));
            let Some(left) = until.left() else { return };
            self.sleep(state, Some(left));
        }
    }

    /// After the fork, in the parent.
    pub(crate) fn end_fork(&self) {
        let less = |state: u32| {
            let less = state.checked_sub(FORK)?;
            Some(if less & HELD == 0 { less & !WAITED_FOR } else { less })
        };
        // SYNC: process-lock
        let before = self.state.fetch_update(Release, Relaxed, less);
        self.wake_all_if(before.is_ok_and(|before| before & (HELD | WAITED_FOR) == WAITED_FOR));
    }

    /// After the fork, in the child: the lock, if no thread of the parent had it, and was in the midst of something.
    pub(crate) fn after_fork(&self) -> Option<Held<'_>> {
        let signals = SignalsBlocked::new();
        let taken = |state: u32| Some(state & WAITED_FOR | HELD);
        // SYNC: process-lock
        let (Ok(before) | Err(before)) = self.state.fetch_update(Acquire, Relaxed, taken);
        let held = Held { lock: self, signals: Some(signals) };
        // Otherwise it is free for whatever still asks for it here.
        (before & HELD == 0).then_some(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SYNC: process-lock
        let before = self.lock.state.fetch_and(!(HELD | WAITED_FOR), Release);
        self.lock.wake_all_if(before & WAITED_FOR != 0);
        self.signals.take();
    }
}

#[cfg(test)]
mod tests {
    use core::cell::UnsafeCell;

    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        struct Counter(UnsafeCell<u32>);
        // SAFETY: touched under the lock only, which is what the test shows.
        unsafe impl Sync for Counter {}
        static LOCK: Lock = Lock::new();
        static COUNTER: Counter = Counter(UnsafeCell::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _held = LOCK.hold();
                        // SAFETY: the lock is held.
                        unsafe { *COUNTER.0.get() += 1 };
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(unsafe { *COUNTER.0.get() }, 4000);
        assert_eq!(LOCK.state.load(Relaxed), 0);
    }

    /// Others wait for a thread that forks for a while, and have it then.
    #[test]
    fn a_fork_is_not_waited_for_without_end() {
        static LOCK: Lock = Lock::new();
        LOCK.begin_fork();
        let (held, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(LOCK.try_hold().is_none(), "a thread forks");
                let _held = LOCK.hold();
                held.wait();
                go.wait();
            });
            held.wait();
            LOCK.end_fork();
            assert!(LOCK.try_hold().is_none(), "the other thread has it");
            go.wait();
        });
        assert_eq!(LOCK.state.load(Relaxed), 0);
        // Of several each counts.
        (0..3).for_each(|_| LOCK.begin_fork());
        std::thread::scope(|scope| {
            scope.spawn(|| drop(LOCK.hold()));
            (0..3).for_each(|_| LOCK.end_fork());
        });
        assert_eq!(LOCK.state.load(Relaxed), 0);
        LOCK.begin_fork();
        assert!(LOCK.after_fork().is_some());
        let held = LOCK.hold();
        assert!(LOCK.after_fork().is_none(), "it was another thread's");
        core::mem::forget(held);
        assert_eq!(LOCK.state.load(Relaxed), 0);
    }

    /// As that of a thread that waits for what the handlers of the one that forks have taken.
    #[test]
    fn a_fork_waits_for_no_lock_without_end() {
        static LOCK: Lock = Lock::new();
        let held = LOCK.hold();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                LOCK.begin_fork();
                LOCK.end_fork();
                assert!(LOCK.try_hold().is_none(), "it is the other thread's");
            });
        });
        drop(held);
        assert_eq!(LOCK.state.load(Relaxed), 0);
    }
}
