//! Rings that are there before the first lock.
//!
//! A thread's first event makes its ring with system calls. Where the program locks its memory, that takes all of the ring at once,
//! which is milliseconds; where it does not, the ring takes its pages one by one. A thread with deadlines must not pay that in its
//! first lock, which it holds by then. So while something is recorded, a ring is made and filled with memory where a program prepares
//! itself for its deadlines:
//!
//! | call | whose ring |
//! |---|---|
//! | `mlockall` | that of the caller, afterwards: the program's own memory comes first (`munlockall`: none any more) |
//! | `sched_setscheduler`, `pthread_setschedparam` | that of the caller, if it becomes a thread with a real-time policy; before, at its old priority |
//! | `pthread_create` | that of the new thread, if it has a real-time policy, or future memory is locked; in that thread, before its function |
//!
//! Other threads make theirs with their first event: they may have none, and a ring is 8 MiB.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::{pid_t, pthread_attr_t, pthread_t, sched_param};

use crate::begin::{self, Start};
use crate::real::{Entry, Real, has_thread_sanitizer};
use crate::stack::find_stack;

/// Whether a call has locked what will be mapped. A forked child, of which nothing is locked, counts as its parent does.
static IS_FUTURE_LOCKED: AtomicBool = AtomicBool::new(false);

/// Whether a thread had a real-time policy at the start, or has asked for one: only then a thread that is created can inherit one.
/// Others ask the kernel for nothing.
static IS_REAL_TIME: AtomicBool = AtomicBool::new(false);

/// Bytes of stack with which a thread makes its ring before its function begins, although the C library takes a part of them.
const ENOUGH_STACK: usize = 64 << 10;

static MLOCKALL: Real<unsafe extern "C" fn(c_int) -> c_int> = Real::unknown();
static MUNLOCKALL: Real<unsafe extern "C" fn() -> c_int> = Real::unknown();
static SCHED_SETSCHEDULER: Real<unsafe extern "C" fn(pid_t, c_int, *const sched_param) -> c_int> =
    Real::unknown();
static PTHREAD_SETSCHEDPARAM: Real<
    unsafe extern "C" fn(pthread_t, c_int, *const sched_param) -> c_int,
> = Real::unknown();
static PTHREAD_CREATE: Real<
    unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int,
> = Real::unknown();

/// The C library's functions, to be found with the others.
pub(crate) static ALL: [Entry; 5] = [
    Entry { name: c"mlockall", version: None, address: MLOCKALL.address() },
    Entry { name: c"munlockall", version: None, address: MUNLOCKALL.address() },
    Entry { name: c"sched_setscheduler", version: None, address: SCHED_SETSCHEDULER.address() },
    Entry {
        name: c"pthread_setschedparam",
        version: None,
        address: PTHREAD_SETSCHEDPARAM.address(),
    },
    Entry { name: c"pthread_create", version: None, address: PTHREAD_CREATE.address() },
];

/// `mlockall`, and then the caller's ring.
///
/// # Safety
///
/// As the function of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    // SAFETY: the caller's argument, passed on.
    let result = unsafe { MLOCKALL.find()(flags) };
    if result == 0 {
        IS_FUTURE_LOCKED.store(flags & libc::MCL_FUTURE != 0, Relaxed);
        make();
    }
    result
}

/// `munlockall`: what will be mapped is not locked any more.
///
/// # Safety
///
/// As the function of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munlockall() -> c_int {
    // SAFETY: it has no argument.
    let result = unsafe { MUNLOCKALL.find()() };
    if result == 0 {
        IS_FUTURE_LOCKED.store(false, Relaxed);
    }
    result
}

/// `sched_setscheduler`, behind the caller's ring.
///
/// # Safety
///
/// As the function of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sched_setscheduler(
    thread: pid_t,
    policy: c_int,
    parameter: *const sched_param,
) -> c_int {
    let is_own = || thread == 0 || thread == ft_user::thread::number() as pid_t;
    if asks_for_real_time(policy) && is_own() {
        make();
    }
    // SAFETY: the caller's arguments, passed on.
    unsafe { SCHED_SETSCHEDULER.find()(thread, policy, parameter) }
}

