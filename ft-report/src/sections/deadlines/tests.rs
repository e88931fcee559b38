//! From a drawn timeline to what the report says.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use super::kept::MAX_EXPLAINED;
use super::*;
use crate::analyze::tests::store_named;
use crate::analyze::{ensure_asking, recorded};
use crate::document::Section;
use crate::sections::Asked;
use ft_analysis::RequestKind;
use ft_analysis::timeline::{sites, threads};
use ft_trace::tables::ThreadRow;

/// a has five cycles: one that is in time, one that waits for a lock, one whose CPU receives packets, one whose timer is
/// late, and one that works for long.
const LATE: &str = "0 0 .>a S
     0 1 .>b S
     1 irq b soft 1 1
     50 asleep a nanosleep 1 - 100
     50 0 a>. S
     100 irq . vector 3 0 local_timer
     101 wake . a 0 0
     102 0 .>a S
     112 asleep a nanosleep 1 - 200
     112 0 a>. S
     199 irq . vector 4 0 local_timer
     201 wake . a 0 0
     202 0 .>a S
     210 asleep a futex 4096 b
     210 0 a>. S
     280 wake b a 0 1
     281 0 .>a S
     290 asleep a nanosleep 1 - 400
     290 0 a>. S
     398 irq . soft 90 0 NET_RX
     401 irq . vector 2 0 local_timer
     402 wake . a 0 0
     490 0 .>a S
     500 asleep a nanosleep 1 - 600
     500 0 a>. S
     690 irq . vector 4 0 local_timer
     691 wake . a 0 0
     692 0 .>a S
     702 asleep a nanosleep 1 - 800
     702 0 a>. S
     800 irq . vector 2 0 local_timer
     801 wake . a 0 0
     802 0 .>a S
     882 asleep a nanosleep 1 - 1000
     882 0 a>. S";

/// What a report of these deadlines is made of, of a trace of LATE.
fn with<T>(asked: &[RequestKind], look: impl FnOnce(Input<'_>) -> T) -> T {
    with_of(LATE, asked, look)
}

fn with_of<T>(timeline: &str, asked: &[RequestKind], look: impl FnOnce(Input<'_>) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let named = |name: &str| ThreadRow {
        tid: Tid(i32::from(name.as_bytes()[0])),
        name: name.into(),
        ..threads().remove(0)
    };
    let trace = store_named(dir.path(), timeline, ["a", "b"].map(named).to_vec());
    let tally = ensure_asking(&trace, &sites(), asked.to_vec(), &mut |_| ControlFlow::Continue(()));
    let tally = tally.unwrap();
    assert!(recorded(&trace).unwrap().threads.is_none(), "no group is stated there");
    let input =
        Input { trace: &trace, tally: &tally, asked: Asked::default(), code: &OnceCell::new() };
    look(input)
}

fn within(ns: i64) -> RequestKind {
    RequestKind::deadline("a", ns).unwrap()
}

fn text(section: &Section) -> String {
    section.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_missed_cycle_has_its_cause() {
    let report = with(&[within(60)], |input| DeadlinesReport::read(input).unwrap());
    let [d] = &report.deadlines[..] else { panic!("{report:#?}") };
    assert_eq!((d.counts.cycles, d.met, d.counts.missed, d.counts.not_over), (5, 1, 4, 0));
    let missed: Vec<_> = report
        .missed
        .iter()
        .map(|m| format!("{}+{}: {} {}", m.ts, m.dur_ns, m.what, m.ns))
        .collect();
    let expected = [
        "200+90: waited for b in futex (a lock) 70",
        "400+100: interrupt NET_RX 86",
        "600+102: late timer 91",
        "800+82: its own work 80",
    ];
    assert_eq!(missed, expected);
    let longest: Vec<_> = report.longest.iter().map(|l| (l.dur_ns, l.missed)).collect();
    assert_eq!(longest, [(102, true), (100, true), (90, true), (82, true), (12, false)]);
    for l in &report.longest {
        assert_eq!(l.parts.iter().map(|(_, ns)| ns).sum::<i64>(), l.dur_ns, "{l:?}");
    }
    let [t] = &report.threads[..] else { panic!("{:#?}", report.threads) };
    assert_eq!((&*t.comm, t.cycles, t.missed, t.usual_ns), ("a", 5, 4, 10));
    let said = text(&report.section());
    for words in [
        "Deadline a=60ns: 5 cycles, 1 met it, 4 missed it",
        "Of 4 missed: 1 late timer, 1 interrupt NET_RX, 1 its own work, 1 waited for b in futex (a lock)",
        "record",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_thread_that_hangs_has_missed_its_deadline() {
    let (before, _) = LATE.rsplit_once("882 asleep").unwrap();
    let hangs = format!("{before}882 0 a>. S\n     990 0 .>b S");
    let report = with_of(&hangs, &[within(102)], |input| DeadlinesReport::read(input).unwrap());
    let counts = &report.deadlines[0].counts;
    assert_eq!((counts.missed, counts.not_over, counts.not_over_missed), (0, 1, 1));
    assert_eq!(counts.not_over_ns, 190);
    let said = text(&report.section());
    let expected = "1 cycle more missed it by then: the longest had taken 190 ns";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("counts more that missed"), "{said}");
}

#[test]
fn a_deadline_that_is_met_or_of_nobody_says_so() {
    let nobody = RequestKind::deadline("b", 5).unwrap();
    let report = with(&[within(102), nobody], |input| DeadlinesReport::read(input).unwrap());
    assert!(report.budget.is_empty() && report.missed.is_empty(), "{report:#?}");
    let said = text(&report.section());
    assert!(!said.contains("counts more that missed"), "{said}");
    for words in ["Deadline a=102ns: 5 cycles, 5 met it, 0 missed it", "No cycle of b=5ns"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let none = with(&[], |input| DeadlinesReport::read(input).unwrap());
    assert!(text(&none.section()).contains("No deadline was asked for"));
}

#[test]
fn cycles_beyond_those_that_are_explained_are_counted() {
    with(&[within(60)], |input| {
        let mut all = Vec::new();
        input.rows(|r: Request| all.push(r)).unwrap();
        let one = all.into_iter().find(|r| r.dur > 60).unwrap();
        let mut cycles = Cycles::of(&input.tally.requests.deadlines);
        for request in 0..MAX_EXPLAINED as i64 + 3 {
            cycles.add(&Request { request, ..one.clone() });
        }
        assert_eq!((cycles.unexplained, cycles.missed.len()), (3, MAX_EXPLAINED));
    });
}
