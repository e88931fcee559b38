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

/// Makes the page, once: before the process lock is taken, which nobody would give back in a child that is forked meanwhile.
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
    let witness = page.as_ptr().cast::<AtomicU32>();
    let at = witness.expose_provenance();
    // SAFETY: the page is ours.
    let is_emptied = unsafe {
        (*witness).store(SEEN, Relaxed);
        kernel::call(libc::SYS_madvise, [at, PAGE as usize, libc::MADV_WIPEONFORK as usize])
    };
    if is_emptied.is_err()
        || WITNESS.compare_exchange(ptr::null_mut(), witness, Release, Relaxed).is_err()
    {
        // SAFETY: as above, and nobody knows it.
        unsafe { kernel::munmap(witness.cast(), PAGE) };
    }
}

/// What is here is this process's own from now on: what it has of its parent's it uses no more.
pub(crate) fn keep() {
    if let Some(witness) = witness() {
        witness.store(SEEN, Release); // SYNC: own-memory
    }
}

/// Whether a fork has made it; `None` where that is not known.
pub(crate) fn is_copy() -> Option<bool> {
    witness().map(|witness| witness.load(Acquire) != SEEN) // SYNC: own-memory
}

fn witness() -> Option<&'static AtomicU32> {
    // SAFETY: null, or a page that stays mapped.
    unsafe { WITNESS.load(Relaxed).as_ref() }
}
