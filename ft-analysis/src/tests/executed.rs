//! A program that another one executes in the same process.

use super::super::timeline::run;
use ft_trace::Mark;
use ft_trace::tables::CriticalSection;

fn holds(rows: &[CriticalSection]) -> Vec<(i64, i64, i32, Mark, Mark)> {
    rows.iter().map(|h| (h.ts.0, h.dur, h.depth, h.depth_mark, h.mark)).collect()
}

/// a holds L, and b waits for it and holds M, when a executes a program of which nothing but its own events tells.
#[test]
fn what_a_program_held_ends_with_it_although_no_kernel_record_tells() {
    let (rows, tally) = run(
        false,
        "10 acquire a L
         15 acquire b M
         20 wait b L
         100 acquire* a K
         110 acquire* b L
         120 release* b L
         140 release* a K",
    );
    let exact = |ts, dur| (ts, dur, 0, Mark::Exact, Mark::Exact);
    assert_eq!(holds(&rows.critical_sections), [exact(110, 10), exact(100, 40)]);
    assert_eq!(rows.lock_waits, []);
    let [left] = &rows.unfinished_waits[..] else { panic!("{:?}", rows.unfinished_waits) };
    assert_eq!((left.ts.0, left.holder_tid, left.ended.word()), (20, Some(97), "thread"));
    assert_eq!(tally.incomplete.holds(), 2);
}

/// b, which is not the first thread of the process, executes a program, and has a's number from then on.
#[test]
fn another_thread_than_the_first_has_the_number_of_that_one_when_it_executes_a_program() {
    let (rows, tally) = run(
        true,
        "0 0 .>a R
         5 0 a>b X
         50 exit b
         50 exec a
         80 0 a>. S
         90 wake . a 0
         95 0 .>a R
         100 0 a>. X",
    );
    let mut spans: Vec<_> = rows.thread_time.iter().map(|t| (t.tid.0, t.ts.0, t.wall_ns)).collect();
    spans.sort_unstable();
    spans.dedup();
    assert_eq!(spans, [(97, 0, 5), (97, 50, 50), (98, 5, 45)]);
    assert_eq!(tally.unseen_switches, 0);
}

/// Of a thread that goes on as the new program the time is one, whether the kernel recorded the exec or not.
#[test]
fn the_thread_that_executes_it_goes_on() {
    for exec in ["", "50 exec a"] {
        let (rows, tally) = run(
            true,
            &format!(
                "0 0 .>a R
                 10 acquire a L
                 {exec}
                 100 acquire* a K
                 140 release* a K
                 150 0 a>. X"
            ),
        );
        assert_eq!(holds(&rows.critical_sections), [(100, 40, 0, Mark::Exact, Mark::Exact)]);
        assert_eq!(tally.incomplete.holds(), 1, "{exec:?}");
        let whole = rows.thread_time.iter().all(|t| (t.ts.0, t.wall_ns) == (0, 150));
        assert!(whole && !rows.thread_time.is_empty(), "{exec:?}: {:?}", rows.thread_time);
    }
}
