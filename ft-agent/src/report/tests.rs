//! Whole reports, from timelines: golden texts, widths, JSON.

use super::*;
use crate::analysis::timeline::run;

fn reports(kernel: bool, timeline: &str) -> Reports {
    let (rows, tally) = run(kernel, timeline);
    let (mut locks, mut dispatch, mut gaps) =
        (Locks::default(), Dispatch::default(), Gaps::default());
    rows.critical_sections.iter().for_each(|r| locks.add(r));
    rows.dispatch_latency.iter().for_each(|r| dispatch.add(r));
    rows.gaps.iter().for_each(|r| gaps.add(r));
    let mut times = Times::default();
    rows.thread_time.iter().for_each(|r| times.add(r));
    let steal =
        Steal { hypervisor: true, stolen_ns: Some(30_000_000), cpus_ns: vec![30_000_000, 0] };
    Reports {
        locks: locks.finish(&tally),
        dispatch: dispatch.finish(&tally),
        gaps: gaps.finish(&tally),
        agreement: AgreementReport::new(&tally),
        time: times.finish(&tally, steal),
    }
}

const TIMELINE: &str = "
    0 0 .>a S
    500 acquire a L
    700 acquire a M
    1000 0 a>X R+
    5000 0 X>a S
    5200 release a M
    5900 release a L
    6000 wait a L
    6100 0 a>X S
    9000 wake X a 0
    12000 0 X>a R
    12100 acquire a L
    12300 irq a vector 400
    13100 release a L
    20000 poll a 0
    30000 irq a soft 1500
    32000 gap a 0 29500 31800
    40000 acquire a L
    40050 lose sched 100
    40300 release a L
    40400 release a M
";

/// Compares with a file of `golden/`. To accept a change, copy what the failure prints.
fn check(name: &str, found: &str, expected: &str) {
    assert_eq!(found, expected, "golden/{name}.txt differs; found:\n{found}");
    for line in found.lines() {
        assert!(line.chars().count() <= 100, "wider than 100 columns: {line}");
    }
}

#[test]
fn the_reports_of_a_small_trace() {
    let text = reports(true, TIMELINE).to_string();
    check("reports", &text, include_str!("golden/reports.txt"));
}

#[test]
fn the_reports_without_a_kernel_stream() {
    let text = reports(false, TIMELINE).to_string();
    check("no-kernel", &text, include_str!("golden/no-kernel.txt"));
}

#[test]
fn the_reports_of_nothing_say_what_to_do() {
    let text = reports(true, "").to_string();
    check("empty", &text, include_str!("golden/empty.txt"));
}

#[test]
fn the_summary_of_a_small_trace() {
    let head = Head {
        trace: "trace".into(),
        duration_ns: Some(1_234_567_890),
        command: vec!["./demo".into(), "--fast".into()],
        host: "host".into(),
        kernel: "6.18.0".into(),
        kernel_groups: vec!["sched".into(), "irq".into()],
        events: 21,
        clock_bound_ns: 41,
        clock_checked: 9,
        clock_violations: 0,
        lost_user_events: 0,
        lost_kernel_records: 3,
        quality: Quality {
            clock_bound_median_ns: 35,
            clock_bound_max_ns: 41,
            clock_segments: 14,
            not_whole_ns: 34_567_890,
            recorded_ns: 1_234_567_890,
            coverage: Some(0.972),
            loss_places: 1,
            losses: vec![LossPlace {
                origin: "kernel".into(),
                what: "sched_switch".into(),
                cpu: 1,
                pid: -1,
                tid: -1,
                from_ns: 7_000_000,
                to_ns: 41_567_890,
                after_ns: 6_000_000,
                count: 3,
            }],
        },
        warnings: vec!["something is odd; do this".into()],
    };
    let text = Summary(&head, &reports(true, TIMELINE)).to_string();
    check("summary", &text, include_str!("golden/summary.txt"));
}

#[test]
fn json_has_what_the_text_leaves_out() {
    let json = serde_json::to_value(reports(true, TIMELINE)).expect("plain structs serialise");
    let lock = &json["locks"]["locks"][0];
    assert_eq!(lock["holds"], 3);
    assert_eq!(lock["histogram_100ns"][0], serde_json::json!([300, 1]));
    assert_eq!(json["locks"]["depths"], serde_json::json!([3, 1]));
    assert_eq!(json["dispatch"]["worst"][0]["behind_ns"], 3000);
    assert_eq!(json["time"]["threads"][0]["difference_ns"], 0);
    assert_eq!(json["time"]["steal"]["stolen_ns"], 30_000_000);
    assert_eq!(json["gaps"]["longest"][0]["parts"]["softirq_ns"], 1500);
}

#[test]
fn long_names_and_large_numbers_fit() {
    let (rows, tally) = run(true, TIMELINE);
    let long: crate::model::Name = "a-name-that-is-much-too-long-for-any-column".into();
    let (mut locks, mut dispatch, mut gaps) =
        (Locks::default(), Dispatch::default(), Gaps::default());
    let mut times = Times::default();
    for i in 0..2000 {
        let mut hold = rows.critical_sections[i % 4].clone();
        hold.lock_name = format!("{}{long}", i % 30).into();
        hold.kind = "rwlock-write".into();
        hold.place = format!("{long}/{long}.rs:12345").into();
        hold.preemptor_comm = Some(long.clone());
        hold.wait_ns = 999_499;
        locks.add(&hold);
        let mut wake = rows.dispatch_latency[0].clone();
        wake.tid.0 = 4_194_000 + i as i32 % 30;
        (wake.comm, wake.waker_comm, wake.running_comm) =
            (long.clone(), long.clone(), Some(long.clone()));
        (wake.dur, wake.migrated) = (99_949_999, true);
        dispatch.add(&wake);
        let mut gap = rows.gaps[0].clone();
        gap.tid.0 = wake.tid.0;
        (gap.comm, gap.culprit) = (long.clone(), Some(long.clone()));
        gap.inferred = "switch-to-sibling".into();
        gaps.add(&gap);
        let mut time = rows.thread_time[i % rows.thread_time.len()].clone();
        (time.tid.0, time.wall_ns, time.spent_ns) =
            (wake.tid.0, 99_999_999_999_999, 33_333_333_333_333);
        (time.comm, time.culprit) = (long.clone(), Some(long.clone()));
        times.add(&time);
    }
    let reports = Reports {
        locks: locks.finish(&tally),
        dispatch: dispatch.finish(&tally),
        gaps: gaps.finish(&tally),
        agreement: AgreementReport::new(&tally),
        time: times.finish(&tally, Steal::default()),
    };
    for line in reports.to_string().lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
}
