//! Calls of the writes as the macros make them ([`super::x86_64`]), where the metadata are known only at run time.

use core::arch::asm;

use crate::layout::{MAX_ARGS, SiteMeta};
use crate::text::Pair;

/// Writes an event of `N` words.
///
/// # Safety
///
/// These are the arguments of the metadata, each of one word.
#[inline]
pub(crate) unsafe fn write_words<const N: usize>(meta: &'static SiteMeta, words: &[u64; MAX_ARGS]) {
    const { assert!(N <= MAX_ARGS) };
    // SAFETY: behind the words that the function reads stand others, of which it knows nothing; it preserves all registers
    // but `rax`.
    unsafe {
        asm!(
            "push qword ptr [{words} + 40]",
            "push qword ptr [{words} + 32]",
            "push qword ptr [{words} + 24]",
            "push qword ptr [{words} + 16]",
            "push qword ptr [{words} + 8]",
            "push qword ptr [{words}]",
            "push rax",
            "mov rax, {meta}",
            "call ft_user_v1_write_{count}",
            "pop rax",
            "add rsp, 48",
            words = in(reg) words.as_ptr(),
            meta = in(reg) meta,
            count = const N,
        );
    }
}

/// Writes an event with text, or with what may be absent.
///
/// # Safety
///
/// These are the arguments of the metadata, one at least; the addresses of texts are valid for their lengths.
#[inline]
pub(crate) unsafe fn write_pairs(meta: &'static SiteMeta, pairs: &[Pair; MAX_ARGS]) {
    const { assert!(size_of::<Pair>() == 16) };
    // SAFETY: as above.
    unsafe {
        asm!(
            "push qword ptr [{pairs} + 88]",
            "push qword ptr [{pairs} + 80]",
            "push qword ptr [{pairs} + 72]",
            "push qword ptr [{pairs} + 64]",
            "push qword ptr [{pairs} + 56]",
            "push qword ptr [{pairs} + 48]",
            "push qword ptr [{pairs} + 40]",
            "push qword ptr [{pairs} + 32]",
            "push qword ptr [{pairs} + 24]",
            "push qword ptr [{pairs} + 16]",
            "push qword ptr [{pairs} + 8]",
            "push qword ptr [{pairs}]",
            "push rax",
            "mov rax, {meta}",
            "call ft_user_v1_write_text",
            "pop rax",
            "add rsp, 96",
            pairs = in(reg) pairs.as_ptr(),
            meta = in(reg) meta,
        );
    }
}
