//! Time-slice extensions: a thread that holds a mutex of those that are for it asks for a little more time before its CPU is
//! taken.
//!
//! The protocol is that of Documentation/userspace-api/rseq.rst (Linux 7.0). Two bytes of the thread's `struct rseq` belong to
//! it and the kernel, which changes them only when it interrupts this thread: so no access needs to be atomic with another
//! one, and what must not be reordered is the compiler's alone.
//!
//! ```text
//! request granted
//!    1       0     the holder has asked
//!    0       1     the kernel has granted an extension; it ends with `rseq_slice_yield`
//!    0       0     the kernel took the CPU after all, or a system call ended the extension
//! ```
//!
//! What a thread remembers is one word (`arch::tls_slice`): whether it may ask, and how many such mutexes it holds. A handler of a
//! signal that interrupts its change leaves as many as it found.

use core::sync::atomic::{AtomicU8, Ordering::*, compiler_fence};

use crate::layout::Slice;
use crate::{arch, kernel};

/// `struct rseq_slice_ctrl` (include/uapi/linux/rseq.h).
#[repr(C)]
#[derive(Debug, Default)]
struct Control {
    request: AtomicU8,
    granted: AtomicU8,
}

/// Who grants: the kernel, or a test's.
trait Grantor {
    /// The bytes of the calling thread, if it has such.
    fn control(&self) -> Option<&Control>;
    /// Has the thread's requests heeded; whether it could. Called when it has such bytes.
    fn enable(&self) -> bool;
    /// Gives back the CPU that was granted.
    fn give_back(&self);
}

/// Whether the thread may ask: the low bits of its word, of which the others count the mutexes that it holds.
const SUPPORT: u64 = 3;
const UNKNOWN: u64 = 0;
const POSSIBLE: u64 = 1;
const IMPOSSIBLE: u64 = 2;
const HOLD: u64 = 4;

/// A mutex was taken.
fn begin(word: u64, grantor: &impl Grantor) -> u64 {
    let control = grantor.control();
    let support = match word & SUPPORT {
        UNKNOWN if control.is_some() && grantor.enable() => POSSIBLE,
        UNKNOWN => IMPOSSIBLE,
        known => known,
    };
    if let (POSSIBLE, 0, Some(control)) = (support, word / HOLD, control) {
        // Who was granted one has no request beside it: the kernel kills for that where it checks (`rseq_debug`).
        if control.granted.load(Relaxed) == 0 {
            control.request.store(1, Relaxed);
        }
        compiler_fence(SeqCst);
    }
    (word & !SUPPORT | support).saturating_add(HOLD)
}

/// A mutex was released. Who makes a system call next need not `give_back`: that call does it.
fn end(word: u64, grantor: &impl Grantor, give_back: bool) -> u64 {
    let left = word.saturating_sub(HOLD);
    if let (POSSIBLE, 0, Some(control)) = (word & SUPPORT, left / HOLD, grantor.control()) {
        compiler_fence(SeqCst);
        control.request.store(0, Relaxed);
        compiler_fence(SeqCst);
        if give_back && control.granted.load(Relaxed) != 0 {
            grantor.give_back();
        }
    }
    left
}

/// What has come of a request.
fn came_of(word: u64, grantor: &impl Grantor) -> Slice {
    let bytes = |c: &Control| (c.request.load(Relaxed) != 0, c.granted.load(Relaxed) != 0);
    match (word & SUPPORT, grantor.control().map(bytes)) {
        (POSSIBLE, Some((_, true))) => Slice::Granted,
        (POSSIBLE, Some((true, false))) => Slice::Pending,
        (POSSIBLE, Some((false, false))) => Slice::Over,
        _ => Slice::Impossible,
    }
}

/// The running kernel.
struct Kernel;

impl Grantor for Kernel {
    fn control(&self) -> Option<&Control> {
        // SAFETY: null, or bytes of the thread's `struct rseq`, which lives as long as the thread. All bit patterns are valid,
        // and all of our accesses are atomic ones. No reference leaves this thread or the calls of this module.
        unsafe { arch::rseq_slice_control().cast::<Control>().as_ref() }
    }

    fn enable(&self) -> bool {
        // include/uapi/linux/prctl.h; unused arguments must be zero.
        const PR_RSEQ_SLICE_EXTENSION: usize = 79;
        const PR_RSEQ_SLICE_EXTENSION_SET: usize = 2;
        const PR_RSEQ_SLICE_EXT_ENABLE: usize = 1;
        let arguments =
            [PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_SET, PR_RSEQ_SLICE_EXT_ENABLE, 0, 0];
        // SAFETY: touches no memory of ours.
        let enabled = unsafe { kernel::call(libc::SYS_prctl, arguments) };
        enabled == Ok(0)
    }

    fn give_back(&self) {
        // arch/x86/entry/syscalls/syscall_64.tbl.
        const SYS_RSEQ_SLICE_YIELD: libc::c_long = 471;
        // SAFETY: takes no argument.
        let _ = unsafe { kernel::call(SYS_RSEQ_SLICE_YIELD, []) };
    }
}

/// Whether the holder of a mutex asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Asks(bool);

impl Asks {
    pub(super) const NO: Asks = Asks(false);
    pub(super) const YES: Asks = Asks(true);
}

/// A mutex is held, and if it is one whose holder asks, and may, an extension is asked for; until this is dropped.
pub(super) struct Extension(Asks);

impl Extension {
    /// The calling thread has just taken a mutex.
    #[inline(always)]
    pub(super) fn ask(asks: Asks) -> Extension {
        if asks == Asks::YES {
            arch::tls_set_slice(begin(arch::tls_slice(), &Kernel));
        }
        Extension(asks)
    }

