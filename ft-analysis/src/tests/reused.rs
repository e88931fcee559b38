//! The number of a process that is used again, without a word of the end of the first one.

use super::super::timeline::run;
use ft_trace::Mark;

/// a holds two locks, and b waits for one of them, when their process dies; then another one has its number, and threads
/// with numbers and locks at addresses of the first.
#[test]
fn what_a_process_held_when_it_died_is_not_its_successors() {
    let (rows, tally) = run(
        false,
        "10 acquire a L
         15 acquire a M
         20 wait b L
         100 acquire' a K
         110 wait' c L
         120 acquire' c L
         130 release' c L
         140 release' a K",
    );
    let holds = rows.critical_sections.iter().map(|h| (h.ts.0, h.depth, h.depth_mark, h.mark));
    let exact = |ts| (ts, 0, Mark::Exact, Mark::Exact);
    assert_eq!(holds.collect::<Vec<_>>(), [exact(120), exact(100)]);
    let [wait] = &rows.lock_waits[..] else { panic!("{:?}", rows.lock_waits) };
    assert_eq!((wait.holder_tid, wait.holders, wait.no_holder_ns), (None, 0, 10));
    let [left] = &rows.unfinished_waits[..] else { panic!("{:?}", rows.unfinished_waits) };
    assert_eq!((left.ts.0, left.holder_tid, left.ended.word()), (20, Some(97), "thread"));
    assert_eq!(tally.incomplete.holds(), 2);
}

/// What comes late of a process that has ended says nothing of its successor.
#[test]
fn events_of_the_first_one_that_come_late_end_nothing() {
    let (rows, _) = run(
        false,
        "10 acquire a L
         100 acquire' a K
         110 acquire b M
         120 release' a K
         130 acquire' b N
         140 release' b N",
    );
    let holds: Vec<_> = rows.critical_sections.iter().map(|h| (h.ts.0, h.depth)).collect();
    assert_eq!(holds, [(100, 0), (130, 0)]);
}

/// The kernel may tell of a thread before its process does.
#[test]
fn threads_that_the_kernel_knows_are_kept() {
    let (rows, _) = run(
        true,
        "0 0 .>a R
         5 acquire a L
         10 1 .>b R
         20 acquire' a L
         30 release' a L
         40 1 b>. X",
    );
    let holds: Vec<_> = rows.critical_sections.iter().map(|h| (h.ts.0, h.depth)).collect();
    assert_eq!(holds, [(20, 0)]);
    let of_b: Vec<_> = rows.thread_time.iter().filter(|t| t.tid.0 == 'b' as i32).collect();
    assert!(of_b.iter().all(|t| (t.ts.0, t.wall_ns) == (10, 30)) && !of_b.is_empty(), "{of_b:?}");
}
