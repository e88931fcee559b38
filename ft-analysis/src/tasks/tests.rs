mod bounds;

use super::*;
use crate::timeline;
use crate::timeline::run;
use ft_trace::tables::{AsyncSwitch, AsyncTask, Decomposition};

fn marked(mark: Mark) -> String {
    if mark == Mark::Exact { String::new() } else { format!(" {mark}") }
}

fn parts(parts: Option<Decomposition>) -> String {
    let parts = parts.map_or([0; 9], Decomposition::to_array);
    let names = ["run", "pre", "dis", "blk", "hard", "soft", "vec", "?"];
    let parts = names.iter().zip(parts).filter(|(_, ns)| *ns != 0);
    parts.map(|(name, ns)| format!(" {name}{ns}")).collect()
}

/// `7 10+90 ready new1 queue2 wait3 poll84 (run84) polls2 wakes1`, with the longest of both.
fn life(r: &AsyncTask) -> String {
    let sums = [
        ("new", r.unstarted_ns),
        ("queue", r.queued_ns),
        ("wait", r.waiting_ns),
        ("poll", r.polled_ns),
        ("?", r.unknown_ns),
    ];
    let sums = sums.into_iter().filter(|(_, ns)| *ns != 0);
    let sums: String = sums.map(|(name, ns)| format!(" {name}{ns}")).collect();
    let parent = r.parent.map_or(String::new(), |parent| format!(" in {parent}"));
    format!(
        "{}{parent} {}+{} {}{sums} ({}) polls{}<={} wakes{}<={}{}",
        r.task,
        r.ts,
        r.dur,
        r.end,
        parts(r.parts).trim_start(),
        r.polls,
        r.longest_poll_ns,
        r.wakes,
        r.longest_queue_ns,
        marked(r.mark)
    )
}

/// `a 7 20+10 ready run10 queue5 by b in 8, dis2, 3 in 2 behind 8 2`.
fn poll(r: &AsyncSwitch) -> String {
    let letter = |tid: i32| tid as u8 as char;
    let depth = if r.depth > 0 { format!("/{}", r.depth) } else { String::new() };
    let blocked = r.blocked_for.as_ref().zip(r.blocked_for_ns);
    let blocked = blocked.map_or(String::new(), |(cause, ns)| format!(" for {cause} {ns}"));
    let stack = r.blocked_stack.map_or(String::new(), |stack| format!(" at {stack}"));
    let preemptor = r.preemptor_comm.as_ref().zip(r.preemptor_ns);
    let preemptor = preemptor.map_or(String::new(), |(comm, ns)| format!(" to {comm}{ns}"));
    let queued = r.queued_ns.zip(r.waker_tid).map_or(String::new(), |(ns, tid)| {
        let task = r.waker_task.map_or(String::new(), |task| format!(" in {task}"));
        let dispatch = r.queued_dispatch_ns.filter(|ns| *ns != 0);
        let dispatch = dispatch.map_or(String::new(), |ns| format!(", dis{ns}"));
        let behind = r.behind_ns.zip(r.behind_polls).filter(|(ns, _)| *ns != 0);
        let behind = behind.map_or(String::new(), |(ns, polls)| format!(", {ns} in {polls}"));
        let most = r.behind_task.zip(r.behind_task_ns);
        let most = most.map_or(String::new(), |(task, ns)| format!(" behind {task} {ns}"));
        format!(" queue{ns} by {}{task}{dispatch}{behind}{most}", letter(tid))
    });
    let held = r.held_lock.as_ref().zip(r.held_place.as_ref());
    let held = held.map_or(String::new(), |(lock, at)| format!(" holds{} {lock} of {at}", r.held));
    format!(
        "{} {}{depth} {}+{} {}{}{blocked}{stack}{preemptor}{held}{queued}{}",
        letter(r.tid.0),
        r.task,
        r.ts,
        r.dur,
        r.end,
        parts(r.parts),
        marked(r.mark)
    )
}

