//! The rare path of a write, in Rust.

use crate::layout::SiteMeta;
use crate::text::Pair;

/// Passed to [`write_slow`] for the number of words: the site has text, and as many pairs as arguments.
pub(super) const TEXT: u32 = u32::MAX;

unsafe extern "C-unwind" {
    /// pthread_setcanceltype(3), which the libc crate does not declare.
    fn pthread_setcanceltype(kind: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

const PTHREAD_CANCEL_DEFERRED: libc::c_int = 0;

/// The rare path of a write, where a thread is not cancelled. One that may be at any instruction (`PTHREAD_CANCEL_ASYNCHRONOUS`) would be
/// unwound from within Rust code that has no table for that, and the C library would end the program. This frame has nothing to clean up, so
/// it can be unwound before and behind that. The type is changed, and not the state, at which glibc 2.36 does not look when the signal of a
/// cancellation comes late.
///
/// # Safety
///
/// As [`write()`].
pub(super) unsafe extern "C-unwind" fn write_slow(
    meta: *const SiteMeta,
    words: *const u64,
    count: u32,
) {
    let mut before = PTHREAD_CANCEL_DEFERRED;
    // SAFETY: a place for the answer.
    unsafe { pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &mut before) };
    // SAFETY: says the caller.
    unsafe { write(meta, words, count) };
    // SAFETY: the place of an answer that nobody needs may be missing. It unwinds if the thread was cancelled meanwhile.
    unsafe { pthread_setcanceltype(before, core::ptr::null_mut()) };
}

/// The rare path of a write: the thread has no ring yet, or its ring is at the limit, or text is to be
/// cut.
///
/// Writes the whole event, or counts it as lost. Keeps `errno`.
///
/// # Safety
///
/// Called by the assembly only: `meta` is that of a site, and `words` points to `count` words, or to
/// the pairs of its arguments.
#[inline(never)]
unsafe extern "C" fn write(meta: *const SiteMeta, words: *const u64, count: u32) {
    // SAFETY: the pointer that `__errno_location` returns is valid on the thread that asks.
    let errno = unsafe { *libc::__errno_location() };
    let key = meta as usize as u32;
    if count == TEXT {
        // SAFETY: the metadata of a site is static.
        let args = unsafe { (*meta).args() };
        // SAFETY: the assembly passes as many pairs as the site has arguments; texts are borrowed by
        // the site, which the call returns to.
        unsafe {
            let pairs = core::slice::from_raw_parts(words.cast::<Pair>(), args.len());
            crate::thread::write_text(key, args, pairs);
        }
    } else {
        // SAFETY: the assembly passes as many words as it says.
        let words = unsafe { core::slice::from_raw_parts(words, count as usize) };
        crate::thread::write(key, words);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
