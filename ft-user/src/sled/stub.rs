//! What sleds call, and the table of sleds for whoever looks from outside.
//!
//! ```text
//! stack at entry of a routine                    what it makes of it
//!   rsp        where the sled goes on            with the data beside it: the function
//!   rsp + 8    where the function returns to     its address: the frame
//! ```
//!
//! All registers are kept: those of the arguments at a begin, those of the result at a return. So are the flags at a jump,
//! which an old compiler may make depend on them; elsewhere nobody has any (psABI, 3.2.1). Nothing is below the stack pointer
//! that a function still needs: at a begin it has not come so far, and at its ends it is done.

use core::arch::global_asm;
use core::cell::UnsafeCell;

use crate::arch::{frame_macros, frame_macros_end};
use crate::function::{CALLED, ENTER, EXIT};
use crate::layout::{
    DATA_OF_ENTRY, DATA_OF_JUMP, DATA_OF_RETURN, SLEDS_NOTE, SledEntry, SledTable,
};

/// See [`SledTable`].
struct Table(UnsafeCell<SledTable>);

// SAFETY: written by who holds the process lock, by volatile stores, and read by nobody in this process.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new(SledTable { version: 0, meta: 0, len: 0, entries: 0 }));

/// Tells which sleds there are, those of before first. Where there are no more than before, only addresses have changed.
pub(super) fn publish(entries: &[SledEntry]) {
    let table = TABLE.0.get();
    // SAFETY: a static; whoever comes here holds the process lock. Who reads from outside sees the stores in this order. What was
    // told is an array of this length, which nothing else refers to.
    unsafe {
        if (*table).len == entries.len() as u64 {
            let told = (*table).entries as *mut SledEntry;
            for (at, entry) in entries.iter().enumerate() {
                (&raw mut (*told.add(at)).address).write_volatile(entry.address);
            }
            return;
        }
        // For good: somebody may be reading what was told before.
        let entries = Vec::leak(entries.to_vec());
        (&raw mut (*table).meta).write_volatile(&raw const ENTER as u64);
        (&raw mut (*table).version).write_volatile(1);
        (&raw mut (*table).entries).write_volatile(entries.as_mut_ptr() as u64);
        (&raw mut (*table).len).write_volatile(entries.len() as u64);
    }
}

// The words of an event stand above the saved rax (`arch::x86_64`); above those the registers that are used here, and the flags.
// The frame is `layout::Frame`, of an end without where it was told.
global_asm!(
    frame_macros!(),
    r#"
    .macro FT_USER_SLED name, data, size, meta, told, flags
    .p2align 6
    .hidden ft_user_v1_sled_\name
    .globl ft_user_v1_sled_\name
    .type ft_user_v1_sled_\name,@function
ft_user_v1_sled_\name:
    .cfi_startproc
    .if \flags
    pushfq
    .cfi_adjust_cfa_offset 8
    .endif
    FT_USER_PUSH rcx
    FT_USER_PUSH rdx
    lea rsp, [rsp - 16]
    .cfi_adjust_cfa_offset 16
    FT_USER_PUSH rax
    mov rcx, qword ptr [rsp + 40 + 8 * \flags]      // where the sled goes on
    .ifc \size, byte
    movsx rax, byte ptr [rcx + \data]
    .else
    movsxd rax, dword ptr [rcx + \data]
    .endif
    add rax, rcx
    mov qword ptr [rsp + 8], rax                    // the function
    lea rax, [rsp + 48 + 8 * \flags]
    shr rax, 4
    shl rax, 21
    mov edx, dword ptr [rsp + 48 + 8 * \flags]      // where the function returns to
    and edx, 0x3ff
    shl edx, 11
    or rax, rdx
    .if \told
    and ecx, 0x7ff
    or rax, rcx
    .endif
    mov qword ptr [rsp + 16], rax                   // the frame
    lea rax, [rip + \meta]
    call ft_user_v1_write_2
    FT_USER_POP rax
    lea rsp, [rsp + 16]
    .cfi_adjust_cfa_offset -16
    FT_USER_POP rdx
    FT_USER_POP rcx
    .if \flags
    popfq
    .cfi_adjust_cfa_offset -8
    .endif
    ret
    .cfi_endproc
    .size ft_user_v1_sled_\name, . - ft_user_v1_sled_\name
    .endm

    .pushsection .text.ft_user_v1_sleds,"ax",@progbits
    FT_USER_SLED begin, {data_of_jump}, dword, {enter}, 1, 0
    FT_USER_SLED return, {data_of_return}, dword, {exit}, 0, 0
    FT_USER_SLED jump, {data_of_jump}, dword, {exit}, 0, 1
    FT_USER_SLED entry, {data_of_entry}, byte, {called}, 1, 0
    .popsection
    .purgem FT_USER_SLED

    .pushsection .note.feather_trace,"aR",@note
    .p2align 2
    .long 13                                // length of the owner
    .long 4                                 // length of the descriptor
    .long {note_type}
    .asciz "FeatherTrace"
    .p2align 2
    .long {table} - .
    .popsection
"#,
    frame_macros_end!(),
    data_of_jump = const DATA_OF_JUMP,
    data_of_return = const DATA_OF_RETURN,
    data_of_entry = const DATA_OF_ENTRY,
    enter = sym ENTER,
    exit = sym EXIT,
    called = sym CALLED,
    note_type = const SLEDS_NOTE,
    table = sym TABLE,
);

unsafe extern "C" {
    fn ft_user_v1_sled_begin();
    fn ft_user_v1_sled_return();
    fn ft_user_v1_sled_jump();
    fn ft_user_v1_sled_entry();
}

/// The routines, by the number of [`SledKind`](crate::layout::SledKind).
pub(super) fn routines() -> [u64; 4] {
    // Their events are described where the sites of the hooks are, so these must be in the program, too.
    type Hook = extern "C" fn(*const (), u64, u64, u64);
    use crate::function::{called, enter, exit};
    std::hint::black_box([enter as Hook, exit, called]);
    type Routine = unsafe extern "C" fn();
    [
        ft_user_v1_sled_begin as Routine,
        ft_user_v1_sled_return,
        ft_user_v1_sled_jump,
        ft_user_v1_sled_entry,
    ]
    .map(|routine| routine as *const () as u64)
}
