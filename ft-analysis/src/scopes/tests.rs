use super::*;
use crate::timeline::{EXTREMES, every_payload, run};
use crate::{Context, Run, timeline};

mod tasks;

/// `a outer0 10+20 run15 pre5 by X5 wait3`, with `>=` before a depth that is a lower bound, and the mark.
fn text(r: &Scope) -> String {
    let parts = r.parts.map_or([0; 9], |p| p.to_array());
    let names = ["run", "pre", "dis", "blk", "hard", "soft", "vec", "?", "park"];
    let parts = names.iter().zip(parts).filter(|(_, ns)| *ns != 0);
    let parts: String = parts.map(|(name, ns)| format!(" {name}{ns}")).collect();
    let by = r.preemptor_comm.as_ref().zip(r.preemptor_ns);
    let by = by.map_or(String::new(), |(comm, ns)| format!(" by {comm}{ns}"));
    let wait = if r.lock_wait_ns > 0 { format!(" wait{}", r.lock_wait_ns) } else { String::new() };
    let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
    let at_least = if r.depth_mark == Mark::Exact { "" } else { ">=" };
    let (thread, name) = (r.tid.0 as u8 as char, r.event.trim_start_matches("work."));
    format!("{thread} {name}{at_least}{} {}+{}{parts}{by}{wait}{mark}", r.depth, r.ts, r.dur)
}

