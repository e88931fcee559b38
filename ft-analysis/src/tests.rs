//! The machines together: a timeline in, rows out.

mod bounds;
mod counters;
mod counts;
mod executed;
mod gaps;
mod hostile;
mod isolation;
mod losses;
mod order;
mod overhead;
mod own;
mod preemptions;
mod reused;
mod simulated;
mod steal;
mod tasks;
mod time;
pub(crate) mod timelines;
mod turns;
mod waits;
mod what_ifs;

use super::timeline::{feed, nonsense, run};
use super::*;
use ft_trace::tables::{CriticalSection, Decomposition, DispatchLatency, Gap, GapCause, Part};

/// Parts that are not 0, in the order of the columns.
fn parts(d: &Decomposition) -> String {
    let all = [
        ("run", d.running_ns),
        ("pre", d.preempted_ns),
        ("dis", d.dispatch_ns),
        ("blk", d.blocked_ns),
        ("hard", d.hardirq_ns),
        ("soft", d.softirq_ns),
        ("vec", d.vector_ns),
        ("?", d.unexplained_ns),
        ("park", d.parked_ns),
    ];
    let shown: Vec<_> =
        all.iter().filter(|p| p.1 != 0).map(|p| format!("{}{}", p.0, p.1)).collect();
    shown.join(" ")
}

/// The mark of a row that is not exact.
fn mark(mark: Mark) -> String {
    if mark == Mark::Exact { String::new() } else { format!(" {mark}") }
}

fn hold(r: &CriticalSection) -> String {
    let lock = r.lock as u8 as char;
    let by = r.preemptor_comm.as_ref().zip(r.preemptor_ns);
    let by = by.map_or(String::new(), |(comm, ns)| format!(" by {comm}{ns}"));
    let wait = if r.wait_ns > 0 { format!(" wait{}", r.wait_ns) } else { String::new() };
    let parts = r.parts.as_ref().map_or("no kernel".into(), parts);
    let mark = mark(r.mark);
    let at_least = if r.depth_mark == Mark::Exact { "" } else { ">=" };
    format!("{lock}{at_least}{} {}+{} {parts}{by}{wait}{mark}", r.depth, r.ts, r.dur)
}

fn dispatch(r: &DispatchLatency) -> String {
    let ran = r.running_comm.as_ref().zip(r.running_ns);
    let ran = ran.map_or(String::new(), |(comm, ns)| format!(" behind {comm}{ns}"));
    let moved = if r.migrated { " migrated" } else { "" };
    let mark = mark(r.mark);
    let name = r.tid.0 as u8 as char;
    format!("{name} {}+{} cpu{} woken by {}{ran}{moved}{mark}", r.ts, r.dur, r.cpu, r.waker_tid)
}

fn gap(r: &Gap) -> String {
    let cause = r.cause.map_or("no account", GapCause::word);
    let culprit = r.culprit.as_ref().map_or(String::new(), |c| format!(" {c}"));
    let parts = r.parts.as_ref().map_or(String::new(), |p| format!(": {}", parts(p)));
    let mark = mark(r.mark);
    format!("{}+{} {cause}{culprit}{parts} ({}){mark}", r.ts, r.dur, r.inferred)
}

fn rows_of(rows: &Rows) -> Vec<String> {
    let holds = rows.critical_sections.iter().map(hold);
    holds
        .chain(rows.dispatch_latency.iter().map(dispatch))
        .chain(rows.gaps.iter().map(gap))
        .collect()
}

/// Runs the timeline and compares its rows, holds first, then wake-ups, then gaps.
fn check(timeline: &str, expected: &[&str]) -> Tally {
    let (rows, tally) = run(true, timeline);
    assert_eq!(rows_of(&rows), expected, "{timeline}");
    for r in &rows.critical_sections {
        assert_eq!(r.parts.expect("a kernel stream").total_ns(), r.dur);
    }
    for r in &rows.gaps {
        assert!(r.parts.is_none_or(|p| p.total_ns() == r.dur && p.running_ns == 0));
    }
    tally
}

#[test]
fn a_hold_is_preempted() {
    // cpu 0: a [====|XXXXX|YY|====] a        [ ] the hold
    check(
        "0 0 .>a S
         10 acquire a L
         30 0 a>X R+
         80 0 X>Y S
         100 0 Y>a S
         140 release a L",
        &["L0 10+130 run60 pre70 by X50"],
    );
}

#[test]
fn a_preempted_holder_is_moved() {
    // cpu 0: a [==|XXXX
    // cpu 1: YYYYYYYYYY|==] a    moved at 50
    check(
        "0 1 .>Y S
         0 0 .>a S
         10 acquire a L
         20 0 a>X R
         50 move a 0 1
         90 1 Y>a S
         100 release a L",
        &["L0 10+90 run20 pre70 by Y40"],
    );
}