fn check(timeline: &str, tasks: &[&str], polls: &[&str], unpaired: Unpaired) -> Rows {
    let (rows, tally) = run(true, timeline);
    assert_eq!(rows.async_switches.iter().map(poll).collect::<Vec<_>>(), polls, "{timeline}");
    assert_eq!(rows.async_tasks.iter().map(life).collect::<Vec<_>>(), tasks, "{timeline}");
    let (tasks, polls) = (rows.async_tasks.len() as u64, rows.async_switches.len() as u64);
    assert_eq!(tally.tasks, TaskCounts { tasks, polls, unpaired, too_many: 0 });
    sum(&rows);
    rows
}

/// All parts of all rows sum.
fn sum(rows: &Rows) {
    for r in &rows.async_switches {
        assert_eq!(r.parts.expect("a kernel stream").total_ns(), r.dur);
    }
    for r in &rows.async_tasks {
        let states = r.unstarted_ns + r.queued_ns + r.waiting_ns + r.polled_ns + r.unknown_ns;
        assert_eq!(states, r.dur, "{r:?}");
        assert_eq!(r.parts.expect("a kernel stream").total_ns(), r.polled_ns, "{r:?}");
    }
}

#[test]
fn a_life_goes_through_all_states_and_a_poll_has_its_threads_parts() {
    // 7: made─polled(sleeps, is preempted)──waits──woken by b in 8──queued──polled
    let rows = check(
        "0 0 .>a S
         0 1 .>b S
         10 make a 7 3
         15 run a 7
         20 0 a>X S
         20 chain a wait 4
         30 wake X a 0
         32 0 X>a R
         35 0 a>X R
         39 0 X>a R
         40 ran a 7 0
         50 run b 8
         60 rouse b 7
         64 ran b 8 0
         65 run a 7
         80 ran a 7 1",
        &[
            "7 10+70 ready new5 queue5 wait20 poll40 (run24 pre4 dis2 blk10) polls2<=25 wakes1<=5",
            "8 50+30 unended wait16 poll14 (run14) polls1<=14 wakes0<=0 censored",
        ],
        &[
            "a 7 15+25 pending run9 pre4 dis2 blk10 for asleep 10 at 4 to X4",
            "b 8 50+14 pending run14",
            "a 7 65+15 ready run15 queue5 by b in 8",
        ],
        Unpaired::default(),
    );
    let task = &rows.async_tasks[0];
    assert_eq!((&*task.place, &*task.name, task.maker_tid), ("x.rs:3", "", Some(97)));
    assert_eq!(&*rows.async_switches[0].place, "x.rs:3");
}

#[test]
fn who_is_woken_in_its_poll_is_queued_from_its_end_on() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 make a 7
         10 run a 7
         12 rouse b 7
         14 rouse a 7
         20 ran a 7 0
         30 run a 7
         40 ran a 7 1",
        &["7 10+30 ready queue10 poll20 (run20) polls2<=10 wakes2<=10"],
        &["a 7 10+10 pending run10", "a 7 30+10 ready run10 queue10 by b"],
        Unpaired::default(),
    );
}

#[test]
fn a_task_is_queued_behind_what_its_thread_polls_and_then_behind_the_threads_own_wait() {
    // a: ran 7, polls 8, 9 and 8 again, sleeps, is woken, waits for its CPU, polls 7
    check(
        "0 0 .>a S
         0 1 .>b S
         10 make a 7
         10 run a 7
         20 ran a 7 0
         20 run a 8
         25 rouse b 7
         40 ran a 8 0
         40 run a 9
         52 ran a 9 0
         55 run a 8
         60 ran a 8 0
         62 0 a>X S
         70 wake b a 0
         76 0 X>a S
         77 run a 7
         78 ran a 7 1",
        &[
            "7 10+68 ready queue52 wait5 poll11 (run11) polls2<=10 wakes1<=52",
            "8 20+58 unended wait33 poll25 (run25) polls2<=20 wakes0<=0 censored",
            "9 40+38 unended wait26 poll12 (run12) polls1<=12 wakes0<=0 censored",
        ],
        &[
            "a 7 10+10 pending run10",
            "a 8 20+20 pending run20",
            "a 9 40+12 pending run12",
            "a 8 55+5 pending run5",
            "a 7 77+1 ready run1 queue52 by b, dis6, 32 in 3 behind 8 20",
        ],
        Unpaired::default(),
    );
}