/// `pthread_setschedparam`, behind the caller's ring.
///
/// # Safety
///
/// As the function of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_setschedparam(
    thread: pthread_t,
    policy: c_int,
    parameter: *const sched_param,
) -> c_int {
    // SAFETY: takes no argument.
    if asks_for_real_time(policy) && thread == unsafe { libc::pthread_self() } {
        make();
    }
    // SAFETY: the caller's arguments, passed on.
    unsafe { PTHREAD_SETSCHEDPARAM.find()(thread, policy, parameter) }
}

/// `pthread_create`, of a thread that makes its ring first where it may have deadlines.
///
/// # Safety
///
/// As the function of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let create = PTHREAD_CREATE.find();
    // SAFETY: the caller's attributes.
    let is_ahead = unsafe { is_made_ahead(attributes) };
    let Some(handed) = is_ahead.then(|| begin::hand_over(start, argument)).flatten() else {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { create(thread, attributes, start, argument) };
    };
    // SAFETY: the caller's arguments, but for the function: that one calls the caller's.
    let result = unsafe { create(thread, attributes, Some(begin::begin), handed.as_argument()) };
    if result != 0 {
        handed.take_back();
    }
    result
}

/// The ring of a main thread that has a real-time policy from the start, as under chrt(1).
pub(crate) fn of_main() {
    if ft_user::thread::is_recorded() && is_own_policy_real_time() {
        IS_REAL_TIME.store(true, Relaxed);
        make();
    }
}

/// The calling thread's ring.
fn make() {
    if ft_user::thread::is_recorded() {
        find_stack();
        ft_user::thread_init();
    }
}

/// # Safety
///
/// `attributes` are some, or null.
unsafe fn is_made_ahead(attributes: *const pthread_attr_t) -> bool {
    // ThreadSanitizer begins a thread in a function of its own, before which none of the functions that it watches may be called.
    ft_user::thread::is_recorded()
        && !has_thread_sanitizer()
        // SAFETY: says the caller.
        && unsafe {
            (IS_FUTURE_LOCKED.load(Relaxed) || begins_in_real_time(attributes))
                && stack(attributes) >= ENOUGH_STACK
        }
}

/// Whether a thread with these attributes begins with a real-time policy: its own, or that of its maker.
///
/// # Safety
///
/// `attributes` are some, or null.
unsafe fn begins_in_real_time(attributes: *const pthread_attr_t) -> bool {
    let (mut inherits, mut policy) = (libc::PTHREAD_INHERIT_SCHED, libc::SCHED_OTHER);
    if !attributes.is_null() {
        // SAFETY: says the caller; both fill in a number, and cannot fail.
        unsafe {
            libc::pthread_attr_getinheritsched(attributes, &mut inherits);
            libc::pthread_attr_getschedpolicy(attributes, &mut policy);
        }
    }
    if inherits == libc::PTHREAD_EXPLICIT_SCHED {
        is_real_time(policy)
    } else {
        IS_REAL_TIME.load(Relaxed) && is_own_policy_real_time()
    }
}

/// Bytes of the stack of a thread with these attributes.
///
/// # Safety
///
/// `attributes` are some, or null.
unsafe fn stack(attributes: *const pthread_attr_t) -> usize {
    let mut bytes = 0;
    // SAFETY: says the caller, and new ones have the size that a thread without any has; these hold nothing that is to be freed.
    unsafe {
        if attributes.is_null() {
            let mut new = core::mem::MaybeUninit::uninit();
            libc::pthread_attr_init(new.as_mut_ptr());
            libc::pthread_attr_getstacksize(new.as_ptr(), &mut bytes);
            libc::pthread_attr_destroy(new.as_mut_ptr());
        } else {
            libc::pthread_attr_getstacksize(attributes, &mut bytes);
        }
    }
    bytes
}

fn is_own_policy_real_time() -> bool {
    // With `SCHED_RESET_ON_FORK` a new thread does not have it.
    ft_user::thread::policy().is_some_and(is_real_time)
}

/// Whether a policy that a thread is to have is a real-time policy, which is noted.
fn asks_for_real_time(policy: c_int) -> bool {
    let asks = is_real_time(policy & !libc::SCHED_RESET_ON_FORK);
    IS_REAL_TIME.fetch_or(asks, Relaxed);
    asks
}

fn is_real_time(policy: c_int) -> bool {
    [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&policy)
}
