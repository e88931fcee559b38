//! The kernel side against the running kernel: what is known to happen is recorded, and nothing that was
//! not asked for.

mod common;

use std::{
    collections::{BTreeSet, HashMap},
    io::{Read, Write, pipe},
    os::unix::fs::FileExt,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use common::{Record, drain, drain_until, kernel_or_skip, skipped};
use ft_agent::collect::kernel::{Group, Kernel, KernelOptions};
use ft_ebpf::{Irq, Switch, Waking, kind};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

/// Room for about fifty switches.
const TINY_RING: u32 = 4096;

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
    for _ in 0..100 {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    let mut running = HashMap::new();
    let mut links = 0;
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
    assert!(links > 100, "{links}");
}

#[test]
fn a_child_joins_and_leaves_the_observed() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Task])) else { return };
    kernel.observe(std::process::id());
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    assert!(kernel.is_observed(pid));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!kernel.is_observed(pid), "it left with its last thread");
    assert!(kernel.is_observed(std::process::id()));

    let life: Vec<(u16, String)> = drain(&mut kernel)
        .iter()
        .filter_map(|record| match record {
            Record::Task(task) if task.tgid == pid => {
                let name = task.comm.split(|byte| *byte == 0).next().unwrap();
                Some((task.header.kind, String::from_utf8_lossy(name).into_owned()))
            }
            _ => None,
        })
        .collect();
    let kinds: Vec<u16> = life.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [kind::FORK, kind::RENAME, kind::EXEC, kind::EXIT], "{life:?}");
    assert_eq!(life[1].1, "cat", "the new name, not the old one");
    assert_eq!(life[3].1, "cat");
}

/// Threads that exit at once find all that none of them is left.
#[test]
fn every_thread_that_exits_has_its_record() {
    const CHILD: &str = "FT_EXITS_AT_ONCE";
    if std::env::var_os(CHILD).is_some() {
        let begun = std::sync::Barrier::new(9);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begun.wait();
                    loop {
                        std::thread::park();
                    }
                });
            }
            begun.wait();
            // SAFETY: ends all threads of the process.
            unsafe { libc::_exit(0) }
        });
    }
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Task])) else { return };
    kernel.observe(std::process::id());
    let own = std::env::current_exe().unwrap();
    // An emulated machine takes its time to begin a process.
    let rounds = if std::env::var_os("FT_BUILT").is_some() { 10 } else { 100 };
    for _ in 0..rounds {
        let mut child = Command::new(&own);
        child.args(["--exact", "every_thread_that_exits_has_its_record"]).env(CHILD, "");
        let mut child = child.stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        assert!(child.wait().unwrap().success());
        let records = drain(&mut kernel);
        let of = |kind: u16| {
            let of_kind = records.iter().filter_map(|record| match record {
                Record::Task(task) if task.tgid == pid && task.header.kind == kind => {
                    Some(task.tid)
                }
                _ => None,
            });
            of_kind.collect::<BTreeSet<u32>>()
        };
        let begun = of(kind::FORK);
        assert!(begun.len() >= 9, "{begun:?}");
        assert_eq!(begun, of(kind::EXIT));
        assert!(!kernel.is_observed(pid));
    }
}

/// The first process of a PID namespace exits, kills the others, and sleeps until they are gone.
#[test]
fn who_sleeps_after_its_exit_is_seen_to_be_woken() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Sched, Group::Task])) else { return };
    kernel.observe(std::process::id());
    let interruptible =
        |s: &Switch| s.prev_state & (Switch::PREEMPTED | Switch::BEING_WOKEN | 1) == 1;
    for _ in 0..20 {
        let mut child = Command::new("unshare");
        child.args(["--pid", "--fork", "taskset", "--cpu-list", "0"]);
        child.args(["sh", "-c", "sleep 1000 & until [ -d /proc/$! ]; do :; done"]);
        assert!(child.status().unwrap().success());
        let records = drain(&mut kernel);
        let mut sleeping = HashMap::new();
        let (mut exited, mut slept) = (BTreeSet::new(), 0);
        for record in records {
            match record {
                Record::Task(task) if task.header.kind == kind::EXIT => {
                    exited.insert(task.tid);
                }
                Record::Switch(s) if exited.contains(&s.header.tid) && interruptible(&s) => {
                    sleeping.insert(s.header.tid, s);
                }
                Record::Waking(waking) => {
                    slept += u32::from(sleeping.remove(&waking.tid).is_some());
                }
                Record::Switch(s) => assert!(!sleeping.contains_key(&s.next_tid), "{s:?}"),
                _ => {}
            }
        }
        if slept > 0 {
            return;
        }
    }
    panic!("nobody slept after its exit");
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

/// A wait that a timer ends on a CPU that nobody observed has: who has ended it, only the interrupt tells.
#[test]
fn interrupts_that_wake_an_observed_thread_are_recorded_whomever_they_strike() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Sched, Group::Irq, Group::Task]))
    else {
        return;
    };
    let me = std::process::id();
    kernel.observe(me);
    let mut observed = BTreeSet::from([me]);
    let mut others = 0;
    // Now and then, a thread of this process has the CPU that the timer strikes.
    for _ in 0..100 {
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let records = drain(&mut kernel);
        join_children(&mut observed, &records);
        for record in &records {
            let Record::Irq(irq) = record else { continue };
            let strikes_us = observed.contains(&irq.tgid);
            assert!(strikes_us || wakes(irq, &records), "{irq:?}");
            others += usize::from(!strikes_us);
        }
        if others >= 20 {
            break;
        }
    }
    kernel.unobserve(me);
    assert!(others >= 20, "{others}");
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

