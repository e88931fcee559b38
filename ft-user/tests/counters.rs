//! Counters that threads read with their events, where the agent asks for that: here those of the kernel's that every machine has,
//! by a system call, and what is refused.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::sync::Barrier;
use std::sync::atomic::Ordering::*;
use std::thread;

use common::counting::{counters, numbers, readings};
use common::{Memory, start};
use ft_user::counters::Open;
use ft_user::layout::{Counting, NOT_COUNTED, PAGE};
use ft_user::{Config, enable, event};

/// Touches so many pages that are not there yet.
fn touch(pages: usize) {
    let (bytes, protection) = (pages * PAGE as usize, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping, which is used within its length and given back.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let base = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE);
        (0..pages).for_each(|page| base.cast::<u8>().add(page * PAGE as usize).write_volatile(1));
        libc::munmap(base, bytes);
    }
}

/// Page faults of this thread, those in the kernel included.
fn faults() -> u64 {
    // SAFETY: a valid place for the answer.
    unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        (usage.ru_minflt + usage.ru_majflt) as u64
    }
}

fn descriptors() -> usize {
    numbers().len()
}

/// Sets the number of descriptors that there may be, and returns what it was.
fn limit_descriptors(most: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the limit.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        let before = std::mem::replace(&mut limit.rlim_cur, most);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
        before
    }
}

