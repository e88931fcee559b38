//! What a thread does whose ring is full, where the agent asks it to wait.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::thread;

use common::{Event, Memory, start, tid};
use ft_user::layout::{Counter, Counting, MIN_RING_SLOTS, SiteKind};
use ft_user::reader::{Reader, Uncommitted};
use ft_user::ring::Ring;
use ft_user::{Config, enable, event};

const SLOTS: u64 = MIN_RING_SLOTS as u64;

fn write(numbers: std::ops::Range<u64>) {
    for n in numbers {
        event!("full.event", n: u64);
    }
}

fn waits(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| event.kind == SiteKind::RingWait)
}

fn numbers(events: &[Event]) -> impl Iterator<Item = u64> {
    events.iter().filter(|event| event.name == "full.event").map(|event| event.words[0])
}

fn lost(memory: &Memory) -> u64 {
    memory.rings().map(|ring| ring.lost.load(Relaxed)).sum()
}

#[test]
fn a_thread_waits_for_room_where_it_is_asked_to() {
    start(Config { ring_slots: MIN_RING_SLOTS, ..Config::default() });
    enable("full.*");
    let mut memory = Memory::own();
    // Nobody asks.
    write(0..2 * SLOTS);
    memory.take();
    write(0..1);
    assert_eq!(waits(&memory.take()).count(), 0);

    // Nobody reads: one wait in vain, however many events are lost.
    let before = lost(&memory);
    memory.header().full_wait_us.store(1000, Relaxed);
    write(0..3 * SLOTS);
    let lost_in_vain = lost(&memory) - before;
    assert!((SLOTS..3 * SLOTS).contains(&lost_in_vain), "{lost_in_vain}");
    assert_eq!(waits(&memory.take()).count(), 0, "there was no room for it");
    write(0..1);
    let events = memory.take();
    let [wait] = waits(&events).collect::<Vec<_>>()[..] else { panic!("one wait in {events:?}") };
    assert_eq!((wait.name.as_str(), wait.tid), ("trace.ring_wait", tid()));
    let loss = events.iter().find(|event| event.name == "loss").expect("the loss is told");
    // From the beginning to the end of the wait, and then the loss.
    assert!(wait.tsc < wait.words[0] && wait.words[0] <= loss.words[0], "{wait:?} {loss:?}");
    assert_eq!(loss.words[1], lost_in_vain);

    // Somebody reads, but not before the thread waits.
    let before = lost(&memory);
    memory.header().full_wait_us.store(60_000_000, Relaxed);
    let (written, writer) = (20 * SLOTS, tid());
    let ended = AtomicBool::new(false);
    let (events, memory) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut memory = memory;
            let full = |memory: &Memory| {
                memory.rings().any(|ring| ring.head.load(Relaxed) >= ring.limit.load(Relaxed))
            };
            while !full(&memory) || !is_asleep(writer) {
                thread::yield_now();
            }
            let mut events = Vec::new();
            // Asked before: what was written before the end is then there to be read.
            while !ended.load(Acquire) {
                events.extend(memory.take());
            }
            events.extend(memory.take());
            (events, memory)
        });
        write(0..written);
        ended.store(true, Release);
        reader.join().unwrap()
    });
    assert!(numbers(&events).is_sorted());
    assert_eq!(numbers(&events).count() as u64 + lost(&memory) - before, written);
    assert!(waits(&events).count() >= 1);
    assert!(waits(&events).all(|wait| wait.tsc < wait.words[0]));

    // One that counts waits for room for its event and what counters show, however little room there is at once.
    let before = lost(&memory);
    memory.header().full_wait_us.store(60_000_000, Relaxed);
    let counters = ["page-faults", "task-clock"].map(|name| Counter::named(name).unwrap());
    memory.header().counting.store(Counting::new(&counters, true).0, Relaxed);
    let (writer, ended) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            writer.store(tid(), Release);
            write(0..SLOTS / 3 + 50);
            ended.store(true, Release);
        });
        while !ended.load(Acquire) {
            let Some(tid) = Some(writer.load(Acquire)).filter(|tid| *tid != 0 && is_asleep(*tid))
            else {
                thread::yield_now();
                continue;
            };
            let control = memory.rings().find(|ring| ring.tid.load(Relaxed) == tid).unwrap();
            // SAFETY: slots follow each control page.
            let ring = unsafe { Ring::new(control, MIN_RING_SLOTS) }.unwrap();
            let mut one = Reader::at(control.tail.load(Relaxed));
            one.drain(&ring, Uncommitted::Wait, 1, &mut Vec::new());
        }
    });
    assert_eq!(lost(&memory), before);
    memory.header().counting.store(0, Relaxed);
}

fn is_asleep(tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    stat.is_ok_and(|stat| stat.contains(") S "))
}
