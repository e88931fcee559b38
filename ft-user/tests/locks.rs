//! The traced locks tell what happened, in its order, with lock, name and place.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{Event, Memory, tid};
use ft_user::Config;
use ft_user::layout::SiteKind;
use ft_user::sync::{Barrier, Condvar, Mutex, RwLock, RwLockWriteGuard, mpsc as traced};

static BOOK: Mutex<u32> = Mutex::named("book", 0);
static JOURNAL: RwLock<u32> = RwLock::named("journal", 0);

/// All tests look at one memfd: one at a time.
fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

fn trace(work: impl FnOnce()) -> (Memory, Vec<Event>) {
    let _turn = turn();
    common::start(Config::default());
    assert!(ft_user::enable("lock.*") > 0);
    let mut memory = Memory::own();
    memory.take();
    work();
    let events = memory.take();
    ft_user::disable("lock.*");
    (memory, events)
}

/// Names of a thread's events, without the category.
fn names(events: &[Event], tid: u32) -> Vec<&str> {
    let mine = events.iter().filter(|event| event.tid == tid);
    mine.map(|event| event.name.strip_prefix("lock.").unwrap()).collect()
}

fn address<T>(lock: &T) -> u64 {
    std::ptr::from_ref(lock) as u64
}

#[test]
fn nesting_is_told_in_order() {
    let unnamed = Mutex::new(());
    let line = line!() + 2;
    let (memory, events) = trace(|| {
        let book = BOOK.lock().unwrap();
        let journal = JOURNAL.read().unwrap();
        let third = unnamed.try_lock().unwrap();
        drop(journal);
        drop(third);
        drop(book);
    });
    let expected = [
        ("mutex_acquire", address(&BOOK), SiteKind::LockAcquire, line),
        ("rwlock_read_acquire", address(&JOURNAL), SiteKind::LockAcquire, line + 1),
        ("mutex_acquire", address(&unnamed), SiteKind::LockAcquire, line + 2),
        ("rwlock_read_release", address(&JOURNAL), SiteKind::LockRelease, line + 1),
        ("mutex_release", address(&unnamed), SiteKind::LockRelease, line + 2),
        ("mutex_release", address(&BOOK), SiteKind::LockRelease, line),
    ];
    assert_eq!(names(&events, tid()), expected.map(|(name, ..)| name));
    for (event, (_, lock, kind, line)) in events.iter().zip(expected) {
        assert_eq!((event.words[0], event.kind), (lock, kind), "{event:?}");
        let (place, name) = (event.words[1] as u32, (event.words[1] >> 32) as u32);
        assert_eq!(memory.place(place), (file!().to_owned(), line), "{event:?}");
        if lock == address(&unnamed) {
            assert_eq!(name, 0);
        } else {
            assert_eq!(memory.name(name), if lock == address(&BOOK) { "book" } else { "journal" });
        }
    }
}

#[test]
fn contended_acquisition_tells_its_wait() {
    let mut waiter = 0;
    let (_, events) = trace(|| {
        thread::scope(|scope| {
            let book = BOOK.lock().unwrap();
            let (send, receive) = mpsc::channel();
            let thread = scope.spawn(move || {
                send.send(tid()).unwrap();
                *BOOK.lock().unwrap() += 1;
            });
            waiter = receive.recv().unwrap();
            // The thread tells that it waits before it does.
            wait_until_asleep(waiter);
            drop(book);
            thread.join().unwrap();
        });
    });
    assert_eq!(names(&events, tid()), ["mutex_acquire", "mutex_release"]);
    assert_eq!(names(&events, waiter), ["mutex_wait", "mutex_acquire", "mutex_release"]);
    let at = |name, tid| {
        events.iter().position(|e| e.tid == tid && e.name == format!("lock.{name}")).unwrap()
    };
    assert!(at("mutex_wait", waiter) < at("mutex_release", tid()));
    assert!(at("mutex_release", tid()) < at("mutex_acquire", waiter));
}

#[test]
fn both_sides_of_a_rwlock_wait() {
    let (mut reader, mut writer) = (0, 0);
    let (_, events) = trace(|| {
        thread::scope(|scope| {
            let start = |work: fn()| {
                let (send, receive) = mpsc::channel();
                scope.spawn(move || {
                    send.send(tid()).unwrap();
                    work();
                });
                let id = receive.recv().unwrap();
                wait_until_asleep(id);
                id
            };
            let guard = JOURNAL.write().unwrap();
            reader = start(|| drop(JOURNAL.read()));
            drop(guard);
            let guard = JOURNAL.read().unwrap();
            writer = start(|| drop(JOURNAL.write()));
            drop(guard);
        });
    });
    let read = ["rwlock_read_wait", "rwlock_read_acquire", "rwlock_read_release"];
    let write = ["rwlock_write_wait", "rwlock_write_acquire", "rwlock_write_release"];
    assert_eq!(names(&events, reader), read);
    assert_eq!(names(&events, writer), write);
    assert_eq!(names(&events, tid()), [write[1], write[2], read[1], read[2]]);
}

