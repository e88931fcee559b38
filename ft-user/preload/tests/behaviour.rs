//! C programs behave under the library as they do without it, and their events tell what they did.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../tests/common/mod.rs"]
mod common;
mod program;
#[path = "../../../tests/common/said.rs"]
mod said;

use std::path::Path;
use std::process::Command;

use ft_user::layout::SiteKind;
use program::{Trace, trace, trace_with_losses};

/// Compares the events of a thread with a script, one event a line.
fn check(trace: &Trace, thread: &str, script: &str) {
    let expected: Vec<&str> = script.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(trace.thread(thread), expected, "{thread}");
}

#[test]
fn mutexes_of_all_types() {
    let trace = trace("mutex");
    check(
        &trace,
        "main",
        "mutex_acquire outer
        mutex_acquire inner
        mutex_release inner
        mutex_release outer
        mutex_acquire recursive
        mutex_release recursive
        mutex_acquire checking
        mutex_wait checking
        mutex_abandon checking
        mutex_acquire outer
        mutex_release outer
        mutex_release checking
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire robust
        mutex_release robust
        mutex_acquire inheriting
        mutex_release inheriting",
    );
    check(&trace, "vain", "mutex_wait robust\nmutex_abandon robust");
    // The last of these fails: the thread does not hold it, and no hold ends.
    check(
        &trace,
        "other",
        "mutex_wait outer
        mutex_abandon outer
        mutex_wait outer
        mutex_abandon outer
        mutex_release checking",
    );
}

#[test]
fn the_place_is_the_return_address() {
    let trace = trace("mutex");
    let main = trace.number("main");
    let mine: Vec<_> =
        trace.events.iter().filter(|event| u64::from(event.tid) == main).take(4).collect();
    let function = trace.number("function");
    let callers: Vec<u64> = mine.iter().map(|event| event.words[1]).collect();
    assert!(callers.iter().all(|at| (function..function + 512).contains(at)), "{callers:x?}");
    assert!(callers.windows(2).all(|pair| pair[0] != pair[1]), "{callers:x?}");
}

#[test]
fn waits_are_told_by_kind() {
    let trace = trace("contended");
    check(
        &trace,
        "main",
        "mutex_acquire mutex
        rwlock_write_acquire rwlock
        rwlock_read_wait rwlock
        rwlock_read_abandon rwlock
        spin_acquire spin
        mutex_release mutex
        rwlock_release rwlock
        rwlock_read_acquire rwlock
        rwlock_read_acquire rwlock
        rwlock_write_wait rwlock
        rwlock_write_abandon rwlock
        rwlock_release rwlock
        rwlock_release rwlock
        spin_release spin",
    );
    check(
        &trace,
        "waiter",
        "mutex_wait mutex
        mutex_acquire mutex
        mutex_release mutex
        rwlock_read_wait rwlock
        rwlock_read_acquire rwlock
        rwlock_release rwlock
        rwlock_write_wait rwlock
        rwlock_write_acquire rwlock
        rwlock_release rwlock
        spin_wait spin
        spin_acquire spin
        spin_release spin",
    );
}

#[test]
fn condition_waits_release_and_acquire() {
    let trace = trace("condition");
    check(
        &trace,
        "main",
        "mutex_acquire mutex
        cond_wait mutex
        cond_wake mutex
        cond_wait mutex
        cond_wake mutex
        cond_wait mutex
        cond_wake mutex
        cond_wait mutex
        cond_wake mutex
        mutex_release mutex
        cond_wait checking",
    );
    let condition = trace.number("condition");
    let waits = trace.events.iter().filter(|event| event.kind == SiteKind::CondWait);
    assert!(waits.map(|event| event.words[2]).all(|told| told == condition));
}

#[test]
fn semaphores_keep_errno_and_tell() {
    check(
        &trace("semaphore"),
        "main",
        "semaphore_acquire lock
        semaphore_wait lock
        semaphore_abandon lock
        semaphore_wait lock
        semaphore_abandon lock
        semaphore_release lock
        semaphore_acquire lock
        semaphore_wait signal_came
        semaphore_release signal_came
        semaphore_acquire signal_came",
    );
}

#[test]
fn waits_for_what_nobody_holds() {
    let trace = trace("wait");
    let barrier = "barrier_wait barrier
        barrier_wake barrier\n";
    check(&trace, "main", barrier);
    check(&trace, "waiter", &format!("once_wait once\nonce_wake once\n{barrier}"));
}

#[test]
fn locks_before_main_work() {
    // Before the constructor of the library nothing is told; then it is.
    let once = "mutex_acquire mutex
        cond_wait mutex
        cond_wake mutex
        mutex_release mutex\n";
    check(&trace("early"), "main", &once.repeat(2));
}

