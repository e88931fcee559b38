//! Mutexes of all types: normal, recursive, error-checking, adaptive; robust, priority-inheriting, shared.

use core::ffi::c_int;

use libc::{clockid_t, pthread_mutex_t, timespec};

use crate::event::{MUTEX_ABANDON, MUTEX_ACQUIRE, MUTEX_RELEASE, MUTEX_WAIT, tell};
use crate::real::has_thread_sanitizer;
use crate::stack::find_stack;
use crate::stub::real;
use crate::time::is_time;

/// # Safety
///
/// As `pthread_mutex_lock`.
pub(crate) unsafe extern "C-unwind" fn lock(
    mutex: *mut pthread_mutex_t,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe { acquire(mutex, caller, true, || real::pthread_mutex_lock.get()(mutex)) }
}

/// # Safety
///
/// As `pthread_mutex_timedlock`.
pub(crate) unsafe extern "C-unwind" fn timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(libc::CLOCK_REALTIME, until);
        acquire(mutex, caller, tries, || real::pthread_mutex_timedlock.get()(mutex, until))
    }
}

/// # Safety
///
/// As `pthread_mutex_clocklock`.
pub(crate) unsafe extern "C-unwind" fn clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(clock, until);
        acquire(mutex, caller, tries, || real::pthread_mutex_clocklock.get()(mutex, clock, until))
    }
}

/// # Safety
///
/// As `pthread_mutex_trylock`.
pub(crate) unsafe extern "C-unwind" fn trylock(
    mutex: *mut pthread_mutex_t,
    caller: *const (),
) -> c_int {
    find_stack();
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { real::pthread_mutex_trylock.get()(mutex) };
    // SAFETY: a mutex; if it is held by this thread, its counter is this thread's to read.
    if holds(result) && !unsafe { is_nested(mutex) } {
        tell!(MUTEX_ACQUIRE, mutex, caller);
    }
    result
}

/// # Safety
///
/// As `pthread_mutex_unlock`.
pub(crate) unsafe extern "C-unwind" fn unlock(
    mutex: *mut pthread_mutex_t,
    caller: *const (),
) -> c_int {
    // SAFETY: a mutex, and this thread holds it; where it does not, the unlock fails.
    if !unsafe { is_nested(mutex) } {
        tell!(MUTEX_RELEASE, mutex, caller);
    }
    // SAFETY: the caller's argument, passed on.
    unsafe { real::pthread_mutex_unlock.get()(mutex) }
}

/// Tries, if that is to be done first, and blocks if the mutex is taken. An error-checking mutex that the thread itself holds counts as
/// taken, and `block` tells that it would wait forever.
///
/// Looked at, and not tried, is a robust mutex, of which glibc's attempt leaves one locked that is not recoverable (2.36,
/// `__pthread_mutex_trylock`); and each in a program with ThreadSanitizer, to which attempts have no order in which they could deadlock.
/// One that another thread takes between the look and the call is waited for without a word.
///
/// # Safety
///
/// `mutex` is one.
#[inline(always)]
unsafe fn acquire(
    mutex: *mut pthread_mutex_t,
    caller: *const (),
    may_wait: bool,
    block: impl FnOnce() -> c_int,
) -> c_int {
    find_stack();
    // SAFETY: says the caller.
    let is_tried = may_wait && !has_thread_sanitizer() && !unsafe { is_robust(mutex) };
    let attempt = is_tried.then(|| {
        // SAFETY: says the caller.
        unsafe { real::pthread_mutex_trylock.get()(mutex) }
    });
    let contended = match attempt {
        Some(result) => result == libc::EBUSY,
        // SAFETY: says the caller.
        None => may_wait && unsafe { is_taken(mutex) },
    };
    if contended {
        tell!(MUTEX_WAIT, mutex, caller);
    }
    let result = attempt.filter(|_| !contended).unwrap_or_else(block);
    if holds(result) {
        // SAFETY: a mutex that this thread holds.
        if !unsafe { is_nested(mutex) } {
            tell!(MUTEX_ACQUIRE, mutex, caller);
        }
    } else if contended {
        tell!(MUTEX_ABANDON, mutex, caller);
    }
    result
}

/// Whether the thread has the mutex after a call with this result: also when a robust mutex tells that its
/// last owner died with it.
pub(crate) fn holds(result: c_int) -> bool {
    result == 0 || result == libc::EOWNERDEAD
}

// glibc's layout of a mutex is part of its ABI (`bits/struct_mutex.h`): lock, count, owner, users, kind, each of four bytes.
const LOCK: usize = 0;
const COUNT: usize = 1;
const OWNER: usize = 2;
const KIND: usize = 4;

/// A word of a mutex as it is now.
///
/// # Safety
///
/// `mutex` is one.
unsafe fn word(mutex: *const pthread_mutex_t, number: usize) -> c_int {
    // SAFETY: within the mutex and aligned. The kind does not change; the count is its owner's, and for another thread any value will do.
    unsafe { mutex.cast::<c_int>().add(number).read_volatile() }
}

/// Whether a recursive mutex is held more than once.
///
/// # Safety
///
/// `mutex` is one.
unsafe fn is_nested(mutex: *const pthread_mutex_t) -> bool {
    // The type is in the low two bits (`PTHREAD_MUTEX_KIND_MASK_NP` of nptl).
    const TYPE_MASK: c_int = 3;
    // SAFETY: says the caller.
    let (count, kind) = unsafe { (word(mutex, COUNT), word(mutex, KIND)) };
    kind & TYPE_MASK == libc::PTHREAD_MUTEX_RECURSIVE && count > 1
}

/// # Safety
///
/// `mutex` is one.
unsafe fn is_robust(mutex: *const pthread_mutex_t) -> bool {
    // `PTHREAD_MUTEX_ROBUST_NORMAL_NP` of nptl.
    const ROBUST: c_int = 16;
    // SAFETY: says the caller.
    unsafe { word(mutex, KIND) & ROBUST != 0 }
}

/// Whether another thread has the mutex.
///
/// # Safety
///
/// `mutex` is one.
unsafe fn is_taken(mutex: *const pthread_mutex_t) -> bool {
    // Of the bits beside these, those of a robust one say who waits, and that its owner has died (linux/futex.h).
    const FUTEX_TID_MASK: c_int = 0x3fff_ffff;
    // SAFETY: says the caller.
    let (lock, owner) = unsafe { (word(mutex, LOCK), word(mutex, OWNER)) };
    // SAFETY: takes no argument.
    lock & FUTEX_TID_MASK != 0 && owner != unsafe { libc::gettid() }
}
