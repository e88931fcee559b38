//! The assembly behind an enabled trigger: the ring write, the thunk to its rare path, and the ELF note
//! that lists the sites.
//!
//! # Who saves what
//!
//! A `call` that clobbers registers, anywhere in a function, makes the compiler save registers on
//! entry or spill around the site, and the disabled trigger would pay for it. So to the compiler the
//! cold block of a site changes nothing but flags and memory: `ft_user_v1_write_N` preserves every
//! register except `rax`, which the site itself saves.
//!
//! ```text
//! the site                                          stack at entry of ft_user_v1_write_N
//!   lea  rsp, [rsp - 136 - 8 × N]   red zone           rsp + 16 + 8 × (N - 1)   last argument
//!   mov  [rsp], rax                                    …
//!   mov  [rsp + 8], first argument                     rsp + 16                 first argument
//!   …                                                  rsp + 8                  rax of the program
//!   lea  rax, [meta]                                   rsp                      return address
//!   call ft_user_v1_write_N
//!   mov  rax, [rsp]
//!   lea  rsp, [rsp + 136 + 8 × N]
//! ```
//!
//! These instructions stand behind the function: [`super::frame`] says why, and what an unwinder is told.
//!
//! The write is the algorithm of [`crate::ring`], step by step, for the case that the ring has room,
//! and for one more event that is lost; every other case goes to `write_slow`, which is Rust, with all
//! registers saved, the vector registers among them.
//!
//! # Orderings
//!
//! x86-64 orders all that the algorithm needs, so no instruction here does so. Where an architecture does not (aarch64), the same steps
//! need:
//!
//! | step | ordering | aarch64 |
//! |---|---|---|
//! | *reserved* (`xadd`) | none, but one instruction for signal handlers | `ldadd`, or `ldxr` and `stxr` again |
//! | *busy* | before the stores to the slot behind it | `dmb ishst` behind the store |
//! | *committed*, of a continuation and of the event | behind all stores to the slot | `stlr` |
//! | load of `tail` (`ft_user_v1_no_room`) | before the stores to what it frees | `ldar` |
//! | load of `limit`, `mask`, the ring, the CPU | none: its own thread has written them | `ldr` |
//! | counts of losses, `cmpxchg` | none, but one instruction each | `ldadd`, `cas` |
//! | RDTSC | none with stores; within a thread not before what has happened | `isb` before `mrs cntvct_el0` |
//!
//! Their labels and their proofs (`SYNC: committed`, `busy`, `consumed`) are those of [`crate::ring`] and `tests/loom`.
//!
//! A site with text calls `ft_user_v1_write_text` ([`super::text`]), with two words for each argument on
//! the stack ([`Pair`](crate::text::Pair)).

use core::arch::global_asm;
use core::mem::offset_of;

use super::frame::{frame_macros, frame_macros_end};
use super::slow::write_slow;
use super::tls::{TLS_CPU, TLS_RING};
use crate::layout::{MARGIN_SLOTS, NOTE_TYPE, PAGE, RingControl, commit};
use crate::lease::LOSSES;

/// Bytes in front of a slot at which its thread asks for a line to write to: 16 lines, 32 slots.
pub(super) const AHEAD: usize = 1024;