#[test]
fn polls_within_polls_are_both_tasks_own() {
    let rows = check(
        "0 0 .>a S
         10 make a 7
         10 run a 7
         12 make a 8
         14 run a 8
         16 0 a>X R
         20 0 X>a S
         22 ran a 8 0
         24 rouse a 8
         24 rouse a 7
         30 ran a 7 0
         31 run a 7
         32 run a 8
         34 ran a 8 1
         35 ran a 7 1",
        &[
            "8 in 7 12+22 ready new2 queue8 wait2 poll10 (run6 pre4) polls2<=8 wakes1<=8",
            "7 10+25 ready queue1 poll24 (run20 pre4) polls2<=20 wakes1<=1",
        ],
        &[
            "a 8/1 14+8 pending run4 pre4 to X4",
            "a 7 10+20 pending run16 pre4 to X4",
            "a 8/1 32+2 ready run2 queue8 by a in 7",
            "a 7 31+4 ready run4 queue1 by a in 7",
        ],
        Unpaired::default(),
    );
    assert_eq!(rows.async_switches[2].behind_ns, None, "it is polled by its parent");
    assert_eq!(rows.async_switches[3].behind_ns, Some(0));
}

#[test]
fn fibers_run_until_their_thread_runs_another_one() {
    let rows = check(
        "0 0 .>a S
         10 make a 7 3
         12 fiber a 7
         14 rouse a 8
         15 0 a>X S
         18 wake X a 0
         19 0 X>a R
         20 fiber a 8
         24 rouse a 7
         30 fiber a 0
         33 fiber a 7
         36 ran a 7 1
         37 fiber a 0
         38 fiber a 9
         40 ran a 9 1",
        &[
            "7 10+26 ready new2 queue9 wait4 poll11 (run7 dis1 blk3) polls2<=8 wakes1<=9",
            "9 38+2 ready poll2 (run2) polls1<=2 wakes0<=0 lower bound",
            "8 20+20 unended wait10 poll10 (run10) polls1<=10 wakes0<=0 censored",
        ],
        &[
            "a 7 12+8 pending run4 dis1 blk3 for asleep 3",
            "a 8 20+10 pending run10",
            "a 7 33+3 ready run3 queue9 by a in 8, 6 in 1 behind 8 6",
            "a 9 38+2 ready run2",
        ],
        Unpaired::default(),
    );
    let places: Vec<&str> = rows.async_tasks.iter().map(|task| &*task.place).collect();
    assert_eq!(places, ["x.rs:3", ":0", ":0"], "what was not made is where it was run first");
}

#[test]
fn locks_that_are_held_when_a_poll_ends_are_those_that_it_acquired() {
    check(
        "0 0 .>a S
         10 acquire a L 3
         10 run a 7
         12 acquire a M 4
         14 acquire a N 5
         16 release a M
         18 acquire a O 6
         20 ran a 7 0
         30 run a 7
         32 release a N
         34 release a L
         36 release a O
         40 ran a 7 1",
        &["7 10+30 ready wait10 poll20 (run20) polls2<=10 wakes0<=0 lower bound"],
        &["a 7 10+10 pending run10 holds2 0x4e of x.rs:5", "a 7 30+10 ready run10"],
        Unpaired::default(),
    );
}

#[test]
fn a_fiber_that_is_left_in_a_poll_leaves_nothing_behind() {
    // Fiber 7 polls task 5, which switches to fiber 8.
    check(
        "0 0 .>a S
         10 fiber a 7
         12 run a 5
         20 fiber a 8
         30 fiber a 7
         34 ran a 5 1
         40 fiber a 0",
        &[
            "5 12+22 ready ?22 () polls0<=0 wakes0<=0 lower bound",
            "7 10+30 unended wait10 poll20 (run20) polls2<=10 wakes0<=0 censored",
            "8 20+20 unended wait10 poll10 (run10) polls1<=10 wakes0<=0 censored",
        ],
        &["a 7 10+10 pending run10", "a 8 20+10 pending run10", "a 7 30+10 pending run10"],
        Unpaired { begin_only: 1, end_only: 1, ..Unpaired::default() },
    );
}

