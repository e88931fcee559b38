//! The BPF ring buffers that the programs write their records into: one for each CPU.
//!
//! A BPF ring buffer has a lock, which every record takes. Two CPUs that write into one at the same time take several
//! times as long for a record as each alone (`tests/benches/README.md`), and it is worse the more there are. So each CPU has a
//! buffer of its own, in the memory of its node; or some neighbours share one, where there is too little memory to be divided
//! further. The map `RECORDS` tells each CPU its buffer: which numbers there are does not matter, and a CPU that comes later
//! shares one with another.
//!
//! One thread empties all of them. Several would have to agree on when a segment of the spool ends, and a loss would have several
//! places. A record takes some 80 ns from its buffer to the spool, so a fifth of a thread is enough for 128 CPUs with a million
//! switches a second; that is a calculation (`tests/benches/README.md`), not measured on such a machine.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use aya::maps::{ArrayOfMaps, Map, MapData, RingBuf, ring_buf::RingBufItem};
use aya_obj::generated::{bpf_cmd, bpf_map_type};

use super::{KernelError, bpf};
use crate::{collect::user::FULL, cpus};

/// No buffer is smaller when there are several: 10,000 switches, or 11 ms of a million records a second of one CPU.
///
/// Limit: CPUs that are neighbours share a buffer; what has no room in it is counted in `loss`.
/// Shown by: `neighbours_share_a_buffer_when_there_is_not_enough_for_all`, `many_cpus_have_more_memory`.
const LEAST_BYTES: u32 = 1 << 20;

/// All buffers together, unless there are so many CPUs that each has the least: what perf and LTTng take for a CPU.
const USUAL_BYTES: u32 = 16 << 20;

/// All buffers of a machine together, unless told otherwise.
pub(super) fn usual_bytes() -> u32 {
    bytes_for(cpus::online().len())
}

fn bytes_for(cpus: usize) -> u32 {
    let least = cpus.next_power_of_two().saturating_mul(LEAST_BYTES as usize);
    u32::try_from(least).unwrap_or(u32::MAX).clamp(USUAL_BYTES, 1 << 30)
}

/// All buffers, and where a pass over them is.
pub(super) struct RingBuffers {
    /// In the order of this pass.
    buffers: Vec<RingBuffer>,
    current: usize,
}

/// One of them.
pub(super) struct RingBuffer {
    records: RingBuf<MapData>,
    bytes: usize,
    /// By the visit of this pass.
    taken: usize,
}

impl RingBuffers {
    /// Makes the buffers, and tells each CPU its own by way of `records`.
    pub(super) fn new(records: &mut Map, plan: Plan) -> Result<RingBuffers, KernelError> {
        let map = |source| KernelError::Map { map: "RECORDS", source };
        let make = |&node| RingBuffer::new(plan.bytes, node);
        let buffers = plan.nodes.iter().map(make).collect::<Result<Vec<_>, _>>()?;
        let mut of_cpus = ArrayOfMaps::<_, RingBuf<MapData>>::try_from(records).map_err(map)?;
        for (cpu, at) in plan.of_cpus {
            of_cpus.set(cpu, &buffers[at].records, 0).map_err(map)?;
        }
        Ok(RingBuffers { buffers, current: 0 })
    }

    /// What each is waited for by.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.buffers.iter().map(|buffer| buffer.records.as_fd())
    }

    /// How many entries `RECORDS` needs: CPUs are told apart by their numbers.
    pub(super) fn entries() -> u32 {
        cpus::possible().last().map_or(1, |highest| highest + 1)
    }

    /// The buffer that is visited now; `None` when the pass is over.
    pub(super) fn current(&mut self) -> Option<&mut RingBuffer> {
        self.buffers.get_mut(self.current)
    }

    /// Ends the visit.
    pub(super) fn advance(&mut self) {
        self.current += 1;
        if let Some(buffer) = self.current() {
            buffer.taken = 0;
        }
    }

    /// Begins a new pass, first over the buffers that have had the most; returns how full the fullest one was in the last,
    /// of [`FULL`].
    pub(super) fn again(&mut self) -> u32 {
        self.buffers.sort_by_key(|buffer| Reverse(buffer.taken));
        let fullest = self.buffers.first().map_or(0, RingBuffer::fill);
        self.current = 0;
        self.buffers.iter_mut().take(1).for_each(|buffer| buffer.taken = 0);
        fullest
    }
}

impl RingBuffer {
    fn new(bytes: u32, node: u32) -> Result<RingBuffer, KernelError> {
        let fd = create(bytes, node).map_err(|source| KernelError::RingBuffer { bytes, source })?;
        let records = MapData::from_fd(fd).map(Map::RingBuf).and_then(RingBuf::try_from);
        let records = records.map_err(|source| KernelError::Map { map: "RECORDS", source })?;
        Ok(RingBuffer { records, bytes: bytes as usize, taken: 0 })
    }

    /// The next record of this visit. It ends when all is taken that can have been there at its begin, so that whoever
    /// writes without end keeps no other buffer waiting.
    pub(super) fn next(&mut self) -> Option<RingBufItem<'_>> {
        if self.taken >= self.bytes {
            return None;
        }
        let record = self.records.next()?;
        self.taken += ft_ebpf::ring_bytes(record.len());
        Some(record)
    }

    fn fill(&self) -> u32 {
        (self.taken.min(self.bytes) * FULL as usize / self.bytes) as u32
    }
}

/// Which CPU writes where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Size of each buffer.
    bytes: u32,
    /// The node of each.
    nodes: Vec<u32>,
    /// Of each CPU, which buffer.
    of_cpus: Vec<(u32, usize)>,
}

