//! Bounds that bite: what they touch is marked, or counted.

use super::super::timeline::{SITES, sites};
use crate::{Context, Mark, Run};
use ft_trace::event::{Event, LeanUserEvent};
use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use ft_trace::tables::{TaskEvent, TaskKind};

/// An event of a lock, of more threads and locks than a timeline has names for.
fn push(run: &mut Run, ts: i64, event: &str, thread: i32, lock: i32) {
    push_of(run, 1, ts, event, thread, lock);
}

/// The same, of any process.
fn push_of(run: &mut Run, pid: i32, ts: i64, event: &str, thread: i32, lock: i32) {
    let site = SITES.iter().position(|s| s.2.strip_prefix("lock.") == Some(event));
    run.push(&Event::User(LeanUserEvent {
        ts: Nanos(ts),
        pid: Pid(pid),
        tid: Tid(1000 + thread),
        cpu: Cpu(0),
        site: SiteId(site.expect("a site") as i32),
        arg: [1000 + i64::from(lock), 0, 0],
    }));
}

fn empty() -> Run {
    super::feed(true, "0 0 .>a S")
}

#[test]
fn a_chain_of_any_length_sums_and_one_that_is_too_long_to_follow_is_marked() {
    // Thread i holds lock i and waits for lock i-1; the first runs.
    const N: i32 = 200;
    let mut analysis = empty();
    let mut push = |ts: i32, what, thread, lock| push(&mut analysis, ts.into(), what, thread, lock);
    (0..N).for_each(|i| push(100 + i, "mutex_acquire", i, i));
    (1..N).for_each(|i| push(1000 + i, "mutex_wait", i, i - 1));
    for i in 0..N - 1 {
        push(2000 + 10 * i, "mutex_release", i, i);
        push(2001 + 10 * i, "mutex_acquire", i + 1, i);
    }
    let rows = analysis.take_rows().lock_waits;
    assert_eq!(rows.len() as i32, N - 1);
    for r in &rows {
        let parts = r.parts.expect("a kernel stream").total_ns();
        assert_eq!(parts + r.no_holder_ns + r.cycle_ns, r.dur);
        assert_eq!(r.holders, 1);
        let chain = r.tid.0 - 1000;
        let exact = r.mark == Mark::Exact;
        assert_eq!(
            exact,
            chain <= 65,
            "{chain} threads: 64 locks beyond the one that is waited for"
        );
        assert!(!exact || r.chain == chain, "{r:?}");
    }
}

#[test]
fn more_readers_than_are_kept_mark_the_wait_for_them() {
    for (readers, mark) in [(4096, Mark::Exact), (4097, Mark::LowerBound)] {
        let mut analysis = empty();
        (0..readers).for_each(|i| push(&mut analysis, 10, "rwlock_read_acquire", i, 0));
        push(&mut analysis, 20, "mutex_wait", readers, 0);
        (0..readers).for_each(|i| push(&mut analysis, 30, "mutex_release", i, 0));
        push(&mut analysis, 40, "mutex_acquire", readers, 0);
        let rows = analysis.take_rows().lock_waits;
        assert_eq!(rows.iter().map(|r| r.mark).collect::<Vec<_>>(), [mark]);
    }
}

#[test]
fn more_holders_than_are_kept_mark_the_wait_and_the_longest_is_named() {
    for (others, mark) in [(1000, Mark::Exact), (3000, Mark::LowerBound)] {
        let mut analysis = empty();
        let mut push = |ts, what, thread| push(&mut analysis, ts, what, thread, 0);
        push(10, "mutex_acquire", 0);
        push(10, "mutex_wait", 1);
        for i in 0..others {
            let at = 10 + 100 * i64::from(i);
            push(at + 50, "mutex_release", 0);
            push(at + 50, "mutex_acquire", 2 + i);
            push(at + 90, "mutex_release", 2 + i);
            push(at + 100, "mutex_acquire", 0);
        }
        let end = 10 + 100 * i64::from(others);
        push(end, "mutex_release", 0);
        push(end, "mutex_acquire", 1);
        let rows = analysis.take_rows().lock_waits;
        let named = rows.iter().map(|r| (r.holder_tid, r.holder_ns, r.mark));
        let expected = (Some(1000), Some(50 * i64::from(others)), mark);
        assert_eq!(named.collect::<Vec<_>>(), [expected]);
    }
}

/// Each of some threads holds 256 locks of its own.
fn nest(threads: i32) -> Run {
    let mut analysis = empty();
    for (thread, lock) in (0..threads).flat_map(|t| (0..256).map(move |lock| (t, 256 * t + lock))) {
        push(&mut analysis, 10, "mutex_acquire", thread, lock);
    }
    analysis
}

#[test]
fn edges_that_do_not_fit_are_counted() {
    for (threads, not_kept) in [(2, 0), (3, 3 * 256 * 255 / 2 - 65_536)] {
        let (rows, tally) = nest(threads).finish();
        assert_eq!(tally.order_not_kept, not_kept);
        assert_eq!(rows.lock_order.len() as u64 + not_kept, 256 * 255 / 2 * threads as u64);
    }
}

#[test]
fn a_ninth_gate_is_not_kept() {
    let (rows, _) = nest(1).finish();
    for row in rows.lock_order {
        let before = (row.held_lock - 1000).min(8);
        assert_eq!(row.gates.split_whitespace().count() as i64, before, "{row:?}");
    }
}

#[test]
fn events_of_sites_that_nobody_knows_are_counted() {
    let check = |site, unknown| {
        let mut row = sites()[0].clone();
        row.site = SiteId(site);
        let context = Context::new(true, 10, &[], &[row], &[]);
        let mut analysis = Run::new(context);
        analysis.push(&Event::User(LeanUserEvent {
            ts: Nanos(1),
            pid: Pid(1),
            tid: Tid(1),
            cpu: Cpu(0),
            site: SiteId(site),
            arg: [0; 3],
        }));
        assert_eq!(analysis.finish().1.unknown_sites, unknown, "{site}");
    };
    check((1 << 20) - 1, 0);
    check(1 << 20, 1);
}

#[test]
fn a_process_forgets_locks_of_its_own_and_no_others() {
    // A thread ends and holds lock 0. Then another one takes 70,000 locks, one after the other; and then one waits for 0.
    for (of_the_same, holder) in [(false, Some(1000)), (true, None)] {
        let mut run = empty();
        push(&mut run, 10, "mutex_acquire", 0, 0);
        push(&mut run, 10, "mutex_acquire", 1, 1);
        run.push(&Event::Task(TaskEvent {
            ts: Nanos(20),
            cpu: Cpu(0),
            kind: TaskKind::Exit,
            tid: Tid(1000),
            pid: Pid(1),
            comm: "x".into(),
            parent_pid: None,
        }));
        for lock in 2..70_000 {
            for event in ["mutex_acquire", "mutex_release"] {
                push_of(&mut run, if of_the_same { 1 } else { 2 }, 30, event, 2, lock);
            }
        }
        push(&mut run, 40, "mutex_wait", 3, 0);
        let rows = run.finish().0.unfinished_waits;
        let found = rows.iter().map(|r| (r.holder_tid, r.holder_gone)).collect::<Vec<_>>();
        assert_eq!(found, [(holder, holder.is_some())]);
    }
}
