//! What is under way in threads: calls that are denied, whose thread gets another number, leaves its cgroup, or is there at the
//! end.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ft_agent::collect::cgroup::Cgroup;
use ft_agent::collect::kernel::{Group, Kernel, KernelOptions};
use ft_ebpf::{COMPAT, Futex, Syscall, kind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::common::{Record, drain, drain_until, kernel_or_skip, parse};
use crate::options;

/// Says to a child which of these it is.
const CHILD: &str = "FT_UNDER_WAY";

fn is_child(name: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|child| child == name)
}

/// This program once more, for one test, as the child of this name.
fn child(test: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("under_way::{test}"), "--test-threads=1"]).env(CHILD, name);
    command.stdout(Stdio::null());
    command
}

fn observed(kernel: &mut Kernel, mut command: Command) -> (Child, Vec<Record>) {
    kernel.observe(std::process::id());
    let mut child = command.spawn().unwrap();
    let mut records = drain(kernel);
    let status = loop {
        records.extend(drain(kernel));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(status.success(), "{status}");
    records.extend(drain(kernel));
    (child, records)
}

/// The calls of a process, in the order of their records' times: each CPU has a buffer of its own.
fn calls(records: &[Record], pid: u32) -> Vec<Syscall> {
    let of = |record: &Record| match record {
        Record::Syscall(call) if call.tgid == pid => Some(*call),
        _ => None,
    };
    let mut calls: Vec<Syscall> = records.iter().filter_map(of).collect();
    calls.sort_by_key(|call| call.header.ts);
    calls
}

fn numbered(calls: &[Syscall], number: i64) -> Vec<Syscall> {
    calls.iter().filter(|call| i64::from(call.number) == number).copied().collect()
}

/// Programs do not enter what a filter denies.
#[test]
fn a_call_that_a_filter_denies_takes_no_time() {
    const TEST: &str = "a_call_that_a_filter_denies_takes_no_time";
    if is_child("filtered") {
        let instruction =
            |code: u32, jt, jf, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut filter = [
            // The number is the first word.
            instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            instruction(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                0,
                1,
                libc::SYS_getppid as u32,
            ),
            instruction(
                libc::BPF_RET | libc::BPF_K,
                0,
                0,
                libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            ),
            instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: the filter is there while the call reads it.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program), 0);
            for _ in 0..100 {
                libc::getppid();
            }
        }
        return;
    }
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Syscall])) else { return };
    let (child, records) = observed(&mut kernel, child(TEST, "filtered"));
    let denied = numbered(&calls(&records, child.id()), libc::SYS_getppid);
    assert_eq!(denied.len(), 100);
    for call in denied {
        assert_eq!((call.header.kind, call.ret), (kind::SYSCALL, -i64::from(libc::EPERM)));
        assert_eq!(call.entry_ts, call.header.ts);
    }
}

/// A thread that is not the first of its process gets the number of that one when it executes a program.
#[test]
fn an_execution_by_another_thread_ends_its_number() {
    const TEST: &str = "an_execution_by_another_thread_ends_its_number";
    if is_child("first") {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let error = child(TEST, "second").exec();
                panic!("{error}");
            });
            loop {
                std::thread::park();
            }
        });
    }
    if is_child("second") {
        return;
    }
    let groups = [Group::Syscall, Group::Futex, Group::Fault, Group::Stack, Group::Sched];
    let Some(mut kernel) = kernel_or_skip(&options(&groups)) else { return };
    let (child, records) = observed(&mut kernel, child(TEST, "first"));
    let pid = child.id();
    let tasks = records.iter().filter_map(|record| match record {
        Record::Task(task) if task.tgid == pid => Some(task),
        _ => None,
    });
    // Each CPU has a buffer of its own.
    let mut tasks: Vec<_> = tasks.collect();
    tasks.sort_by_key(|task| task.header.ts);
    let mut lives: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
    for task in tasks {
        lives.entry(task.tid).or_default().push(task.header.kind);
    }
    for (tid, life) in &lives {
        assert_eq!(life.iter().filter(|kind| **kind == kind::FORK).count(), 1, "{tid}: {life:?}");
        assert_eq!(life.last(), Some(&kind::EXIT), "{tid}: {life:?}");
    }
    let executions = numbered(&calls(&records, pid), libc::SYS_execve);
    let whole: Vec<_> = executions
        .iter()
        .filter(|call| call.header.kind == kind::SYSCALL && call.ret == 0)
        .collect();
    // That of the first program, and that of the second: it has the number with which it was entered.
    assert_eq!(whole.len(), 2, "{executions:?}");
    assert_eq!(whole[0].header.tid, pid);
    assert_ne!(whole[1].header.tid, pid);
    let began_in = executions.iter().filter(|call| call.header.kind == kind::SYSCALL_ENDED);
    assert_eq!(began_in.map(|call| call.header.tid).collect::<Vec<_>>(), [pid]);
    assert!(executions.iter().all(|call| call.header.kind != kind::SYSCALL_BEGUN));
    nothing_is_kept(&kernel, |tid| lives.contains_key(&tid));
}

