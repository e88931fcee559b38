//! Locks that record who waited, who held and where: [`std::sync`]'s with the same interface.
//!
//! Replace `use std::sync::Mutex` by `use ft_user::sync::Mutex`, and name what should have a name:
//!
//! ```
//! use ft_user::sync::Mutex;
//! static ACCOUNTS: Mutex<Vec<u64>> = Mutex::named("accounts", Vec::new());
//! ACCOUNTS.lock().unwrap().push(1);
//! ```
//!
//! # Events
//!
//! | event | when | arguments |
//! |---|---|---|
//! | `lock.mutex_wait` | it is taken, and the thread is about to block | lock, place |
//! | `lock.mutex_acquire` | the thread has it | lock, place |
//! | `lock.mutex_release` | just before it is given back | lock, place |
//! | `lock.rwlock_read_…`, `lock.rwlock_write_…` | the same for both sides of a [`RwLock`] | lock, place |
//! | `lock.cond_wait` | a wait is about to give the lock back | lock, place, condition |
//! | `lock.cond_wake` | the wait has the lock again | lock, place, condition |
//! | `lock.barrier_wait`, `lock.barrier_wake` | around a wait at a [`Barrier`] | lock, place |
//! | `lock.receive_wait`, `lock.receive_wake` | around a wait for a value of a channel ([`mpsc`]) that has none | lock, place |
//! | `lock.send_wait`, `lock.send_wake` | around a wait for room in a channel that has none | lock, place |
//!
//! Nobody holds a barrier or a channel, so a wait for one blames nobody; the report `time` names it as what its thread was
//! blocked for.
//!
//! `lock` and `condition` are addresses of these wrappers. `place` holds the number of the lock's name
//! and that of the source place of the call, in its high and its low half; a release has the place
//! of its acquisition. A hold is measured as in the Feather-Trace paper (section 3): from behind the
//! acquisition to just before the release, without the cost of either. The time of an acquisition is read when the lock has been
//! taken and not before, however far ahead the processor executes (LFENCE): so it is never before the last holder's release.
//!
//! # Time-slice extensions
//!
//! The feature `slice` adds `Mutex::with_slice_extension`. Whoever takes a mutex that was made with it asks the kernel for a
//! little more time, should its CPU be wanted for another thread meanwhile, and gives the CPU up when it has released the mutex:
//! the time-slice extensions of restartable sequences (Documentation/userspace-api/rseq.rst), 5 to 50 µs, from Linux 7.0 on
//! where it is built with `CONFIG_RSEQ_SLICE_EXTENSION`. Of nested holds of such mutexes the outermost asks; a thread that leaks
//! a guard of one asks no more. The event `lock.mutex_release` of such a mutex has a third argument, `slice`, which says what
//! came of it by then:
//!
//! | `slice` | |
//! |---|---|
//! | 1 | the thread cannot ask |
//! | 2 | it has asked, and the kernel had no reason to grant anything |
//! | 3 | it was granted an extension, which goes on |
//! | 4 | it was off the CPU all the same, or what was granted ended with a system call |
//!
//! A thread enables this at its first such mutex by one system call, and remembers when it was refused. glibc must have registered
//! more than the first 32 bytes of `struct rseq` (`rseq_register`, kernel/rseq.c), as it does from 2.41 on. Other code of
//! a thread that uses extensions, be it a second copy of this crate in the process, may end its request.
//!
//! *Not shown*: that a kernel grants any. None at hand is built with it (Debian's 7.3.4, cloud and real-time, says
//! `# CONFIG_RSEQ_SLICE_EXTENSION is not set`); so this is tested with a simulated one. On one that grants them, the test
//! `slice` asks for some that must be granted, and some that must end too early.
//!
//! # Costs
//!
//! While they are off, an uncontended lock and unlock are those of `std` and two triggers: 1.1 to 1.2 times
//! their time, and 2.9 while they are on (`cargo xtask bench rust-locks`; AMD family 23: 22 ns, and 65 ns, of which 29 ns are
//! for the order of the time behind the acquisition). A guard is two words larger, a lock two words.
//!
//! # Limits
//!
//! [`Once`], [`OnceLock`] and [`LazyLock`] are those of `std`, here so that `use ft_user::sync` stands for `use std::sync`: a wait for
//! who initialises is not recorded. A [`WaitTimeoutResult`] is another type than that of `std`, and so is each guard; a condition
//! variable has no name. The lints of rustc and clippy that know the guards of `std` (`let_underscore_lock`, `await_holding_lock`) do not
//! know these: `await-holding-invalid-types` of `clippy.toml` takes `ft_user::sync::MutexGuard` and the others.
//!
//! Locks of `std` inside of other libraries are not seen. A guard that is leaked
//! ([`std::mem::forget`]) is a hold without an end. A contended acquisition tries once before it
//! tells that it waits, and then competes as any other thread does.

mod barrier;
mod condvar;
pub mod mpsc;
mod mutex;
pub(crate) mod place;
mod rwlock;
#[cfg(all(feature = "slice", target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod slice;
#[cfg(not(all(feature = "slice", target_arch = "x86_64", target_os = "linux")))]
#[path = "no_slice.rs"]
mod slice;

pub use std::sync::{
    Arc, BarrierWaitResult, LazyLock, LockResult, Once, OnceLock, OnceState, PoisonError,
    TryLockError, TryLockResult, Weak, atomic,
};

pub use barrier::Barrier;
pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The guard inside of a result, and whether the lock is poisoned. Slow paths return this pair, which fits into
/// registers: a result that went through memory on one path would go through it on all.
fn parts<G>(result: LockResult<G>) -> (G, bool) {
    match result {
        Ok(guard) => (guard, false),
        Err(poisoned) => (poisoned.into_inner(), true),
    }
}

/// Inverse of [`parts`].
#[inline]
fn result<G>(guard: G, poisoned: bool) -> LockResult<G> {
    if poisoned { Err(PoisonError::new(guard)) } else { Ok(guard) }
}

/// Wraps the guard of a lock that is poisoned; one that is taken has none.
fn map_try_lock<G, W>(error: TryLockError<G>, wrap: impl FnOnce(G) -> W) -> TryLockError<W> {
    match error {
        TryLockError::Poisoned(poisoned) => {
            TryLockError::Poisoned(PoisonError::new(wrap(poisoned.into_inner())))
        }
        TryLockError::WouldBlock => TryLockError::WouldBlock,
    }
}
