//! Calls of the writes as the macros make them ([`super::x86_64`]), where the metadata are known only at run time.

use core::arch::global_asm;

use crate::layout::{MAX_ARGS, SiteMeta};
use crate::text::Pair;

// rdi metadata, rsi words. Functions of their own, since code that moves the stack pointer in one of the compiler's would hide
// the callers from an unwinder (`super::frame`).
global_asm!(
    r#"
    .macro FT_USER_CALL name, words
    .p2align 5
    .hidden ft_user_v1_call_\name
    .globl ft_user_v1_call_\name
    .type ft_user_v1_call_\name,@function
ft_user_v1_call_\name:
    .cfi_startproc
    .irp word, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
    .if \word < \words
    push qword ptr [rsi + 8 * \word]
    .cfi_adjust_cfa_offset 8
    .endif
    .endr
    push rax                                // what the write takes for that of the program
    .cfi_adjust_cfa_offset 8
    mov rax, rdi
    call ft_user_v1_write_\name
    add rsp, 8 * (\words + 1)
    .cfi_adjust_cfa_offset -8 * (\words + 1)
    ret
    .cfi_endproc
    .size ft_user_v1_call_\name, . - ft_user_v1_call_\name
    .endm

    .pushsection .text.ft_user_v1_calls,"ax",@progbits
    FT_USER_CALL 0, 0
    FT_USER_CALL 1, 1
    FT_USER_CALL 2, 2
    FT_USER_CALL 3, 3
    FT_USER_CALL 4, 4
    FT_USER_CALL 5, 5
    FT_USER_CALL 6, 6
    FT_USER_CALL text, 12
    .popsection
    .purgem FT_USER_CALL
"#
);

type Call = unsafe extern "C" fn(&'static SiteMeta, *const u64);

unsafe extern "C" {
    fn ft_user_v1_call_0(meta: &'static SiteMeta, words: *const u64);
    fn ft_user_v1_call_1(meta: &'static SiteMeta, words: *const u64);
    fn ft_user_v1_call_2(meta: &'static SiteMeta, words: *const u64);
    fn ft_user_v1_call_3(meta: &'static SiteMeta, words: *const u64);
    fn ft_user_v1_call_4(meta: &'static SiteMeta, words: *const u64);
    fn ft_user_v1_call_5(meta: &'static SiteMeta, words: *const u64);
    fn ft_user_v1_call_6(meta: &'static SiteMeta, words: *const u64);
    fn ft_user_v1_call_text(meta: &'static SiteMeta, pairs: *const u64);
}

const CALLS: [Call; MAX_ARGS + 1] = [
    ft_user_v1_call_0,
    ft_user_v1_call_1,
    ft_user_v1_call_2,
    ft_user_v1_call_3,
    ft_user_v1_call_4,
    ft_user_v1_call_5,
    ft_user_v1_call_6,
];

/// Writes an event of `N` words.
///
/// # Safety
///
/// These are the arguments of the metadata, each of one word.
#[inline]
pub(crate) unsafe fn write_words<const N: usize>(meta: &'static SiteMeta, words: &[u64; MAX_ARGS]) {
    let call = const { CALLS[N] };
    // SAFETY: the function reads `N` words.
    unsafe { call(meta, words.as_ptr()) }
}

/// Writes an event with text, or with what may be absent.
///
/// # Safety
///
/// These are the arguments of the metadata, one at least; the addresses of texts are valid for their lengths.
#[inline]
pub(crate) unsafe fn write_pairs(meta: &'static SiteMeta, pairs: &[Pair; MAX_ARGS]) {
    const { assert!(size_of::<Pair>() == 16 && MAX_ARGS == 6) };
    // SAFETY: the function reads twelve words.
    unsafe { ft_user_v1_call_text(meta, pairs.as_ptr().cast()) }
}
