//! What the report of functions says of timelines.

use super::*;
use ft_analysis::timeline::{run, run_by_agent};

/// The report of a timeline.
fn report(kernel: bool, timeline: &str) -> FunctionsReport {
    report_of(run(kernel, timeline))
}

fn report_of((rows, tally): (ft_analysis::Rows, Tally)) -> FunctionsReport {
    let mut functions = Functions::default();
    rows.functions.iter().for_each(|r| functions.add(r));
    functions.finish(&tally, 2e9)
}

const TIMELINE: &str = "
    0 0 .>a S
    1000 in a F 90
    2000 into a
    3000 0 a>X R
    4000 0 X>a S
    5000 out-of a
    5500 into a
    6000 out a F 90";

#[test]
fn self_times_sum_to_the_time_inside_the_outermost_calls() {
    let report = report(true, TIMELINE);
    let found = report
        .functions
        .iter()
        .map(|f| (&*f.name, f.calls, f.own.ns, f.total.ns, f.cycles_per_call));
    let expected = [
        ("parse", 2, 3000, 3000, Some(3000)),
        ("0x46", 1, 1500, 5000, Some(10_000)),
        ("(unknown)", 0, 500, 500, None),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!((report.self_ns, report.counts.left), (5000, 1));
    let text = format!("{:140}", report.section());
    for line in [
        "3 calls, 5.00 µs inside the outermost",
        "left by a jump",
        "(unknown): from the last event",
        "A star (*) marks a function",
        "By self time",
        "PROF_IN",
        "0x46",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn calls_without_ends_are_counted_in_a_table_of_their_own() {
    let entered = "
    0 0 .>a S
    1000 called a E 95
    2000 called a E 95
    3000 called a G 80
    4000 0 a>X S";
    let alone = report(true, entered);
    let functions = |report: &FunctionsReport| {
        report.functions.iter().map(|f| (f.name.clone(), f.calls, f.entered)).collect::<Vec<_>>()
    };
    assert_eq!(functions(&alone), [("0x45".into(), 0, 2), ("0x47".into(), 0, 1)]);
    let text = format!("{:140}", alone.section());
    assert!(text.contains("3 calls of which no end is recorded"), "{text}");
    assert!(text.contains("0x45      -          2  66.7 %"), "{text}");
    assert!(!text.contains("By self time") && !text.contains("inside the outermost"), "{text}");
    assert!(!text.contains("A star"), "{text}");
    let lost = report(true, &format!("{entered}\n5000 lose ring 10 a\n6000 called a E 95"));
    let text = format!("{:140}", lost.section());
    assert!(text.contains("A star (*) marks a function") && text.contains("3*  75.0 %"), "{text}");
    // Beside others they have no line among the times.
    let both = report(true, &format!("{TIMELINE}\n7000 called a E 95"));
    assert_eq!(functions(&both)[3], ("0x45".into(), 0, 1));
    let text = format!("{:140}", both.section());
    assert_eq!(text.matches("0x45").count(), 1, "{text}");
    assert!(text.contains("3 calls, 5.00 µs inside the outermost"), "{text}");
}

#[test]
fn what_counters_counted_stands_by_function_and_call() {
    let (rows, mut tally) = run(
        true,
        "0 0 .>a S
         10 count a 5 100 0\n 10 in a F 90
         20 count a 5 130 1\n 20 into a
         30 count a 5 330 3\n 30 out-of a
         40 count a 5 370 3\n 40 out a F 90",
    );
    tally.counting.names = vec!["instructions".into(), "cache-misses".into()];
    let report = report_of((rows, tally));
    let counted = |name: &str| {
        let f = report.functions.iter().find(|f| f.name == name).expect("it is there");
        f.counted.iter().map(|c| (&*c.counter, c.calls, c.total)).collect::<Vec<_>>()
    };
    assert_eq!(counted("parse"), [("instructions", 1, 200), ("cache-misses", 1, 2)]);
    assert_eq!(counted("0x46"), [("instructions", 1, 70), ("cache-misses", 1, 1)]);
    let text = format!("{:140}", report.section());
    assert!(text.contains("What counters counted") && text.contains("per 1000 calls"), "{text}");
}

#[test]
fn what_of_a_function_is_the_recordings_own_stands_beside_it() {
    let report = report_of(run_by_agent(TIMELINE));
    let own = report.functions.iter().map(|f| (&*f.name, f.own.agent_ns.0, f.total.agent_ns.0));
    let expected = [
        ("parse", Some(1000), Some(1000)),
        ("0x46", Some(0), Some(1000)),
        ("(unknown)", Some(0), Some(0)),
    ];
    assert_eq!(own.collect::<Vec<_>>(), expected);
    let text = format!("{:140}", report.section());
    // Of 3000 ns, and of 5000.
    for said in ["33.3 %", "20.0 %", "recording", "Recording: the share of a row's time"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn without_a_kernel_there_are_lengths_alone_and_without_functions_a_sentence() {
    let alone = format!("{:120}", report(false, TIMELINE).section());
    assert!(alone.contains("By self time") && !alone.contains("preempted  "), "{alone}");
    let none = format!("{:120}", report(true, "0 0 .>a S").section());
    assert!(none.contains("No function was recorded"), "{none}");
}
