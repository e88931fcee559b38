//! The beginning of a thread that makes its ring before the function for which it was created.
//!
//! The function and its argument are handed to it in a place of its own. Places are static, as allocators create threads, too. Where
//! all are taken, threads begin as they would without this library.
//!
//! The new thread jumps to its function: on its stack nothing of this library is left, and it can be walked, cancelled and left as ever.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// What `pthread_create` calls.
pub(crate) type Start = Option<extern "C" fn(*mut c_void) -> *mut c_void>;

/// Threads that are created, and have not begun yet. A forked child keeps what other threads had taken, and hands over less at once.
static HANDED: [Handed; 64] = [const {
    Handed { start: AtomicPtr::new(ptr::null_mut()), argument: AtomicPtr::new(ptr::null_mut()) }
}; 64];

/// A function and its argument, from the thread that creates one to that one. Free while the function is null.
pub(crate) struct Handed {
    start: AtomicPtr<c_void>,
    argument: AtomicPtr<c_void>,
}

/// What a thread is to do, in two registers.
#[repr(C)]
struct Task {
    start: *mut c_void,
    argument: *mut c_void,
}

/// Takes a place for a thread that is created next. `None` where there is none, or no function.
pub(crate) fn hand_over(start: Start, argument: *mut c_void) -> Option<&'static Handed> {
    let start = start? as *mut c_void;
    // SYNC: handed-over (whoever had the place before has read the argument). The new thread sees both, as it is created later.
    let is_taken = |place: &&Handed| {
        place.start.compare_exchange(ptr::null_mut(), start, Acquire, Relaxed).is_ok()
    };
    let place = HANDED.iter().find(is_taken)?;
    place.argument.store(argument, Relaxed);
    Some(place)
}

impl Handed {
    /// What [`begin`] is to be called with.
    pub(crate) fn as_argument(&'static self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// No thread was created.
    pub(crate) fn take_back(&self) {
        self.take();
    }

    fn take(&self) -> Task {
        let argument = self.argument.load(Relaxed);
        // SYNC: handed-over
        Task { start: self.start.swap(ptr::null_mut(), Release), argument }
    }
}

/// Gives the place back, and makes the ring.
unsafe extern "C" fn make_ready(handed: &'static Handed) -> Task {
    let task = handed.take();
    ft_user::thread_init();
    task
}

/// Where a thread begins whose function and argument are in the place that is its argument.
///
/// # Safety
///
/// The argument is [`Handed::as_argument`], once.
#[unsafe(naked)]
pub(crate) extern "C" fn begin(_handed: *mut c_void) -> *mut c_void {
    // The stack is aligned to 16 bytes at the call.
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {make_ready}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rdx",
        "jmp rax",
        ".cfi_endproc",
        make_ready = sym make_ready,
    )
}