#[test]
fn downgrade_ends_writing_and_begins_reading() {
    let (_, events) = trace(|| drop(RwLockWriteGuard::downgrade(JOURNAL.write().unwrap())));
    let expected = [
        "rwlock_write_acquire",
        "rwlock_write_release",
        "rwlock_read_acquire",
        "rwlock_read_release",
    ];
    assert_eq!(names(&events, tid()), expected);
}

#[test]
fn failed_attempts_leave_no_event() {
    let (_, events) = trace(|| {
        let (_book, _journal) = (BOOK.lock().unwrap(), JOURNAL.write().unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(BOOK.try_lock().is_err());
                assert!(JOURNAL.try_read().is_err());
                assert!(JOURNAL.try_write().is_err());
            });
        });
    });
    assert_eq!(events.len(), 4, "{events:?}");
}

#[test]
fn condition_wait_releases_and_acquires() {
    static READY: Condvar = Condvar::new();
    static FLAG: Mutex<bool> = Mutex::named("flag", false);
    let mut waiter = 0;
    let (memory, events) = trace(|| {
        thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            scope.spawn(move || {
                let guard = FLAG.lock().unwrap();
                send.send(tid()).unwrap();
                assert!(*READY.wait_while(guard, |ready| !*ready).unwrap());
            });
            waiter = receive.recv().unwrap();
            *FLAG.lock().unwrap() = true;
            READY.notify_all();
        });
    });
    let mut told = names(&events, waiter);
    // A spurious wake-up would be recorded as well.
    told.dedup_by(|a, b| a == b);
    assert_eq!(told[0], "mutex_acquire");
    assert_eq!(told[1..3], ["cond_wait", "cond_wake"]);
    assert_eq!(told.last(), Some(&"mutex_release"));
    let wait = events.iter().find(|event| event.name == "lock.cond_wait").unwrap();
    assert_eq!(wait.kind, SiteKind::CondWait);
    assert_eq!((wait.words[0], wait.words[2]), (address(&FLAG), address(&READY)));
    assert_eq!(memory.name((wait.words[1] >> 32) as u32), "flag");
    let (file, _) = memory.place(wait.words[1] as u32);
    assert_eq!(file, file!(), "the place is that of the caller");
}

#[test]
fn a_barrier_tells_its_waits() {
    static START: Barrier = Barrier::named("start", 2);
    let mut line = 0;
    let (memory, events) = trace(|| {
        thread::scope(|scope| {
            scope.spawn(|| START.wait());
            line = line!() + 1;
            START.wait();
        });
    });
    assert_eq!(names(&events, tid()), ["barrier_wait", "barrier_wake"]);
    assert_eq!(events.len(), 4);
    let mine = events.iter().filter(|event| event.tid == tid());
    for (event, kind) in mine.zip([SiteKind::WaitBegin, SiteKind::WaitEnd]) {
        assert_eq!((event.kind, event.words[0]), (kind, address(&START)));
        assert_eq!(memory.name((event.words[1] >> 32) as u32), "start");
        assert_eq!(memory.place(event.words[1] as u32), (file!().to_owned(), line));
    }
}

#[test]
fn a_channel_tells_waits_and_nothing_else() {
    let (mut receiving, mut sending) = (0, 0);
    let (memory, events) = trace(|| {
        let (sender, receiver) = traced::named_sync_channel("jobs", 1);
        thread::scope(|scope| {
            let (send, told) = mpsc::channel();
            let receiver = scope.spawn(move || {
                send.send(tid()).unwrap();
                assert_eq!(receiver.recv(), Ok(1));
                receiver
            });
            receiving = told.recv().unwrap();
            wait_until_asleep(receiving);
            sender.send(1).unwrap();
            let receiver = receiver.join().unwrap();
            // There is room for one, and no wait for that.
            sender.send(2).unwrap();
            let (send, told) = mpsc::channel();
            let sender = scope.spawn(move || {
                send.send(tid()).unwrap();
                sender.send(3).unwrap();
            });
            sending = told.recv().unwrap();
            wait_until_asleep(sending);
            assert_eq!(receiver.recv(), Ok(2));
            sender.join().unwrap();
            assert_eq!(receiver.iter().collect::<Vec<_>>(), [3]);
            assert!(receiver.recv().is_err());
        });
    });
    assert_eq!(names(&events, receiving), ["receive_wait", "receive_wake"]);
    assert_eq!(names(&events, sending), ["send_wait", "send_wake"]);
    assert_eq!(events.len(), 4, "{events:?}");
    assert_eq!(events[0].words[0], events[2].words[0], "one channel on both sides");
    assert_eq!(memory.name((events[0].words[1] >> 32) as u32), "jobs");
}

