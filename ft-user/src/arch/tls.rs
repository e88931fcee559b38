//! The thread-local block that every enabled trigger reads: the ring of the thread, and where its CPU
//! number stands.
//!
//! In assembly, because a `thread_local!` of Rust may call the dynamic linker, and the write calls nobody.

use core::arch::{asm, global_asm};

use crate::layout::{RingControl, commit};

// The thread-local block is one per object (hidden): an executable and a library that both embed the
// crate have a ring each. The initial-exec model needs no call, and in an executable the linker turns
// its load into a constant; 32 bytes fit in the reserve that the dynamic linker keeps for libraries
// that are loaded later.
global_asm!(
    r#"
    .pushsection .tbss.ft_user_v1,"awT",@nobits
    .p2align 5
    .hidden ft_user_v1_tls
    .globl ft_user_v1_tls
    .type ft_user_v1_tls,@object
    .size ft_user_v1_tls,32
ft_user_v1_tls:
    .zero 32
    .popsection
"#
);

/// Offset of the ring pointer in the thread-local block; null: the thread has no ring.
pub(super) const TLS_RING: usize = 0;
/// Offset of the distance from the thread pointer to the word that holds the CPU number.
pub(super) const TLS_CPU: usize = 8;
/// Offset of four bytes that say "unknown CPU", for threads without rseq.
const TLS_NO_CPU: usize = 16;
/// Offset of [`Word::Looked`].
const TLS_LOOKED: usize = 20;
/// Offset of [`Word::Claim`].
const TLS_CLAIM: usize = 24;
/// Offset of [`Word::Tid`].
const TLS_TID: usize = 28;

/// What a thread remembers beside its ring: four bytes each, 0 on a new thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// The state of claiming a ring, see [`crate::thread::Claim`].
    Claim = TLS_CLAIM as isize,
    /// Its number, 0 until it is asked for.
    Tid = TLS_TID as isize,
    /// What it has found when it looked for a ring, see [`crate::looked`].
    Looked = TLS_LOOKED as isize,
}

/// Where `cpu_id` of `struct rseq` (linux/rseq.h) ends: cpu_id_start at 0, cpu_id at 4.
pub(crate) const RSEQ_CPU_END: u32 = 8;

