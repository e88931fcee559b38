//! Interrupts: which of them are recorded, and from when to when.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use ft_agent::collect::kernel::{Group, KernelOptions};
use ft_ebpf::{Irq, kind};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::common::{Record, drain, drain_until, kernel_or_skip};
use crate::{join_children, now_ns, options, wakes};

/// A wait that a timer ends on a CPU that nobody observed has: who has ended it, only the interrupt tells.
#[test]
fn interrupts_that_wake_an_observed_thread_are_recorded_whomever_they_strike() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Sched, Group::Irq, Group::Task]))
    else {
        return;
    };
    let me = std::process::id();
    kernel.observe(me);
    let mut records = Vec::new();
    // Now and then, a thread of this process has the CPU that the timer strikes.
    for _ in 0..100 {
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        records.extend(drain(&mut kernel));
        if strike_others(me, &records).len() >= 20 {
            break;
        }
    }
    kernel.unobserve(me);
    // A child's records can be read before the one of its fork, which another CPU wrote.
    records.extend(drain(&mut kernel));
    let others = strike_others(me, &records);
    assert!(others.len() >= 20, "{others:?}");
    for irq in others {
        assert!(wakes(irq, &records), "{irq:?}");
    }
}

/// Interrupts that strike neither this process nor its children.
fn strike_others(me: u32, records: &[Record]) -> Vec<&Irq> {
    let mut observed = BTreeSet::from([me]);
    join_children(&mut observed, records);
    let irqs = records.iter().filter_map(|record| match record {
        Record::Irq(irq) => Some(irq),
        _ => None,
    });
    irqs.filter(|irq| !observed.contains(&irq.tgid)).collect()
}

#[test]
fn interrupts_have_their_entry_and_exit() {
    let options = KernelOptions { system_wide: true, ..options(&[Group::Irq]) };
    let before = now_ns();
    let Some(mut kernel) = kernel_or_skip(&options) else { return };
    let records = drain_until(&mut kernel, |records| {
        let has = |kind| records.iter().any(|r| r.header().kind == kind);
        // A sleeping thread is woken by the timer, so its vector and softirq come.
        std::thread::sleep(std::time::Duration::from_millis(1));
        has(kind::VECTOR) && has(kind::SOFTIRQ)
    });
    for record in records {
        let Record::Irq(irq) = record else { panic!("{record:?}") };
        assert!(irq.entry_ts <= irq.header.ts, "{irq:?}");
        assert!(irq.entry_ts >= before, "it has begun before anybody looked: {irq:?}");
        match irq.header.kind {
            kind::SOFTIRQ => assert!(irq.number < 32, "{irq:?}"),
            kind::VECTOR => assert!((1..=5).contains(&irq.number), "{irq:?}"),
            _ => {}
        }
    }
}

/// On a real-time kernel a thread can be preempted in a softirq, whose time is then not one interval.
#[test]
fn no_interrupt_lasts_beyond_a_switch() {
    /// Interrupts that are judged.
    const LEAST: usize = 50;
    let options = KernelOptions { system_wide: true, ..options(&[Group::Sched, Group::Irq]) };
    let Some(mut kernel) = kernel_or_skip(&options) else { return };
    let real_time = rustix::system::uname().version().to_string_lossy().contains("PREEMPT_RT");
    let cpu = rustix::thread::sched_getcpu();
    let here = move || {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).unwrap();
    };
    let done = AtomicBool::new(false);
    let records = std::thread::scope(|scope| {
        // One sends to itself, which the softirq of the network delivers at once, and another takes its CPU away.
        scope.spawn(|| {
            here();
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(socket.local_addr().unwrap()).unwrap();
            let mut byte = [0];
            while !done.load(Ordering::Relaxed) {
                socket.send(&byte).unwrap();
                socket.recv(&mut byte).unwrap();
            }
        });
        scope.spawn(|| {
            here();
            let param = libc::sched_param { sched_priority: 50 };
            // SAFETY: a plain system call; it concerns this thread alone.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) };
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
        let begun = now_ns();
        let length = if real_time { 2_000_000_000 } else { 200_000_000 };
        let is_enough = |records: &[Record]| {
            let here =
                |r: &&Record| matches!(r, Record::Irq(irq) if usize::from(irq.header.cpu) == cpu);
            records.iter().filter(here).count() >= LEAST
        };
        // Those threads end only when this one says so: it ends by itself.
        let records = drain_until(&mut kernel, |records| {
            let took = now_ns() - begun;
            took > length && is_enough(records) || took > 200_000_000_000
        });
        done.store(true, Ordering::Relaxed);
        records
    });
    let mut switches: HashMap<u16, Vec<u64>> = HashMap::new();
    for record in &records {
        if let Record::Switch(switch) = record {
            switches.entry(switch.header.cpu).or_default().push(switch.header.ts);
        }
    }
    switches.values_mut().for_each(|times| times.sort_unstable());
    let (mut judged, mut cut) = (0, 0);
    for record in &records {
        let Record::Irq(irq) = record else { continue };
        let Some(times) = switches.get(&irq.header.cpu) else { continue };
        cut += usize::from(times.binary_search(&irq.header.ts).is_ok());
        let next = times.partition_point(|ts| *ts <= irq.entry_ts);
        assert!(times.get(next).is_none_or(|ts| *ts >= irq.header.ts), "{irq:?}");
        judged += 1;
    }
    assert!(judged >= LEAST, "{judged}");
    assert!(!real_time || cut > 0, "nobody was preempted in a softirq");
}
