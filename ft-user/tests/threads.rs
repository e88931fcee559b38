//! Rings and threads: claim, exit, reuse, and the shared ring for those who come too late.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::Ordering::*;
use std::thread;

use common::{Event, Memory, tid};
use ft_user::Config;
use ft_user::layout::ring_state;

const RINGS: usize = 4;

fn tell(n: u64) {
    ft_user::event!("thread.tells", n: u64);
}

fn start() -> Memory {
    let config = Config { ring_slots: 1 << 12, rings: RINGS as u32, ..Config::default() };
    common::start(config);
    ft_user::enable("thread.*");
    Memory::own()
}

fn states(memory: &Memory) -> Vec<u32> {
    memory.rings().map(|ring| ring.state.load(Acquire)).collect()
}

/// `count` threads at once that tell one event each.
fn crowd(count: usize) -> HashSet<u32> {
    let barrier = Barrier::new(count);
    let work = || {
        tell(1);
        barrier.wait();
        tid()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Runs `work` on a thread, and returns when that has ended, not only its work.
fn on_thread(work: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(work).join().unwrap());
}

fn tids(events: &[Event]) -> HashSet<u32> {
    events.iter().map(|event| event.tid).collect()
}

// One test: its steps share the process's few rings.
#[test]
fn life_of_the_rings() {
    let mut memory = start();

    // An ended thread leaves its ring to the reader, who frees it.
    let first = crowd(1);
    assert_eq!(states(&memory), [ring_state::EXITED]);
    assert_eq!(tids(&memory.take()), first);
    assert_eq!(states(&memory), [ring_state::FREE]);

    // It is used again, by another owner.
    let before: Vec<_> = memory.rings().map(|ring| ring.head.load(Relaxed)).collect();
    let second = crowd(1);
    let ring = memory.rings().next().unwrap();
    assert_eq!(ring.generation.load(Relaxed), 2);
    assert_eq!(ring.claimed_at.load(Relaxed), before[0]);
    assert_eq!(HashSet::from([ring.tid.load(Relaxed)]), second);
    assert_eq!(tids(&memory.take()), second);

    // A thread whose events were all read when it ends frees its ring itself.
    on_thread(|| {
        tell(1);
        assert_eq!(memory.take().len(), 1);
    });
    assert_eq!(states(&memory), [ring_state::FREE]);

    // More threads than rings: the shared ring takes the rest.
    let many = crowd(3 * RINGS);
    assert_eq!(states(&memory), [ring_state::EXITED; RINGS]);
    let events = memory.take();
    assert_eq!(tids(&events), many);
    assert_eq!(events.iter().filter(|event| event.shared).count(), 2 * RINGS);
    assert_eq!(states(&memory), [ring_state::FREE; RINGS]);

    // Thread after thread, far more than rings: none is lost, and no ring either.
    for _ in 0..50 {
        let all = crowd(RINGS);
        let events = memory.take();
        assert_eq!(tids(&events), all);
        assert!(events.iter().all(|event| !event.shared));
    }

    // Nobody reads, and all rings are taken: still nothing is lost until the shared ring is full.
    crowd(RINGS);
    crowd(10);
    assert_eq!(memory.take().len(), RINGS + 10);

    // A thread that came too late gets a ring when one is free again.
    let barrier = Barrier::new(RINGS + 1);
    thread::scope(|scope| {
        let hold = || {
            tell(1);
            barrier.wait();
            barrier.wait();
        };
        let holders: Vec<_> = (0..RINGS).map(|_| scope.spawn(hold)).collect();
        barrier.wait();
        on_thread(|| {
            tell(2);
            barrier.wait();
            holders.into_iter().for_each(|holder| holder.join().unwrap());
            assert_eq!(memory.take().last().map(|event| event.shared), Some(true));
            (0..1000).for_each(tell);
            let events = memory.take();
            assert_eq!(events.len(), 1000);
            assert!(events[0].shared && !events[999].shared);
        });
    });

    // Thread-locals are destroyed before the ring is given back.
    struct Late(Cell<u64>);
    impl Drop for Late {
        fn drop(&mut self) {
            tell(self.0.get());
        }
    }
    thread_local!(static LATE: Late = const { Late(Cell::new(0)) });
    on_thread(|| LATE.with(|late| late.0.set(7)));
    let events = memory.take();
    assert_eq!(events.iter().map(|event| event.words[0]).collect::<Vec<_>>(), [7]);

    // A claim ahead of the first event.
    on_thread(|| {
        ft_user::thread_init();
        let mut mine = memory.rings().filter(|ring| ring.tid.load(Relaxed) == tid());
        assert!(mine.any(|ring| ring.state.load(Relaxed) == ring_state::LIVE));
        tell(1);
    });
    assert_eq!(memory.take().len(), 1);
}
