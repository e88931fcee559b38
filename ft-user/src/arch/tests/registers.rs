//! A write changes no register of its caller, whatever path it takes, and no `errno`.

use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;

use super::{letters, text_of, with_ring};
use crate::layout::{self, LOSS_KEY, MARGIN_SLOTS, Mode, SiteKind, SiteMeta, TEXT_CUT};
use crate::reader::Uncommitted;
use crate::site;
use crate::test_ring::{SLOTS, TestRing, drain};
use crate::text::{Pair, TO_NUL};

/// Every register that a call may change by the System V ABI, as it is after a write if it is one more
/// than its place in this list before. `meta` is what the write gets in `rax`, and
/// `pair` on the stack.
fn registers_after(
    call: unsafe extern "C" fn(),
    meta: *const SiteMeta,
    pair: Pair,
) -> ([u64; 8], [u64; 16]) {
    let mut general = [1u64, 2, 3, 4, 5, 6, 7, 8];
    let mut vector = [0u64; 16];
    let vectors: [f64; 16] = core::array::from_fn(|i| f64::from_bits(i as u64 + 1));
    let [g0, g1, g2, g3, g4, g5, g6, g7] = &mut general;
    let mut v = vectors;
    let [v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15] = &mut v;
    // SAFETY: the call is a write that takes `rax`, and at most one pair from the stack, which it does
    // not change.
    unsafe {
        asm!(
            "push r15",
            "push r14",
            "push rax",
            "mov rax, r13",
            "call r12",
            "pop rax",
            "add rsp, 16",
            in("r12") call,
            in("r13") meta,
            in("r14") pair.word,
            in("r15") pair.extent,
            out("rax") _,
            inout("rcx") *g0, inout("rdx") *g1, inout("rsi") *g2, inout("rdi") *g3,
            inout("r8") *g4, inout("r9") *g5, inout("r10") *g6, inout("r11") *g7,
            inout("xmm0") *v0, inout("xmm1") *v1, inout("xmm2") *v2, inout("xmm3") *v3,
            inout("xmm4") *v4, inout("xmm5") *v5, inout("xmm6") *v6, inout("xmm7") *v7,
            inout("xmm8") *v8, inout("xmm9") *v9, inout("xmm10") *v10, inout("xmm11") *v11,
            inout("xmm12") *v12, inout("xmm13") *v13, inout("xmm14") *v14, inout("xmm15") *v15,
        );
    }
    for (bits, float) in vector.iter_mut().zip(v) {
        *bits = float.to_bits();
    }
    (general, vector)
}

unsafe extern "C" {
    fn ft_user_v1_write_0();
    fn ft_user_v1_write_text();
}

/// A text at no address.
const NULL: Pair = Pair { word: 0, extent: 0 };

/// What a site without an argument passes: the test reads no more of it than the key.
const NO_ARGUMENT: *const SiteMeta = core::ptr::without_provenance(LOSS_KEY as usize);

#[test]
fn write_preserves_every_register() {
    let expected = (core::array::from_fn(|i| i as u64 + 1), core::array::from_fn(|i| i as u64 + 1));
    // The rare path: no ring.
    assert_eq!(registers_after(ft_user_v1_write_0, NO_ARGUMENT, NULL), expected);
    // The usual one, and a full ring: the beginning of the loss is the rare path again.
    let test = TestRing::new(Mode::Discard);
    with_ring(&test, || {
        for _ in 0..SLOTS {
            assert_eq!(registers_after(ft_user_v1_write_0, NO_ARGUMENT, NULL), expected);
        }
    });
    assert_eq!(test.ring().control.lost.load(Relaxed), MARGIN_SLOTS as u64);
}

#[test]
fn write_of_text_preserves_every_register() {
    let expected = (core::array::from_fn(|i| i as u64 + 1), core::array::from_fn(|i| i as u64 + 1));
    static ARGS: [layout::Arg; 1] = [site::arg::<&str>("text")];
    static META: SiteMeta = site::meta(SiteKind::Event, "arch.text", ("", 0), "", &ARGS);
    assert_eq!(registers_after(ft_user_v1_write_text, &META, NULL), expected);
    let test = TestRing::new(Mode::Discard);
    with_ring(&test, || assert_eq!(registers_after(ft_user_v1_write_text, &META, NULL), expected));
    // An address that is null is an empty text.
    let (_, events) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
    assert_eq!(events[0].words, [0, 0]);
}

#[test]
fn text_of_c_ends_at_its_nul() {
    static ARGS: [layout::Arg; 1] = [site::arg::<&str>("text")];
    static META: SiteMeta = site::meta(SiteKind::Event, "arch.c", ("", 0), "", &ARGS);
    let test = TestRing::new(Mode::Discard);
    let lengths = || (0..=40).chain([295, 296, 297, 400]);
    for length in lengths() {
        let text = std::ffi::CString::new(letters(length)).unwrap();
        let pair = Pair { word: text.as_ptr() as u64, extent: TO_NUL };
        with_ring(&test, || {
            registers_after(ft_user_v1_write_text, &META, pair);
        });
    }
    let (_, events) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
    for (event, length) in events.iter().zip(lengths()) {
        assert_eq!(text_of(&event.words), letters(length.min(8 * 37)).as_bytes());
        assert_eq!(event.words[0] & TEXT_CUT != 0, length > 8 * 37);
    }
    assert_eq!(events.len(), lengths().count());
}

#[test]
fn rare_path_keeps_errno() {
    // SAFETY: takes no argument.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid on this thread.
    unsafe { errno.write(4711) };
    registers_after(ft_user_v1_write_0, NO_ARGUMENT, NULL);
    // SAFETY: as above.
    assert_eq!(unsafe { errno.read() }, 4711);
}