#[test]
fn interrupts_have_their_entry_and_exit() {
    let options = KernelOptions { system_wide: true, ..options(&[Group::Irq]) };
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
        assert!(irq.header.ts - irq.entry_ts < 1_000_000_000, "{irq:?}");
        match irq.header.kind {
            kind::SOFTIRQ => assert!(irq.number < 32, "{irq:?}"),
            kind::VECTOR => assert!((1..=5).contains(&irq.number), "{irq:?}"),
            _ => {}
        }
    }
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

/// On a real-time kernel a thread can be preempted in a softirq, whose time is then not one interval.
#[test]
fn no_interrupt_lasts_beyond_a_switch() {
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
        let records = drain_until(&mut kernel, |_| now_ns() - begun > length);
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
    assert!(judged >= 50, "{judged}");
    assert!(!real_time || cut > 0, "nobody was preempted in a softirq");
}

#[test]
fn what_finds_no_room_is_counted_with_its_time() {
    let options = KernelOptions { ring_bytes: TINY_RING, ..options(&[Group::Sched]) };
    let before = now_ns();
    let Some(mut kernel) = kernel_or_skip(&options) else { return };
    // A sleep is two switches, unless it is over before the thread has left its CPU: on an emulated one many are.
    let (mut losses, mut lost) = (Vec::new(), 0);
    for _ in 0..10_000 {
        std::thread::sleep(std::time::Duration::from_micros(50));
        let new = kernel.losses().unwrap();
        lost += new.iter().map(|loss| loss.count).sum::<u64>();
        losses.extend(new);
        if lost >= 100 {
            break;
        }
    }
    let after = now_ns();
    assert!(lost >= 100, "{losses:?}");
    for loss in losses {
        assert_eq!(loss.program, "sched_switch");
        assert!(loss.cpu.is_some());
        assert!(before <= loss.from_ns && loss.from_ns <= loss.to_ns && loss.to_ns <= after);
    }
    assert!(drain(&mut kernel).len() >= 40, "what found room is there");
}

/// The tables of what is under way, each with room for one: of two threads that are in a call, a futex, a fault, a wait for a
/// lock of the kernel, or off the CPU at once, one is counted as lost, by the program that found no room.
#[test]
fn what_is_under_way_beyond_its_table_is_counted() {
    let pages = || {
        // SAFETY: memory of nobody else, from its making to its end.
        unsafe {
            let all = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(std::ptr::null_mut(), 1 << 20, all, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            (0..1 << 20).step_by(4096).for_each(|at| memory.cast::<u8>().add(at).write_volatile(1));
            libc::munmap(memory, 1 << 20);
        }
    };
    let sleep = || std::thread::sleep(std::time::Duration::from_millis(1));
    let mutex = std::sync::Mutex::new(());
    let contend = || {
        let _held = mutex.lock().unwrap();
        sleep();
    };
    let file = tempfile::tempfile().unwrap();
    let write = || file.write_all_at(&[0; 1 << 18], 0).unwrap();
    // Whoever sends to itself runs the softirq that receives; a guest may have no loopback device that is up.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| {
        socket.connect(socket.local_addr()?)?;
        socket.send(&[]).map(|_| socket)
    });
    let send = || {
        for _ in 0..64 {
            socket.as_ref().unwrap().send(&[0; 1024]).unwrap();
        }
    };
    type Act<'a> = &'a (dyn Fn() + Sync);
    let cases: [(Group, &str, Act<'_>); 6] = [
        (Group::Syscall, "sys_enter", &sleep),
        (Group::Futex, "futex_enter", &contend),
        (Group::Fault, "page_fault_user", &pages),
        (Group::Lock, "contention_begin", &write),
        (Group::Stack, "chain_switch", &sleep),
        (Group::Irq, "softirq_exit", &send),
    ];
    for (group, program, act) in cases {
        if group == Group::Lock && release() < (5, 19) {
            continue;
        }
        // Two softirqs at once take two CPUs.
        let one_cpu = std::thread::available_parallelism().unwrap().get() == 1;
        if group == Group::Irq && (one_cpu || socket.is_err()) {
            skipped("softirqs without room: they take two CPUs and a loopback device");
            continue;
        }
        let options = KernelOptions {
            most_under_way: Some(1),
            preempted_softirqs: group == Group::Irq,
            ..options(&[Group::Sched, group])
        };
        let Some(mut kernel) = kernel_or_skip(&options) else { return };
        kernel.observe(std::process::id());
        let done = AtomicBool::new(false);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let lost = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        act();
                    }
                });
            }
            let mut bytes = Vec::new();
            let mut lost = Vec::new();
            while lost.is_empty() && std::time::Instant::now() < deadline {
                bytes.clear();
                kernel.drain(&mut bytes, 1 << 20);
                sleep();
                // Records of the others find room in the buffers.
                lost = kernel.losses().unwrap();
                lost.retain(|loss| loss.program == program);
            }
            done.store(true, Ordering::Relaxed);
            lost
        });
        assert!(!lost.is_empty(), "{program} has lost nothing within a minute");
        assert!(lost.iter().all(|loss| loss.count > 0 && loss.from_ns <= loss.to_ns), "{lost:?}");
    }
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