#[test]
fn events_say_what_counters_show_from_when_that_is_asked_for_until_it_is_not() {
    start(Config::default());
    enable("count.*");
    let mut memory = Memory::own();
    let descriptors_before = descriptors();
    let ask =
        |memory: &Memory, counting: Counting| memory.header().counting.store(counting.0, Relaxed);

    // Nobody asks.
    thread::spawn(|| event!("count.none")).join().unwrap();
    assert_eq!(readings(&memory.take(), "count.none"), [None]);

    // As the kernel counts.
    ask(&memory, Counting::new(&counters(&["page-faults", "task-clock"]), true));
    let most = thread::spawn(|| {
        ft_user::thread_init();
        let before = faults();
        event!("count.fault");
        touch(100);
        event!("count.fault");
        touch(7);
        event!("count.fault");
        faults() - before
    });
    let most = most.join().unwrap();
    let events = memory.take();
    let found = readings(&events, "count.fault");
    let found: Vec<_> = found.into_iter().map(|reading| reading.expect("a reading")).collect();
    let pages = |from: usize, to: usize| found[to][1] - found[from][1];
    assert!(pages(0, 1) >= 100 && pages(1, 2) >= 7, "{found:?}");
    assert!(pages(0, 2) <= most, "{found:?}, and the kernel counts {most}");
    assert!(found.is_sorted_by(|a, b| a[2] < b[2]), "a thread that runs uses time: {found:?}");
    assert!(found.iter().all(|reading| reading[0] == found[0][0]), "one stretch: {found:?}");

    // A thread that counts goes on without, and lets go of its descriptors, when nobody asks any more.
    let counted = |from: u64| (from..from + 3).for_each(|n| event!("count.on_off", n: u64));
    let quiet = thread::scope(|scope| {
        let memory = &memory;
        let of_thread = scope.spawn(move || {
            counted(0);
            let counting = descriptors();
            ask(memory, Counting::default());
            counted(3);
            counting - descriptors()
        });
        of_thread.join().unwrap()
    });
    let found = readings(&memory.take(), "count.on_off");
    assert_eq!(
        found.iter().map(Option::is_some).collect::<Vec<_>>(),
        [true, true, true, false, false, false]
    );
    assert_eq!((quiet, descriptors()), (2, descriptors_before));
    let open = |ring: &ft_user::layout::RingControl| ring.limit.load(Relaxed) > 0;
    assert!(memory.rings().all(open), "the events of all threads take the short way again");

    // What the program closes is no more the thread's, whatever gets its number next.
    ask(&memory, Counting::new(&counters(&["page-faults"]), true));
    let (half, limit) = (128, limit_descriptors(256));
    thread::scope(|scope| {
        let memory = &memory;
        scope.spawn(move || {
            let closed = |n: u64| event!("count.closed", n: u64);
            let before = numbers();
            closed(0);
            let own: Vec<_> = numbers().difference(&before).copied().collect();
            let [own] = own[..] else { panic!("one descriptor: {own:?}") };
            assert!(own >= half, "{own} is in the way of who closes what it inherited");
            let mut pipe = [0; 2];
            // SAFETY: a valid place for the descriptors; the buffer is valid for its length.
            unsafe {
                assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
                assert_eq!(libc::write(pipe[1], [7u8; 24].as_ptr().cast(), 24), 24);
                assert_eq!(libc::dup2(pipe[0], own), own);
            }
            closed(1);
            ask(memory, Counting::default());
            closed(2);
            // SAFETY: the buffer is valid for its length; the descriptors are of the pipe.
            unsafe {
                let mut bytes = [0u8; 24];
                assert_eq!(libc::fcntl(own, libc::F_SETFL, libc::O_NONBLOCK), 0, "it is open");
                assert_eq!(libc::read(own, bytes.as_mut_ptr().cast(), 24), 24, "in the pipe");
                [pipe[0], pipe[1], own].iter().for_each(|fd| assert_eq!(libc::close(*fd), 0));
            }
        });
    });
    limit_descriptors(limit);
    let found = readings(&memory.take(), "count.closed");
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(descriptors(), descriptors_before);

    // Threads leave descriptors to the program.
    ask(&memory, Counting::new(&counters(&["page-faults", "task-clock"]), true));
    let (threads, own) = (80, 16);
    let limit = limit_descriptors(descriptors_before as u64 + 4 * own);
    let [all_count, all_end] = [(); 2].map(|()| Barrier::new(threads + 1));
    thread::scope(|scope| {
        let count = || {
            event!("count.many");
            all_count.wait();
            all_end.wait();
        };
        let counting: Vec<_> = (0..threads).map(|_| scope.spawn(count)).collect();
        all_count.wait();
        let opened: Vec<_> = (0..own).map(|_| std::fs::File::open("/dev/null")).collect();
        all_end.wait();
        // To their last step, which the end of the scope does not wait for.
        counting.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    });
    limit_descriptors(limit);
    let found: Vec<_> = readings(&memory.take(), "count.many").into_iter().flatten().collect();
    assert_eq!(found.len(), threads);
    let (counted, refused): (Vec<_>, Vec<_>) =
        found.iter().map(|reading| reading[0] as i64).partition(|stretch| *stretch >= 0);
    assert!(!counted.is_empty() && !refused.is_empty(), "{found:?}");
    assert!(refused.iter().all(|errno| *errno == -i64::from(libc::EMFILE)), "{found:?}");
    assert_eq!(descriptors(), descriptors_before);

    // A forked child counts on its own account.
    ask(&memory, Counting::new(&counters(&["page-faults"]), true));
    event!("count.parent");
    // SAFETY: the child of one thread of several writes events and ends, which takes no lock of another thread's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        event!("count.child");
        let own = Memory::own().take();
        let found = readings(&own, "count.child");
        // SAFETY: ends the process at once.
        unsafe {
            libc::_exit(i32::from(!matches!(found[..], [Some([_, n, NOT_COUNTED])] if n < 100)))
        };
    }
    let mut status = -1;
    // SAFETY: a valid place for the status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child found another reading than one that has just begun");
    assert!(matches!(readings(&memory.take(), "count.parent")[..], [Some([_, _, NOT_COUNTED])]));

    // What is not in a register is not read where no call is allowed, and the reason is told, once for each thread.
    for names in
        [&["page-faults"][..], &["instructions", "cache-misses"], &["task-clock", "cycles"]]
    {
        let asked = counters(names);
        ask(&memory, Counting::new(&asked, false));
        let first = asked.iter().zip(0..).find_map(|(counter, at)| {
            Open::new(counter, false)
                .map(Open::close)
                .err()
                .map(|errno| [-i64::from(errno) as u64, at])
        });
        thread::spawn(|| (0..2).for_each(|n| event!("count.refused", n: u64))).join().unwrap();
        let events = memory.take();
        let found = readings(&events, "count.refused");
        match first {
            Some(refused) => {
                assert_eq!(found, [Some([refused[0], refused[1], NOT_COUNTED]), None], "{names:?}");
            }
            // A machine with counters.
            None => assert!(found.iter().flatten().all(|reading| (reading[0] as i64) >= 0)),
        }
    }
}
