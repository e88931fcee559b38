//! The maps that the agent and the programs share.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, PerCpuArray, RingBuf},
};
use ft_ebpf::{
    Loss,
    observed::{CHUNK, PIDS},
    program,
};

/// All records, of all CPUs, in the order of their reservation. The agent sets the size.
#[map]
pub(crate) static RECORDS: RingBuf = RingBuf::with_byte_size(16 << 20, 0);

/// Process ids that are observed. The agent enters the first ones; forked children join by themselves,
/// and a process leaves with its last thread.
///
/// An array, for a look-up in one is a load, and in a hash table some calls, which take 50 ns.
#[map]
pub(crate) static OBSERVED: Array<[u8; CHUNK]> =
    Array::with_max_entries((PIDS / CHUNK) as u32, BPF_F_MMAPABLE);

/// What found no room, by index into [`program::NAMES`].
#[map]
pub(crate) static LOSS: PerCpuArray<Loss> =
    PerCpuArray::with_max_entries(program::NAMES.len() as u32, 0);
