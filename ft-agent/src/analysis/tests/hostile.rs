//! What a program writes into its events may be anything: no analysis, report or trigger may fail at it. Debug builds
//! panic where arithmetic overflows, so these tests mean most there.

use super::super::timeline::{SITES, names, sites, threads};
use super::*;
use crate::event::{Event, LeanUserEvent};
use crate::flight::Trigger;
use crate::model::{Cpu, Nanos, Pid, SiteId, Tid};
use crate::report::{AgreementReport, Gaps, Locks, Waits};

/// Numbers at which arithmetic breaks, and some around the time of the events.
const EXTREMES: [i64; 7] = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX - 1, i64::MAX];

/// Every kind of event with every combination of extremes in its payload, at times that rise from `first` by `step`.
fn every_payload(first: i64, step: i64) -> impl Iterator<Item = Event> {
    let sites = 0..=SITES.len() as i32;
    let payloads = EXTREMES.into_iter().flat_map(|a| {
        EXTREMES.into_iter().flat_map(move |b| EXTREMES.into_iter().map(move |c| [a, b, c]))
    });
    let events = payloads.flat_map(move |arg| sites.clone().map(move |site| (arg, site)));
    events.zip(0i64..).map(move |((arg, site), i)| {
        Event::User(LeanUserEvent {
            ts: Nanos(first + i * step),
            pid: Pid(1),
            tid: Tid(97 + (i % 3) as i32),
            cpu: Cpu((i % 4) as i32 - 1),
            site: SiteId(site),
            arg,
        })
    })
}

/// Analyses the events, and makes the reports of what programs tell and lets triggers look at it.
fn analyse(kernel: bool, events: impl Iterator<Item = Event>) -> (Rows, Tally) {
    let mut analysis = Analysis::new(Context::new(kernel, 10, &threads(), &sites(), &names()));
    events.for_each(|event| analysis.push(&event));
    let (rows, tally) = analysis.finish();
    let (mut gaps, mut locks, mut waits) = (Gaps::default(), Locks::default(), Waits::default());
    rows.gaps.iter().for_each(|r| gaps.add(r));
    rows.critical_sections.iter().for_each(|r| locks.add(r));
    rows.lock_waits.iter().for_each(|r| waits.add(r));
    rows.unfinished_waits.iter().for_each(|r| waits.add_unfinished(r));
    let (gaps, locks, waits) = (gaps.finish(&tally), locks.finish(&tally), waits.finish(&tally));
    let text = format!("{gaps}{locks}{waits}{}", AgreementReport::new(&tally));
    assert!(!text.is_empty());
    for trigger in ["hold > 1us", "gap > 1us", "dispatch > 1us"] {
        let trigger: Trigger = trigger.parse().expect("a trigger");
        trigger.find(&rows);
    }
    (rows, tally)
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
