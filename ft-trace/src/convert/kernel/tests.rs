use ft_ebpf::{self as abi, kind};

use super::*;
use crate::ids::{Cpu, Pid, Tid};
use crate::spool::frame::{IrqName, Probe};

/// Bytes of a record.
pub(crate) fn bytes<T: Copy>(record: &T) -> Vec<u8> {
    // SAFETY: the records of the layout crate have no padding, so every byte is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast(), size_of::<T>()) }.into()
}

fn decode(bytes: &[u8]) -> KernelRows {
    let irqs = [IrqName { number: 4, name: "ttyS0".into() }];
    let probe = |name: &str, marks| Probe { name: name.into(), marks, ..Probe::default() };
    let probes = [probe("server:serve", false), probe("server:http:begin,end", true)];
    let mut rows = KernelRows::default();
    rows.decode(bytes, &mut Decoder::new(&irqs).with_probes(&probes));
    rows
}

fn header(kind: u16) -> Header {
    Header { ts: 1000, kind, cpu: 1, tid: 42 }
}

#[test]
fn every_kind_becomes_a_row_of_its_table() {
    let comm = *b"worker\0\0\0\0\0\0\0\0\0\0";
    let switch =
        abi::Switch { header: header(kind::SWITCH), next_comm: comm, ..Default::default() };
    let waking = abi::Waking { header: header(kind::WAKEUP_NEW), tid: 7, ..Default::default() };
    let migrate = abi::Migrate { header: header(kind::MIGRATE), to_cpu: 3, ..Default::default() };
    let irq = |kind, number| abi::Irq { header: header(kind), entry_ts: 900, number, tgid: 40 };
    let task = abi::Task { header: header(kind::FORK), parent_tgid: 5, comm, ..Default::default() };
    let syscall = abi::Syscall {
        header: header(kind::SYSCALL),
        entry_ts: 990,
        ret: -11,
        number: 202,
        file: abi::file::PIPE,
        tgid: 40,
    };
    let contention = abi::Contention {
        header: header(kind::CONTENTION),
        entry_ts: 950,
        lock: u64::MAX,
        flags: 1,
        tgid: 40,
        ..Default::default()
    };
    let fault =
        abi::PageFault { header: header(kind::PAGE_FAULT), address: 4096, error: 7, tgid: 40 };
    let futex = abi::Futex {
        header: header(kind::FUTEX),
        entry_ts: 940,
        address: 0x40,
        call: abi::Futex::FUTEX,
        ret: -110,
        tgid: 40,
        ..Default::default()
    };
    let probe = |kind, number| abi::Probe {
        header: header(kind),
        stack_pointer: 0x7fff_0000_0010,
        number,
        tgid: 40,
    };
    let all = [
        bytes(&probe(kind::PROBE_BEGIN, 0)),
        bytes(&probe(kind::PROBE_END, 1)),
        bytes(&probe(kind::PROBE_END, 2)),
        bytes(&futex),
        bytes(&switch),
        bytes(&waking),
        bytes(&migrate),
        bytes(&irq(kind::HARDIRQ, 4)),
        bytes(&irq(kind::HARDIRQ, 5)),
        bytes(&irq(kind::SOFTIRQ, 3)),
        bytes(&irq(kind::VECTOR, 1)),
        bytes(&task),
        bytes(&syscall),
        bytes(&contention),
        bytes(&fault),
    ];
    let rows = decode(&all.concat());
    assert_eq!((&*rows.switches[0].next_comm, rows.switches[0].prev_tid), ("worker", Tid(42)));
    let hits: Vec<_> =
        rows.probes.iter().map(|hit| (hit.kind, &*hit.probe, hit.stack_pointer)).collect();
    assert_eq!(
        hits,
        [
            (ProbeKind::Begin, "server:serve", Some(0x7fff_0000_0010)),
            (ProbeKind::End, "server:http:begin,end", None),
            (ProbeKind::End, "unknown", None),
        ]
    );
    assert!(rows.wakings[0].is_new);
    assert_eq!(rows.migrations[0].to_cpu, Cpu(3));
    let irqs: Vec<_> = rows.irqs.iter().map(|i| (i.kind.word(), &*i.name, i.ts.0, i.dur)).collect();
    assert_eq!(
        irqs,
        [
            ("hard", "ttyS0", 900, 100),
            ("hard", "irq 5", 900, 100),
            ("soft", "NET_RX", 900, 100),
            ("vector", "local_timer", 900, 100),
        ]
    );
    assert_eq!((rows.tasks[0].kind.word(), rows.tasks[0].parent_pid), ("fork", Some(5)));
    let call = &rows.syscalls[0];
    assert_eq!(
        (call.ts.0, call.dur, &*call.name, call.ret, call.pid),
        (990, 10, "futex", -11, Pid(40))
    );
    let wait = &rows.contentions[0];
    assert_eq!((wait.ts.0, wait.dur, &*wait.kind, wait.lock), (950, 50, "spinlock", -1));
    assert_eq!((wait.end.word(), wait.stack, &wait.name), ("acquired", None, &None));
    let futex = &rows.futexes[0];
    let end = (futex.kind.word(), futex.result.word());
    assert_eq!((futex.ts.0, futex.dur, end), (940, 60, ("wait", "timed-out")));
    let fault = &rows.faults[0];
    assert_eq!(
        (fault.ts.0, fault.access.word(), fault.cause.word(), fault.address),
        (1000, "write", "protection", 4096)
    );
    assert_eq!(rows.rejected, 0);
}