fn check(timeline: &str, expected: &[&str], unpaired: Unpaired) {
    let (rows, tally) = run(true, timeline);
    assert_eq!(rows.scopes.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
    assert_eq!((tally.scopes, tally.unpaired_scopes), (rows.scopes.len() as u64, unpaired));
    for r in &rows.scopes {
        assert_eq!(r.parts.expect("a kernel stream").total_ns(), r.dur);
    }
}

#[test]
fn what_happens_inside_is_in_both_scopes() {
    // a: outer [==|XXX|=  inner [=|bbb|w|=s=] =]
    check(
        "0 0 .>a S
         10 open a
         20 0 a>X R
         50 0 X>a S
         60 enter a
         70 0 a>X S
         100 wake X a 0
         105 0 X>a R
         110 irq a soft 5
         120 leave a
         130 close a",
        &[
            "a inner1 60+60 run20 dis5 blk30 soft5",
            "a outer0 10+120 run50 pre30 dis5 blk30 soft5 by X30",
        ],
        Unpaired::default(),
    );
}

#[test]
fn an_end_takes_the_newest_begin_of_its_name() {
    // Guards that are dropped in another order, and one scope within itself.
    check(
        "0 0 .>a S
         10 open a
         20 enter a
         30 close a
         40 leave a
         50 open a
         60 open a
         70 close a
         90 close a",
        &[
            "a outer0 10+20 run20",
            "a inner1 20+20 run20",
            "a outer1 60+10 run10",
            "a outer0 50+40 run40",
        ],
        Unpaired::default(),
    );
}

#[test]
fn waits_for_locks_inside_are_told_and_what_has_no_end_is_not() {
    check(
        "0 0 .>a S
         0 1 .>b S
         5 acquire b L
         10 open a
         20 wait a L
         25 0 a>X S
         40 release b L
         42 wake b a 0
         45 0 X>a R
         50 acquire a L
         60 wait a M
         70 abandon a M
         75 wait a M
         80 wait a N
         90 close a",
        &["a outer0 10+80 run60 dis3 blk17 wait40"],
        Unpaired::default(),
    );
}

#[test]
fn what_has_only_one_end_is_counted() {
    let one = Unpaired { end_only: 1, begin_only: 1, ..Unpaired::default() };
    // The trace ends, the thread ends, its memory is replaced.
    for end in ["", "60 exit a", "60 exec a\n 70 close a"] {
        let closed = end.contains("close");
        let timeline = format!("0 0 .>a S\n 10 leave a\n 20 open a\n {end}");
        let expected = Unpaired { end_only: 1 + u64::from(closed), ..one };
        check(&timeline, &[], expected);
    }
}

#[test]
fn a_loss_of_own_events_forgets_what_is_open_and_bounds_the_depth() {
    check(
        "0 0 .>a S
         10 open a
         20 lose ring 10 a
         40 enter a
         50 leave a
         60 close a",
        &["a inner>=0 40+10 run10"],
        Unpaired { end_only: 1, open_at_loss: 1, ..Unpaired::default() },
    );
}

#[test]
fn a_loss_of_the_kernels_records_marks_what_it_touches() {
    check(
        "0 0 .>a S
         10 open a
         20 enter a
         30 lose sched 10
         50 leave a
         60 0 a>X R
         70 0 X>a R
         80 close a
         90 open a
         95 close a",
        &[
            "a inner1 20+30 run10 ?20 lower bound",
            "a outer0 10+70 run40 pre10 ?20 by X10 lower bound",
            "a outer0 90+5 run5",
        ],
        Unpaired::default(),
    );
}

#[test]
fn a_wait_for_room_in_the_ring_marks_the_scope_in_which_it_was() {
    check(
        "0 0 .>a S
         10 open a
         20 full a 30
         30 close a
         40 open a
         50 close a",
        &["a outer0 10+20 run20 disturbed", "a outer0 40+10 run10"],
        Unpaired::default(),
    );
}

#[test]
fn a_thread_that_takes_the_number_of_one_that_ended_is_in_no_scope() {
    check(
        "0 0 .>a S
         10 open a
         20 0 a>X Z
         30 new X a 0
         40 0 X>a R
         50 close a
         60 open a
         70 close a",
        &["a outer>=0 60+10 run10"],
        Unpaired { end_only: 1, begin_only: 1, ..Unpaired::default() },
    );
}

#[test]
fn without_a_kernel_there_are_lengths_alone() {
    let (rows, _) = run(false, "10 open a\n 30 close a");
    assert_eq!(rows.scopes.iter().map(|r| (r.dur, r.parts)).collect::<Vec<_>>(), [(20, None)]);
}

#[test]
fn scopes_that_never_end_are_bounded_and_counted() {
    let many: String = (0..300).map(|i| format!("{} open a\n", 10 + i)).collect();
    let (rows, tally) = run(true, &format!("0 0 .>a S\n{many}400 close a"));
    assert_eq!(rows.scopes.iter().map(|r| r.depth).collect::<Vec<_>>(), [255]);
    let expected = Unpaired { too_many: 44, begin_only: 255, ..Unpaired::default() };
    assert_eq!(tally.unpaired_scopes, expected);
}

#[test]
fn no_payload_breaks_it() {
    for first in [0, 1 << 40, i64::MAX - 1_000_000_000] {
        let sites = timeline::sites();
        let mut run = Run::<Scopes>::of(Context::new(true, 10, &timeline::threads(), &sites, &[]));
        every_payload(first, 1).for_each(|event| run.push(&event));
        let (rows, _) = run.finish();
        assert!(rows.scopes.len() >= EXTREMES.len().pow(3), "its payload says nothing of a scope");
        assert!(rows.scopes.iter().all(|r| r.parts.is_some_and(|p| p.total_ns() == r.dur)));
    }
}

/// A thread that runs, is preempted, sleeps and is woken at random, inside scopes that nest at random, against sums of
/// what was made up.
#[test]
fn parts_are_what_was_made_up() {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut random = |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % n) as i64
    };
    let (mut t, mut text) = (0, "0 0 .>a S\n".to_owned());
    // Where the time since the beginning went (run, preempted, dispatch, blocked), and when each open scope began.
    let (mut sums, mut open, mut expected) = ([0; 4], Vec::new(), Vec::new());
    for _ in 0..5_000 {
        let ran = 1 + random(20);
        (t, sums[0]) = (t + ran, sums[0] + ran);
        match random(6) {
            0 | 1 if open.len() < 20 => {
                let inner = random(2) == 0;
                text += &format!("{t} {} a\n", if inner { "enter" } else { "open" });
                open.push((t, inner, sums));
            }
            0..=3 => {
                let Some((began, inner, before)) = open.pop() else { continue };
                text += &format!("{t} {} a\n", if inner { "leave" } else { "close" });
                expected.push((began, t - began, std::array::from_fn(|i| sums[i] - before[i])));
            }
            4 => {
                let off = 1 + random(30);
                text += &format!("{t} 0 a>X R\n{} 0 X>a S\n", t + off);
                (t, sums[1]) = (t + off, sums[1] + off);
            }
            _ => {
                let (slept, waited) = (1 + random(30), 1 + random(9));
                let woken = t + slept;
                text += &format!("{t} 0 a>X S\n{woken} wake X a 0\n{} 0 X>a R\n", woken + waited);
                (t, sums[2], sums[3]) = (woken + waited, sums[2] + waited, sums[3] + slept);
            }
        }
    }
    let (rows, _) = run(true, &text);
    let found = rows.scopes.iter().map(|r| {
        let p = r.parts.expect("a kernel stream");
        (r.ts.0, r.dur, [p.running_ns, p.preempted_ns, p.dispatch_ns, p.blocked_ns])
    });
    assert!(expected.len() > 500);
    assert_eq!(found.collect::<Vec<_>>(), expected);
}
