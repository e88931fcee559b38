//! Times of two threads that hand a lock over: an acquisition is not before the release that made it possible.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::time::{Duration, Instant};
use std::{hint, mem, thread};

use common::Memory;
use ft_user::Config;
use ft_user::layout::SiteKind;

/// Acquisitions of each thread, at most: both events of all of them fit into a ring.
const ROUNDS: u32 = 200_000;

/// How long it goes on at most, on a busy machine.
const LIMIT: Duration = Duration::from_secs(3);

/// A spin lock that is handed over: who comes first has it first.
#[derive(Default)]
struct TicketLock {
    next: AtomicU32,
    serving: AtomicU32,
}

impl TicketLock {
    /// The shortest critical section that there is: nothing between the two events.
    fn hold_once(&self) {
        let own = self.next.fetch_add(1, Relaxed);
        let mut spins = 0;
        while self.serving.load(Acquire) != own {
            hint::spin_loop();
            spins += 1;
            if spins % 10_000 == 0 {
                // The other thread has no CPU.
                thread::yield_now();
            }
        }
        ft_user::__event!(kind = LockAcquire, "order.acquire", lock: *const () = self.address(), place: u64 = 0);
        ft_user::__event!(kind = LockRelease, "order.release", lock: *const () = self.address(), place: u64 = 0);
        self.serving.store(own.wrapping_add(1), Release);
    }

    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }
}

/// The CPUs that this process may use.
fn cpus() -> Vec<usize> {
    // SAFETY: all of it may be zero, and the kernel writes no more than its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
        set
    };
    // SAFETY: below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

fn pin(cpu: usize) {
    // SAFETY: all of it may be zero; the CPU is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
    }
}

#[test]
fn no_acquisition_is_before_the_release_of_the_last_holder() {
    let cpus = cpus();
    let [first, second, ..] = cpus[..] else {
        println!("skipped: one CPU hands nothing over");
        return;
    };
    common::start(Config { ring_slots: 1 << 19, ..Config::default() });
    ft_user::enable("order.*");
    let mut memory = Memory::own();
    let (lock, barrier) = (TicketLock::default(), Barrier::new(2));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for cpu in [first, second] {
            let (lock, barrier, done) = (&lock, &barrier, &done);
            scope.spawn(move || {
                pin(cpu);
                ft_user::thread_init();
                barrier.wait();
                let end = Instant::now() + LIMIT;
                for n in 0..ROUNDS {
                    if done.load(Relaxed) || n % 1024 == 0 && Instant::now() > end {
                        break;
                    }
                    lock.hold_once();
                }
                // Alone it would hand nothing over.
                done.store(true, Relaxed);
            });
        }
    });

    // By thread, in the order of writing; `take` sorts by time, which must not matter here.
    let mut threads: HashMap<u32, Vec<(u64, SiteKind)>> = HashMap::new();
    for event in memory.take() {
        threads.entry(event.tid).or_default().push((event.tsc, event.kind));
    }
    let holds = |events: &[(u64, SiteKind)]| -> Vec<(u64, u64)> {
        let pairs = events.chunks_exact(2);
        pairs
            .map(|pair| {
                assert_eq!((pair[0].1, pair[1].1), (SiteKind::LockAcquire, SiteKind::LockRelease));
                (pair[0].0, pair[1].0)
            })
            .collect()
    };
    let mut all: Vec<(u64, u64, u32)> = threads
        .iter()
        .flat_map(|(&tid, events)| holds(events).into_iter().map(move |(a, r)| (a, r, tid)))
        .collect();
    all.sort_unstable();
    let handovers = all.windows(2).filter(|two| two[0].2 != two[1].2).count();
    let early = all.windows(2).filter(|two| two[1].0 < two[0].1);
    let early: Vec<u64> = early.map(|two| two[0].1 - two[1].0).collect();
    println!("{handovers} handovers, {} too early: {early:?}", early.len());
    assert!(handovers > 0);
    assert_eq!(early, [], "cycles by which acquisitions are before the last release");
}
