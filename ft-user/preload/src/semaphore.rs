//! Semaphores. These return -1 and set `errno`; a success leaves `errno` as it was.

use core::ffi::c_int;

use libc::{clockid_t, sem_t, timespec};

use crate::event::{SEMAPHORE_ABANDON, SEMAPHORE_ACQUIRE, SEMAPHORE_RELEASE, SEMAPHORE_WAIT, tell};
use crate::stack::find_stack;
use crate::stub::real;
use crate::time::is_time;

unsafe extern "C-unwind" {
    // The libc crate does not declare it. Unwinds when the thread is cancelled.
    fn pthread_testcancel();
}

/// # Safety
///
/// As `sem_wait`.
pub(crate) unsafe extern "C-unwind" fn wait(semaphore: *mut sem_t, caller: *const ()) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe { acquire(semaphore, caller, true, || real::sem_wait.get()(semaphore)) }
}

/// # Safety
///
/// As `sem_timedwait`.
pub(crate) unsafe extern "C-unwind" fn timedwait(
    semaphore: *mut sem_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(libc::CLOCK_REALTIME, until);
        acquire(semaphore, caller, tries, || real::sem_timedwait.get()(semaphore, until))
    }
}

/// # Safety
///
/// As `sem_clockwait`.
pub(crate) unsafe extern "C-unwind" fn clockwait(
    semaphore: *mut sem_t,
    clock: clockid_t,
    until: *const timespec,
    caller: *const (),
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let tries = is_time(clock, until);
        acquire(semaphore, caller, tries, || real::sem_clockwait.get()(semaphore, clock, until))
    }
}

/// # Safety
///
/// As `sem_trywait`.
pub(crate) unsafe extern "C-unwind" fn trywait(semaphore: *mut sem_t, caller: *const ()) -> c_int {
    find_stack();
    // SAFETY: the caller's argument, passed on.
    let result = unsafe { real::sem_trywait.get()(semaphore) };
    if result == 0 {
        tell!(SEMAPHORE_ACQUIRE, semaphore, caller);
    }
    result
}

/// # Safety
///
/// As `sem_post`; also from signal handlers.
pub(crate) unsafe extern "C-unwind" fn post(semaphore: *mut sem_t, caller: *const ()) -> c_int {
    tell!(SEMAPHORE_RELEASE, semaphore, caller);
    // SAFETY: the caller's argument, passed on.
    unsafe { real::sem_post.get()(semaphore) }
}

/// Tries, if that is to be done first, and blocks if there is nothing to take.
///
/// # Safety
///
/// `semaphore` is one.
#[inline(always)]
unsafe fn acquire(
    semaphore: *mut sem_t,
    caller: *const (),
    tries: bool,
    block: impl FnOnce() -> c_int,
) -> c_int {
    find_stack();
    // A wait is a cancellation point, an attempt is not. One until a time that is none is refused before that.
    if tries {
        // SAFETY: no frame from here to the program has a destructor.
        unsafe { pthread_testcancel() };
    }
    // A raw pointer and no reference: the C library writes `errno` behind it.
    // SAFETY: takes no argument.
    let errno: *mut c_int = unsafe { libc::__errno_location() };
    // SAFETY: the place of `errno` is the thread's own, and lives as long as the thread.
    let before = unsafe { errno.read() };
    // SAFETY: says the caller.
    let attempt = tries.then(|| unsafe { real::sem_trywait.get()(semaphore) });
    let contended = attempt.is_some_and(|result| result != 0);
    if contended {
        // SAFETY: as above.
        unsafe { errno.write(before) };
        tell!(SEMAPHORE_WAIT, semaphore, caller);
    }
    let result = attempt.filter(|_| !contended).unwrap_or_else(block);
    if result == 0 {
        tell!(SEMAPHORE_ACQUIRE, semaphore, caller);
    } else if contended {
        tell!(SEMAPHORE_ABANDON, semaphore, caller);
    }
    result
}
