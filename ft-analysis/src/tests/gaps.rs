//! Gaps of polling threads, explained and inferred.

use super::*;

#[test]
fn gaps_are_explained() {
    check(
        "0 0 .>a S
         10 poll a 0
         1000 irq a vector 300
         1300 irq a soft 100
         1500 gap a 0 950 1450
         2000 0 a>X R
         2400 0 X>a S
         2500 gap a 0 1990 2450
         3500 gap a 0 3000 3400",
        &[
            "950+500 vector vector-name: soft100 vec300 ?100 (interrupt)",
            "1990+460 switched-out X: pre400 ?60 (interrupt)",
            "3000+400 unexplained: ?400 (interrupt)",
        ],
    );
}

#[test]
fn a_gap_before_the_history_or_against_time_has_no_account() {
    let tally = check(
        "0 0 .>a S
         100 gap a 0 20 90
         200 gap a 0 150 140
         300 gap a 0 210 301",
        &["20+70 no account (interrupt)"],
    );
    assert_eq!((tally.unaccounted.before_history, tally.unaccounted.impossible), (1, 2));
    assert_eq!((tally.gaps, tally.pollers), (1, 1));
}

#[test]
fn inferred_causes_are_held_against_those_that_the_kernel_saw() {
    // Two pollers share CPU 0; X takes it once; a softirq; and a vector that no gap tells.
    let (_, tally) = run(
        true,
        "0 0 .>a S
         10 poll a 0
         20 0 a>b R
         25 poll b 0
         60020 0 b>a R
         60030 gap a 0 15 60025
         70000 0 a>X R
         80000 0 X>a S
         80010 gap a 0 69990 80005
         90000 irq a soft 2000
         92010 gap a 0 89990 92005
         95000 irq a vector 300
         99000 end a",
    );
    let found = tally.agreement.gaps.iter();
    let found: Vec<_> = found.map(|c| (&*c.inferred, &*c.kernel, &*c.length, c.gaps)).collect();
    assert_eq!(
        found,
        [
            ("switch-to-sibling", "switch-to-sibling", "10–100 µs", 1),
            ("interrupt", "long", "10–100 µs", 1),
            ("interrupt", "interrupt", "<10 µs", 1),
        ]
    );
    assert_eq!(tally.agreement.missed.map(|m| (m.count, m.total_ns))[0], (1, 300));
}