#[test]
fn a_holder_blocks_is_woken_and_waits() {
    // a [==|bbbbbb|rrr|==]     woken at 60, behind X
    check(
        "0 0 .>a S
         10 acquire a L
         20 0 a>X S
         60 wake X a 0
         75 0 X>a R
         90 release a L",
        &["L0 10+80 run25 dis15 blk40", "a 60+15 cpu0 woken by 88 behind X15"],
    );
}

#[test]
fn nested_interrupts_in_a_hold() {
    // a [==|ssss|hhh|v|hhh|ss|===]
    check(
        "0 0 .>a S
         10 acquire a L
         20 irq a soft 40
         30 irq a hard 20
         35 irq a vector 5
         70 release a L",
        &["L0 10+60 run20 hard15 soft20 vec5"],
    );
}

#[test]
fn a_hold_ends_inside_a_softirq() {
    // The clocks differ by less than their bound: the release seems to lie in the softirq.
    check(
        "0 0 .>a S
         10 acquire a L
         20 irq a soft 40
         30 release a L
         50 acquire a M
         70 release a M",
        &["L0 10+20 run10 soft10", "M0 50+20 run10 soft10"],
    );
}

#[test]
fn depth_four_and_one_preemption_for_all_holds() {
    let tally = check(
        "0 0 .>a S
         10 acquire a A
         11 acquire a B
         12 acquire a C
         13 acquire a D
         20 0 a>X R
         30 0 X>a S
         40 release a D
         41 release a C
         42 release a A
         43 release a B",
        &[
            "D3 13+27 run17 pre10 by X10",
            "C2 12+29 run19 pre10 by X10",
            "A0 10+32 run22 pre10 by X10",
            "B1 11+32 run22 pre10 by X10",
        ],
    );
    assert_eq!((tally.holds, tally.out_of_order_releases), (4, 1));
}

#[test]
fn holds_of_one_lock_that_overlap_are_counted() {
    // L  a [=======|        b seems to have it 3 before a gives it back; then handed over at the same time
    //          b [====|
    //              a [==|
    let lock = |text: &str| run(true, text).1.overlaps;
    let found = lock(
        "10 acquire a L
         20 acquire b L
         23 release a L
         30 release b L
         30 acquire a L
         35 release a L",
    );
    assert_eq!(found, Overlaps { holds: 1, longest_ns: 3 });
    // Readers may, and a release that is missing is no overlap, nor what another lock's holder does.
    let found = lock(
        "10 read a L
         12 read b L
         14 release a L
         16 release b L
         20 acquire a L
         25 acquire b L
         28 release b L
         29 acquire a M
         30 acquire b N
         31 release a M
         32 release b N",
    );
    assert_eq!(found, Overlaps::default());
}

#[test]
fn a_lock_is_waited_for() {
    check(
        "0 0 .>a S
         5 wait a L
         10 0 a>. S
         30 wake X a 0
         31 0 .>a S
         35 acquire a L
         45 release a L",
        &["L0 35+10 run10 wait30", "a 30+1 cpu0 woken by 88 behind .1"],
    );
}

#[test]
fn a_condition_wait_is_two_holds() {
    let (rows, _) = run(
        true,
        "0 0 .>a S
         10 acquire a L
         20 park a L
         25 0 a>. S
         50 wake X a 0
         51 0 .>a S
         55 unpark a L
         60 release a L",
    );
    assert_eq!(
        rows_of(&rows)[..2],
        ["L0 10+10 run10", "L0 55+5 run5"],
        "the wait for the condition is in no hold and is no wait for the lock"
    );
    assert!(rows.critical_sections.iter().all(|r| r.condition && &*r.kind == "mutex"));
}

#[test]
fn a_thread_ends_with_a_lock() {
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         20 exit a
         30 0 a>X X
         40 0 X>a S
         50 release a L",
        &[],
    );
    assert_eq!((tally.incomplete.never_released, tally.incomplete.release_only), (1, 1));
}

#[test]
fn without_a_kernel_stream_there_are_no_parts() {
    let (rows, _) = run(false, "10 acquire a L\n 30 release a L\n 40 poll a 0\n 90 gap a 0 50 80");
    assert_eq!(rows_of(&rows), ["L0 10+20 no kernel", "50+30 no account (interrupt)"]);
}

#[test]
fn a_wake_up_of_a_running_thread_is_a_race() {
    let tally = check(
        "0 0 .>a S
         10 wake X a 0
         20 0 a>X R
         30 wake Y a 0
         40 0 X>a S",
        &[],
    );
    assert_eq!(tally.races.woken_while_awake, 2);
}

