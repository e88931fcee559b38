//! Waits for what no thread holds: barriers, and initialisation that another thread does.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering::Acquire};

use libc::pthread_barrier_t;

use crate::event::{BARRIER_WAIT, BARRIER_WAKE, ONCE_WAIT, ONCE_WAKE, tell};
use crate::stub::real;

/// `void (*)(void)`; in C++ it may throw.
pub(crate) type Routine = unsafe extern "C-unwind" fn();

/// Whoever comes last records a wait as well, which is short.
///
/// # Safety
///
/// As `pthread_barrier_wait`.
pub(crate) unsafe extern "C-unwind" fn barrier(
    barrier: *mut pthread_barrier_t,
    caller: *const (),
) -> c_int {
    tell!(BARRIER_WAIT, barrier, caller);
    // SAFETY: the caller's argument, passed on. It may be gone afterwards, and only its address is used.
    let result = unsafe { real::pthread_barrier_wait.get()(barrier) };
    tell!(BARRIER_WAKE, barrier, caller);
    result
}

/// Tells of a wait only where another thread is at the initialisation: who does it waits for nobody.
///
/// # Safety
///
/// As `pthread_once`.
pub(crate) unsafe extern "C-unwind" fn once(
    control: *mut c_int,
    routine: Routine,
    caller: *const (),
) -> c_int {
    // glibc's word, which is 0 at first as its initialiser is: bit 0 is set while a thread is at it, and 2 says that it is done
    // (nptl/pthreadP.h, `__PTHREAD_ONCE_INPROGRESS` and `_DONE`).
    const IN_PROGRESS: c_int = 1;
    // SAFETY: a `pthread_once_t`, aligned, which others change by atomic operations only.
    let waits = unsafe { AtomicI32::from_ptr(control) }.load(Acquire) & IN_PROGRESS != 0;
    if waits {
        tell!(ONCE_WAIT, control, caller);
    }
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { real::pthread_once.get()(control, routine) };
    if waits {
        tell!(ONCE_WAKE, control, caller);
    }
    result
}
