//! Gaps that come with the tick of the host.

use super::*;

/// A poller on CPU 0 that sees a gap of 25 µs each `period` from `phase` on, and the causes that they get.
fn causes(period: i64, others: &str, during: impl Fn(i64) -> String) -> Vec<String> {
    let mut text = format!("0 0 .>a S\n 10 poll a 0\n{others}");
    for i in 1..=20 {
        let before = 7_015_000 + i * period;
        text += &during(before);
        text += &format!("\n{} gap a 0 {before} {}", before + 25_010, before + 25_000);
    }
    let (rows, _) = run(true, &text);
    let cause = |r: &Gap| {
        let culprit = r.culprit.as_ref().map_or(String::new(), |c| format!(" by {c}"));
        format!("{}{culprit}", r.cause.map_or("no account", GapCause::word))
    };
    rows.gaps.iter().map(cause).collect()
}

#[test]
fn a_strict_grid_of_gaps_without_a_record_is_the_hosts_tick() {
    let found = causes(10_000_000, "20 irq a vector 5", |_| String::new());
    let (early, late) = found.split_at(6);
    assert!(early.iter().all(|c| c == "unexplained"), "{found:?}");
    assert!(late.iter().all(|c| c == "steal by host tick, 10.0 ms"), "{found:?}");
    let found = causes(1_000_000, "20 irq a vector 5", |_| String::new());
    assert_eq!(found[19], "steal by host tick, 1.0 ms");
}

#[test]
fn a_gap_with_a_record_is_not_the_hosts_whatever_its_time() {
    let found = causes(10_000_000, "", |before| format!("\n{} irq a vector 2000", before + 9_000));
    assert!(found.iter().all(|c| c == "vector by vector-name"), "{found:?}");
}

#[test]
fn gaps_off_the_grid_and_without_interrupt_records_are_not_the_hosts() {
    let found = causes(10_370_000, "20 irq a vector 5", |_| String::new());
    assert!(found.iter().all(|c| c == "unexplained"), "{found:?}");
    // Where no interrupt was recorded, the gap may be the kernel's own tick.
    let found = causes(10_000_000, "", |_| String::new());
    assert!(found.iter().all(|c| c == "unexplained"), "{found:?}");
}