/// Waits until the last of these threads have left their CPUs.
fn nothing_is_kept(kernel: &Kernel, of: impl Fn(u32) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(100);
    loop {
        let kept = kernel
            .kept()
            .map(|(table, tids)| (table, tids.into_iter().filter(|tid| of(*tid)).count()));
        if kept.iter().all(|(_, count)| *count == 0) {
            return;
        }
        assert!(Instant::now() < deadline, "{kept:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Since Linux 6.16 a thread gives back its memory behind the tracepoint of its end: what it writes there can be a page fault.
#[test]
fn nothing_is_kept_of_threads_that_have_ended() {
    const TEST: &str = "nothing_is_kept_of_threads_that_have_ended";
    const THREADS: usize = 200;
    if is_child("clears") {
        // SAFETY: new memory; each thread has a page of it, which the kernel writes to when the thread has ended.
        let pages = unsafe {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let pages = libc::mmap(std::ptr::null_mut(), 4096 * THREADS, access, kind, -1, 0);
            libc::madvise(pages, 4096 * THREADS, libc::MADV_NOHUGEPAGE);
            pages.addr()
        };
        for thread in 0..THREADS {
            // SAFETY: the thread has nothing left to do; the memory of its stack stays.
            let ends = move || unsafe {
                libc::syscall(libc::SYS_set_tid_address, pages + 4096 * thread);
                libc::syscall(libc::SYS_exit, 0);
            };
            drop(std::thread::spawn(ends));
        }
        while std::fs::read_dir("/proc/self/task").unwrap().count() > 2 {
            std::thread::yield_now();
        }
        std::process::exit(0);
    }
    let groups = [Group::Syscall, Group::Futex, Group::Fault, Group::Stack, Group::Sched];
    let Some(mut kernel) = kernel_or_skip(&options(&groups)) else { return };
    let (child, records) = observed(&mut kernel, child(TEST, "clears"));
    let of = |record: &Record| match record {
        Record::Task(task) if task.tgid == child.id() => Some(task.tid),
        _ => None,
    };
    let tids: BTreeSet<u32> = records.iter().filter_map(of).collect();
    assert!(tids.len() > THREADS);
    nothing_is_kept(&kernel, |tid| tids.contains(&tid));
}

/// A thread that leaves the cgroup within a call.
#[test]
fn a_call_in_which_a_thread_leaves_the_cgroup_returns() {
    const TEST: &str = "a_call_in_which_a_thread_leaves_the_cgroup_returns";
    if is_child("sleeps") {
        // Until the other one has closed its end of the pipe.
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let stdin = std::io::stdin();
        while poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&now)).unwrap() == 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
        return;
    }
    let root = match Cgroup::open(Path::new("/")) {
        Ok(root) => root,
        Err(error) => return crate::common::skipped(&error.to_string()),
    };
    let dir = root.directory().join(format!("feather-trace-call-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir(&dir) {
        return crate::common::skipped(&error.to_string());
    }
    let enter =
        |dir: &Path, pid: u32| std::fs::write(dir.join("cgroup.procs"), pid.to_string()).unwrap();
    let name = dir.file_name().unwrap().to_owned();
    let cgroup = Cgroup::open(Path::new(&name)).unwrap();
    let groups = [Group::Syscall, Group::Stack, Group::Sched];
    let options = KernelOptions { cgroup: Some(cgroup), ..options(&groups) };
    let Some(mut kernel) = kernel_or_skip(&options) else { return };
    let mut child = child(TEST, "sleeps").stdin(Stdio::piped()).spawn().unwrap();
    enter(&dir, child.id());
    let pid = child.id();
    let sleeps =
        |records: &[Record]| !numbered(&calls(records, pid), libc::SYS_clock_nanosleep).is_empty();
    let mut records = drain_until(&mut kernel, sleeps);
    std::thread::sleep(Duration::from_millis(20));
    enter(root.directory(), child.id());
    // Closes its input first.
    assert!(child.wait().unwrap().success());
    records.extend(drain(&mut kernel));
    std::fs::remove_dir(&dir).unwrap();
    let mut calls = numbered(&calls(&records, pid), libc::SYS_clock_nanosleep);
    // In the first one it entered the cgroup.
    calls.retain(|call| call.header.kind != kind::SYSCALL_ENDED);
    assert!(!calls.is_empty());
    assert!(calls.iter().all(|call| call.header.kind == kind::SYSCALL), "{calls:?}");
    kernel.end();
    let mut left = Vec::new();
    assert!(kernel.unreturned(&mut left));
    let left = parse(&left);
    assert!(
        left.iter().all(|record| !calls.iter().any(|call| call.header.tid == record.header().tid)),
        "{left:?}"
    );
}

/// The times of a call about a futex are those of the machine, wherever the thread has them from.
#[test]
fn a_time_of_a_time_namespace_is_one_of_the_machine() {
    const TEST: &str = "a_time_of_a_time_namespace_is_one_of_the_machine";
    const AHEAD: i64 = 100_000;
    if is_child("ahead") {
        let word = 0_u32;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: all are there while the calls use them.
        unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
            let wait = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, &raw const word, wait, 0, &raw const time, 0, u32::MAX);
        }
        return;
    }
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Futex])) else { return };
    let own = child(TEST, "ahead");
    let mut command = Command::new("unshare");
    // Who is forked is in the namespace. One that is only executed there is not, before Linux 6.0, and may begin no thread.
    command.args(["-T", "--fork", "--monotonic", &AHEAD.to_string()]);
    command.arg(own.get_program()).args(own.get_args()).env(CHILD, "ahead").stdout(Stdio::null());
    let now_s = crate::now_ns() as i64 / 1_000_000_000;
    let (_, records) = observed(&mut kernel, command);
    let waits: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Futex(f)
                if f.op & !Futex::OP_FLAGS == Futex::OP_WAIT_BITSET
                    && f.flags & Futex::TIMEOUT != 0 =>
            {
                Some(f)
            }
            _ => None,
        })
        .filter(|f| f.op & Futex::OP_CLOCK_REALTIME == 0 && f.tgid != std::process::id())
        .collect();
    assert!(!waits.is_empty());
    assert!(waits.iter().all(|f| (now_s..now_s + 1000).contains(&f.timeout_s)), "{waits:?}");
}