// The registers of a write of up to two words: rdx ring, rcx index and then the slot, rdi commit word, rax free. Of a
// longer one: rdi ring, rcx index, rsi commit word, r8 first slot, rax and rdx free.
//
// Besides RDTSC the stores cost most, those of saved registers and pushed arguments among them: by the models of
// llvm-mca for znver3 and znver4 they bound an event of two words, 13 of them where a fourth register that is saved
// and `push 1; pop rcx` make it 15. So the short write saves three registers and no more.
//
// With cold caches the address of the slot comes late, behind two loads, and some processors let RDTSC wait
// for every store before it until its address is known (AMD family 26: a sixth of a cold event). So the time
// is read in front of the first store to the slot. The code of up to two words takes two cache lines, and its
// last five bytes a third.
//
// A ring is larger than the second-level cache, and the reader has the lines of its last lap: each new line of slots must
// be asked for, which a thread that writes nothing but events waits for (Intel family 6: 14.5 ns an event, and 11 with
// the line asked for early, beside 7.2 of RDTSC). A processor without PREFETCHW takes it for a nop (Intel SDM, volume 2B,
// PREFETCHW), and one that finds no page behind the address, as at the end of the last ring, does nothing.
global_asm!(
    frame_macros!(),
    r#"
    // Where a routine begins that others jump to: on the stack are four registers and a return address.
    .macro FT_USER_SAVED
    .cfi_startproc
    .cfi_def_cfa_offset 40
    .cfi_rel_offset rcx, 0
    .cfi_rel_offset rdx, 8
    .cfi_rel_offset rsi, 16
    .cfi_rel_offset rdi, 24
    .endm

    .macro FT_USER_BEGIN args
    .p2align 6
    .hidden ft_user_v1_write_\args
    .globl ft_user_v1_write_\args
    .type ft_user_v1_write_\args,@function
ft_user_v1_write_\args:
    .cfi_startproc
    .endm

    // Up to two words, in one slot.
    .macro FT_USER_SHORT args
    FT_USER_BEGIN \args
    FT_USER_PUSH rdi
    FT_USER_PUSH rdx
    FT_USER_PUSH rcx
    .cfi_remember_state
    mov rdi, qword ptr [rip + ft_user_v1_tls@GOTTPOFF]
    mov rdx, qword ptr fs:[rdi + {tls_ring}]
    test rdx, rdx
    jz 9f
    mov rcx, qword ptr [rdx + {head}]
    cmp rcx, qword ptr [rdx + {limit}]
    jae 9f
    mov ecx, 1
    xadd qword ptr [rdx + {head}], rcx      // reserved; unlocked: only this thread writes head
    mov rdi, qword ptr fs:[rdi + {tls_cpu}]
    mov edi, dword ptr fs:[rdi]
    shl rdi, {bits_above_cpu}
    shr rdi, {bits_above_cpu} - {cpu_shift}
    mov eax, eax
    or rdi, rax                             // cpu, key
    mov rax, rcx
    shr rax, {tag_index_shift}
    shl rax, {tag_shift}
    or rdi, rax                             // tag
    and rcx, qword ptr [rdx + {mask}]
    shl rcx, 5
    lea rcx, [rdx + rcx + {slots}]
    prefetchw [rcx + {ahead}]
    rdtsc
    mov qword ptr [rcx], rdi                // busy
    mov dword ptr [rcx + 8], eax
    mov dword ptr [rcx + 12], edx
    FT_USER_WORD rcx, 16, 0, \args, 40
    FT_USER_WORD rcx, 24, 1, \args, 40
    inc rdi
    mov qword ptr [rcx], rdi                // committed
    FT_USER_POP rcx
    FT_USER_POP rdx
    FT_USER_POP rdi
    ret
9:
    // The frame of the rare path: rsi is saved between rdi and rdx.
    .cfi_restore_state
    .cfi_def_cfa_offset 32                  // LLVM does not restore it with the rest
    push qword ptr [rsp]
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rcx, 0
    mov rcx, qword ptr [rsp + 16]
    mov qword ptr [rsp + 8], rcx
    .cfi_rel_offset rdx, 8
    mov qword ptr [rsp + 16], rsi
    .cfi_rel_offset rsi, 16
    mov rdi, rdx
    lea rsi, [rsp + 48]                     // the words
    mov ecx, \args
    jmp ft_user_v1_no_room
    .cfi_endproc
    .size ft_user_v1_write_\args, . - ft_user_v1_write_\args
    .endm

    // More words, in a slot and `continuations` more.
    .macro FT_USER_LONG args, continuations
    FT_USER_BEGIN \args
    FT_USER_PUSH rdi
    FT_USER_PUSH rsi
    FT_USER_PUSH rdx
    FT_USER_PUSH rcx
    .cfi_remember_state
    mov rsi, qword ptr [rip + ft_user_v1_tls@GOTTPOFF]
    mov rdi, qword ptr fs:[rsi + {tls_ring}]
    test rdi, rdi
    jz 9f
    mov rcx, qword ptr [rdi + {head}]
    cmp rcx, qword ptr [rdi + {limit}]
    jae 9f
    push 1 + \continuations
    .cfi_adjust_cfa_offset 8
    pop rcx
    .cfi_adjust_cfa_offset -8
    xadd qword ptr [rdi + {head}], rcx      // reserved; unlocked: only this thread writes head
    mov rsi, qword ptr fs:[rsi + {tls_cpu}]
    mov esi, dword ptr fs:[rsi]
    and esi, {cpu_mask}
    or esi, \continuations << {cont_shift_in_cpu}
    shl rsi, {cpu_shift}
    mov eax, eax
    or rsi, rax                             // continuations, cpu, key
    mov rdx, rcx
    shr rdx, {tag_index_shift}
    shl rdx, {tag_shift}
    or rsi, rdx                             // tag
    FT_USER_PUSH r8
    mov r8, rcx
    and r8, qword ptr [rdi + {mask}]
    shl r8, 5
    lea r8, [rdi + r8 + {slots}]
    prefetchw [r8 + {ahead}]
    rdtsc
    mov qword ptr [r8], rsi                 // busy
    mov dword ptr [r8 + 8], eax
    mov dword ptr [r8 + 12], edx
    FT_USER_WORD r8, 16, 0, \args, 56
    FT_USER_WORD r8, 24, 1, \args, 56
    FT_USER_PUSH r9
    FT_USER_CONTINUATION 2, \args
    .if \continuations > 1
    FT_USER_CONTINUATION 5, \args
    .endif
    FT_USER_POP r9
    or rsi, {committed}
    mov qword ptr [r8], rsi                 // the whole event is committed
    FT_USER_POP r8
    FT_USER_POP rcx
    FT_USER_POP rdx
    FT_USER_POP rsi
    FT_USER_POP rdi
    ret
9:
    .cfi_restore_state
    .cfi_def_cfa_offset 40
    lea rsi, [rsp + 48]                     // the words
    mov ecx, \args
    jmp ft_user_v1_no_room
    .cfi_endproc
    .size ft_user_v1_write_\args, . - ft_user_v1_write_\args
    .endm

    // The next slot, with the words from number `word` on.
    .macro FT_USER_CONTINUATION word, args
    inc rcx
    mov r9, rcx
    and r9, qword ptr [rdi + {mask}]
    shl r9, 5
    lea r9, [rdi + r9 + {slots}]
    prefetchw [r9 + {ahead}]
    mov rdx, rcx
    shr rdx, {tag_index_shift}
    shl rdx, {tag_shift}
    or rdx, {continuation}
    mov qword ptr [r9], rdx                 // busy
    FT_USER_WORD r9, 8, \word, \args, 64
    FT_USER_WORD r9, 16, \word + 1, \args, 64
    FT_USER_WORD r9, 24, \word + 2, \args, 64
    or rdx, {committed}
    mov qword ptr [r9], rdx                 // committed
    .endm

    // Stores word number `word` of `args` to `slot + at`, or zero if there is none; `stack` is where
    // the first word stands.
    .macro FT_USER_WORD slot, at, word, args, stack
    .if (\word) < \args
    mov rax, qword ptr [rsp + \stack + 8 * (\word)]
    mov qword ptr [\slot + \at], rax
    .else
    mov qword ptr [\slot + \at], 0
    .endif
    .endm

    .pushsection .text.ft_user_v1_write,"ax",@progbits
    FT_USER_SHORT 0
    FT_USER_SHORT 1
    FT_USER_SHORT 2
    FT_USER_LONG 3, 1
    FT_USER_LONG 4, 1
    FT_USER_LONG 5, 1
    FT_USER_LONG 6, 2

    // No ring (rdi is null), or the limit is reached: an application that makes more events than can
    // be read comes here each time, so a loss that has begun goes on without saving registers. The
    // order is that of `Ring::count_loss`: whoever sees the count sees a beginning. One with text comes here, too.
    .p2align 5
    .hidden ft_user_v1_no_room
    .globl ft_user_v1_no_room
    .type ft_user_v1_no_room,@function
ft_user_v1_no_room:
    FT_USER_SAVED
    test rdi, rdi
    jz ft_user_v1_slow
    mov rdx, qword ptr [rdi + {tail}]       // SYNC: consumed
    add rdx, qword ptr [rdi + {mask}]
    sub rdx, {margin} - 1
    cmp qword ptr [rdi + {head}], rdx
    jb ft_user_v1_slow                      // there is room again
    cmp qword ptr [rdi + {loss_begin}], -1
    je ft_user_v1_slow                      // the loss begins here
    test dword ptr [rdi + {lost}], {losses} - 1
    jz ft_user_v1_slow                      // whether the reader is gone is looked at there
    inc qword ptr [rdi + {lost}]
    inc qword ptr [rdi + {lost_pending}]
    cmp qword ptr [rdi + {loss_begin}], -1
    jne 1f
    rdtsc                                   // a signal handler has recorded the loss meanwhile
    shl rdx, 32
    or rdx, rax
    mov rax, -1
2:
    // As `fetch_min` there: one more handler may have left an earlier beginning, which stays.
    cmpxchg qword ptr [rdi + {loss_begin}], rdx
    je 1f
    cmp rax, rdx
    ja 2b
1:
    FT_USER_POP rcx
    FT_USER_POP rdx
    FT_USER_POP rsi
    FT_USER_POP rdi
    ret
    .cfi_endproc
    .size ft_user_v1_no_room, . - ft_user_v1_no_room

    // The rare path: rax meta, rsi words, ecx their number; rcx, rdx, rsi, rdi of the program are on
    // the stack. Saves the other registers that a call may change, calls Rust, restores all.
    .p2align 5
    .hidden ft_user_v1_slow
    .globl ft_user_v1_slow
    .type ft_user_v1_slow,@function
ft_user_v1_slow:
    FT_USER_SAVED
    FT_USER_PUSH rbp
    mov rbp, rsp
    .cfi_def_cfa_register rbp
    push r8
    .cfi_rel_offset r8, -8
    push r9
    .cfi_rel_offset r9, -16
    push r10
    .cfi_rel_offset r10, -24
    push r11
    .cfi_rel_offset r11, -32
    push rbx
    .cfi_rel_offset rbx, -40
    mov r8, rax
    mov r9d, ecx
    // 1: XSAVE may be used, 2: it may not, 0: not known yet. CPUID leaves a virtual machine, which
    // costs microseconds, so its answer is kept. Two threads that ask at once find the same.
    cmp byte ptr [rip + ft_user_v1_xsave], 0
    jne 2f
    mov eax, 1
    cpuid
    mov eax, 2
    bt ecx, 27                              // OSXSAVE
    jnc 1f
    mov eax, 1
1:
    mov byte ptr [rip + ft_user_v1_xsave], al
2:
    sub rsp, {xsave_bytes}
    and rsp, -64
    cmp byte ptr [rip + ft_user_v1_xsave], 1
    jne 3f
    // XRSTOR faults unless the header, bytes 512 to 575, is zero beyond its first word, which XSAVE
    // itself merges into.
    xor eax, eax
    mov qword ptr [rsp + 512], rax
    mov qword ptr [rsp + 520], rax
    mov qword ptr [rsp + 528], rax
    mov qword ptr [rsp + 536], rax
    mov qword ptr [rsp + 544], rax
    mov qword ptr [rsp + 552], rax
    mov qword ptr [rsp + 560], rax
    mov qword ptr [rsp + 568], rax
    mov eax, {xsave_mask}
    xor edx, edx
    xsave64 [rsp]
    jmp 4f
3:
    fxsave64 [rsp]
4:
    mov rdi, r8
    mov edx, r9d
    cld
    call {write_slow}
    cmp byte ptr [rip + ft_user_v1_xsave], 1
    jne 5f
    mov eax, {xsave_mask}
    xor edx, edx
    xrstor64 [rsp]
    jmp 6f
5:
    fxrstor64 [rsp]
6:
    lea rsp, [rbp - 40]
    pop rbx
    .cfi_restore rbx
    pop r11
    .cfi_restore r11
    pop r10
    .cfi_restore r10
    pop r9
    .cfi_restore r9
    pop r8
    .cfi_restore r8
    pop rbp
    .cfi_restore rbp
    .cfi_def_cfa rsp, 40
    FT_USER_POP rcx
    FT_USER_POP rdx
    FT_USER_POP rsi
    FT_USER_POP rdi
    ret
    .cfi_endproc
    .size ft_user_v1_slow, . - ft_user_v1_slow
    .popsection

    .pushsection .bss.ft_user_v1_xsave,"aw",@nobits
ft_user_v1_xsave:
    .zero 1
    .popsection

    // Here and not in a block of its own, so that every object that contains a site, and therefore a
    // reference to a write, contains the note too. The section of the sites is opened so that its
    // bounds exist in a program without a site. "R": the linker keeps both (SHF_GNU_RETAIN).
    .pushsection ft_sites,"aR",@progbits
    .popsection
    .pushsection .note.feather_trace,"aR",@note
    .p2align 2
    .hidden __start_ft_sites
    .hidden __stop_ft_sites
    .weak __start_ft_sites
    .weak __stop_ft_sites
    .long 13                                // length of the owner
    .long 8                                 // length of the descriptor
    .long {note_type}
    .asciz "FeatherTrace"
    .p2align 2
    .long __start_ft_sites - .
    .long __stop_ft_sites - .
    .popsection

    .purgem FT_USER_BEGIN
    .purgem FT_USER_SHORT
    .purgem FT_USER_LONG
    .purgem FT_USER_CONTINUATION
    .purgem FT_USER_WORD
    .purgem FT_USER_SAVED
"#,
    frame_macros_end!(),
    tls_ring = const TLS_RING,
    tls_cpu = const TLS_CPU,
    head = const offset_of!(RingControl, head),
    limit = const offset_of!(RingControl, limit),
    mask = const offset_of!(RingControl, mask),
    tail = const offset_of!(RingControl, tail),
    lost = const offset_of!(RingControl, lost),
    lost_pending = const offset_of!(RingControl, lost_pending),
    losses = const LOSSES,
    loss_begin = const offset_of!(RingControl, loss_begin_tsc),
    margin = const MARGIN_SLOTS,
    slots = const PAGE,
    ahead = const AHEAD,
    cpu_mask = const commit::CPU_UNKNOWN,
    cpu_shift = const commit::CPU_SHIFT,
    bits_above_cpu = const commit::CPU_UNKNOWN.leading_zeros(),
    cont_shift_in_cpu = const commit::CONT_SHIFT - commit::CPU_SHIFT,
    tag_index_shift = const commit::TAG_INDEX_SHIFT,
    tag_shift = const commit::TAG_SHIFT,
    committed = const commit::COMMITTED,
    continuation = const commit::CONTINUATION,
    note_type = const NOTE_TYPE,
    // x87, SSE, AVX and the three parts of AVX-512: what code that the Rust compiler makes can use.
    xsave_mask = const 0xe7,
    // End of the last of these in the standard format, 2688 on processors that lay out the bound
    // registers and on all others less (Intel SDM volume 1, 13.4.3).
    xsave_bytes = const 2688,
    write_slow = sym write_slow,
);

// A short write commits with an increment, which is a byte shorter than an `or`.
const _: () = assert!(commit::COMMITTED == 1);

/// Reads the time stamp counter.
#[inline(always)]
pub(crate) fn rdtsc() -> u64 {
    // SAFETY: every x86-64 has the instruction. A thread that a program has forbidden it has no ring (`crate::tsc`).
    unsafe { core::arch::x86_64::_rdtsc() }
}
