//! What finds no room is counted, with its program and its time.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use ft_agent::collect::kernel::{Group, KernelOptions};
use rustix::event::{Timespec, epoll};

use crate::common::{drain, kernel_or_skip, skipped};
use crate::{now_ns, options, release};

/// Room for about fifty switches.
const TINY_RING: u32 = 4096;

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

/// Whoever waits for a buffer is woken by the record that passes the mark, and not by each behind it.
#[test]
fn a_buffer_that_comes_to_be_an_eighth_full_wakes_once() {
    let options =
        KernelOptions { ring_bytes: 1 << 16, most_ring_buffers: 1, ..options(&[Group::Sched]) };
    let Some(mut kernel) = kernel_or_skip(&options) else { return };
    kernel.observe(std::process::id());
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    for buffer in kernel.ring_buffers() {
        let none = epoll::EventData::new_u64(0);
        epoll::add(&epoll, buffer, none, epoll::EventFlags::IN | epoll::EventFlags::ET).unwrap();
    }
    let woken = || {
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 1];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&epoll, &mut events, Some(&none)).unwrap().0.len()
    };
    // What is there already wakes whoever begins to wait.
    woken();
    drain(&mut kernel);
    let mut sleeps = 0;
    while woken() == 0 {
        std::thread::sleep(std::time::Duration::from_micros(100));
        sleeps += 1;
        assert!(sleeps < 10_000, "there was room for about a thousand switches");
    }
    let records = drain(&mut kernel).len();
    assert!(records >= 50, "{records} records were there");
    for _ in 0..10 {
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    // On a busy machine there may be many, of those who had the CPU meanwhile.
    let (woken, records) = (woken(), drain(&mut kernel).len());
    assert!(woken == 0 || records >= 50, "{records} records woke somebody");
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
