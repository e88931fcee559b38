//! The ring of the calling thread, and what happens when it has none.

use core::ptr;

use crate::arch;
use crate::layout::RingControl;
use crate::process;
use crate::ring::Ring;

/// Whether a thread without a ring may claim one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Claim {
    /// At its next event.
    Allowed = 0,
    /// It is doing so: an event of a signal handler goes to the shared ring.
    Running = 1,
    /// It is ending and has given its ring back: its last events go to the shared ring.
    Over = 2,
}

/// Makes `ring` the ring of the calling thread.
///
/// # Safety
///
/// The calling thread is the only writer, and the ring stays mapped until [`clear`].
pub unsafe fn set(ring: &'static RingControl) {
    // SAFETY: the caller vouches for the ring; a control page is followed by its slots.
    unsafe { arch::tls_set_ring(ring, arch::rseq()) };
}

/// Takes the ring from the calling thread: when it ends, and in the child after a fork.
pub fn clear(claim: Claim) {
    // SAFETY: null is always allowed.
    unsafe { arch::tls_set_ring(ptr::null(), None) };
    arch::tls_set_claim(claim as usize);
}

/// Writes an event to the ring of the calling thread, claims one first if it has none, or falls back
/// to the shared ring. Runs behind the thunk, on a thread's first event and when its ring is full.
pub(crate) fn write(key: u32, words: &[u64]) {
    if arch::tls_ring().is_null() && arch::tls_claim() == Claim::Allowed as usize {
        arch::tls_set_claim(Claim::Running as usize);
        let ring = process::claim_ring();
        if let Some(ring) = ring {
            // SAFETY: the ring was claimed for this thread, and is released only through `clear`.
            unsafe { set(ring) };
        }
        arch::tls_set_claim(Claim::Allowed as usize);
    }
    let control = arch::tls_ring();
    if control.is_null() {
        process::shared_write(key, words);
        return;
    }
    // SAFETY: the pointer was set from a claimed ring, whose mask is the number of its slots less one.
    let ring = unsafe { Ring::new(control, ((*control).mask + 1) as u32) };
    if let Some(ring) = ring {
        ring.write(key, arch::tls_cpu(), words, arch::rdtsc);
    }
}
