//! Whether this is the memory of the process that asks, or a copy of another's that a fork has made.
//!
//! A child of `vfork`, or of `clone(CLONE_VM)`, has a number of its own and the memory of its parent: the number does not tell. A page
//! does that the kernel empties in the copy alone (`MADV_WIPEONFORK`, Linux 4.14).

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

use crate::kernel;
use crate::layout::PAGE;

/// The page; null where there is none, as under valgrind.
static WITNESS: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

const SEEN: u32 = 1;

/// Makes the page, once. Called with the process lock held.
pub(crate) fn prepare() {
    if !WITNESS.load(Relaxed).is_null() {
        return;
    }
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let Ok(page) = (unsafe { kernel::mmap(ptr::null_mut(), PAGE, protection, flags, -1, 0) })
    else {
        return;
    };
    let place = page.as_ptr();
    let arguments = [place.expose_provenance(), PAGE as usize, libc::MADV_WIPEONFORK as usize];
    // SAFETY: the page is ours.
    if unsafe { kernel::call(libc::SYS_madvise, arguments) }.is_err() {
        // SAFETY: as above, and nobody knows it.
        unsafe { kernel::munmap(place.cast(), PAGE) };
        return;
    }
    WITNESS.store(place.cast(), Relaxed);
    keep();
}

/// What is here is this process's own from now on.
pub(crate) fn keep() {
    if let Some(witness) = witness() {
        witness.store(SEEN, Relaxed);
    }
}

/// Whether a fork has made it; `None` where that is not known.
pub(crate) fn is_copy() -> Option<bool> {
    witness().map(|witness| witness.load(Relaxed) != SEEN)
}

fn witness() -> Option<&'static AtomicU32> {
    // SAFETY: null, or a page that stays mapped.
    unsafe { WITNESS.load(Relaxed).as_ref() }
}