#[test]
fn what_is_unknown_or_cut_ends_its_frame() {
    let good = bytes(&abi::Waking { header: header(kind::WAKING), ..Default::default() });
    let unknown = bytes(&header(999));
    for bad in [&unknown[..], &good[..31], &good[..3]] {
        let rows = decode(&[&good[..], bad].concat());
        assert_eq!((rows.wakings.len(), rows.rejected), (1, 1));
    }
}

#[test]
fn the_newest_name_and_priority_of_a_thread_count() {
    let switch = |ts, comm: &[u8; 16], prio| abi::Switch {
        header: Header { ts, ..header(kind::SWITCH) },
        next_tid: 7,
        next_tgid: 6,
        next_comm: *comm,
        next_prio: prio,
        ..Default::default()
    };
    let (new, old) = (*b"new\0\0\0\0\0\0\0\0\0\0\0\0\0", *b"old\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let records = [bytes(&switch(200, &new, 98)), bytes(&switch(100, &old, 120))].concat();
    let mut decoder = Decoder::default();
    KernelRows::default().decode(&records, &mut decoder);
    let json = serde_json::to_string(&decoder.threads.sightings()).unwrap();
    assert!(
        json.contains(
            r#""pid":6,"tid":7,"first":100,"named":200,"name":"new","ranked":200,"prio":98"#
        ),
        "{json}"
    );
}

#[test]
fn waits_for_locks_tell_how_they_ended_and_from_where_they_came() {
    let record = |flags, chain: &[u64]| {
        let record = abi::Contention {
            header: header(kind::CONTENTION),
            entry_ts: 950,
            flags,
            kernel: chain.len() as u8,
            ..Default::default()
        };
        let chain = chain.iter().flat_map(|address| address.to_ne_bytes());
        bytes(&record).into_iter().chain(chain).collect::<Vec<u8>>()
    };
    let records = [
        record(0, &[0x10, 0x20]),
        record(abi::Contention::FAILED, &[0x10, 0x20]),
        record(abi::Contention::UNFINISHED, &[0x10]),
        record(abi::Contention::NO_BEGIN, &[]),
    ];
    let (mut rows, mut decoder) = (KernelRows::default(), Decoder::default());
    decoder.whole_chains = true;
    rows.decode(&records.concat(), &mut decoder);
    let row = |r: &Contention| {
        (r.end.word(), r.kind.to_string(), r.stack.map(|stack| stack & 0xff), r.cut)
    };
    let found: Vec<_> = rows.contentions.iter().map(row).collect();
    let expected = |end, kind: &str, stack| (end, kind.to_owned(), stack, false);
    assert_eq!(
        found,
        [
            expected("acquired", "semaphore", Some(0)),
            expected("failed", "semaphore", Some(0)),
            expected("unfinished", "semaphore", Some(1)),
            expected("end-only", "unknown", None),
        ]
    );
    assert_eq!(rows.rejected, 0);
}
