mod bounds;
mod fibers;

use std::collections::BTreeMap;

use super::*;
use crate::timeline;
use crate::timeline::run;
use ft_trace::tables::Function;

/// `a F 3 calls total 20 self 10 run5 pre5 left1`: the parts of the self time, what is not zero of the rest, and the mark.
fn text(r: &Function) -> String {
    let name = match r.address {
        Some(address) => char::from(address as u8).to_string(),
        None => r.function.to_string(),
    };
    let parts = [
        ("run", r.self_running_ns),
        ("pre", r.self_preempted_ns),
        ("blk", r.self_blocked_ns),
        ("irq", r.self_interrupts_ns),
        ("?", r.self_unexplained_ns),
    ];
    let parts = parts.iter().filter_map(|&(name, ns)| Some((name, ns.filter(|&ns| ns != 0)?)));
    let parts: String = parts.map(|(name, ns)| format!(" {name}{ns}")).collect();
    let counts = [
        ("open", r.unfinished),
        ("left", r.left),
        ("before", r.begun_before),
        ("entered", r.entered),
    ];
    let counts = counts.iter().filter(|(_, n)| *n != 0);
    let counts: String = counts.map(|(name, n)| format!(" {name}{n}")).collect();
    let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
    let thread = r.tid.0 as u8 as char;
    format!(
        "{thread} {name} {}x total{} self{}{parts}{counts}{mark}",
        r.calls, r.total_ns, r.self_ns
    )
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    assert_eq!(rows.functions.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
    for r in &rows.functions {
        let sum = |parts: [Option<i64>; 5]| {
            parts.map(|ns| ns.expect("a kernel stream")).iter().sum::<i64>()
        };
        let of_self =
            [r.self_running_ns, r.self_preempted_ns, r.self_blocked_ns, r.self_interrupts_ns];
        let of_total =
            [r.total_running_ns, r.total_preempted_ns, r.total_blocked_ns, r.total_interrupts_ns];
        let [a, b, c, d] = of_self;
        assert_eq!(sum([a, b, c, d, r.self_unexplained_ns]), r.self_ns, "{timeline}");
        let [a, b, c, d] = of_total;
        assert_eq!(sum([a, b, c, d, r.total_unexplained_ns]), r.total_ns, "{timeline}");
        assert!(r.self_ns <= r.total_ns, "{timeline}");
    }
}

#[test]
fn calls_of_which_no_end_is_told_are_counted_and_touch_no_time() {
    check(
        "0 0 .>a S
         5 called a E 95
         10 in a F 90
         20 called a E 99
         30 called a H 10
         40 out a F 90",
        &[
            "a E 0x total0 self0 entered2",
            "a F 1x total30 self30 run30",
            "a H 0x total0 self0 entered1",
        ],
    );
    // What the kernel hid cannot be in their time; lost events can be among them.
    check(
        "0 0 .>a S
         10 called a E 95
         30 lose sched 10
         60 called a E 95",
        &["a E 0x total0 self0 entered2"],
    );
    // But in that of a function whose hooks tell its calls, too.
    check(
        "0 0 .>a S
         10 called a E 95
         10 in a E 95
         30 lose sched 10
         60 out a E 95",
        &["a E 1x total50 self50 run20 ?30 entered1 lower bound"],
    );
    check(
        "0 0 .>a S
         10 called a E 95
         30 lose ring 10 a
         60 called a E 95",
        &["a E 0x total0 self0 entered2 lower bound"],
    );
}

/// Each thing that happens to the thread is that of the innermost function.
#[test]
fn what_happens_is_the_innermost_functions_own() {
    // F [==|bbb|w=G[=|XXX|=f=]==f=]
    let timeline = "0 0 .>a S
         10 in a F 90
         20 0 a>X S
         30 wake X a 0
         40 0 X>a S
         50 in a G 80
         60 0 a>X R
         70 0 X>. S
         75 1 .>a S
         80 fault a 2 minor
         90 out a G 80
         95 fault a 2 major
         100 out a F 90";
    let (rows, _) = run(true, timeline);
    let of = |address: u8| {
        let is_it = |r: &&Function| r.address == Some(i64::from(address));
        rows.functions.iter().find(is_it).and_then(|r| r.counts).map(Counts::to_array)
    };
    assert_eq!(of(b'F'), Some([Some(1), Some(0), Some(0), Some(1), Some(1)]));
    assert_eq!(of(b'G'), Some([Some(0), Some(1), Some(1), Some(1), Some(0)]));
    // Whether page faults are recorded, the first one shows; without a kernel stream nothing is known.
    let none: Vec<&str> = timeline.lines().filter(|line| !line.contains("fault")).collect();
    let (rows, _) = run(true, &none.join("\n"));
    let counts = rows.functions.iter().map(|r| r.counts.and_then(|counts| counts.faults));
    assert!(counts.clone().count() == 2 && counts.flatten().count() == 0);
    let (rows, _) = run(false, "10 in a F 90\n 100 out a F 90");
    assert!(rows.functions.len() == 1 && rows.functions[0].counts.is_none());
}

#[test]
fn self_time_is_what_no_called_function_took() {
    // F [==G[=|XXX|=G]=G[=|bbb|w|=s=]=]
    check(
        "0 0 .>a S
         10 in a F 90
         20 in a G 80
         30 0 a>X R
         60 0 X>a S
         70 out a G 80
         80 in a G 80
         90 0 a>X S
         120 wake X a 0
         125 0 X>a R
         130 irq a soft 5
         140 out a G 80
         150 out a F 90",
        &["a F 1x total140 self30 run30", "a G 2x total110 self110 run40 pre35 blk30 irq5"],
    );
}

#[test]
fn a_recursive_function_counts_once_in_total() {
    check(
        "0 0 .>a S
         10 in a F 90
         20 in a F 80
         25 in a G 75
         30 in a F 70
         40 out a F 70
         45 out a G 75
         60 out a F 80
         90 out a F 90",
        &["a F 3x total80 self70 run70", "a G 1x total20 self10 run10"],
    );
}

#[test]
fn what_longjmp_leaves_is_found_by_the_frame_of_the_next_event() {
    // M calls F, which calls G; that jumps back into M between 30 and 50, which calls H from another place.
    check(
        "0 0 .>a S
         10 in a M 90
         15 in a F 80
         20 in a G 70
         25 in a K 60
         30 out a K 60
         50 in a H 80 7
         60 out a H 80 7
         70 out a M 90",
        &[
            "a M 1x total60 self15 run15 lower bound",
            "a F 1x total15 self5 run5 left1 censored",
            "a G 1x total10 self5 run5 left1 censored",
            "a K 1x total5 self5 run5",
            "a H 1x total10 self10 run10",
            "a (unknown) 0x total20 self20 run20",
        ],
    );
}

#[test]
fn what_is_called_after_a_jump_with_a_larger_frame_is_taken_for_a_call_of_what_was_left() {
    // F jumps back into M between 20 and 30, which calls H: lower in the stack than F was, as if F had called it.
    check(
        "0 0 .>a S
         10 in a M 90
         20 in a F 80
         30 in a H 70
         60 out a H 70
         70 out a M 90",
        &[
            "a M 1x total60 self10 run10 lower bound",
            "a F 1x total40 self10 run10 left1 censored",
            "a H 1x total30 self30 run30",
            "a (unknown) 0x total10 self10 run10",
        ],
    );
}

#[test]
fn one_frame_is_of_several_calls_where_they_are_inlined_and_of_the_newest_where_they_are_not() {
    // Inlined: G into F, and F into itself.
    check(
        "0 0 .>a S
         10 in a F 80 5 1
         20 in a G 80 5 2
         30 out a G 80 5
         40 in a F 80 5 3
         50 out a F 80 5
         60 out a F 80 5",
        &["a F 2x total50 self40 run40", "a G 1x total10 self10 run10"],
    );
    // M calls F in a loop, and it throws each time.
    check(
        "0 0 .>a S
         10 in a M 90 5 1
         20 in a F 80 7 2
         30 in a F 80 7 2
         40 in a F 80 7 2
         50 out a M 90 5",
        &[
            "a M 1x total40 self10 run10 lower bound",
            "a F 3x total0 self0 left3 censored",
            "a (unknown) 0x total30 self30 run30",
        ],
    );
}

#[test]
fn of_a_recursion_that_is_left_the_end_is_that_of_its_own_call() {
    // F calls G, which calls F, which jumps back into the outer one.
    check(
        "0 0 .>a S
         10 in a F 90
         20 in a G 80
         30 in a F 70
         50 out a F 90
         60 in a F 90
         65 out a F 90",
        &[
            "a F 3x total45 self15 run15 left1 censored",
            "a G 1x total10 self10 run10 left1 censored",
            "a (unknown) 0x total20 self20 run20",
        ],
    );
}

#[test]
fn an_end_that_is_told_when_the_frame_is_gone_is_that_of_the_outermost_call_within() {
    // F has the heights 60 to 89, and calls F at 50; that one jumps back, or returns.
    check(
        "0 0 .>a S
         10 in a M 90
         20 in a F 60 5 7
         30 in a F 50 6 7
         40 out a F 89 5 1
         50 in a F 60 5 7
         60 in a F 40 6 7
         70 out a F 59 6 1
         80 out a F 89 5 1
         90 out a M 90",
        &[
            "a M 1x total80 self30 run30",
            "a F 4x total50 self40 run40 left1 censored",
            "a (unknown) 0x total10 self10 run10",
        ],
    );
}

#[test]
fn an_end_that_is_told_when_the_frame_is_gone_leaves_all_that_was_as_low() {
    // M calls G, which jumps back into M; that calls F, which has the heights 60 to 89.
    check(
        "0 0 .>a S
         10 in a M 90
         20 in a G 80 5 7
         40 in a F 60 6 7
         50 out a F 89 6 1
         70 out a M 90",
        &[
            "a M 1x total60 self30 run30 lower bound",
            "a G 1x total30 self20 run20 left1 censored",
            "a F 1x total10 self10 run10",
        ],
    );
}

#[test]
fn an_end_of_an_outer_call_leaves_those_within() {
    // Functions with sites of their own tell no stack pointer.
    check(
        "0 0 .>a S
         10 into a
         20 in a G 80
         30 out-of a
         40 out-of a",
        &[
            "a parse 1x total20 self10 run10 before1 censored",
            "a G 1x total0 self0 left1 censored",
            "a (unknown) 0x total10 self10 run10",
        ],
    );
}

/// A thread that runs, is preempted, sleeps and is woken at random, in functions that call each other, return, and are left
/// by jumps at random, against sums of what was made up: to the nanosecond, those of self time as well.
#[test]
fn what_was_made_up_is_found() {
    for seed in 1..20u64 {
        let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let mut random = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % n) as i64
        };
        let (mut t, mut text) = (0, "0 0 .>a S\n".to_owned());
        // The calls: function and stack pointer; of each function self time by part, and total; since when it is open.
        let mut open: Vec<(char, i64)> = Vec::new();
        let mut own: BTreeMap<String, [i64; 3]> = BTreeMap::new();
        let mut total: BTreeMap<String, i64> = BTreeMap::new();
        let (mut inside, mut pending) = (0, [0i64; 3]);
        let mut settle = |open: &[(char, i64)], pending: &mut [i64; 3], left: usize| {
            let spent = std::mem::take(pending);
            let Some(&(innermost, _)) = open.last() else { return };
            let ns = spent.iter().sum::<i64>();
            inside += ns;
            let name = if left > 0 { "(unknown)".to_owned() } else { innermost.to_string() };
            let kept = &open[..open.len() - left];
            let mut names: Vec<String> = kept.iter().map(|(name, _)| name.to_string()).collect();
            if left > 0 {
                names.push(name.clone());
            }
            names.sort_unstable();
            names.dedup();
            for name in names {
                *total.entry(name).or_default() += ns;
            }
            let own = own.entry(name).or_default();
            (0..3).for_each(|part| own[part] += spent[part]);
        };
        for _ in 0..3_000 {
            let ran = 1 + random(20);
            (t, pending[0]) = (t + ran, pending[0] + ran);
            match random(9) {
                0..=2 if open.len() < 30 => {
                    settle(&open, &mut pending, 0);
                    let name = char::from(b'A' + random(6) as u8);
                    // Some are inlined, and have the frame of their caller.
                    let above = open.last().map_or(1_000_000, |&(_, stack)| stack);
                    let stack = above - random(3);
                    text += &format!("{t} in a {name} {stack} 0 {}\n", open.len());
                    open.push((name, stack));
                }
                3..=5 => {
                    let Some(&(name, stack)) = open.last() else { continue };
                    settle(&open, &mut pending, 0);
                    // Told while its frame is there, or by a jump behind it, where it has one of its own.
                    let above = open.iter().rev().nth(1).map_or(stack + 3, |&(_, above)| above);
                    let gone = above > stack && random(2) == 0;
                    let at = if gone { stack + random((above - stack) as u64) } else { stack };
                    text += &format!("{t} out a {name} {at} 0 {}\n", u8::from(gone));
                    open.pop();
                }
                6 if open.len() > 4 => {
                    // Jumps out of some calls into one, whose stack pointer tells it from those below, and which returns.
                    let to = random(open.len() as u64) as usize;
                    let (name, stack) = open[to];
                    let gone = open.iter().rev().take_while(|(_, inner)| *inner < stack).count();
                    let rest = &open[..open.len() - gone];
                    if to + 1 != rest.len() || gone == 0 {
                        continue;
                    }
                    settle(&open, &mut pending, gone);
                    text += &format!("{t} out a {name} {stack}\n");
                    open.truncate(to);
                }
                7 => {
                    let off = 1 + random(30);
                    text += &format!("{t} 0 a>X R\n{} 0 X>a S\n", t + off);
                    (t, pending[1]) = (t + off, pending[1] + off);
                }
                _ => {
                    let slept = 1 + random(30);
                    text += &format!("{t} 0 a>X S\n{0} wake X a 0\n{0} 0 X>a R\n", t + slept);
                    (t, pending[2]) = (t + slept, pending[2] + slept);
                }
            }
        }
        while let Some(&(name, stack)) = open.last() {
            t += 1;
            pending[0] += 1;
            settle(&open, &mut pending, 0);
            text += &format!("{t} out a {name} {stack}\n");
            open.pop();
        }
        let (rows, tally) = run(true, &text);
        assert!(tally.functions.left > 20, "{:?}", tally.functions);
        let of = |r: &Function| match r.address {
            Some(address) => char::from(address as u8).to_string(),
            None => r.function.to_string(),
        };
        let found: BTreeMap<String, [i64; 3]> = rows
            .functions
            .iter()
            .map(|r| {
                let parts = [r.self_running_ns, r.self_preempted_ns, r.self_blocked_ns];
                (of(r), parts.map(|ns| ns.expect("a kernel stream")))
            })
            .collect();
        assert_eq!(found, own, "seed {seed}");
        let found: BTreeMap<String, i64> =
            rows.functions.iter().map(|r| (of(r), r.total_ns)).collect();
        assert_eq!(found, total, "seed {seed}");
        assert_eq!(rows.functions.iter().map(|r| r.self_ns).sum::<i64>(), inside, "seed {seed}");
    }
}
