//! Sections of the set-up code that a signal handler or a fork must not cut in two.
//!
//! None of this is on the event path: the lock serves `init`, `enable` and fork.

use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, Ordering::*};

use crate::kernel;

/// Signals that an instruction brings upon its own thread: where one is blocked, the kernel kills.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// As pthread_sigmask(3), signal 1 by the lowest bit; the mask of before. Of the signals that the C library keeps for itself it blocks none.
fn change_mask(how: libc::c_int, mask: u64) -> u64 {
    const WORDS: usize = size_of::<libc::sigset_t>() / 8;
    let (mut set, mut before) = ([0u64; WORDS], [0u64; WORDS]);
    set[0] = mask;
    // SAFETY: both are as large as the C library's sets, of which the first word has all signals that there are; the call cannot fail
    // with valid arguments.
    unsafe {
        libc::pthread_sigmask(how, set.as_ptr().cast(), before.as_mut_ptr().cast());
    }
    before[0]
}

/// All signals of this thread are blocked while this lives, but [`FAULTS`], which stay as they are: an allocator of the program's may run
/// meanwhile, whose pages a handler of SIGSEGV opens.
pub(crate) struct SignalsBlocked(u64);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let blocked = FAULTS.iter().fold(u64::MAX, |all, signal| all & !(1 << (signal - 1)));
        SignalsBlocked(change_mask(libc::SIG_BLOCK, blocked))
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, self.0);
    }
}

/// Nobody has the lock.
const FREE: u32 = 0;
/// Somebody has it, and nobody waits.
const HELD: u32 = 1;
/// Somebody has it, and others may wait.
const WAITED_FOR: u32 = 2;
/// Somebody has it who forks, and others may take it: see [`Lock::lend`]. The number of that thread is in the higher bits.
const LENT: u32 = 3;
/// The same, and others may wait.
const LENT_WAITED_FOR: u32 = 4;

/// Bits of the states above. The kernel's numbers of threads have 22 (`PID_MAX_LIMIT`, include/linux/threads.h).
const STATE_BITS: u32 = 3;

/// How long a thread waits for one that forks. That one runs the fork handlers of others meanwhile, and one of them may wait for a lock
/// that the first thread has.
const LENT_FOR: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How long a thread that forks waits for the lock. Who has it may wait for a lock of an allocator's that the fork handlers before ours
/// have taken.
const FORK_WAITS: libc::timespec = libc::timespec { tv_sec: 1, tv_nsec: 0 };

/// A lock that can be had across a fork and given back on both sides, which a `std` mutex cannot. Its
/// holder's signals are blocked, so that no handler that forks can wait for its own thread.
///
/// Not a pthread mutex either: a library that interposes those, as Feather-Trace's own does, would be
/// called from within its set-up. The first three states are those of "Futexes Are Tricky" (Drepper, 2011).
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

/// Which of the states it is, without a number.
fn kind(state: u32) -> u32 {
    state % (1 << STATE_BITS)
}

/// The thread that has lent the lock; 0 where none has.
fn lender(state: u32) -> u32 {
    state >> STATE_BITS
}

