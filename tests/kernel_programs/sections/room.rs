//! The group `section` with room for one of each: what is beyond it is counted.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Read, Write, pipe},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    thread,
    time::Duration,
};

use ft_agent::collect::kernel::{Group, KernelOptions};
use ft_ebpf::section;
use rustix::thread::gettid;

use super::{
    counts::{Counts, is},
    subject::{Subject, is_subject, stop, tee},
};
use crate::{
    common::{incomplete_or_skip, ran, skipped},
    now_ns, options,
};

const TEES: u64 = 200;

/// Takes two mutexes, the second one within the first, so often; and one more for each byte that is read.
fn take_pairs() {
    let (from, mut into) = pipe().unwrap();
    let (mut other, to) = pipe().unwrap();
    into.write_all(&[1]).unwrap();
    for _ in 0..TEES {
        tee(&from, &to);
        other.read_exact(&mut [0]).unwrap();
    }
}

/// What that process does.
fn take_locks() {
    // Who waits for messages of the kernel has the position of the file, whose mutex it keeps (`fdget_pos`, fs/file.c).
    let mut messages =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/proc/kmsg").unwrap();
    let mut bytes = vec![0; 1 << 16];
    loop {
        match messages.read(&mut bytes) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    // SAFETY: the descriptor is open, and has no other flags that can be changed.
    assert_eq!(unsafe { libc::fcntl(messages.as_raw_fd(), libc::F_SETFL, 0) }, 0);
    stop();
    take_pairs();
    stop();
    let (said, waiter) = std::sync::mpsc::channel();
    thread::spawn(move || {
        said.send(gettid()).unwrap();
        while messages.read(&mut bytes).is_ok() {}
    });
    let waiter = waiter.recv().unwrap().as_raw_nonzero();
    let call = format!("/proc/self/task/{waiter}/syscall");
    // Number 0 is `read`; who does not wait is `running` (proc_pid_syscall(5)). To look takes mutexes, too: not before the
    // other one has had the time to take its own.
    loop {
        thread::sleep(Duration::from_millis(500));
        if fs::read_to_string(&call).unwrap().starts_with("0 ") {
            break;
        }
    }
    take_pairs();
    stop();
}

#[test]
fn sections_beyond_their_room_are_counted() {
    if is_subject() {
        take_locks();
        return;
    }
    let options = KernelOptions { most_under_way: Some(1), ..options(&[Group::Section]) };
    let Some(mut kernel) = incomplete_or_skip(&options) else { return };
    if kernel.missing().iter().any(|missing| missing.tracepoint == "mutex_unlock") {
        skipped("this kernel has no mutex_unlock");
        return;
    }
    ran();

    let subject = Subject::start("sections::room::sections_beyond_their_room_are_counted");
    kernel.begin(now_ns());
    kernel.observe(subject.id());
    subject.run();
    let first = Counts::of(&kernel);
    subject.run();
    kernel.unobserve(subject.id());
    let both = Counts::of(&kernel);
    subject.end();

    // What was skipped of mutexes may be any of them.
    let missed: u64 = kernel.losses().unwrap().iter().map(|loss| loss.count).sum();
    let skipped = both.of_what(section::MUTEX, section::SKIPPED) + missed;
    let enough = |found: u64, expected: u64, what: &str| {
        assert!(found + skipped >= expected, "{what}: {found} of {expected}, {skipped} skipped");
    };
    let paired = |counts: &Counts| counts.of_what(section::MUTEX, section::LENGTH);
    let full = |counts: &Counts| counts.of_what(section::MUTEX, section::FULL);

    // One is open at a time: the second of two is not followed.
    enough(paired(&first), TEES, "the first of two");
    enough(full(&first), TEES, "the second of two");
    let nested = first.sum(|_, r| r.what == section::DEPTH && r.from > 0);
    assert_eq!(nested.0, 0, "nothing is within another");

    // One thread is followed at a time: as long as another one holds a lock, nothing of this one is.
    enough(full(&both) - full(&first), 2 * TEES, "both of two");
    let more = paired(&both) - paired(&first);
    assert!(more < TEES, "{more} of the thread that is not followed");

    // One caller of each CPU has a row: the others have that of none.
    // SAFETY: a number is read.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) } as usize;
    let mut callers: Vec<u64> = both.callers().collect();
    callers.sort_unstable();
    callers.dedup();
    assert!(!callers.is_empty() && callers.len() <= cpus, "{callers:x?}");
    let of_none = both.sum(|_, r| is(r, section::MUTEX, section::LENGTH) && r.caller == 0);
    assert!(of_none.0 > 0, "{callers:x?}");
    println!("{} and {} full, {more} more paired, {skipped} skipped", full(&first), full(&both));
}