#[test]
fn a_thread_that_is_woken_on_its_way_off_the_cpu_waits_from_the_switch_on() {
    // a [=w=|rrrr|==]     woken at 15, off the CPU at 20: it has slept, but not for a moment
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         15 wake X a 0
         20 0 a>Y S!
         60 0 Y>a R
         70 release a L",
        &["L0 10+60 run20 dis40", "a 20+40 cpu0 woken by 88 behind Y40"],
    );
    assert_eq!((tally.races.woken_on_the_way, tally.races.woken_while_awake), (1, 0));
}

#[test]
fn a_waking_that_was_undone_long_ago_wakes_nobody() {
    // a [=w====|bbbb|rr|==]   the sleep of 20 is another one: woken at 50
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         15 wake X a 0
         20 0 a>Y S
         50 wake X a 0
         60 0 Y>a R
         70 release a L",
        &["L0 10+60 run20 dis10 blk30", "a 50+10 cpu0 woken by 88 behind Y10"],
    );
    assert_eq!((tally.races.woken_on_the_way, tally.races.woken_while_awake), (0, 1));
}

#[test]
fn what_the_switch_says_of_a_waking_and_later_records_deny_is_marked() {
    // It was said to be woken, and a waking while it slept follows.
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         15 wake X a 0
         20 0 a>Y S!
         50 wake X a 0
         60 0 Y>a R
         70 release a L",
        &["L0 10+60 run20 dis40 lower bound", "a 50+10 cpu0 woken by 88 behind Y10"],
    );
    assert_eq!(tally.races.slept_after_all, 1);
    // Nothing but the waking of before can have woken it, and it was said to be over.
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         15 wake X a 0
         20 0 a>Y S
         60 0 Y>a R
         70 release a L",
        &["L0 10+60 run20 blk40 lower bound"],
    );
    assert_eq!(tally.races.dispatched_without_waking, 1);
}

#[test]
fn a_woken_thread_moves_and_waits_behind_the_longest() {
    // cpu 0: X (busy)     woken at 10, moved at 12
    // cpu 1: Y until 30, Z until 35
    check(
        "0 0 a>X S
         0 1 .>Y S
         10 wake X a 0
         12 move a 0 1
         30 1 Y>Z S
         35 1 Z>a S",
        &["a 10+25 cpu1 woken by 88 behind Y18 migrated"],
    );
}

#[test]
fn events_out_of_order_are_left_out() {
    let tally = check("10 acquire a L\n 5 release a L\n 20 release a L", &["L0 10+10 run10"]);
    assert_eq!((tally.events, tally.disordered), (3, 1));
}

/// Random events, most of them nonsense together: whatever comes, parts are not negative and sum.
#[test]
fn any_stream_gives_sums_that_hold() {
    for seed in 1..=200u64 {
        let text = nonsense(seed);
        let (rows, tally) = run(true, &text);
        assert_eq!(tally.disordered, 0);
        let holds = rows.critical_sections.iter().map(|r| (r.parts, r.dur));
        let gaps = rows.gaps.iter().map(|r| (r.parts, r.dur));
        for (parts, dur) in holds.chain(gaps).filter_map(|(p, dur)| Some((p?, dur))) {
            assert_eq!(parts.total_ns(), dur, "seed {seed}");
            let each = [
                parts.running_ns,
                parts.preempted_ns,
                parts.dispatch_ns,
                parts.blocked_ns,
                parts.hardirq_ns,
                parts.softirq_ns,
                parts.vector_ns,
                parts.unexplained_ns,
            ];
            assert!(each.iter().all(|&ns| ns >= 0), "seed {seed}: {parts:?}");
        }
        time::balanced(&rows.thread_time);
        assert!(rows.thread_time.iter().any(|r| r.part == Part::Running), "seed {seed}");
        assert!(rows.dispatch_latency.iter().all(|r| r.dur >= 0));
        assert!(!rows.critical_sections.is_empty() || !rows.gaps.is_empty(), "seed {seed}");
    }
}

#[test]
fn threads_of_other_processes_are_not_kept() {
    let mut analysis = feed(true, "0 0 .>X S\n 5 wake X Y 0\n 7 irq X soft 2\n 9 0 X>Y R");
    assert_eq!(analysis.take_rows(), Rows::default());
    assert!(analysis.world.is_empty());
}

#[test]
fn a_thread_that_ended_is_forgotten_and_its_number_may_come_again() {
    let timeline = "0 0 .>a S\n 10 acquire a L\n 20 exit a\n 30 0 a>X Z";
    assert!(feed(true, timeline).world.is_empty());
}