/// As programs of 32 bits make them.
#[test]
fn a_call_of_32_bits_says_so() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Syscall])) else { return };
    kernel.observe(std::process::id());
    let tid = crate::my_tid();
    let mut number: u64 = 20;
    // SAFETY: `getpid` changes no memory; the entry of such calls clears these registers on some kernels.
    unsafe {
        std::arch::asm!(
            "int 0x80", inout("rax") number, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if number != u64::from(std::process::id()) {
        crate::common::skipped("the kernel has no calls of 32 bits");
        return;
    }
    // SAFETY: closes nothing.
    unsafe { libc::close(-1) };
    let calls = calls(&drain(&mut kernel), std::process::id());
    let mine: Vec<_> = calls.iter().filter(|call| call.header.tid == tid).collect();
    let of_32: Vec<_> = mine.iter().filter(|call| call.file == COMPAT).collect();
    assert_eq!(of_32.len(), 1, "{mine:?}");
    assert_eq!((of_32[0].number, of_32[0].ret), (20, i64::from(std::process::id())));
    assert!(
        mine.iter().any(|call| i64::from(call.number) == libc::SYS_close && call.file != COMPAT)
    );
}

/// Calls one after the other in many threads: each is in a ring buffer or under way, and none between.
#[test]
fn no_call_is_lost_between_the_rings_and_what_is_under_way() {
    const THREADS: usize = 16;
    const CYCLE: [i64; 4] =
        [libc::SYS_nanosleep, libc::SYS_clock_nanosleep, libc::SYS_ppoll, libc::SYS_pselect6];
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Syscall])) else { return };
    let stop = AtomicBool::new(false);
    let done = || stop.load(Relaxed);
    let rounds = [const { AtomicU64::new(0) }; THREADS];
    std::thread::scope(|scope| {
        let tids: Vec<_> = rounds
            .iter()
            .map(|rounds| {
                let (tell, told) = std::sync::mpsc::channel();
                scope.spawn(move || {
                    tell.send(crate::my_tid()).unwrap();
                    let time = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
                    while !done() {
                        rounds.fetch_add(1, Relaxed);
                        for call in CYCLE {
                            // SAFETY: no descriptors; the time is there while the call reads it.
                            unsafe {
                                match call {
                                    libc::SYS_nanosleep => libc::syscall(call, &raw const time, 0),
                                    libc::SYS_clock_nanosleep => {
                                        libc::syscall(call, 1, 0, &raw const time, 0)
                                    }
                                    libc::SYS_ppoll => {
                                        libc::syscall(call, 0, 0, &raw const time, 0, 8)
                                    }
                                    _ => libc::syscall(call, 0, 0, 0, 0, &raw const time, 0),
                                };
                            }
                        }
                    }
                });
                told.recv().unwrap()
            })
            .collect();
        kernel.observe(std::process::id());
        // A whole round of each at least.
        let before = rounds.each_ref().map(|rounds| rounds.load(Relaxed));
        let is_seen = |n: usize| rounds[n].load(Relaxed) > before[n] + 1;
        while !(0..THREADS).all(is_seen) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended = kernel.end();
        // What is recorded no more is called meanwhile.
        std::thread::sleep(Duration::from_millis(20));
        let mut records = drain(&mut kernel);
        let mut left = Vec::new();
        assert!(kernel.unreturned(&mut left));
        stop.store(true, Relaxed);
        records.extend(parse(&left));
        assert!(records.iter().all(|record| record.header().ts <= ended));
        let calls = calls(&records, std::process::id());
        let mut sleep = 0;
        for tid in tids {
            let of = calls.iter().filter(|call| call.header.tid == tid);
            let in_cycle = of.filter_map(|call| {
                let at = CYCLE.iter().position(|number| *number == i64::from(call.number))?;
                Some((at, call.header.kind))
            });
            let cycle: Vec<_> = in_cycle.collect();
            assert!(cycle.len() > 1, "thread {tid}");
            for pair in cycle.windows(2) {
                assert_eq!((pair[0].0 + 1) % CYCLE.len(), pair[1].0, "thread {tid}: {cycle:?}");
            }
            sleep += usize::from(cycle.last().unwrap().1 == kind::SYSCALL_BEGUN);
        }
        assert!(sleep > 0, "nobody sleeps");
    });
}