fn lent_by_this_thread() -> u32 {
    kernel::gettid() << STATE_BITS | LENT
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Lock { state: AtomicU32::new(FREE) }
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        loop {
            if let Some(held) = self.hold_within(None) {
                return held;
            }
        }
    }

    /// The same; `None` where it is held for so long.
    fn hold_within(&self, most: Option<&libc::timespec>) -> Option<Held<'_>> {
        let signals = SignalsBlocked::new();
        // SYNC: process-lock
        let is_free = self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok();
        (is_free || self.wait(most)).then(|| Held { lock: self, signals: Some(signals) })
    }

    /// Waits until this thread has it; whether it does.
    #[cold]
    fn wait(&self, most: Option<&libc::timespec>) -> bool {
        let own = lent_by_this_thread();
        let mut is_late = false;
        loop {
            let state = self.state.load(Relaxed);
            let is_lent = matches!(kind(state), LENT | LENT_WAITED_FOR);
            let may_take = is_late || lender(state) == lender(own);
            let next = if is_lent && !may_take {
                state - kind(state) + LENT_WAITED_FOR
            } else {
                WAITED_FOR
            };
            // SYNC: process-lock
            if state != next && self.state.compare_exchange(state, next, Acquire, Relaxed).is_err()
            {
                continue;
            }
            match kind(state) {
                FREE => return true,
                LENT | LENT_WAITED_FOR if may_take => return true,
                LENT | LENT_WAITED_FOR => is_late |= self.futex_wait(next, Some(&LENT_FOR)),
                _ if self.futex_wait(next, most) => return false,
                _ => {}
            }
        }
    }

    /// The same, if nobody holds it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let signals = SignalsBlocked::new();
        // SYNC: process-lock
        self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).ok()?;
        Some(Held { lock: self, signals: Some(signals) })
    }

    /// Waits while the state is this one, for so long at most; whether it was too long.
    fn futex_wait(&self, state: u32, most: Option<&libc::timespec>) -> bool {
        let word = self.state.as_ptr().expose_provenance();
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        let most = most.map_or(0, |most| core::ptr::from_ref(most).expose_provenance());
        let arguments = [word, operation as usize, state as usize, most];
        // SAFETY: the word lives as long as the lock, and the time-out is null or a time.
        unsafe { kernel::call(libc::SYS_futex, arguments) == Err(libc::ETIMEDOUT) }
    }

    /// Wakes so many threads.
    fn futex_wake(&self, threads: i32) {
        let word = self.state.as_ptr().expose_provenance();
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        let arguments = [word, operation as usize, threads as usize, 0];
        // SAFETY: as above.
        let _ = unsafe { kernel::call(libc::SYS_futex, arguments) };
    }

    /// Before a fork: has the lock and lends it to others, who wait for the fork for a while and take it then. So a child finds what
    /// the lock is for as nobody has it in hand, as a rule, and no thread waits for ever. Where another thread has it for too long, it
    /// stays that one's.
    pub(crate) fn lend(&self) {
        let Some(held) = self.hold_within(Some(&FORK_WAITS)) else { return };
        // SYNC: process-lock
        let before = self.state.swap(lent_by_this_thread(), Release);
        self.wake_all_if(before == WAITED_FOR);
        ManuallyDrop::new(held).signals.take();
    }

    /// After the fork, in the parent, on the thread that has lent it.
    pub(crate) fn take_back(&self) {
        let lent = lent_by_this_thread();
        for (lent, some_wait) in [(lent, false), (lent - LENT + LENT_WAITED_FOR, true)] {
            // SYNC: process-lock
            if self.state.compare_exchange(lent, FREE, Release, Relaxed).is_ok() {
                self.wake_all_if(some_wait);
            }
        }
    }

    fn wake_all_if(&self, some_wait: bool) {
        if some_wait {
            self.futex_wake(i32::MAX);
        }
    }

    /// After the fork, in the child: the lock, if no thread of the parent had taken it, and was in the midst of something.
    pub(crate) fn after_fork(&self) -> Option<Held<'_>> {
        let signals = SignalsBlocked::new();
        let before = self.state.swap(HELD, Acquire);
        let held = Held { lock: self, signals: Some(signals) };
        // Otherwise it is free for whatever still asks for it here.
        (!matches!(kind(before), HELD | WAITED_FOR)).then_some(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SYNC: process-lock
        if self.lock.state.swap(FREE, Release) == WAITED_FOR {
            self.lock.futex_wake(1);
        }
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
        assert_eq!(LOCK.state.load(Relaxed), FREE);
    }

    /// A thread that forks lends it: others wait for a while, and have it then; who lent it has nothing to give back.
    #[test]
    fn what_is_lent_is_not_waited_for_without_end() {
        static LOCK: Lock = Lock::new();
        LOCK.lend();
        // Its own thread has it at once.
        drop(LOCK.hold());
        LOCK.lend();
        let (held, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _held = LOCK.hold();
                held.wait();
                go.wait();
            });
            held.wait();
            LOCK.take_back();
            assert!(LOCK.try_hold().is_none(), "the other thread has it");
            go.wait();
        });
        assert_eq!(LOCK.state.load(Relaxed), FREE);
        LOCK.lend();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(LOCK.hold()));
            LOCK.take_back();
        });
        assert_eq!(LOCK.state.load(Relaxed), FREE);
        // Whom it is not lent to gives nothing back.
        LOCK.lend();
        std::thread::scope(|scope| {
            scope.spawn(|| LOCK.take_back());
        });
        assert_eq!(kind(LOCK.state.load(Relaxed)), LENT);
        assert!(LOCK.after_fork().is_some());
        let held = LOCK.hold();
        assert!(LOCK.after_fork().is_none(), "it was another thread's");
        core::mem::forget(held);
        assert_eq!(LOCK.state.load(Relaxed), FREE);
    }

    /// As that of a thread that waits for what the handlers of the one that forks have taken.
    #[test]
    fn a_fork_waits_for_no_lock_without_end() {
        static LOCK: Lock = Lock::new();
        let held = LOCK.hold();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                LOCK.lend();
                LOCK.take_back();
                assert!(LOCK.try_hold().is_none(), "it is the other thread's");
            });
        });
        drop(held);
        assert_eq!(LOCK.state.load(Relaxed), FREE);
    }
}
