//! What an unwinder needs to know of our assembly: whoever walks the stack of a thread from a signal handler (a profiler, a
//! crash reporter, `perf`, a debugger) may begin at each of its instructions.
//!
//! # Routines
//!
//! A routine has `.cfi_startproc`, and says of each push what it does to the frame: `FT_USER_PUSH` and `FT_USER_POP`.
//!
//! # Sites
//!
//! The words of a site's arguments go to the stack in the middle of somebody's function. There neither we nor the assembler
//! know whether the function finds its frame (CFA) by `rsp`, which moves, or by `rbp`, nor whether the function is described
//! at all: `.cfi_adjust_cfa_offset` would be right in the first case, wrong in the second, and refused in the third. So the
//! instructions that move `rsp` are out of line: behind the functions of the same section (`.subsection`). The site jumps to
//! them, they jump back, and they have an entry of their own in `.eh_frame`, written by hand, as if they were a function that
//! the site calls:
//!
//! ```text
//! 20: jmp 21f                                in the function
//!
//!     .p2align size                          behind all functions of the section
//! 21: lea rsp, [rsp - frame]                 CFA is rsp + 0: the stack pointer of the function
//! 23: mov [rsp], rax                         CFA is rsp + frame, to the end
//! 24: mov [rsp + 8], first argument …        rax of the function is at CFA - frame
//!     lea rax, [meta]
//!     call write
//!     mov rax, [rsp]
//! 25: lea rsp, [rsp + frame]                 rax is that of the function
//! 26: jmp back                               CFA is rsp + 0
//! 27:
//! ```
//!
//! No return address is on the stack. The rule for it computes one (`DW_CFA_val_expression`): this code is aligned to a power
//! of two and no longer than that, so `rip & -(1 << size)` is where it begins, and the difference to the jump is known when the
//! section is assembled. One is added, since unwinders look one byte before a return address. So `backtrace` shows the function
//! once, and in front of it an address that belongs to no function.
//!
//! The entry is written with directives for data alone, which assemblers take wherever the site is, and also where only
//! assembly is printed. It refers to the section of the function, so a linker that drops this drops the entry. The sizes of
//! its parts are multiples of eight: what an assembler would fill up with zeros would be an end of the table.
//!
//! libgcc, libunwind, framehop and gdb understand it (`tests/unwind.rs`; for framehop `tests/framehop.rs` of the workspace), and `perf record --call-graph dwarf`.

/// Macros for the assembly of routines.
macro_rules! frame_macros {
    () => {
        "
        .macro FT_USER_PUSH register
        push \\register
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset \\register, 0
        .endm
        .macro FT_USER_POP register
        pop \\register
        .cfi_adjust_cfa_offset -8
        .cfi_restore \\register
        .endm
        "
    };
}
pub(crate) use frame_macros;

/// The end of them.
macro_rules! frame_macros_end {
    () => {
        "
        .purgem FT_USER_PUSH
        .purgem FT_USER_POP
        "
    };
}
pub(crate) use frame_macros_end;

/// The code of a site that moves the stack pointer, and the jump to it: the write that it calls, and a string for each store of
/// an argument. The operands `__ft_frame` and `__ft_size` are the bytes that it takes of the stack, and its own as a power of
/// two; `__ft_meta` is the metadata, and `__ft_back` where the program goes on.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __out_of_line {
    ($write:expr $(, $store:expr)*) => {
        concat!(
            "20: jmp 21f\n.subsection 1\n.p2align {__ft_size}\n",
            "21: lea rsp, [rsp - {__ft_frame}]\n23: mov [rsp], rax\n24:\n",
            $($store, "\n",)*
            "lea rax, [rip + {__ft_meta}]\ncall ", $write, "\nmov rax, [rsp]\n",
            "25: lea rsp, [rsp + {__ft_frame}]\n26: jmp {__ft_back}\n27:\n.subsection 0\n",
            ".pushsection .eh_frame,\"a\",@progbits\n",
            // Common part: version 1, "zR", factors 1 and -8, return address in column 16, addresses relative; CFA is rsp + 0.
            "28: .long 30f - 29f\n29: .long 0\n.byte 1\n.asciz \"zR\"\n",
            ".byte 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 0, 0, 0, 0, 0\n",
            "30: .long 32f - 31f\n31: .long 31b - 28b, 21b - ., 27b - 21b\n",
            // DW_CFA_val_expression of rip: DW_OP_breg16 0, const2s, and, const4s, plus.
            ".byte 0, 0x16, 16, 12, 0x80, 0, 0x0b\n.short -(1 << {__ft_size})\n",
            ".byte 0x1a, 0x0d\n.long 20b + 1 - 21b\n.byte 0x22\n",
            // DW_CFA_advance_loc and def_cfa_offset, offset of rax, restore of rax, def_cfa_offset.
            ".byte 0x40 + 23b - 21b, 0x0e\n.uleb128 {__ft_frame}\n",
            ".byte 0x40 + 24b - 23b, 0x80\n.uleb128 {__ft_frame} / 8\n",
            ".byte 0x40 + 25b - 24b, 0xc0\n",
            ".byte 0x40 + 26b - 25b, 0x0e, 0\n.balign 8\n32:\n.popsection",
        )
    };
}
