//! A signal storm: handlers that write events at 10 kHz, on threads that write all the time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

use crate::common::{Event, Memory};

/// Interval of the timer of each thread.
const PERIOD_NS: i64 = 100_000;

/// Events that are not read yet, at most: half a ring of so many fits, however late the reader is.
const AHEAD: u64 = crate::SLOTS as u64 / 2 / SLOTS_OF_EVENT;

/// Slots that an event takes, at most.
const SLOTS_OF_EVENT: u64 = 2;

static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Events that threads and handlers have written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Of these, those that are read.
static READ: AtomicU64 = AtomicU64::new(0);

/// Whether one more may be written.
fn has_room() -> bool {
    WRITTEN.load(Relaxed) < READ.load(Acquire) + AHEAD
}

extern "C" fn handler(_: libc::c_int) {
    if !has_room() {
        return;
    }
    WRITTEN.fetch_add(1, Relaxed);
    let n = HANDLED.fetch_add(1, Relaxed) + 1;
    ft_user::event!("storm.inner", n: u64, inverse: u64 = !n, third: u64 = n ^ 7);
}

/// A timer that sends `SIGRTMIN` to the calling thread until it is dropped.
struct Timer(libc::timer_t);

impl Timer {
    fn new() -> Timer {
        // SAFETY: all structures are valid and may be zero elsewhere; the handler only counts and writes
        // an event; `gettid` names the calling thread, which outlives the timer.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            assert_eq!(libc::sigaction(libc::SIGRTMIN(), &action, std::ptr::null_mut()), 0);
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGRTMIN();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = std::mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            let period = libc::timespec { tv_sec: 0, tv_nsec: PERIOD_NS };
            let spec = libc::itimerspec { it_interval: period, it_value: period };
            assert_eq!(libc::timer_settime(timer, 0, &spec, std::ptr::null_mut()), 0);
            Timer(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: a timer that exists.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Numbers of one kind of events, in the order of their slots: each once, from 1 on, none missing.
#[derive(Default)]
struct Sequence {
    seen: Vec<bool>,
}

impl Sequence {
    fn add(&mut self, n: u64) {
        let at = n as usize - 1;
        self.seen.resize(self.seen.len().max(at + 1), false);
        assert!(!self.seen[at], "event {n} came twice");
        self.seen[at] = true;
    }

    fn complete(&self) -> u64 {
        assert!(self.seen.iter().all(|&seen| seen), "an event is missing");
        self.seen.len() as u64
    }
}

fn whole(event: &Event) -> u64 {
    let n = event.words[0];
    assert_eq!(event.words[1..3], [!n, n ^ 7], "torn: {event:?}");
    n
}

#[test]
fn storm_loses_and_tears_nothing() {
    let _alone = crate::ALONE.lock();
    crate::start();
    ft_user::enable("storm.*");
    let mut memory = Memory::own();
    memory.take();
    HANDLED.store(0, Relaxed);
    let stop = AtomicBool::new(false);
    let end = Instant::now() + Duration::from_secs(crate::scaled(1));
    let (mut inner, mut outer) = (Sequence::default(), HashMap::<u32, u64>::new());
    let written = std::thread::scope(|scope| {
        let stop = &stop;
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let _timer = Timer::new();
                    let mut n = 0u64;
                    while !stop.load(Relaxed) {
                        if !has_room() {
                            std::thread::yield_now();
                            continue;
                        }
                        WRITTEN.fetch_add(1, Relaxed);
                        n += 1;
                        ft_user::event!("storm.outer", n: u64, inverse: u64 = !n, third: u64 = n ^ 7);
                        // Slow enough for a reader that has a CPU: handlers are to come while it writes, not while it waits.
                        for _ in 0..300 {
                            std::hint::spin_loop();
                        }
                    }
                    n
                })
            })
            .collect();
        let mut take = |memory: &mut Memory| {
            let events = memory.take();
            READ.fetch_add(events.len() as u64, Release);
            for event in events {
                let n = whole(&event);
                match event.name.as_str() {
                    "storm.inner" => inner.add(n),
                    // In order: a thread's own events never pass each other.
                    "storm.outer" => {
                        let last = outer.entry(event.tid).or_default();
                        assert_eq!(n, *last + 1, "an event is missing or late");
                        *last = n;
                    }
                    other => panic!("{other}"),
                }
            }
        };
        while Instant::now() < end {
            take(&mut memory);
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Relaxed);
        let written: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        take(&mut memory);
        written
    });
    assert_eq!(outer.values().sum::<u64>(), written);
    let handled = HANDLED.load(Relaxed);
    assert_eq!(inner.complete(), handled);
    assert!(handled > 0);
    println!("storm: {handled} events of handlers, {written} of threads");
}
