//! Spin locks.

use core::ffi::c_int;

use libc::pthread_spinlock_t;

use crate::event::{SPIN_ACQUIRE, SPIN_RELEASE, SPIN_WAIT, tell};
use crate::stack::find_stack;
use crate::stub::real;

/// # Safety
///
/// As `pthread_spin_lock`.
pub(crate) unsafe extern "C-unwind" fn lock(
    lock: *mut pthread_spinlock_t,
    caller: *const (),
) -> c_int {
    find_stack();
    // SAFETY: the caller's argument, passed on.
    let mut result = unsafe { real::pthread_spin_trylock.get()(lock) };
    if result == libc::EBUSY {
        tell!(SPIN_WAIT, lock, caller);
        // SAFETY: as above. Ends only with the lock.
        result = unsafe { real::pthread_spin_lock.get()(lock) };
    }
    tell!(SPIN_ACQUIRE, lock, caller);
    result
}

/// # Safety
///
/// As `pthread_spin_trylock`.
pub(crate) unsafe extern "C-unwind" fn trylock(
    lock: *mut pthread_spinlock_t,
    caller: *const (),
) -> c_int {
    find_stack();
    // SAFETY: the caller's argument, passed on.
    let result = unsafe { real::pthread_spin_trylock.get()(lock) };
    if result == 0 {
        tell!(SPIN_ACQUIRE, lock, caller);
    }
    result
}

/// # Safety
///
/// As `pthread_spin_unlock`.
pub(crate) unsafe extern "C-unwind" fn unlock(
    lock: *mut pthread_spinlock_t,
    caller: *const (),
) -> c_int {
    tell!(SPIN_RELEASE, lock, caller);
    // SAFETY: the caller's argument, passed on.
    unsafe { real::pthread_spin_unlock.get()(lock) }
}