/// A thread that has left the CPU and not come back has its chain at the end, wherever places are kept.
#[test]
fn a_thread_that_hangs_at_the_end_has_its_chain() {
    for places_are_made in [false, true] {
        let options = KernelOptions { places_are_made, ..options(&[Group::Sched, Group::Stack]) };
        let Some(mut kernel) = kernel_or_skip(&options) else { return };
        kernel.observe(std::process::id());
        let (go, hangs) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let hanging = std::thread::spawn(move || {
            tell.send(crate::my_tid()).unwrap();
            hangs.recv().unwrap_err();
        });
        let tid = told.recv().unwrap();
        let sleeps = |records: &[Record]| {
            let of = |record: &&Record| match record {
                Record::Switch(s) => s.header.tid == tid || s.next_tid == tid,
                _ => false,
            };
            let last = records.iter().rfind(of);
            matches!(last, Some(Record::Switch(s)) if s.header.tid == tid && s.prev_state & 1 != 0)
        };
        drain_until(&mut kernel, sleeps);
        // Longer than who has a chain.
        std::thread::sleep(Duration::from_millis(2));
        let ended = kernel.end();
        let mut left = Vec::new();
        assert!(kernel.unreturned(&mut left));
        let chains = parse(&left).into_iter().filter_map(|record| match record {
            Record::Chain(chain) if chain.header.tid == tid => Some(chain),
            _ => None,
        });
        let chains: Vec<_> = chains.collect();
        let [chain] = &chains[..] else { panic!("{places_are_made}: {chains:?}") };
        assert_eq!((chain.header.kind, chain.header.ts), (kind::CHAIN_OFF_CPU, ended));
        assert_eq!((chain.tgid, chain.preempted), (std::process::id(), 0));
        assert!(chain.user > 0 && chain.kernel == 0 && chain.left_ts < ended, "{chain:?}");
        drop(go);
        hanging.join().unwrap();
    }
}