impl Plan {
    /// At most `most` buffers of `bytes` together, a power of two, for the CPUs of this machine.
    pub(super) fn of_machine(bytes: u32, most: u32) -> Plan {
        let most = most.min(bytes / LEAST_BYTES);
        Plan::new(bytes, most, cpus::online(), &cpus::possible(), &cpus::nodes())
    }

    /// How many bytes are in a buffer when the agent is woken.
    pub(super) fn mark(&self) -> u32 {
        self.bytes / 8
    }

    /// Divides `bytes` among at most `most` buffers, without a rest; neighbours of a node share one where not all CPUs have
    /// their own.
    fn new(
        bytes: u32,
        most: u32,
        mut online: Vec<u32>,
        possible: &[u32],
        nodes: &BTreeMap<u32, u32>,
    ) -> Plan {
        let node = |cpu: u32| nodes.get(&cpu).copied().unwrap_or(0);
        online.sort_by_key(|&cpu| (node(cpu), cpu));
        let count = online.len();
        let buffers = 1 << count.min(most as usize).max(1).ilog2();
        let mut of_cpus: Vec<(u32, usize)> =
            online.iter().enumerate().map(|(i, &cpu)| (cpu, i * buffers / count)).collect();
        let first =
            |buffer: usize| of_cpus.iter().find(|of| of.1 == buffer).map_or(0, |of| node(of.0));
        let nodes = (0..buffers).map(first).collect();
        let offline = possible.iter().filter(|cpu| !online.contains(cpu));
        of_cpus.extend(offline.map(|&cpu| (cpu, cpu as usize % buffers)));
        Plan { bytes: bytes / buffers as u32, nodes, of_cpus }
    }
}

/// Makes a buffer in the memory of a node, which aya does not ask for.
fn create(bytes: u32, node: u32) -> io::Result<OwnedFd> {
    /// include/uapi/linux/bpf.h
    const BPF_F_NUMA_NODE: u32 = 1 << 2;
    let mut attr = bpf::no_attr();
    // SAFETY: the members of the union are numbers.
    let map = unsafe { &mut attr.__bindgen_anon_1 };
    map.map_type = bpf_map_type::BPF_MAP_TYPE_RINGBUF as u32;
    map.max_entries = bytes;
    map.map_flags = BPF_F_NUMA_NODE;
    map.numa_node = node;
    map.map_name = bpf::name("records");
    // SAFETY: it has no address.
    unsafe { bpf::make(bpf_cmd::BPF_MAP_CREATE, &attr) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A division of so many MiB, and the buffer of each CPU.
    fn plan(mib: u32, online: &[u32], possible: u32, nodes: &[(u32, u32)]) -> (Plan, Vec<usize>) {
        let possible: Vec<u32> = (0..possible).collect();
        let nodes = nodes.iter().copied().collect();
        let plan = Plan::new(mib << 20, mib, online.to_vec(), &possible, &nodes);
        let mut of_cpus = plan.of_cpus.clone();
        of_cpus.sort_unstable();
        assert!(of_cpus.iter().map(|of| of.0).eq(possible), "each CPU writes into one buffer");
        (plan, of_cpus.into_iter().map(|of| of.1).collect())
    }

    #[test]
    fn each_cpu_has_a_buffer_and_all_together_the_memory() {
        let (plan, of_cpus) = plan(16, &[0, 1, 2, 3], 4, &[]);
        assert_eq!((plan.bytes, plan.nodes.len()), (4 << 20, 4));
        assert_eq!(of_cpus, [0, 1, 2, 3]);
    }

    #[test]
    fn neighbours_share_a_buffer_when_there_is_not_enough_for_all() {
        let (plan, of_cpus) = self::plan(4, &(0..128).collect::<Vec<_>>(), 128, &[]);
        assert_eq!((plan.bytes, plan.nodes.len()), (1 << 20, 4));
        assert!((0..128).all(|cpu| of_cpus[cpu] == cpu / 32));
        // The memory is divided without a rest.
        let (plan, of_cpus) = self::plan(16, &[0, 1, 2, 3, 4, 5], 6, &[]);
        assert_eq!((plan.bytes, of_cpus), (4 << 20, vec![0, 0, 1, 2, 2, 3]));
        // Too little for two.
        let small = Plan::new(4096, 0, vec![0, 1], &[0, 1], &BTreeMap::new());
        assert_eq!((small.bytes, small.nodes.len()), (4096, 1));
    }

    #[test]
    fn numbers_may_have_holes_and_cpus_may_come_later() {
        let (plan, of_cpus) = plan(16, &[0, 2, 4, 70], 72, &[]);
        assert_eq!(plan.nodes.len(), 4);
        assert_eq!([0, 2, 4, 70].map(|cpu| of_cpus[cpu]), [0, 1, 2, 3]);
        assert!(of_cpus.iter().all(|buffer| *buffer < 4));
    }

    #[test]
    fn a_buffer_lies_in_the_memory_of_its_cpus() {
        // Every second CPU is of the other node.
        let nodes: Vec<(u32, u32)> = (0..8).map(|cpu| (cpu, cpu % 2)).collect();
        let (plan, of_cpus) = plan(4, &(0..8).collect::<Vec<_>>(), 8, &nodes);
        assert_eq!(plan.nodes, [0, 0, 1, 1]);
        assert_eq!(of_cpus, [0, 2, 0, 2, 1, 3, 1, 3]);
    }

    #[test]
    fn many_cpus_have_more_memory() {
        for (cpus, mib) in [(1, 16), (16, 16), (17, 32), (128, 128), (8192, 1024)] {
            assert_eq!(bytes_for(cpus), mib << 20, "{cpus}");
        }
    }
}
