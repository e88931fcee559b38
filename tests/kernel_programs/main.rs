//! The kernel side against the running kernel: what is known to happen is recorded, and nothing that was
//! not asked for.

mod common;
mod interrupts;
mod lives;
mod losses;
mod own_waits;
mod quota;
mod sections;
mod under_way;

use std::{
    collections::{BTreeSet, HashMap},
    io::{Read, Write, pipe},
    os::unix::fs::FileExt,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use common::{Record, drain, drain_until, kernel_or_skip};
use ft_agent::collect::kernel::{Group, Kernel, KernelOptions};
use ft_ebpf::{Irq, Switch, Waking, kind};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

/// Where init is the supervisor of a small virtual machine, tracepoints (perf's, too) may not show how
/// it leaves a CPU.
const INIT: u32 = 1;

fn options(groups: &[Group]) -> KernelOptions {
    KernelOptions { groups: groups.to_vec(), ..KernelOptions::default() }
}

/// Pins the calling thread to the CPU on which it runs.
fn pin_here() {
    let mut set = CpuSet::new();
    set.set(rustix::thread::sched_getcpu());
    sched_setaffinity(None, &set).unwrap();
}

fn my_tid() -> u32 {
    gettid().as_raw_nonzero().get() as u32
}

#[test]
fn all_programs_of_all_groups_are_accepted() {
    // A kernel without what it should have would be skipped.
    let lacks = |group: &Group| *group == Group::Lock && release() < (5, 19);
    let groups: Vec<Group> = Group::ALL.iter().copied().filter(|group| !lacks(group)).collect();
    let kernel = Kernel::load(&options(&groups));
    if let Ok(kernel) = &kernel {
        assert_eq!(kernel.missing(), []);
    }
    drop(kernel);
    let _ = kernel_or_skip(&options(&groups));
}

/// Version of the running kernel.
fn release() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// What the kernel itself counted for the calling thread, at a moment.
struct Count {
    tid: u32,
    at_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Count {
    /// Waits for a moment without a switch between reading the counters and the clock.
    fn now() -> Self {
        let read = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let value = |name: &str| -> u64 {
                let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                line.trim().parse().unwrap()
            };
            (value("voluntary_ctxt_switches:"), value("nonvoluntary_ctxt_switches:"))
        };
        loop {
            let (before, at_ns, after) = (read(), now_ns(), read());
            if before == after {
                return Self { tid: my_tid(), at_ns, voluntary: before.0, involuntary: before.1 };
            }
        }
    }
}

#[test]
fn a_ping_pong_shows_as_many_switches_as_the_kernel_counted() {
    const ROUNDS: u64 = 200;
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Sched])) else { return };
    kernel.observe(std::process::id());

    // Both on one CPU, so that each read that has to wait is a switch.
    let counts = std::thread::spawn(|| {
        pin_here();
        let (mut ping_out, mut ping_in) = pipe().unwrap();
        let (mut pong_out, mut pong_in) = pipe().unwrap();
        let echo = std::thread::spawn(move || {
            let mut byte = [0];
            while ping_out.read(&mut byte).unwrap() == 1 {
                pong_in.write_all(&byte).unwrap();
            }
            Count::now()
        });
        for _ in 0..ROUNDS {
            ping_in.write_all(&[1]).unwrap();
            pong_out.read_exact(&mut [0]).unwrap();
        }
        let count = Count::now();
        drop(ping_in);
        [count, echo.join().unwrap()]
    })
    .join()
    .unwrap();

    let records = drain(&mut kernel);
    let mut switches = 0;
    for Count { tid, at_ns, voluntary, involuntary } in counts {
        let leaves = |voluntarily| {
            let leaves = |r: &&Record| {
                matches!(r, Record::Switch(s) if s.header.tid == tid && s.header.ts < at_ns
                    && (s.prev_state != 0 && s.prev_state & Switch::PREEMPTED == 0) == voluntarily)
            };
            records.iter().filter(leaves).count() as u64
        };
        assert_eq!((leaves(true), leaves(false)), (voluntary, involuntary), "thread {tid}");
        // Each time that it slept somebody woke it; some wake-ups come before it sleeps.
        let woken = |r: &&Record| {
            matches!(r, Record::Waking(w)
                if w.header.kind == kind::WAKING && w.tid == tid && w.header.ts < at_ns)
        };
        let woken = records.iter().filter(woken).count() as u64;
        assert!(woken >= voluntary, "{woken} wake-ups, {voluntary} sleeps");
        switches += voluntary + involuntary;
        let born = |r: &Record| matches!(r, Record::Waking(w) if w.header.kind == kind::WAKEUP_NEW && w.tid == tid);
        assert!(records.iter().any(born), "thread {tid} was started while it was recorded");
    }
    assert!(switches >= ROUNDS, "{switches} switches: no ping-pong");
    assert_eq!(kernel.losses().unwrap(), []);
}

