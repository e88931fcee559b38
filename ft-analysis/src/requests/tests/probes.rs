//! Calls of probed functions.

use super::*;

/// `f 10+20` of each request, in the order of their ends.
fn calls(timeline: &str) -> (Vec<String>, Rows, RequestCounts) {
    let (rows, tally) = run(true, timeline);
    tiles(&rows);
    let told = |r: &Request| format!("{} {}+{}", r.kind, r.ts.0, r.dur);
    (rows.requests.iter().map(told).collect(), rows, tally.requests)
}

fn check(timeline: &str, expected: &[&str], left: u64, unpaired: Unpaired) {
    let (found, _, counts) = calls(timeline);
    assert_eq!(found, expected, "{timeline}");
    assert_eq!((counts.left, counts.unpaired), (left, unpaired), "{timeline}");
}

#[test]
fn a_call_ends_with_its_own_return_however_deep_it_is() {
    check(
        "0 0 .>a S
         10 call-of a f 100
         20 call-of a f 80
         30 call-of a g 60
         40 return-of a g 60
         45 call-of a g 60
         50 return-of a g 60
         60 return-of a f 80
         70 return-of a f 100",
        &["g 30+10", "g 45+5", "f 20+40", "f 10+60"],
        0,
        Unpaired::default(),
    );
}

#[test]
fn a_call_that_became_a_jump_has_the_place_of_its_caller() {
    check(
        "0 0 .>a S
         10 call-of a f 100
         20 call-of a g 100
         30 return-of a g 100
         31 return-of a f 100",
        &["g 20+10", "f 10+21"],
        0,
        Unpaired::default(),
    );
}

#[test]
fn what_was_left_by_a_jump_is_counted_and_ends_nothing() {
    // g and h are left for f, which goes on to return; then g anew for whoever calls f.
    check(
        "0 0 .>a S
         10 call-of a f 100
         20 call-of a g 80
         30 call-of a h 60
         40 return-of a f 100
         50 call-of a g 80
         60 call-of a f 100
         70 return-of a f 100",
        &["f 10+30", "f 60+10"],
        3,
        Unpaired::default(),
    );
    // Called again at the place that it was left at.
    check(
        "0 0 .>a S
         10 call-of a f 100
         20 call-of a f 100
         30 return-of a f 100
         40 call-of a f 100
         50 exit a",
        &["f 20+10"],
        1,
        Unpaired { begin_only: 1, ..Unpaired::default() },
    );
}

#[test]
fn threads_have_stacks_of_their_own() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 call-of a f 100
         20 call-of b f 200
         30 return-of b f 200
         40 return-of a f 100",
        &["f 20+10", "f 10+30"],
        0,
        Unpaired::default(),
    );
}

#[test]
fn between_marks_the_newest_begin_is_ended() {
    check(
        "0 0 .>a S
         10 call-of a m
         20 call-of a m
         25 call-of a f 100
         26 return-of a f 100
         30 return-of a m
         40 return-of a m
         50 return-of a m",
        &["f 25+1", "m 20+10", "m 10+30"],
        0,
        Unpaired { end_only: 1, ..Unpaired::default() },
    );
}

#[test]
fn what_goes_on_when_hits_are_lost_is_not_known() {
    let (found, rows, counts) = calls(
        "0 0 .>a S
         10 call-of a f 100
         20 lose probes 30
         30 call-of a f 100
         60 return-of a f 100
         70 return-of a f 120
         80 call-of a f 100
         90 return-of a f 100",
    );
    assert_eq!(found, ["f 30+30", "f 80+10"]);
    // Its begin lies where others are missing: it may have been another's.
    let marks: Vec<Mark> = rows.requests.iter().map(|r| r.mark).collect();
    assert_eq!(marks, [Mark::LowerBound, Mark::Exact]);
    let unpaired = Unpaired { open_at_loss: 1, end_only: 1, ..Unpaired::default() };
    assert_eq!(counts.unpaired, unpaired);
}

/// Events of the program's own are lost in its rings; hits of probes are not there.
#[test]
fn a_loss_of_own_events_ends_no_call() {
    let unpaired = Unpaired { open_at_loss: 1, end_only: 1, ..Unpaired::default() };
    check(
        "0 0 .>a S
         5 open a
         10 call-of a f 100
         20 lose ring 5 a
         30 return-of a f 100
         35 close a
         40 call-of a f 100
         50 return-of a f 100",
        &["f 10+20", "f 40+10"],
        0,
        // A scope's end without its begin is counted with the scopes.
        Unpaired { end_only: 0, ..unpaired },
    );
}

#[test]
fn a_call_has_a_critical_path() {
    let (found, rows, _) = calls(
        "0 0 .>a S
         0 1 .>b S
         1 irq b soft 1 1
         10 call-of a f 100
         20 0 a>. S
         30 wake b a 0 1
         35 0 .>a S
         40 return-of a f 100",
    );
    assert_eq!(found, ["f 10+30"]);
    let path: Vec<String> = rows.critical_path.iter().map(piece).collect();
    assert_eq!(
        path,
        [
            "a 10+10 running",
            ">b 20+10 running of a for asleep",
            "a 30+5 dispatch by .",
            "a 35+5 running"
        ]
    );
}

/// An exec that the kernel has recorded ends nothing once more when the first event of the new program comes.
#[test]
fn a_call_of_a_program_that_was_executed_outlasts_its_first_event() {
    check(
        "0 0 .>a S
         10 acquire a L
         15 call-of a g 80
         20 exec a
         30 call-of a f 100
         40 acquire* a L
         45 release* a L
         50 return-of a f 100",
        &["f 30+20"],
        0,
        Unpaired { begin_only: 1, ..Unpaired::default() },
    );
}
