//! Reader-writer locks. The C library unlocks both sides with one function, so their release is one event.

use core::ffi::c_int;

use libc::{clockid_t, pthread_rwlock_t, timespec};

use crate::event::{
    READ_ABANDON, READ_ACQUIRE, READ_WAIT, RWLOCK_RELEASE, WRITE_ABANDON, WRITE_ACQUIRE,
    WRITE_WAIT, acquire, tell,
};
use crate::stack::find_stack;
use crate::stub::real;
use crate::time::is_time;

/// # Safety
///
/// As `pthread_rwlock_rdlock`.
pub(crate) unsafe extern "C-unwind" fn rdlock(
    lock: *mut pthread_rwlock_t,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe { read(lock, caller, true, || real::pthread_rwlock_rdlock.get()(lock)) }
}

/// # Safety
///
/// As `pthread_rwlock_timedrdlock`.
pub(crate) unsafe extern "C-unwind" fn timedrdlock(
    lock: *mut pthread_rwlock_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(libc::CLOCK_REALTIME, until);
        read(lock, caller, tries, || real::pthread_rwlock_timedrdlock.get()(lock, until))
    }
}

/// # Safety
///
/// As `pthread_rwlock_clockrdlock`.
pub(crate) unsafe extern "C-unwind" fn clockrdlock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(clock, until);
        read(lock, caller, tries, || real::pthread_rwlock_clockrdlock.get()(lock, clock, until))
    }
}

/// # Safety
///
/// As `pthread_rwlock_tryrdlock`.
pub(crate) unsafe extern "C-unwind" fn tryrdlock(
    lock: *mut pthread_rwlock_t,
    caller: *const (),
) -> c_int {
    find_stack();
    // SAFETY: the caller's argument, passed on.
    let result = unsafe { real::pthread_rwlock_tryrdlock.get()(lock) };
    if result == 0 {
        tell!(READ_ACQUIRE, lock, caller);
    }
    result
}

/// # Safety
///
/// As `pthread_rwlock_wrlock`.
pub(crate) unsafe extern "C-unwind" fn wrlock(
    lock: *mut pthread_rwlock_t,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe { write(lock, caller, true, || real::pthread_rwlock_wrlock.get()(lock)) }
}

/// # Safety
///
/// As `pthread_rwlock_timedwrlock`.
pub(crate) unsafe extern "C-unwind" fn timedwrlock(
    lock: *mut pthread_rwlock_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(libc::CLOCK_REALTIME, until);
        write(lock, caller, tries, || real::pthread_rwlock_timedwrlock.get()(lock, until))
    }
}

/// # Safety
///
/// As `pthread_rwlock_clockwrlock`.
pub(crate) unsafe extern "C-unwind" fn clockwrlock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(clock, until);
        write(lock, caller, tries, || real::pthread_rwlock_clockwrlock.get()(lock, clock, until))
    }
}

/// # Safety
///
/// As `pthread_rwlock_trywrlock`.
pub(crate) unsafe extern "C-unwind" fn trywrlock(
    lock: *mut pthread_rwlock_t,
    caller: *const (),
) -> c_int {
    find_stack();
    // SAFETY: the caller's argument, passed on.
    let result = unsafe { real::pthread_rwlock_trywrlock.get()(lock) };
    if result == 0 {
        tell!(WRITE_ACQUIRE, lock, caller);
    }
    result
}

/// # Safety
///
/// As `pthread_rwlock_unlock`.
pub(crate) unsafe extern "C-unwind" fn unlock(
    lock: *mut pthread_rwlock_t,
    caller: *const (),
) -> c_int {
    tell!(RWLOCK_RELEASE, lock, caller);
    // SAFETY: the caller's argument, passed on.
    unsafe { real::pthread_rwlock_unlock.get()(lock) }
}

/// Tries to read, if that is to be done first, and blocks if a writer is in the way.
///
/// # Safety
///
/// `lock` is a reader-writer lock.
#[inline(always)]
unsafe fn read(
    lock: *mut pthread_rwlock_t,
    caller: *const (),
    tries: bool,
    block: impl FnOnce() -> c_int,
) -> c_int {
    find_stack();
    // SAFETY: says the caller.
    let attempt = tries.then(|| unsafe { real::pthread_rwlock_tryrdlock.get()(lock) });
    acquire!(lock, caller, attempt, block, READ_WAIT, READ_ACQUIRE, READ_ABANDON)
}

/// Tries to write, if that is to be done first, and blocks if anybody is in the way.
///
/// # Safety
///
/// `lock` is a reader-writer lock.
#[inline(always)]
unsafe fn write(
    lock: *mut pthread_rwlock_t,
    caller: *const (),
    tries: bool,
    block: impl FnOnce() -> c_int,
) -> c_int {
    find_stack();
    // SAFETY: says the caller.
    let attempt = tries.then(|| unsafe { real::pthread_rwlock_trywrlock.get()(lock) });
    acquire!(lock, caller, attempt, block, WRITE_WAIT, WRITE_ACQUIRE, WRITE_ABANDON)
}
