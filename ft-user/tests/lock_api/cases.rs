//! What the wrappers tell of the locks of either version of `lock_api`, whose types and condition variable the test that
//! includes this file names.

use std::sync::Mutex as StdMutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::common::{Event, Memory, start, tid};
use super::{Condvar, Mutex, RawMutex, RwLock, address, api, times_out, wait_until_set};
use ft_user::layout::SiteKind::{self, *};
use ft_user::{Config, enable};

/// One test at a time reads the memfd.
static READER: StdMutex<()> = StdMutex::new(());

/// The events that `body` writes, with the memfd to look names and places up.
fn recorded(body: impl FnOnce()) -> (Memory, Vec<Event>) {
    let _one = READER.lock();
    start(Config::default());
    enable("lock.*");
    let mut memory = Memory::own();
    memory.take();
    body();
    let events = memory.take();
    (memory, events)
}

/// What this thread tells of its locks.
fn told(body: impl FnOnce()) -> Vec<(String, SiteKind)> {
    let events = recorded(body).1.into_iter().filter(|event| event.tid == tid());
    events.map(|event| (event.name.trim_start_matches("lock.").to_owned(), event.kind)).collect()
}

fn check(body: impl FnOnce(), expected: &[(&str, SiteKind)]) {
    let expected: Vec<_> = expected.iter().map(|&(name, kind)| (name.to_owned(), kind)).collect();
    assert_eq!(told(body), expected);
}

#[test]
fn mutex_tells_name_and_place() {
    static NAMED: Mutex<u32> = Mutex::from_raw(RawMutex::named("ledger"), 0);
    let mut line = 0;
    let (memory, events) = recorded(|| {
        line = line!() + 1;
        *NAMED.lock() += 1;
    });
    let own: Vec<_> = events.iter().filter(|event| event.tid == tid()).collect();
    let [acquire, release] = own[..] else { panic!("two events, not {events:?}") };
    assert_eq!((acquire.kind, release.kind), (LockAcquire, LockRelease));
    assert_eq!(acquire.words, release.words);
    let word = acquire.words[1];
    assert_eq!(memory.name((word >> 32) as u32), "ledger");
    assert_eq!(memory.place(word as u32), (file!().to_owned(), line));
}

#[test]
fn every_way_to_release_is_told() {
    use api::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
    let (mutex, lock) = (Mutex::new(0), RwLock::new(0));
    let both = [("mutex_acquire", LockAcquire), ("mutex_release", LockRelease)];
    check(|| drop(mutex.lock()), &both);
    check(|| drop(mutex.try_lock()), &both);
    check(|| drop(mutex.try_lock_for(Duration::ZERO)), &both);
    check(|| MutexGuard::unlock_fair(mutex.lock()), &both);
    check(|| MutexGuard::bump(&mut mutex.lock()), &[both, both].concat());
    let read = [("rwlock_read_acquire", LockAcquire), ("rwlock_read_release", LockRelease)];
    let write = [("rwlock_write_acquire", LockAcquire), ("rwlock_write_release", LockRelease)];
    check(|| drop(lock.read()), &read);
    check(|| drop(lock.try_read()), &read);
    check(|| RwLockReadGuard::unlock_fair(lock.read()), &read);
    check(|| drop(lock.write()), &write);
    check(|| drop(lock.try_write_for(Duration::ZERO)), &write);
    check(|| RwLockWriteGuard::unlock_fair(lock.write()), &write);
    check(|| drop(RwLockWriteGuard::downgrade(lock.write())), &[write, read].concat());
}

#[test]
fn attempts_that_fail_are_told_only_if_they_waited() {
    let (mutex, lock) = (Mutex::new(0), RwLock::new(0));
    let limit = Duration::from_millis(1);
    let (_held, _written) = (mutex.lock(), lock.write());
    check(|| assert!(mutex.try_lock().is_none() && lock.try_read().is_none()), &[]);
    check(
        || assert!(mutex.try_lock_for(limit).is_none() && lock.try_read_for(limit).is_none()),
        &[
            ("mutex_wait", LockWait),
            ("mutex_abandon", LockAbandon),
            ("rwlock_read_wait", LockWait),
            ("rwlock_read_abandon", LockAbandon),
        ],
    );
    check(
        || assert!(lock.try_write_for(limit).is_none()),
        &[("rwlock_write_wait", LockWait), ("rwlock_write_abandon", LockAbandon)],
    );
}

#[test]
fn contended_lock_tells_its_wait() {
    let mutex = Mutex::new(0);
    let (mut told, mut waiter) = (Vec::new(), 0);
    recorded(|| {
        let mut memory = Memory::own();
        let mut take = || {
            told.extend(memory.take());
            told.iter().any(|event| event.kind == LockWait)
        };
        std::thread::scope(|scope| {
            let held = mutex.lock();
            let thread = scope.spawn(|| {
                *mutex.lock() += 1;
                tid()
            });
            // Held until the other thread tells that it waits.
            while !take() {
                std::thread::yield_now();
            }
            drop(held);
            waiter = thread.join().unwrap();
        });
        take();
    });
    let of_waiter = told.iter().filter(|event| event.tid == waiter);
    let kinds: Vec<_> = of_waiter.map(|event| event.kind).collect();
    assert_eq!(kinds, [LockWait, LockAcquire, LockRelease]);
}

#[test]
fn condition_wait_is_told_around_its_sleep() {
    let (mutex, condition) = (Mutex::new(false), Condvar::new());
    let mut waiter = 0;
    let (_, events) = recorded(|| {
        std::thread::scope(|scope| {
            let (ready, waiting) = channel();
            let (mutex, condition) = (&mutex, &condition);
            let thread = scope.spawn(move || {
                let mut set = mutex.lock();
                ready.send(tid()).unwrap();
                wait_until_set(condition, &mut set);
                assert!(times_out(condition, &mut set, Duration::from_millis(1)));
            });
            waiter = waiting.recv().unwrap();
            // The waiter holds the mutex until it waits.
            *mutex.lock() = true;
            condition.notify_one();
            thread.join().unwrap();
        });
    });
    let of_waiter = events.iter().filter(|event| event.tid == waiter);
    let kinds: Vec<_> = of_waiter.map(|event| event.kind).collect();
    let one = [CondWait, CondWake];
    assert_eq!(kinds, [&[LockAcquire][..], &one, &one, &[LockRelease]].concat());
    let waits: Vec<_> = events.iter().filter(|event| event.kind == CondWait).collect();
    assert_eq!(waits[0].words[2], address(&condition));
}