#[test]
fn between_polls_that_hooks_tell_of_nobody_knows_what_a_task_is_in() {
    check(
        "0 0 .>a S
         10 make a 1000000000000007
         12 run a 1000000000000007
         20 ran a 1000000000000007 0
         30 run a 1000000000000007
         35 ran a 1000000000000007 1
         40 make a 999999999999999
         45 run a 999999999999999
         50 ran a 999999999999999 1",
        &[
            "1000000000000007 10+25 ready poll13 ?12 (run13) polls2<=8 wakes0<=0 lower bound",
            "999999999999999 40+10 ready new5 poll5 (run5) polls1<=5 wakes0<=0",
        ],
        &[
            "a 1000000000000007 12+8 pending run8",
            "a 1000000000000007 30+5 ready run5",
            "a 999999999999999 45+5 ready run5",
        ],
        Unpaired::default(),
    );
}

#[test]
fn a_panic_ends_a_task_and_so_does_a_drop_of_which_wakers_may_not_know() {
    check(
        "0 0 .>a S
         10 make a 7
         11 run a 7
         20 ran a 7 2
         30 make a 8
         33 rouse a 8
         40 cancel a 8
         50 rouse a 8
         60 cancel a 9",
        &[
            "7 10+10 panic new1 poll9 (run9) polls1<=9 wakes0<=0",
            "8 30+10 dropped new3 queue7 () polls0<=0 wakes1<=0",
        ],
        &["a 7 11+9 panic run9"],
        Unpaired::default(),
    );
}

/// Events of tasks at random, right and wrong, while their threads run, sleep, are preempted and lose events: what is said
/// of them sums.
#[test]
fn parts_sum_whatever_the_records_say() {
    for seed in 1..=40u64 {
        let mut random = timeline::random(seed);
        let (mut t, mut text) = (0, String::new());
        for _ in 0..400 {
            t += random(9);
            let a = ["a", "b", "c"][random(3) as usize];
            let (task, on) = (random(5), random(2));
            text += &match random(12) {
                0 => format!("{t} make {a} {task}\n"),
                1..=3 => format!("{t} run {a} {task}\n"),
                4..=6 => format!("{t} ran {a} {task} {}\n", random(4)),
                7 => format!("{t} rouse {a} {task}\n"),
                8 => format!("{t} {on} {a}>X {}\n", ["R", "S", "D", "X"][random(4) as usize]),
                9 => format!("{t} {on} X>{a} R\n"),
                10 => format!("{t} wake X {a} {on}\n"),
                _ => match random(8) {
                    0 => format!("{t} cancel {a} {task}\n"),
                    1 => format!("{t} lose ring {} {a}\n", random(9)),
                    2 => format!("{t} lose sched {}\n", random(9)),
                    3 => format!("{t} exec {a}\n"),
                    4 => format!("{t} call {a} read {}\n", random(30)),
                    _ => format!("{t} make' {a} {task}\n"),
                },
            };
        }
        let (rows, tally) = run(true, &text);
        assert!(rows.async_tasks.len() > 5 && rows.async_switches.len() > 20);
        assert_eq!(tally.tasks.tasks, rows.async_tasks.len() as u64);
        sum(&rows);
        let polls: i64 = rows.async_tasks.iter().map(|r| r.polls).sum();
        assert!(polls as usize <= rows.async_switches.len());
        for r in &rows.async_switches {
            assert!(r.behind_ns <= r.queued_ns && r.queued_dispatch_ns <= r.queued_ns, "{r:?}");
            assert!(r.behind_task_ns.unwrap_or(0) <= r.behind_ns.unwrap_or(0), "{r:?}");
        }
    }
}
