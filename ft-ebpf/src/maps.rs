//! The maps that the agent and the programs share.

use aya_ebpf::{
    macros::map,
    maps::{HashMap, PerCpuArray, RingBuf},
};
use ft_ebpf::{Loss, program};

/// All records, of all CPUs, in the order of their reservation. The agent sets the size.
#[map]
pub(crate) static RECORDS: RingBuf = RingBuf::with_byte_size(16 << 20, 0);

/// Process ids that are observed. The agent enters the first ones; forked children join by themselves,
/// and a process leaves with its last thread.
#[map]
pub(crate) static OBSERVED: HashMap<u32, u8> = HashMap::with_max_entries(65_536, 0);

/// What found no room, by index into [`program::NAMES`].
#[map]
pub(crate) static LOSS: PerCpuArray<Loss> =
    PerCpuArray::with_max_entries(program::NAMES.len() as u32, 0);
