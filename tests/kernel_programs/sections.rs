//! Sections under locks of the kernel: known numbers, depths and lengths, at functions whose locks are known.

mod counts;
mod room;
mod subject;

use std::{
    fs::File,
    io::{Read, Write, pipe},
    os::{fd::FromRawFd, unix::fs::FileExt},
};

use ft_agent::collect::kernel::Group;
use ft_ebpf::{Section, section};

use counts::{Counts, is};
use subject::{Subject, is_subject, stop, tee};

use super::{
    common::{incomplete_or_skip, ran, skipped},
    now_ns, options,
};

const WRITES: u64 = 300;
const TEES: u64 = 200;
const LONG: u64 = 8;
const CALLS: u64 = 150;

/// What that process does while it is observed; how long it took to write to its file, each time.
fn take_locks() -> Vec<u64> {
    // A pipe has a mutex, which whoever writes to it takes once, and who duplicates from one to another both.
    let (mut from, mut into) = pipe().unwrap();
    let (mut other, to) = pipe().unwrap();
    for _ in 0..WRITES {
        into.write_all(&[1]).unwrap();
        from.read_exact(&mut [0]).unwrap();
    }
    into.write_all(&[1]).unwrap();
    for _ in 0..TEES {
        tee(&from, &to);
        other.read_exact(&mut [0]).unwrap();
    }
    // The list of all processes has a spinlock of readers and writers (`tasklist_lock`, kernel/sys.c).
    for _ in 0..CALLS {
        // SAFETY: calls of numbers alone. The process is no leader of a session.
        unsafe {
            libc::getpriority(libc::PRIO_PGRP, 0);
            assert_eq!(libc::setpgid(0, 0), 0);
        }
    }
    // The consoles have a counting semaphore, which who asks for their names takes (`show_cons_active`, drivers/tty/tty_io.c).
    for _ in 0..CALLS {
        let consoles = File::open("/sys/class/tty/console/active").unwrap();
        assert!(consoles.read_at(&mut [0; 4096], 0).unwrap() > 0);
    }
    // A file is written to under its semaphore.
    // SAFETY: the name is a C string, and nobody else has the descriptor.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"long".as_ptr(), 0)) };
    let bytes = vec![1; 4 << 20];
    let write = |_| {
        let begin = now_ns();
        file.write_all_at(&bytes, 0).unwrap();
        now_ns() - begin
    };
    (0..LONG).map(write).collect()
}

