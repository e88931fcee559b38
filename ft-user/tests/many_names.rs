//! More names of locks than have numbers.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use common::Memory;
use ft_user::Config;
use ft_user::sync::Mutex;

/// As many names as have numbers, at most (`intern.rs`).
const NAMES: usize = 1024;

#[test]
fn locks_whose_names_have_no_number_are_told_without() {
    common::start(Config::default());
    assert!(ft_user::enable("lock.*") > 0);
    let mut memory = Memory::own();
    memory.take();
    let (mut named, mut unnamed) = (0, 0);
    for n in 0..NAMES + 76 {
        let name: &'static str = format!("lock {n}").leak();
        let lock = Mutex::named(name, ());
        drop(lock.lock().unwrap());
        let events = memory.take();
        let said: Vec<_> = events.iter().map(|event| (&*event.name, event.words[0])).collect();
        let address = std::ptr::from_ref(&lock) as u64;
        assert_eq!(said, [("lock.mutex_acquire", address), ("lock.mutex_release", address)]);
        match (events[0].words[1] >> 32) as u32 {
            0 => unnamed += 1,
            number => {
                assert_eq!(memory.name(number), name);
                named += 1;
            }
        }
    }
    // A few have none before the table is full: the places where they would be are taken.
    assert!((NAMES / 2..=NAMES).contains(&named), "{named}");
    assert_eq!(named + unnamed, NAMES + 76);
}