#[test]
fn allocator_that_locks() {
    let trace = trace_with_losses("allocator");
    let acquired = trace.count("lock.mutex_acquire", "mutex") as u64;
    let released = trace.count("lock.mutex_release", "mutex") as u64;
    assert!(acquired + trace.lost >= 4 * 1000 * 2, "{acquired}, {} are lost", trace.lost);
    assert!(acquired.abs_diff(released) <= trace.lost, "{acquired}, {released}, {}", trace.lost);
}

#[test]
fn forked_child_is_a_process_of_its_own() {
    let trace = trace("fork");
    let mutex = trace.number("mutex");
    let on_mutex = trace.events.iter().filter(|event| event.words[0] == mutex);
    assert_eq!(trace.words(on_mutex), ["mutex_acquire mutex", "mutex_release mutex"]);
    assert!(trace.count("lock.mutex_acquire", "busy") > 0);
    let expected = ["mutex_release mutex", "mutex_acquire mutex", "mutex_release mutex"];
    assert_eq!(trace.words(trace.child.iter()), expected);
    assert!(trace.child.iter().all(|event| u64::from(event.tid) == trace.number("child")));
}

#[test]
fn children_of_all_kinds() {
    let trace = trace("children");
    let hold = "mutex_acquire mutex
        mutex_release mutex\n";
    // What the child of vfork wrote is its parent's, which had no ring yet.
    check(&trace, "worker", &hold.repeat(3));
    assert_eq!(trace.count("lock.mutex_acquire", "mutex"), 3);
    // Nobody listens here: both forked children have told nobody.
    assert_eq!(trace.unknown_children, 2);
}

#[test]
fn ends_of_waits_that_are_none_are_refused() {
    check(
        &trace("timed"),
        "main",
        "mutex_acquire mutex
        mutex_release mutex
        mutex_acquire mutex
        mutex_release mutex
        mutex_acquire inheriting
        mutex_release inheriting
        rwlock_write_acquire rwlock
        rwlock_release rwlock
        semaphore_acquire semaphore",
    );
}

#[test]
fn a_stack_that_overflows_leaves_no_lock_taken() {
    let trace = trace_with_losses("overflow");
    assert!(trace.count("lock.mutex_acquire", "mutex") as u64 + trace.lost > 1000);
}

/// Two locks are taken in two orders, by one thread after the other.
#[test]
fn what_the_thread_sanitizer_says_it_says_with_all_events_on() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/disordered.c");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("disordered");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu17", "-O1", "-g", "-fsanitize=thread", "-pthread", "-o"]);
    if !cc.arg(&out).arg(source).status().is_ok_and(|status| status.success()) {
        said::skipped("this compiler has no ThreadSanitizer");
        return;
    }
    let says = |command: &mut Command| {
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).contains("lock-order-inversion"),
        )
    };
    let plain = says(&mut Command::new(&out));
    assert!(plain.1, "{plain:?}");
    let mut traced = Command::new(&out);
    program::preload(&mut traced, "lock.*");
    assert_eq!(says(&mut traced), plain);
}

#[test]
fn cancellation_passes_through() {
    let trace = trace("cancel");
    check(&trace, "main", "mutex_acquire mutex\nmutex_release mutex");
    assert_eq!(trace.count("lock.cond_wait", "mutex"), 1);
    assert_eq!(trace.count("lock.mutex_release", "mutex"), 2);
}

/// The program counts the page faults of its threads; what needs rights that it has not got is left out.
#[test]
fn a_thread_that_prepares_for_deadlines_has_its_ring_before_its_first_lock() {
    let trace = trace("ready");
    let pairs = trace.number("pairs") as usize;
    assert!(pairs > 0);
    assert_eq!(trace.count("lock.mutex_acquire", "mutex"), pairs);
    assert_eq!(trace.count("lock.mutex_release", "mutex"), pairs);
}

#[test]
fn threads_come_and_go_under_signals() {
    let trace = trace_with_losses("threads");
    let posts = trace.number("posts") as usize;
    assert!(posts > 0);
    let constructed = [
        ("lock.mutex_acquire", "mutex", 50 * 8 * 100),
        ("lock.mutex_release", "mutex", 50 * 8 * 100),
        ("lock.semaphore_release", "posted", posts),
    ];
    let missing = constructed.map(|(event, lock, number)| {
        let there = trace.count(event, lock);
        number.checked_sub(there).unwrap_or_else(|| panic!("{there} for {number} of {event}"))
    });
    // A thread may wait for the lock, too, and such an event be lost as well.
    let missing = missing.iter().sum::<usize>() as u64;
    assert!(missing <= trace.lost, "{missing} are missing, {} are counted as lost", trace.lost);
}