#[test]
fn sections_under_kernel_locks_have_their_number_depth_and_length() {
    if is_subject() {
        stop();
        let lengths = take_locks();
        stop();
        eprintln!("lengths: {lengths:?}");
        return;
    }
    let Some(mut kernel) = incomplete_or_skip(&options(&[Group::Section])) else { return };
    let inlined: Vec<_> = kernel.missing().iter().map(|missing| missing.tracepoint).collect();
    let has = |releases: &str| !inlined.iter().any(|function| function.contains(releases));
    // Of locks that are released where no program can be attached nothing is counted.
    let (spins, mutexes) = (has("spin_unlock"), has("mutex_unlock"));
    let semaphores = has("up_read") && has("up_write") && has("downgrade_write");
    let (readers, writers) = (has("_read_unlock"), has("_write_unlock"));
    let counting = !inlined.contains(&"up");
    if !(spins || mutexes || semaphores || readers || writers || counting) {
        skipped(&format!("this kernel has no {}", inlined.join(", ")));
        return;
    }
    ran();

    let name = "sections::sections_under_kernel_locks_have_their_number_depth_and_length";
    let subject = Subject::start(name);
    kernel.begin(now_ns());
    kernel.observe(subject.id());
    subject.run();
    kernel.unobserve(subject.id());
    let said = subject.end();
    let lengths = said.split_once("lengths: [").and_then(|(_, rest)| rest.split_once(']'));
    let (lengths, _) = lengths.unwrap_or_else(|| panic!("{said}"));
    let lengths: Vec<u64> = lengths.split(", ").map(|ns| ns.parse().unwrap()).collect();

    let counts = Counts::of(&kernel);
    // What was skipped of a kind may be any of that kind, and what the kernel did not run, of any.
    let missed: u64 = kernel.losses().unwrap().iter().map(|loss| loss.count).sum();
    let skipped = |kind: u32| counts.of_what(kind, section::SKIPPED) + missed;
    let near = |found: u64, expected: u64, kind: u32, what: &str| {
        let skipped = skipped(kind);
        assert!(
            found > 0 && found <= expected && found + skipped >= expected,
            "{what}: {found} of {expected}, {skipped} skipped"
        );
    };
    if mutexes {
        let writes = |name: &str, r: &Section| {
            name.ends_with("pipe_write") && is(r, section::MUTEX, section::LENGTH)
        };
        near(counts.sum(writes).0, WRITES + 1, section::MUTEX, "writes");
        let both =
            |name: &str| matches!(name, "pipe_double_lock" | "pipe_lock" | "link_pipe" | "do_tee");
        let at = |depth: u64| {
            let at = |r: &Section| is(r, section::MUTEX, section::DEPTH) && r.from == depth;
            counts.sum(|name, r| both(name) && at(r)).0
        };
        near(at(0), TEES, section::MUTEX, "the first of two");
        near(at(1), TEES, section::MUTEX, "the second of two");
        assert_eq!(counts.of_what(section::MUTEX, section::OWN), 0, "another process records");
    }
    if semaphores {
        let of_file = |name: &str, r: &Section| {
            name.ends_with("file_write_iter") && is(r, section::WRITE, section::LENGTH)
        };
        let (count, total, max) = counts.sum(of_file);
        near(count, LONG, section::WRITE, "long writes");
        assert!(
            total <= lengths.iter().sum() && max <= *lengths.iter().max().unwrap(),
            "{total} {max} {lengths:?}"
        );
        assert!(total > count * lengths.iter().min().unwrap() / 2, "{total} {lengths:?}");
    }

    // What spins elsewhere sleeps on a real-time kernel, which its version names (init/Makefile).
    let version = rustix::system::uname().version().to_string_lossy().into_owned();
    let real_time = version.contains("PREEMPT_RT");
    let [spin, read, write] = match real_time {
        true => [section::RT_SPIN, section::RT_READ, section::RT_WRITE],
        false => [section::SPIN, section::SPIN_READ, section::SPIN_WRITE],
    };
    for (is_there, kind, caller) in [
        (readers, read, "getpriority"),
        (writers, write, "setpgid"),
        (counting, section::SEMAPHORE, "console_lock"),
    ] {
        let of = |name: &str, r: &Section| name.contains(caller) && is(r, kind, section::LENGTH);
        if is_there {
            near(counts.sum(of).0, CALLS, kind, caller);
        }
    }

    // What has begun is there, and what is not there is said to be missing.
    for kind in 0..section::KINDS {
        let paired = counts.of_what(kind, section::LENGTH);
        assert_eq!(paired, counts.of_what(kind, section::DEPTH));
        let all = counts.of_what(kind, section::BEGUN);
        assert!(all >= paired + counts.of_what(kind, section::FULL), "{kind}: {all} {paired}");
        let skipped = skipped(kind);
        assert!(
            !(kind == spin && spins) || paired > WRITES && all - paired <= skipped + paired / 10,
            "{all} {paired} {skipped}"
        );
        println!(
            "kind {kind}: {all} begun, {paired} paired, {skipped} skipped or missed, {missed} missed of any"
        );
    }
}

/// This process records: what it locks while it observes itself is the recording's own.
#[test]
fn sections_of_who_records_are_its_own() {
    let Some(mut kernel) = incomplete_or_skip(&options(&[Group::Section])) else { return };
    if kernel.missing().iter().any(|missing| missing.tracepoint == "mutex_unlock") {
        return skipped("this kernel has no mutex_unlock");
    }
    ran();
    let (mut from, mut into) = pipe().unwrap();
    kernel.begin(now_ns());
    kernel.observe(std::process::id());
    for _ in 0..WRITES {
        into.write_all(&[1]).unwrap();
        from.read_exact(&mut [0]).unwrap();
    }
    kernel.unobserve(std::process::id());
    let counts = Counts::of(&kernel);
    let own = counts.of_what(section::MUTEX, section::OWN);
    assert!(own > 0, "of {WRITES} writes");
    assert_eq!(own, counts.of_what(section::MUTEX, section::LENGTH));
}
