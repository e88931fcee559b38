//! A thousand threads that come and go, more at once than there are rings, beside the reader.
//!
//! A thread begins only while what is not read yet would fit into the shared ring alone: then nothing may
//! be lost, however late the reader is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ft_user::layout::SHARED_SLOTS;

use crate::common::Memory;

const AT_ONCE: u64 = 100;
const EVENTS: u64 = 20;

#[test]
fn threads_come_and_go() {
    let _alone = crate::ALONE.lock();
    crate::start();
    ft_user::enable("crowd.*");
    let mut memory = Memory::own();
    memory.take();
    let total = crate::scaled(1000);
    let (begun, ended, read) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let mut seen = HashMap::<u64, Vec<u64>>::new();
    let mut shared = 0;
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let id = begun.fetch_add(1, Relaxed);
                if id >= total {
                    break;
                }
                while (id + 1) * EVENTS > read.load(Relaxed) + u64::from(SHARED_SLOTS) {
                    std::thread::yield_now();
                }
                // A thread of its own for each number; its parent waits for it.
                let child = std::thread::spawn(move || {
                    for n in 0..EVENTS {
                        ft_user::event!("crowd.member", id: u64, n: u64, sum: u64 = id + n);
                        if n % 5 == 4 {
                            std::thread::yield_now();
                        }
                    }
                });
                child.join().unwrap();
                ended.fetch_add(1, Relaxed);
            }
        };
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
        loop {
            let last = ended.load(Relaxed) == total;
            for event in memory.take() {
                let [id, n, sum, ..] = event.words[..] else { panic!("{event:?}") };
                assert_eq!((event.name.as_str(), sum), ("crowd.member", id + n), "torn: {event:?}");
                seen.entry(id).or_default().push(n);
                shared += u64::from(event.shared);
                read.fetch_add(1, Relaxed);
            }
            if last {
                break;
            }
        }
    });
    assert_eq!(memory.shared().0.lost.load(Relaxed), 0);
    assert_eq!(seen.len() as u64, total);
    for (id, mut numbers) in seen {
        // A thread that gets a ring late has its first events in the shared ring.
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..EVENTS), "thread {id} lacks events");
    }
    println!("crowd: {total} threads, {shared} of {} events in the shared ring", total * EVENTS);
}
