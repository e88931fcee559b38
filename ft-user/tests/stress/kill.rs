//! A process is killed at a random instruction: what it had committed is there, and nothing else.
//!
//! The child is forked, so it has a memfd of its own, which the parent maps before the kill. It counts
//! each event behind it in memory of the parent. What is recovered are the events that were counted, in
//! order, and at most one more for each thread: the one whose counting the kill has cut off.

use std::sync::atomic::{AtomicU64, Ordering::*};

use crate::common::Memory;

/// One writer with a ring, and two that share the shared ring.
const THREADS: usize = 3;
/// Events of one thread: three slots each, so that no ring is ever full.
const EVENTS: u64 = 2_500;

/// What a child tells while it lives.
#[repr(C)]
struct Progress {
    /// Events behind each thread.
    done: [AtomicU64; THREADS],
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

/// One life. Returns how many events were recovered, and whether the kill came before the end.
fn one_life(progress: &'static Progress, delay: u64) -> (u64, bool) {
    progress.ready.store(0, Relaxed);
    progress.done.iter().for_each(|done| done.store(0, Relaxed));
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
    progress.ready.fetch_add(1, Release);
    for _ in 0..delay {
        std::hint::spin_loop();
    }
    // SAFETY: a child of ours, which is not waited for yet.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
    }
    let mut seen = [const { Vec::new() }; THREADS];
    for event in memory.take_last() {
        let [thread, n, a, b, c, d] = event.words[..6] else { panic!("{event:?}") };
        assert_eq!((event.name.as_str(), [a, b, c, d]), ("kill.event", [!n, n ^ 1, n ^ 2, n ^ 3]));
        assert_eq!(event.shared, thread > 0);
        seen[thread as usize].push(n);
    }
    for (done, seen) in progress.done.iter().zip(&seen) {
        let done = done.load(Acquire);
        assert!(
            seen.iter().copied().eq(1..=seen.len() as u64),
            "a hole, or an invention: {seen:?}"
        );
        let recovered = seen.len() as u64;
        assert!((done..=done + 1).contains(&recovered), "{done} committed, {recovered} recovered");
    }
    let recovered = seen.iter().map(|seen| seen.len() as u64).sum();
    (recovered, recovered < THREADS as u64 * EVENTS)
}

#[test]
fn what_was_committed_survives_the_kill() {
    let _alone = crate::ALONE.lock();
    crate::start();
    ft_user::enable("kill.*");
    let progress = shared_progress();
    // A linear congruential generator (Knuth, MMIX): the delays are the same in each run, the
    // instructions that they hit are not.
    let mut state = 1u64;
    let (mut events, mut cut) = (0, 0);
    let lives = crate::scaled(200);
    for _ in 0..lives {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (recovered, early) = one_life(progress, (state >> 33) % 10_000);
        events += recovered;
        cut += u64::from(early);
    }
    assert!(cut > 0, "no kill came in time");
    println!("kill: {lives} processes, {cut} of them while they wrote, {events} events recovered");
}