#[test]
fn waits_with_a_limit() {
    static NEVER: Condvar = Condvar::new();
    let (_, events) = trace(|| {
        let guard = BOOK.lock().unwrap();
        let (guard, result) = NEVER.wait_timeout(guard, Duration::from_millis(1)).unwrap();
        assert!(result.timed_out());
        let limit = Duration::from_millis(1);
        let (guard, result) = NEVER.wait_timeout_while(guard, limit, |_| true).unwrap();
        assert!(result.timed_out());
        let (_, result) = NEVER.wait_timeout_while(guard, limit, |_| false).unwrap();
        assert!(!result.timed_out());
    });
    let told = names(&events, tid());
    assert_eq!(told[..3], ["mutex_acquire", "cond_wait", "cond_wake"]);
    assert_eq!(told.last(), Some(&"mutex_release"));
}

#[test]
fn poison_is_kept_and_the_release_told() {
    static LOCK: Mutex<u32> = Mutex::new(0);
    let (_, events) = trace(|| {
        let result = thread::spawn(|| {
            let _guard = LOCK.lock().unwrap();
            panic!("expected by this test");
        })
        .join();
        assert!(result.is_err());
        assert!(LOCK.is_poisoned());
        assert_eq!(*LOCK.lock().unwrap_err().into_inner(), 0);
        assert!(matches!(LOCK.try_lock(), Err(ft_user::sync::TryLockError::Poisoned(_))));
        LOCK.clear_poison();
        assert!(LOCK.lock().is_ok());
    });
    let acquired = events.iter().filter(|event| event.kind == SiteKind::LockAcquire).count();
    let released = events.iter().filter(|event| event.kind == SiteKind::LockRelease).count();
    assert_eq!((acquired, released), (4, 4));
}

#[test]
fn disabled_locks_tell_nothing() {
    let (_, events) = trace(|| {
        assert!(ft_user::disable("lock.*") > 0);
        *BOOK.lock().unwrap() += 1;
        drop(JOURNAL.read().unwrap());
    });
    assert!(events.is_empty(), "{events:?}");
}

/// What is written for `std::sync` compiles with `ft_user::sync`, too.
macro_rules! written_for {
    ($test:ident, $($sync:ident)::+) => {
        #[test]
        fn $test() {
            use $($sync)::+::atomic::{AtomicU32, Ordering};
            use $($sync)::+::mpsc::{self, Iter, TryIter};
            use $($sync)::+::{Arc, LazyLock, Once, OnceLock, RwLock};
            let _turn = turn();
            static TABLE: LazyLock<u32> = LazyLock::new(|| 7);
            static CELL: OnceLock<u32> = OnceLock::new();
            static ONCE: Once = Once::new();
            let calls = Arc::new(AtomicU32::new(0));
            for _ in 0..2 {
                ONCE.call_once(|| _ = calls.fetch_add(1, Ordering::Relaxed));
            }
            let found = (*TABLE, *CELL.get_or_init(|| 8), calls.load(Ordering::Relaxed));
            assert_eq!(found, (7, 8, 1));
            let lock = RwLock::new(9);
            assert_eq!(lock.read().unwrap().to_string(), "9");
            assert_eq!(lock.write().unwrap().to_string(), "9");
            let (sender, receiver) = mpsc::channel();
            (0..3).for_each(|n| sender.send(n).unwrap());
            let there: TryIter<'_, u32> = receiver.try_iter();
            assert_eq!(there.take(1).collect::<Vec<_>>(), [0]);
            drop(sender);
            let mut rest = Vec::new();
            for n in &receiver {
                rest.push(n);
            }
            assert_eq!(rest, [1, 2]);
            let mut over: Iter<'_, u32> = receiver.iter();
            assert_eq!(over.next(), None);
        }
    };
}

written_for!(what_is_written_for_std_is_right, std::sync);
written_for!(what_is_written_for_std_compiles, ft_user::sync);

/// Until the thread blocks.
fn wait_until_asleep(tid: u32) {
    let path = format!("/proc/self/task/{tid}/stat");
    while !std::fs::read_to_string(&path).unwrap().contains(") S ") {
        thread::yield_now();
    }
}
