//! Room on the stack, which is found before a lock is taken.
//!
//! A program may catch the overflow of a stack and go on (`sigaltstack`, `siglongjmp`). The C library takes a lock in few bytes; an event
//! takes more. If the overflow came between the two, the lock would be held for ever by a function that is not there any more.

/// What the first event of a thread takes, and each that finds no room in its ring or has none. Without optimisation it is some more.
const ROOM: usize = if cfg!(debug_assertions) { 8 << 10 } else { 5 << 10 };

/// Faults here where there is no room for an event.
#[inline(always)]
pub(crate) fn find_stack() {
    // SAFETY: the function changes nothing but the flags.
    unsafe { core::arch::asm!("call {touch}", touch = sym touch) };
}

/// Reads in each page of what an event may take, below a stack pointer that is moved: what lies beyond it is nobody's to read.
#[unsafe(naked)]
unsafe extern "C" fn touch() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, {room}",
        ".cfi_adjust_cfa_offset {room}",
        "test byte ptr [rsp + {room} - 4096], 0",
        "test byte ptr [rsp], 0",
        "add rsp, {room}",
        ".cfi_adjust_cfa_offset -{room}",
        "ret",
        ".cfi_endproc",
        room = const ROOM,
    )
}
