//! What a table of the kernel says of itself: which records become its rows, and how.
//!
//! The records are laid out in `ft_ebpf`; the programs that write them bear the names of their tracepoints.

use std::collections::HashMap;

use ft_ebpf::{COMM_LEN, Record, kind};

use crate::convert::{Chains, KernelLocks, Threads};
use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::spool::frame::{IrqName, Probe};
use crate::store::Row;

/// A table that is made of records of the kernel.
pub(crate) trait KernelTable: Row {
    /// Layout of its records.
    type Record: Record;
    /// [`Header::kind`](ft_ebpf::Header::kind) of the records that become its rows.
    const KINDS: &'static [u16];

    /// The row of a record, which may hold anything.
    fn row(record: &Self::Record, seen: &mut Decoder) -> Self;

    /// Bytes that belong to a record and follow it; `None` when it says what cannot be.
    fn tail_bytes(_: &Self::Record) -> Option<usize> {
        Some(0)
    }

    /// The row of a record with what follows it.
    fn row_with(record: &Self::Record, _tail: &[u8], seen: &mut Decoder) -> Self {
        Self::row(record, seen)
    }
}

/// What decoding needs besides the record, and what it learns.
#[derive(Default)]
pub(crate) struct Decoder {
    /// The threads that records name.
    pub(crate) threads: Threads,
    /// The call chains that records have behind them.
    pub(crate) chains: Chains,
    /// What locks of the kernel are called.
    pub(crate) kernel_locks: KernelLocks,
    /// The group `stack` was recorded: call chains of waits for locks of the kernel are whole.
    pub(crate) whole_chains: bool,
    /// What probes are called, by their numbers, and which of them are between marks.
    pub(crate) probes: Vec<(Name, bool)>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns, where it is known.
    pub(crate) realtime_offset_ns: Option<i64>,
    comms: HashMap<[u8; COMM_LEN], Name>,
    numbers: HashMap<(u16, u32), Name>,
    fixed: HashMap<&'static str, Name>,
}

impl Decoder {
    /// With the names of interrupt lines that the recording noted.
    pub(crate) fn new(irq_names: &[IrqName]) -> Decoder {
        let lines = irq_names.iter().map(|i| ((kind::HARDIRQ, i.number), i.name.as_str().into()));
        Decoder { numbers: lines.collect(), ..Decoder::default() }
    }

    /// With the probes that the recording noted.
    pub(crate) fn with_probes(mut self, probes: &[Probe]) -> Decoder {
        let name = |probe: &Probe| (probe.name.as_str().into(), probe.marks);
        self.probes = probes.iter().map(name).collect();
        self
    }

    /// The name of a task, which ends with the first NUL.
    pub(crate) fn comm(&mut self, comm: [u8; COMM_LEN]) -> Name {
        let make = || {
            let end = comm.iter().position(|&b| b == 0).unwrap_or(COMM_LEN);
            String::from_utf8_lossy(&comm[..end]).into()
        };
        self.comms.entry(comm).or_insert_with(make).clone()
    }

    /// What a number in records of this kind is called; `text` is asked once.
    pub(crate) fn numbered(
        &mut self,
        kind: u16,
        number: u32,
        text: fn(u16, u32) -> String,
    ) -> Name {
        self.numbers.entry((kind, number)).or_insert_with(|| text(kind, number).into()).clone()
    }

    /// A name that is known beforehand.
    pub(crate) fn fixed(&mut self, text: &'static str) -> Name {
        self.fixed.entry(text).or_insert_with(|| text.into()).clone()
    }
}

/// Entry and duration of what was recorded at its exit.
pub(crate) fn interval(entry_ts: u64, exit_ts: u64) -> (Nanos, i64) {
    let (entry, exit) = (nanos(entry_ts), nanos(exit_ts));
    (entry, exit.0.saturating_sub(entry.0).max(0))
}

/// A time of the kernel.
pub(crate) fn nanos(ns: u64) -> Nanos {
    Nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// A thread id of the kernel.
pub(crate) fn tid(tid: u32) -> Tid {
    Tid(tid as i32)
}

/// A process id of the kernel.
pub(crate) fn pid(pid: u32) -> Pid {
    Pid(pid as i32)
}

/// The CPU of a record.
pub(crate) fn cpu(cpu: u16) -> Cpu {
    Cpu(i32::from(cpu))
}