#[test]
fn switches_chain_up_on_each_cpu() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Sched])) else { return };
    let mut running = HashMap::new();
    let mut links = 0;
    // A sleep may be over before the thread has left its CPU.
    for _ in 0..10_000 {
        std::thread::sleep(std::time::Duration::from_micros(50));
        for record in drain(&mut kernel) {
            let Record::Switch(switch) = record else { continue };
            let came = running.insert(switch.header.cpu, switch);
            if let Some(came) = came
                && came.next_tgid != INIT
            {
                assert_eq!(came.next_tid, switch.header.tid, "who came is who leaves: {switch:?}");
                assert!(came.header.ts < switch.header.ts);
                links += 1;
            }
            assert_eq!(switch.header.tid == 0, switch.prev_comm.starts_with(b"swapper/"));
            assert_eq!(switch.next_tid == 0, switch.next_comm.starts_with(b"swapper/"));
        }
        if links > 100 {
            break;
        }
    }
    assert!(links > 100, "{links}");
}

#[test]
fn only_what_concerns_the_observed_is_recorded() {
    let groups = [Group::Sched, Group::Irq, Group::Task, Group::Syscall, Group::Fault];
    let Some(mut kernel) = kernel_or_skip(&options(&groups)) else { return };
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    let nobody = drain(&mut kernel);
    assert!(nobody.iter().all(|r| matches!(r, Record::Switch(_))), "{:?}", nobody.last());
    assert!(!nobody.is_empty(), "switches are always kept");

    let me = std::process::id();
    kernel.observe(me);
    std::fs::read("/proc/self/status").unwrap();
    kernel.unobserve(me);
    let mine = drain(&mut kernel);
    assert!(mine.iter().any(|r| matches!(r, Record::Syscall(s) if s.tgid == me)));
    let mut observed = BTreeSet::from([me]);
    join_children(&mut observed, &mine);
    for record in &mine {
        let tgid = match record {
            Record::Switch(_) => continue,
            Record::Waking(r) => r.tgid,
            Record::Migrate(r) => r.tgid,
            // It may strike whomever, and wake a thread of this process.
            Record::Irq(r) if wakes(r, &mine) => continue,
            Record::Irq(r) => r.tgid,
            Record::Syscall(r) => r.tgid,
            Record::PageFault(r) => r.tgid,
            Record::Probe(r) => r.tgid,
            Record::Futex(r) => r.tgid,
            Record::Throttle(r) => r.tgid,
            Record::Task(_) => continue,
            Record::Contention(_) | Record::Chain(..) => {
                panic!("its group was not chosen: {record:?}")
            }
        };
        assert!(observed.contains(&tgid), "{record:?}");
    }
}

/// Whether somebody who is observed was woken in an interrupt.
fn wakes(irq: &Irq, records: &[Record]) -> bool {
    let within = |w: &Waking| {
        w.header.cpu == irq.header.cpu && (irq.entry_ts..=irq.header.ts).contains(&w.header.ts)
    };
    records.iter().any(|r| matches!(r, Record::Waking(w) if within(w)))
}

