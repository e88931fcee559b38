//! What the tests against the running kernel share.

use std::{
    mem::MaybeUninit,
    time::{Duration, Instant},
};

use ft_agent::collect::kernel::Kernel;
use ft_ebpf::Header;
use ft_trace::spool::frame::kernel_record_len;

pub(crate) use ft_tests::gate::{incomplete_or_skip, kernel_or_skip, ran, skipped};

/// A record, by its kind.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Switch(ft_ebpf::Switch),
    Waking(ft_ebpf::Waking),
    Migrate(ft_ebpf::Migrate),
    Irq(ft_ebpf::Irq),
    Task(ft_ebpf::Task),
    Contention(ft_ebpf::Contention),
    Syscall(ft_ebpf::Syscall),
    PageFault(ft_ebpf::PageFault),
    Probe(ft_ebpf::Probe),
    Futex(ft_ebpf::Futex),
    Throttle(ft_ebpf::Throttle),
    /// Without its addresses.
    Chain(ft_ebpf::Chain),
}

impl Record {
    pub(crate) fn header(&self) -> Header {
        match self {
            Self::Switch(r) => r.header,
            Self::Waking(r) => r.header,
            Self::Migrate(r) => r.header,
            Self::Irq(r) => r.header,
            Self::Task(r) => r.header,
            Self::Contention(r) => r.header,
            Self::Syscall(r) => r.header,
            Self::PageFault(r) => r.header,
            Self::Probe(r) => r.header,
            Self::Futex(r) => r.header,
            Self::Throttle(r) => r.header,
            Self::Chain(r) => r.header,
        }
    }
}

/// Splits what [`Kernel::drain`] appended.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let kind = u16::from_ne_bytes([bytes[8], bytes[9]]);
        let (record, rest) = bytes.split_at(kernel_record_len(bytes).expect("a known kind"));
        bytes = rest;
        use ft_ebpf::kind::*;
        if kind == SLEEP {
            // What a switch says no more of than that its thread sleeps.
            continue;
        }
        records.push(match kind {
            SWITCH => Record::Switch(read(record)),
            WAKING | WAKEUP_NEW => Record::Waking(read(record)),
            MIGRATE => Record::Migrate(read(record)),
            HARDIRQ | SOFTIRQ | VECTOR => Record::Irq(read(record)),
            FORK | EXEC | EXIT | RENAME => Record::Task(read(record)),
            CONTENTION => Record::Contention(read(&record[..size_of::<ft_ebpf::Contention>()])),
            SYSCALL | SYSCALL_BEGUN | SYSCALL_ENDED => Record::Syscall(read(record)),
            CHAIN_OFF_CPU | CHAIN_WAKE | SAMPLE => {
                Record::Chain(read(&record[..size_of::<ft_ebpf::Chain>()]))
            }
            FAULT_MINOR | FAULT_MAJOR => {
                Record::PageFault(read::<ft_ebpf::ServedFault>(record).fault)
            }
            FUTEX => Record::Futex(read(record)),
            THROTTLE => Record::Throttle(read(record)),
            PROBE_BEGIN | PROBE_END => Record::Probe(read(record)),
            _ => Record::PageFault(read(record)),
        });
    }
    records
}

fn read<T: Copy>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>());
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: as many bytes as the value has, and the records consist of integers, for which any do.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), bytes.len());
        value.assume_init()
    }
}

/// Everything that is there now, of all rings by time.
pub(crate) fn drain(kernel: &mut Kernel) -> Vec<Record> {
    let mut bytes = Vec::new();
    while kernel.drain(&mut bytes, 1 << 20).more {}
    let mut records = parse(&bytes);
    records.sort_by_key(|record| record.header().ts);
    records
}

/// Drains until `enough` says so of all records so far.
///
/// # Panics
///
/// When that takes longer than five minutes.
pub(crate) fn drain_until(kernel: &mut Kernel, enough: impl Fn(&[Record]) -> bool) -> Vec<Record> {
    let deadline = Instant::now() + Duration::from_secs(300);
    let mut records = drain(kernel);
    while !enough(&records) {
        assert!(Instant::now() < deadline, "not seen within 300 s in {} records", records.len());
        std::thread::yield_now();
        records.extend(drain(kernel));
    }
    records
}
