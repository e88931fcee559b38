//! A process is killed at a random instruction: what it had committed is there, and nothing else.
//!
//! The child is forked, so it has a memfd of its own, which the parent maps and drains until the kill. It
//! counts each event behind it in memory of the parent. What is recovered are the events that were counted,
//! in order, and at most one more for each thread: the one whose counting the kill has cut off. Threads
//! write more than the rings hold, so that many a kill leaves the events of an older lap behind.

use std::sync::atomic::{AtomicU64, Ordering::*};

use ft_user::layout::SHARED_SLOTS;

use crate::common::{Event, Memory};

/// One writer with a ring, and two that share the shared ring.
const THREADS: usize = 3;
/// Most events of one thread: three slots each, more than a lap of a ring, and seven of the shared ring.
const EVENTS: u64 = 30_000;
/// Events of a thread that are not read yet, at most: so many of each fit, however late the reader is.
const AHEAD: u64 = SHARED_SLOTS as u64 / THREADS as u64;

/// What a child tells while it lives.
#[repr(C)]
struct Progress {
    /// Events behind each thread.
    done: [AtomicU64; THREADS],
    /// Of these, those that the parent has read.
    read: [AtomicU64; THREADS],
    /// Threads that run.
    ready: AtomicU64,
}

fn shared_progress() -> &'static Progress {
    // SAFETY: a new mapping, large enough, zeroed, shared with children, and never unmapped.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        &*memory.cast()
    }
}

fn write(thread: usize, progress: &Progress) {
    progress.ready.fetch_add(1, Release);
    while progress.ready.load(Acquire) < THREADS as u64 + 1 {
        std::thread::yield_now();
    }
    for n in 1..=EVENTS {
        while n > progress.read[thread].load(Acquire) + AHEAD {
            std::thread::yield_now();
        }
        ft_user::event!("kill.event", thread: u64 = thread as u64, n: u64, a: u64 = !n,
            b: u64 = n ^ 1, c: u64 = n ^ 2, d: u64 = n ^ 3);
        progress.done[thread].store(n, Release);
    }
}

/// The child: never returns.
fn child(progress: &'static Progress) -> ! {
    for thread in 1..THREADS {
        std::thread::spawn(move || {
            // As a thread that found no ring free.
            ft_user::thread::clear(ft_user::thread::Claim::Over);
            write(thread, progress)
        });
    }
    write(0, progress);
    loop {
        std::thread::yield_now();
    }
}

/// The numbers of the events that were recovered, thread by thread.
#[derive(Default)]
struct Recovered([Vec<u64>; THREADS]);

impl Recovered {
    fn add(&mut self, events: Vec<Event>) {
        for event in events {
            let [thread, n, a, b, c, d] = event.words[..6] else { panic!("{event:?}") };
            assert_eq!(
                (event.name.as_str(), [a, b, c, d]),
                ("kill.event", [!n, n ^ 1, n ^ 2, n ^ 3])
            );
            assert_eq!(event.shared, thread > 0);
            self.0[thread as usize].push(n);
        }
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|seen| seen.len() as u64).sum()
    }

    /// All that was counted is there, once, in order, and nothing else.
    fn check(&self, progress: &Progress) {
        for (done, seen) in progress.done.iter().zip(&self.0) {
            let (done, recovered) = (done.load(Acquire), seen.len() as u64);
            assert!(seen.iter().copied().eq(1..=recovered), "a hole, or an invention: {seen:?}");
            assert!(
                (done..=done + 1).contains(&recovered),
                "{done} committed, {recovered} recovered"
            );
        }
    }
}

/// One life, which ends some instructions after `events` events were read. Returns how many were recovered.
fn one_life(progress: &'static Progress, events: u64, instructions: u64) -> u64 {
    progress.ready.store(0, Relaxed);
    progress.done.iter().chain(&progress.read).for_each(|count| count.store(0, Relaxed));
    // SAFETY: the child only writes events and starts threads, and is killed.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child(progress);
    }
    assert!(pid > 0);
    while progress.ready.load(Acquire) < THREADS as u64 {
        std::thread::yield_now();
    }
    let mut memory = Memory::of(pid as u32);
    let mut recovered = Recovered::default();
    progress.ready.fetch_add(1, Release);
    while recovered.total() < events {
        std::thread::yield_now();
        recovered.add(memory.take());
        for (read, seen) in progress.read.iter().zip(&recovered.0) {
            read.store(seen.len() as u64, Release);
        }
    }
    for _ in 0..instructions {
        std::hint::spin_loop();
    }
    // SAFETY: a child of ours, which is not waited for yet.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
    }
    recovered.add(memory.take_last());
    recovered.check(progress);
    recovered.total()
}

#[test]
fn what_was_committed_survives_the_kill() {
    let _alone = crate::ALONE.lock();
    crate::start();
    ft_user::enable("kill.*");
    let progress = shared_progress();
    // A linear congruential generator (Knuth, MMIX): the moments are the same in each run, the
    // instructions that they hit are not.
    let mut state = 1u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let (mut events, mut cut) = (0, 0);
    let lives = crate::scaled(60);
    let most = THREADS as u64 * EVENTS;
    for _ in 0..lives {
        let recovered = one_life(progress, next(most / 2), next(1_000));
        events += recovered;
        cut += u64::from(recovered < most);
    }
    assert!(cut > 0, "no kill came in time");
    println!("kill: {lives} processes, {cut} of them while they wrote, {events} events recovered");
}
