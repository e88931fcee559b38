//! What could have been shorter, from a timeline.

use super::*;

/// Holds that extensions of each length let end, or none does; waiters of real-time priority; and what is in no sum.
const HELD_UP: &str = "
    0 0 .>a S
    0 1 .>b@49 S
    0 2 .>c S
    1000 acquire a K
    2000 wait b K
    10000 0 a>X R
    50000 wait c K
    90000 0 X>a S
    94000 release a K
    94100 acquire b K
    94200 release b K
    94300 acquire c K
    94400 release c K
    100000 acquire a L
    110000 wait c L
    120000 0 a>X R
    150000 0 X>a S
    190000 release a L
    190100 acquire c L
    190200 release c L
    200000 acquire a K
    210000 0 a>X R
    220000 0 X>a S
    230000 call a write 100
    240000 release a K
    300000 read a M
    310000 0 a>X R
    320000 0 X>a S
    330000 release a M
    400000 acquire a K
    410000 0 a>X R+
    420000 0 X>a S
    430000 release a K
    500000 acquire a K
    510000 0 a>X R
    520000 0 X>a S
    525000 lose calls 2
    530000 release a K
    600000 acquire a K
    610000 0 a>X R
    620000 0 X>a S
";

#[test]
fn what_ifs_are_sums_over_holds_of_what_bounds_them() {
    let document = document(true, HELD_UP);
    check("what-if", &document.sections[3].to_string(), include_str!("../golden/what-if.txt"));
    let json = serde_json::to_value(document).expect("documents serialise");
    let what_if = &json["sections"]["what-if"]["values"];
    let all = &what_if["all"];
    let grants = all["grants"].as_array().expect("grants").iter();
    let grants: Vec<[i64; 3]> = grants
        .map(|g| ["grant_ns", "ended", "spared_ns"].map(|name| g[name].as_i64().expect("a number")))
        .collect();
    // K was free 4 µs after 10,000 instead of at 94,000: b waits 80 µs less, c all of its 44. L needed 40 µs more.
    let expected =
        [[5000, 1, 124_000], [10_000, 2, 124_000], [20_000, 2, 124_000], [50_000, 3, 154_000]];
    assert_eq!(grants, expected);
    assert_eq!(all["barred"], serde_json::json!({"slept": 0, "in_kernel": 1, "called": 1}));
    let marks = &what_if["marks"];
    assert_eq!((&marks["lower_bounds"], &marks["censored"]), (&1.into(), &1.into()));
    let sums = |of: &Value| {
        let names = ["holds", "waiters", "waited_ns", "lost_ns", "prioritized_ns", "own_cpu_ns"];
        names.map(|name| of[name].as_i64().expect("a number"))
    };
    // What locks have sums to what there is.
    let locks = what_if["locks"].as_array().expect("locks").iter().map(sums);
    let total = locks.fold([0; 6], |all, of| std::array::from_fn(|i| all[i] + of[i]));
    assert_eq!((sums(all), sums(all)[0]), (total, 5));
    assert!(all["inherited_ns"].as_i64() <= all["urgent_ns"].as_i64());
}

#[test]
fn extensions_that_were_asked_for_are_told_beside_what_they_could_do() {
    let document = document(
        true,
        "0 0 .>a S
         10 acquire a K
         20 release a K 0 2
         30 acquire a K
         40 release a K 0 3
         50 acquire a K
         55 0 a>X R
         60 0 X>a S
         70 release a K 0 4
         80 acquire a K
         90 release a K 0 1
         100 acquire a K
         110 release a K
         120 acquire a K
         130 release a K 0 5
         140 acquire a K
         150 park a K 0 3
    ",
    );
    let text = document.sections[3].to_string();
    let said = "Of 4 holds whose holders ask for time-slice extensions, 1 needed none; 1 released the lock within one";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{text}");
    let json = serde_json::to_value(document).expect("documents serialise");
    let asked = serde_json::json!({"impossible": 1, "pending": 1, "granted": 1, "over": 1});
    assert_eq!(json["sections"]["what-if"]["values"]["asked"], asked);
}
