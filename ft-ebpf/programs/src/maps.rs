//! The maps that the agent and the programs share.

use core::arch::asm;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NUMA_NODE},
    btf_maps::{ArrayOfMaps, RingBuf},
    macros::{btf_map, map},
    maps::{Array, PerCpuArray},
};
use ft_ebpf::{
    Losses,
    observed::{CHUNK, PIDS},
};

/// Records, in the order of their reservation. The agent makes the buffers, each of a size and in the memory of a node.
pub(crate) type RingBuffer = RingBuf<u8, 4096, { BPF_F_NUMA_NODE as usize }>;

/// The ring buffer of each CPU, by its number; CPUs may share one.
#[btf_map]
pub(crate) static RECORDS: ArrayOfMaps<RingBuffer, 1> = ArrayOfMaps::new();

/// Process ids that are observed. The agent enters the first ones; forked children join by themselves,
/// and a process leaves with its last thread.
///
/// An array, for a look-up in one is a load, and in a hash table some calls, which take 50 ns.
#[map]
pub(crate) static OBSERVED: Array<[u8; CHUNK]> =
    Array::with_max_entries((PIDS / CHUNK) as u32, BPF_F_MMAPABLE);

/// What found no room, by index into [`ft_ebpf::program::NAMES`]; one entry, for the agent looks at all of it again and again.
#[map]
pub(crate) static LOSS: PerCpuArray<Losses> = PerCpuArray::with_max_entries(1, 0);

/// Adds in one instruction, which nothing can strike. (Rust's atomics can only do what compares, too, and BPF's `core` has none.)
///
/// # Safety
///
/// The word is one of a map of this CPU.
#[inline(always)]
pub(crate) unsafe fn add(word: *mut u64, n: i64) {
    // SAFETY: the caller's.
    unsafe { asm!("lock *(u64 *)({} + 0) += {}", in(reg) word, in(reg) n, options(nostack)) };
}
