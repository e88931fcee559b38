//! A program that has not asked for sleds has none found or prepared, though a crate in it has the feature `sleds`; one that
//! asks has them.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

use std::arch::global_asm;

use ft_user::layout::SLED_BYTES;

// As clang leaves them in a function (LLVM, docs/XRay.rst): a jump over nine bytes of nops at its begin, a return and ten bytes at
// its end, and an entry of `xray_instr_map` for each, of version 2: addresses relative to themselves.
global_asm!(
    r#"
    .pushsection .text.ft_test_sled,"ax",@progbits
    .p2align 4
    .globl ft_test_sled
    .type ft_test_sled,@function
ft_test_sled:
    .p2align 1
2:  .byte 0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0
    .p2align 1
3:  .byte 0xc3, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0
    .size ft_test_sled, . - ft_test_sled
    .popsection
    .pushsection xray_instr_map,"aR",@progbits
    .quad 2b - .
    .quad ft_test_sled - .
    .byte 0, 1, 2
    .zero 13
    .quad 3b - .
    .quad ft_test_sled - .
    .byte 1, 1, 2
    .zero 13
    .popsection
"#
);

unsafe extern "C" {
    fn ft_test_sled();
}

type Sled = [u8; SLED_BYTES as usize];

/// The first sled of the function.
fn text() -> Sled {
    let function: unsafe extern "C" fn() = ft_test_sled;
    // SAFETY: its sled is as long, and text can be read.
    unsafe { (function as *const Sled).read_volatile() }
}

#[test]
fn sleds_are_left_alone_until_the_program_asks_for_them() {
    let bare = text();
    // SAFETY: called before tracing starts; nothing listens at a path below a file.
    unsafe { std::env::set_var("FT_SOCKET", "/dev/null/none") };
    let before = ft_user::init().expect("it starts").sites;
    assert_eq!(ft_user::enable("fn.ft_test_sled"), 0);
    assert_eq!(text(), bare, "nobody has asked");

    ft_user::find_sleds();
    assert_eq!(ft_user::init().expect("it is started").sites, before + 2);
    assert_eq!(ft_user::enable("fn.ft_test_sled"), 2);
    assert_ne!(text(), bare);
    // SAFETY: a function without arguments that returns, and its sleds are whole.
    unsafe { ft_test_sled() };
    assert_eq!(ft_user::disable("fn.ft_test_sled"), 2);
}