    /// The mutex will be released in a wait: the wait's own system call ends what was granted.
    pub(super) fn end_in_call(self) {
        if self.0 == Asks::YES {
            arch::tls_set_slice(end(arch::tls_slice(), &Kernel, false));
        }
        core::mem::forget(self);
    }
}

impl Drop for Extension {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0 == Asks::YES {
            arch::tls_set_slice(end(arch::tls_slice(), &Kernel, true));
        }
    }
}

/// What has come of what the calling thread asked for, while it holds a mutex.
pub(super) fn outcome() -> Slice {
    came_of(arch::tls_slice(), &Kernel)
}

/// A child after a fork has to ask again whether it may.
pub(crate) fn after_fork() {
    arch::tls_set_slice(arch::tls_slice() & !SUPPORT);
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// Plays the kernel.
    #[derive(Default)]
    struct Simulated {
        control: Option<Control>,
        refuses: bool,
        enabled: Cell<u32>,
        given_back: Cell<u32>,
    }

    impl Grantor for Simulated {
        fn control(&self) -> Option<&Control> {
            self.control.as_ref()
        }

        fn enable(&self) -> bool {
            self.enabled.set(self.enabled.get() + 1);
            !self.refuses
        }

        fn give_back(&self) {
            self.given_back.set(self.given_back.get() + 1);
            self.switch();
        }
    }

    impl Simulated {
        fn new() -> Simulated {
            Simulated { control: Some(Control::default()), ..Simulated::default() }
        }

        /// Request and grant.
        fn bytes(&self) -> (u8, u8) {
            let control = self.control.as_ref().expect("an area");
            (control.request.load(Relaxed), control.granted.load(Relaxed))
        }

        /// The CPU is wanted for another thread: an extension, if one is asked for.
        fn interrupt(&self) {
            let control = self.control.as_ref().expect("an area");
            if control.request.swap(0, Relaxed) != 0 {
                control.granted.store(1, Relaxed);
            }
        }

        /// The thread leaves the CPU, or its extension is revoked.
        fn switch(&self) {
            let control = self.control.as_ref().expect("an area");
            control.request.store(0, Relaxed);
            control.granted.store(0, Relaxed);
        }
    }

    #[test]
    fn who_is_not_interrupted_takes_its_request_back() {
        let kernel = Simulated::new();
        let word = begin(0, &kernel);
        assert_eq!((kernel.bytes(), came_of(word, &kernel)), ((1, 0), Slice::Pending));
        let word = end(word, &kernel, true);
        assert_eq!((kernel.bytes(), kernel.given_back.get()), ((0, 0), 0));
        // What was found out is remembered.
        assert_eq!(end(begin(word, &kernel), &kernel, true), word);
        assert_eq!(kernel.enabled.get(), 1);
    }

    #[test]
    fn who_was_granted_time_gives_it_back_at_the_release() {
        let kernel = Simulated::new();
        let word = begin(0, &kernel);
        kernel.interrupt();
        assert_eq!(came_of(word, &kernel), Slice::Granted);
        end(word, &kernel, true);
        assert_eq!((kernel.bytes(), kernel.given_back.get()), ((0, 0), 1));
    }

    #[test]
    fn who_waits_for_a_condition_leaves_that_to_the_wait() {
        let kernel = Simulated::new();
        let word = begin(0, &kernel);
        kernel.interrupt();
        let word = end(word, &kernel, false);
        assert_eq!((kernel.bytes(), kernel.given_back.get()), ((0, 1), 0));
        // Another mutex before that call: there is no request beside a grant.
        begin(word, &kernel);
        assert_eq!(kernel.bytes(), (0, 1));
    }

    #[test]
    fn what_is_revoked_is_over_and_not_asked_for_again_in_the_hold() {
        for granted in [true, false] {
            let kernel = Simulated::new();
            let mut word = begin(0, &kernel);
            if granted {
                kernel.interrupt();
            }
            kernel.switch();
            assert_eq!(came_of(word, &kernel), Slice::Over);
            word = begin(word, &kernel);
            assert_eq!(kernel.bytes(), (0, 0));
            word = end(end(word, &kernel, true), &kernel, true);
            assert_eq!(kernel.given_back.get(), 0);
            begin(word, &kernel);
            assert_eq!(kernel.bytes(), (1, 0), "the next hold asks");
        }
    }

    #[test]
    fn of_nested_holds_the_outermost_asks_and_gives_back() {
        let kernel = Simulated::new();
        let mut word = begin(begin(0, &kernel), &kernel);
        kernel.interrupt();
        word = end(word, &kernel, true);
        assert_eq!((kernel.bytes(), kernel.given_back.get()), ((0, 1), 0));
        assert_eq!(came_of(word, &kernel), Slice::Granted);
        end(word, &kernel, true);
        assert_eq!((kernel.bytes(), kernel.given_back.get()), ((0, 0), 1));
    }

    #[test]
    fn who_may_not_ask_writes_nothing_and_tries_once() {
        let refusing = Simulated { refuses: true, ..Simulated::new() };
        let without = Simulated::default();
        for kernel in [&refusing, &without] {
            let mut word = 0;
            for _ in 0..2 {
                word = begin(word, kernel);
                assert_eq!(came_of(word, kernel), Slice::Impossible);
                word = end(word, kernel, true);
            }
            assert_eq!(kernel.given_back.get(), 0);
        }
        assert_eq!((refusing.bytes(), refusing.enabled.get()), ((0, 0), 1));
        assert_eq!(without.enabled.get(), 0, "there is nothing to enable");
    }

    #[test]
    fn releases_without_an_acquisition_do_no_harm() {
        let kernel = Simulated::new();
        assert_eq!(end(0, &kernel, true), 0);
        assert_eq!(kernel.bytes(), (0, 0));
    }
}