/// Adds the children that other tests start meanwhile: they are observed as this process is.
fn join_children(observed: &mut BTreeSet<u32>, records: &[Record]) {
    observed.extend(records.iter().filter_map(|record| match record {
        Record::Task(task) if task.header.kind == kind::FORK => Some(task.tgid),
        _ => None,
    }));
}

#[test]
fn system_wide_keeps_everything() {
    let options = KernelOptions { system_wide: true, ..options(&[Group::Sched, Group::Syscall]) };
    let Some(mut kernel) = kernel_or_skip(&options) else { return };
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take());
    let id = child.id();
    // Drained while it runs: a busy machine makes more system calls than the ring holds.
    drain_until(&mut kernel, |records| {
        records.iter().any(|r| matches!(r, Record::Syscall(s) if s.tgid == id))
            && records.iter().any(|r| matches!(r, Record::Waking(w) if w.tgid == id))
    });
    child.wait().unwrap();
}

/// Where the kernel's tracepoints can be preempted, it does not run a program for who has the CPU meanwhile.
#[test]
fn every_system_call_has_its_record_however_often_its_thread_is_preempted() {
    const CALLS: usize = 4000;
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Syscall])) else { return };
    kernel.observe(std::process::id());
    let cpu = rustix::thread::sched_getcpu();
    let tids = std::thread::scope(|scope| {
        let of = |priority: i32| {
            scope.spawn(move || {
                let mut set = CpuSet::new();
                set.set(cpu);
                sched_setaffinity(None, &set).unwrap();
                let param = libc::sched_param { sched_priority: priority };
                let policy = if priority > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
                // SAFETY: plain system calls; nothing has that descriptor.
                unsafe {
                    libc::sched_setscheduler(0, policy, &raw const param);
                    for _ in 0..CALLS {
                        libc::close(-1);
                        if priority > 0 {
                            std::thread::sleep(std::time::Duration::from_micros(20));
                        }
                    }
                }
                my_tid()
            })
        };
        // Whoever sleeps takes the CPU from the others wherever they are.
        [0, 0, 0, 50].map(of).map(|thread| thread.join().unwrap())
    });
    let records = drain(&mut kernel);
    for tid in tids {
        let closes = |r: &&Record| {
            matches!(r, Record::Syscall(s) if s.header.tid == tid
                && i64::from(s.number) == libc::SYS_close && s.ret == -i64::from(libc::EBADF))
        };
        assert_eq!(records.iter().filter(closes).count(), CALLS, "thread {tid}");
    }
    assert_eq!(kernel.losses().unwrap(), []);
}

#[test]
fn waits_for_a_kernel_lock_are_paired() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Lock])) else { return };
    let me = std::process::id();
    kernel.observe(me);
    // Writers of one file wait for each other.
    let file = tempfile::tempfile().unwrap();
    let done = AtomicBool::new(false);
    let records = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut writes = 0..50_000;
                while writes.next().is_some() && !done.load(Ordering::Relaxed) {
                    file.write_all_at(&[0; 1 << 18], 0).unwrap();
                }
            });
        }
        let is_wait = |r: &Record| matches!(r, Record::Contention(_));
        let records = drain_until(&mut kernel, |records| records.iter().any(is_wait));
        done.store(true, Ordering::Relaxed);
        records
    });
    for record in records {
        let Record::Contention(wait) = record else { continue };
        assert!(wait.entry_ts <= wait.header.ts && wait.lock != 0, "{wait:?}");
        assert_eq!((wait.tgid, wait.user), (me, 0), "{wait:?}");
        assert_eq!(wait.flags & !ft_ebpf::Contention::OF_KERNEL, 0, "{wait:?}");
        // The program, the tracepoint, the lock's own functions and who wanted it.
        assert!(wait.kernel > 3, "{wait:?}");
    }
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
