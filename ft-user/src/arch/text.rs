//! The assembly behind an enabled trigger with text, or with what may be absent.
//!
//! A site passes a [`Pair`] for each argument on the stack, else as in [`super::x86_64`]. When the thread
//! has a ring with room, and all texts fit, this does what [`crate::text::encode`]
//! and [`crate::ring`] do, with general registers alone: a call of Rust would cost the saving of all vector
//! registers, which takes longer than all the rest. One more event that is lost is counted where those
//! without text are, and its text is not read. Every other case goes to `ft_user_v1_slow`. Its stores have the orderings of those in
//! [`super::x86_64`], which names them.

use core::arch::global_asm;
use core::mem::{offset_of, size_of};

use super::frame::{frame_macros, frame_macros_end};
use super::slow::TEXT;
use super::tls::{TLS_CPU, TLS_RING};
use super::x86_64::AHEAD;
use crate::arg::NONE;
use crate::layout::{ABSENT, Arg, ArgType, OPTIONAL, PAGE, RingControl, SiteMeta, commit};
use crate::ring::MAX_WORDS;
use crate::text::{ENOUGH, Pair, TO_NUL};

// First the payload on the stack, then, when its length is known, from there to the slots: what comes
// between the check for room and the reservation may be interrupted by handlers, for which the margin is
// made.
global_asm!(
    frame_macros!(),
    r#"
    .pushsection .text.ft_user_v1_write_text,"ax",@progbits
    .p2align 5
    .hidden ft_user_v1_write_text
    .globl ft_user_v1_write_text
    .type ft_user_v1_write_text,@function
ft_user_v1_write_text:
    .cfi_startproc
    FT_USER_PUSH rdi
    FT_USER_PUSH rsi
    FT_USER_PUSH rdx
    FT_USER_PUSH rcx
    mov rsi, qword ptr [rip + ft_user_v1_tls@GOTTPOFF]
    mov rdi, qword ptr fs:[rsi + {tls_ring}]
    test rdi, rdi
    jz 21f
    mov rcx, qword ptr [rdi + {head}]
    cmp rcx, qword ptr [rdi + {limit}]
    jae 21f
    FT_USER_PUSH r8
    FT_USER_PUSH r9
    FT_USER_PUSH r10
    FT_USER_PUSH r11
    FT_USER_PUSH rbx
    lea r8, [rsp + 88]                      // the pair of the next argument
    sub rsp, {buffer_bytes}
    .cfi_adjust_cfa_offset {buffer_bytes}
    .cfi_remember_state
    mov rbx, rax                            // the meta
    mov r9, qword ptr [rax + {args}]        // the description of the next argument
    mov r10d, dword ptr [rax + {arg_count}]
    mov rdi, rsp                            // where its words go
    lea r11, [rsp + {payload_bytes}]        // behind the last word
1:
    cmp rdi, r11
    jae 7f
    mov rsi, qword ptr [r8]
    mov al, byte ptr [r9 + {ty}]
    sub al, {first_text}
    cmp al, {last_text} - {first_text}
    ja 10f
12:
    mov rcx, qword ptr [r8 + 8]
    test rsi, rsi
    cmovz rcx, rsi                          // null: empty
    cmp rcx, {to_nul}
    jne 9f
    xor ecx, ecx
8:
    cmp byte ptr [rsi + rcx], 0
    je 9f
    inc ecx
    cmp ecx, {enough}
    jb 8b
9:
    mov qword ptr [rdi], rcx
    add rdi, 8
    mov rax, r11
    sub rax, rdi
    cmp rcx, rax
    ja 7f                                   // to be cut
    mov edx, ecx
    shr edx, 3
    jz 3f
2:
    mov rax, qword ptr [rsi]                // the whole words
    mov qword ptr [rdi], rax
    add rsi, 8
    add rdi, 8
    dec edx
    jnz 2b
3:
    and ecx, 7
    jz 5f
    xor edx, edx
6:
    movzx eax, byte ptr [rsi + rcx - 1]     // the rest, from its end, in front of zeros
    shl rdx, 8
    or rdx, rax
    dec ecx
    jnz 6b
    mov rsi, rdx
4:
    mov qword ptr [rdi], rsi
    add rdi, 8
5:
    add r8, {pair_bytes}
    add r9, {arg_bytes}
    dec r10d
    jnz 1b

    mov qword ptr [rdi], 0                  // what the last slot has beyond the payload
    mov qword ptr [rdi + 8], 0
    sub rdi, rsp
    shr edi, 3
    imul r10d, edi, 43691                   // continuations: a third of the words, up to 38 of them
    shr r10d, 17
    mov rsi, qword ptr [rip + ft_user_v1_tls@GOTTPOFF]
    mov rdi, qword ptr fs:[rsi + {tls_ring}]
    test rdi, rdi
    jz 7f                                   // the child of a handler's fork, which got no ring
    lea ecx, [r10 + 1]
    xadd qword ptr [rdi + {head}], rcx      // reserved; unlocked: only this thread writes head
    mov rsi, qword ptr fs:[rsi + {tls_cpu}]
    mov esi, dword ptr fs:[rsi]
    and esi, {cpu_mask}
    mov eax, r10d
    shl eax, {cont_shift_in_cpu}
    or esi, eax
    shl rsi, {cpu_shift}
    mov eax, ebx
    or rsi, rax                             // continuations, cpu, key
    mov rdx, rcx
    shr rdx, {tag_index_shift}
    shl rdx, {tag_shift}
    or rsi, rdx                             // tag
    mov r8, rcx
    and r8, qword ptr [rdi + {mask}]
    shl r8, 5
    lea r8, [rdi + r8 + {slots}]
    prefetchw [r8 + {ahead}]
    rdtsc
    mov qword ptr [r8], rsi                 // busy
    shl rdx, 32
    or rax, rdx
    mov qword ptr [r8 + 8], rax
    mov rax, qword ptr [rsp]
    mov qword ptr [r8 + 16], rax
    mov rax, qword ptr [rsp + 8]
    mov qword ptr [r8 + 24], rax
    lea r11, [rsp + 16]
    test r10d, r10d
    jz 3f
2:
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
    mov rax, qword ptr [r11]
    mov qword ptr [r9 + 8], rax
    mov rax, qword ptr [r11 + 8]
    mov qword ptr [r9 + 16], rax
    mov rax, qword ptr [r11 + 16]
    mov qword ptr [r9 + 24], rax
    or rdx, {committed}
    mov qword ptr [r9], rdx                 // committed
    add r11, 24
    dec r10d
    jnz 2b
3:
    or rsi, {committed}
    mov qword ptr [r8], rsi                 // the whole event is committed
    add rsp, {buffer_bytes}
    .cfi_adjust_cfa_offset -{buffer_bytes}
    FT_USER_POP rbx
    FT_USER_POP r11
    FT_USER_POP r10
    FT_USER_POP r9
    FT_USER_POP r8
    FT_USER_POP rcx
    FT_USER_POP rdx
    FT_USER_POP rsi
    FT_USER_POP rdi
    ret
10:
    .cfi_restore_state
    .cfi_def_cfa_offset {frame_bytes}
    test byte ptr [r9 + {ty}], {optional}
    jz 4b                                   // a number
    cmp qword ptr [r8 + 8], {none}
    jne 11f
    mov rsi, {absent}
    jmp 4b
11:
    sub al, {optional}
    cmp al, {last_text} - {first_text}
    jbe 12b                                 // a text that is there
    mov qword ptr [rdi], 8
    add rdi, 8
    cmp rdi, r11
    jb 4b
7:
    mov rax, rbx
    add rsp, {buffer_bytes}
    .cfi_adjust_cfa_offset -{buffer_bytes}
    FT_USER_POP rbx
    FT_USER_POP r11
    FT_USER_POP r10
    FT_USER_POP r9
    FT_USER_POP r8
    lea rsi, [rsp + 48]                     // the pairs
    mov ecx, {text}
    jmp ft_user_v1_slow
21:
    lea rsi, [rsp + 48]
    mov ecx, {text}
    jmp ft_user_v1_no_room
    .cfi_endproc
    .size ft_user_v1_write_text, . - ft_user_v1_write_text
    .popsection
"#,
    frame_macros_end!(),
    tls_ring = const TLS_RING,
    tls_cpu = const TLS_CPU,
    head = const offset_of!(RingControl, head),
    limit = const offset_of!(RingControl, limit),
    mask = const offset_of!(RingControl, mask),
    slots = const PAGE,
    ahead = const AHEAD,
    args = const offset_of!(SiteMeta, args),
    arg_count = const offset_of!(SiteMeta, arg_count),
    arg_bytes = const size_of::<Arg>(),
    ty = const offset_of!(Arg, ty),
    first_text = const ArgType::Str as u8,
    last_text = const ArgType::Bytes as u8,
    pair_bytes = const size_of::<Pair>(),
    payload_bytes = const 8 * MAX_WORDS,
    buffer_bytes = const 8 * (MAX_WORDS + 2),
    // The buffer, nine registers and the return address: LLVM does not restore it with the rest.
    frame_bytes = const 8 * (MAX_WORDS + 2) + 8 * 10,
    cpu_mask = const commit::CPU_UNKNOWN,
    cpu_shift = const commit::CPU_SHIFT,
    cont_shift_in_cpu = const commit::CONT_SHIFT - commit::CPU_SHIFT,
    tag_index_shift = const commit::TAG_INDEX_SHIFT,
    tag_shift = const commit::TAG_SHIFT,
    committed = const commit::COMMITTED,
    continuation = const commit::CONTINUATION,
    text = const TEXT,
    optional = const OPTIONAL,
    none = const NONE as i64,
    absent = const ABSENT,
    to_nul = const TO_NUL as i64,
    enough = const ENOUGH,
);

const _: () = assert!(MAX_WORDS == 38, "the division by three is exact up to there");
