//! Condition waits: each gives its mutex back, and has it again at its end.

use core::ffi::c_int;

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

use crate::event::{COND_WAIT, COND_WAKE, tell};
use crate::stack::find_stack;
use crate::stub::real;

/// # Safety
///
/// As `pthread_cond_wait`.
pub(crate) unsafe extern "C-unwind" fn wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    caller: *const (),
) -> c_int {
    find_stack();
    tell!(COND_WAIT, mutex, caller, condition);
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { real::pthread_cond_wait.get()(condition, mutex) };
    woken(condition, mutex, caller, result)
}

/// # Safety
///
/// As `pthread_cond_timedwait`.
pub(crate) unsafe extern "C-unwind" fn timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    find_stack();
    tell!(COND_WAIT, mutex, caller, condition);
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { real::pthread_cond_timedwait.get()(condition, mutex, until) };
    woken(condition, mutex, caller, result)
}

/// # Safety
///
/// As `pthread_cond_clockwait`.
pub(crate) unsafe extern "C-unwind" fn clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    find_stack();
    tell!(COND_WAIT, mutex, caller, condition);
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { real::pthread_cond_clockwait.get()(condition, mutex, clock, until) };
    woken(condition, mutex, caller, result)
}

/// The thread has the mutex again, also after a time-out, or has it still, if the time was not valid. Not so
/// if it never had it, or if the mutex is lost for good.
fn woken(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    caller: *const (),
    result: c_int,
) -> c_int {
    if result != libc::EPERM && result != libc::ENOTRECOVERABLE {
        tell!(COND_WAKE, mutex, caller, condition);
    }
    result
}