/// Distance from the thread pointer to the thread-local block.
#[inline(always)]
fn tls_offset() -> usize {
    let offset;
    // SAFETY: a load of a word that the dynamic linker filled in.
    unsafe {
        asm!(
            "mov {}, qword ptr [rip + ft_user_v1_tls@GOTTPOFF]",
            out(reg) offset,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    offset
}

/// Stores the ring of the calling thread, null for none, and where it finds the number of its CPU.
///
/// `rseq` is the distance from the thread pointer to the thread's `struct rseq` (`__rseq_offset` of
/// glibc), if the kernel knows it; its word `cpu_id` then gives the CPU of every event.
///
/// # Safety
///
/// `ring` is null, or points to a control page that is followed by its slots, stays mapped until
/// another pointer is set, and has no other writer.
pub(crate) unsafe fn tls_set_ring(ring: *const RingControl, rseq: Option<isize>) {
    let base = tls_offset();
    let cpu = rseq.map_or(base + TLS_NO_CPU, |rseq| rseq as usize + RSEQ_CPU_END as usize - 4);
    // SAFETY: the block is the thread's own. The pointer is stored last, for a signal handler.
    unsafe {
        asm!(
            "mov dword ptr fs:[{base} + {no_cpu}], -1",
            "mov qword ptr fs:[{base} + {tls_cpu}], {cpu}",
            "mov qword ptr fs:[{base} + {tls_ring}], {ring}",
            base = in(reg) base,
            cpu = in(reg) cpu,
            ring = in(reg) ring,
            no_cpu = const TLS_NO_CPU,
            tls_cpu = const TLS_CPU,
            tls_ring = const TLS_RING,
            options(nostack, preserves_flags),
        );
    }
}

/// The ring of the calling thread, null if it has none.
pub(crate) fn tls_ring() -> *const RingControl {
    let ring;
    // SAFETY: reads a word of the thread's own block.
    unsafe {
        asm!(
            "mov {ring}, qword ptr fs:[{base} + {tls_ring}]",
            base = in(reg) tls_offset(),
            ring = out(reg) ring,
            tls_ring = const TLS_RING,
            options(nostack, preserves_flags, readonly),
        );
    }
    ring
}

/// What [`tls_set`] stored, 0 on a new thread.
pub(crate) fn tls_get(word: Word) -> u32 {
    let value;
    // SAFETY: reads four bytes of the thread's own block.
    unsafe {
        asm!(
            "mov {value:e}, dword ptr fs:[{place}]",
            place = in(reg) tls_offset().wrapping_add(word as usize),
            value = out(reg) value,
            options(nostack, preserves_flags, readonly),
        );
    }
    value
}

/// Stores what the thread remembers.
pub(crate) fn tls_set(word: Word, value: u32) {
    // SAFETY: writes four bytes of the thread's own block that only `tls_get` reads.
    unsafe {
        asm!(
            "mov dword ptr fs:[{place}], {value:e}",
            place = in(reg) tls_offset().wrapping_add(word as usize),
            value = in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}

/// Distance from the thread pointer to the thread's `struct rseq`, if the C library has registered it with its first `bytes`:
/// glibc from 2.35 on exports it as `__rseq_offset`, with `__rseq_size` zero when it has not.
pub(crate) fn rseq(bytes: u32) -> Option<isize> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: loads two addresses that the linker filled in, null where the symbol does not exist.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    // SAFETY: not null, so they are glibc's variables, constant after start-up.
    unsafe { (!offset.is_null() && !size.is_null() && *size >= bytes).then(|| *offset) }
}

/// Number of the CPU as the write finds it, `CPU_UNKNOWN` before [`tls_set_ring`] and without rseq.
pub(crate) fn tls_cpu() -> u64 {
    let cpu: u64;
    // SAFETY: reads a word of the thread's own block, and one at the place that it names.
    unsafe {
        asm!(
            "mov {cpu}, qword ptr fs:[{base} + {tls_cpu}]",
            "test {cpu}, {cpu}",
            "jz 2f",
            "mov {cpu:e}, dword ptr fs:[{cpu}]",
            "jmp 3f",
            "2:",
            "dec {cpu}",
            "3:",
            base = in(reg) tls_offset(),
            cpu = out(reg) cpu,
            tls_cpu = const TLS_CPU,
            options(nostack, readonly),
        );
    }
    cpu & commit::CPU_UNKNOWN
}

/// The thread's `slice_ctrl` of `struct rseq` (include/uapi/linux/rseq.h, Linux 7.0), if the C library has registered so much.
#[cfg(feature = "slice")]
pub(crate) fn rseq_slice_control() -> *const u8 {
    const OFFSET: usize = 28;
    const BYTES: usize = 4;
    let Some(rseq) = rseq((OFFSET + BYTES) as u32) else { return core::ptr::null() };
    let thread: *const u8;
    // SAFETY: the first word of a thread's control block is its own address (x86-64 psABI, "thread-local storage").
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) thread, options(nostack, preserves_flags, pure, readonly));
    }
    thread.wrapping_offset(rseq).wrapping_add(OFFSET)
}

// A word of its own, so that nobody else's block is larger; see the block above.
#[cfg(feature = "slice")]
global_asm!(
    r#"
    .pushsection .tbss.ft_user_v1_slice,"awT",@nobits
    .p2align 3
    .hidden ft_user_v1_tls_slice
    .globl ft_user_v1_tls_slice
    .type ft_user_v1_tls_slice,@object
    .size ft_user_v1_tls_slice,8
ft_user_v1_tls_slice:
    .zero 8
    .popsection
"#
);

/// What the thread remembers of time-slice extensions, 0 on a new thread.
#[cfg(feature = "slice")]
pub(crate) fn tls_slice() -> u64 {
    let word;
    // SAFETY: reads a word of the thread's own.
    unsafe {
        asm!(
            "mov {word}, qword ptr [rip + ft_user_v1_tls_slice@GOTTPOFF]",
            "mov {word}, qword ptr fs:[{word}]",
            word = out(reg) word,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

/// Stores that.
#[cfg(feature = "slice")]
pub(crate) fn tls_set_slice(word: u64) {
    // SAFETY: writes a word of the thread's own that only `tls_slice` reads.
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + ft_user_v1_tls_slice@GOTTPOFF]",
            "mov qword ptr fs:[{at}], {word}",
            at = out(reg) _,
            word = in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}
