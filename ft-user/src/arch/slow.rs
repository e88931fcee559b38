//! The rare path of a write, in Rust.

use crate::layout::SiteMeta;
use crate::text::Pair;

/// Passed to [`write_slow`] for the number of words: the site has text, and as many pairs as arguments.
pub(super) const TEXT: u32 = u32::MAX;

/// The rare path of a write: the thread has no ring yet, or its ring is at the limit, or text is to be
/// cut.
///
/// Writes the whole event, or counts it as lost. Keeps `errno`.
///
/// # Safety
///
/// Called by the assembly only: `meta` is that of a site, and `words` points to `count` words, or to
/// the pairs of its arguments.
pub(super) unsafe extern "C" fn write_slow(meta: *const SiteMeta, words: *const u64, count: u32) {
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
