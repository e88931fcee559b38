//! What a program writes into its events may be anything: no analysis may fail at it. Debug builds panic where
//! arithmetic overflows, so these tests mean most there.

use super::super::timeline::{EXTREMES, SITES, every_payload, names, sites, threads};
use super::*;
use ft_trace::event::{Event, LeanUserEvent};
use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};

fn analyse(kernel: bool, events: impl Iterator<Item = Event>) -> (Rows, Tally) {
    let mut analysis = Run::new(Context::new(kernel, 10, &threads(), &sites(), &names()));
    events.for_each(|event| analysis.push(&event));
    analysis.finish()
}

#[test]
fn no_payload_breaks_an_analysis() {
    for (first, step) in [(0, 1), (1 << 40, 7), (i64::MAX - 1_000_000_000, 1)] {
        for kernel in [true, false] {
            let (rows, tally) = analyse(kernel, every_payload(first, step));
            for gap in &rows.gaps {
                assert!(gap.dur >= 0 && gap.ts.0 >= 0, "{gap:?}");
                assert!(gap.parts.is_none_or(|p| p.total_ns() == gap.dur), "{gap:?}");
            }
            assert!(tally.unaccounted.impossible > 0);
            // Those that end before they begin, or in the future, or begin before there was time.
            assert!(rows.gaps.len() < EXTREMES.len().pow(3));
            assert!(rows.critical_sections.iter().all(|r| r.dur >= 0));
        }
    }
}

#[test]
fn the_sum_of_gaps_that_overlap_stays_at_the_largest_number() {
    let gap = SITES.iter().position(|s| s.0 == "gap").expect("gap") as i32;
    let events = (0..20).map(|i| {
        Event::User(LeanUserEvent {
            ts: Nanos(i64::MAX - 100 + i),
            pid: Pid(1),
            tid: Tid(97),
            cpu: Cpu(0),
            site: SiteId(gap),
            arg: [0, i64::MAX - 100, 0],
        })
    });
    let (rows, _) = analyse(true, events);
    assert_eq!(rows.gaps.len(), 20);
}

#[test]
fn events_before_the_beginning_of_time_are_left_out() {
    let (rows, tally) = analyse(true, every_payload(-100, 1).take(100));
    assert_eq!((rows, tally.disordered), (Rows::default(), 100));
}
