use super::*;
use ft_analysis::Rows;
use ft_analysis::timeline::run;

const TIMELINE: &str = "
    0 0 .>a S
    0 1 .>b S
    1000 make a 7 3
    1000 make a 8 4
    1100 run a 7
    1200 ran a 7 0
    1200 run a 8
    1300 rouse b 7
    2000 0 a>X R
    2500 0 X>a S
    3000 ran a 8 1
    3000 run a 7
    3100 0 a>X S
    8100 wake X a 0
    8200 0 X>a S
    8300 ran a 7 1
    9000 ran a 9 0
    9100 make b 9 3
    9200 cancel b 9";

fn report(kernel: bool, timeline: &str) -> TasksReport {
    let (rows, tally) = run(kernel, timeline);
    report_of(&rows, &tally)
}

fn report_of(rows: &Rows, tally: &Tally) -> TasksReport {
    let mut tasks = Tasks::default();
    rows.async_tasks.iter().for_each(|r| tasks.task(r));
    rows.async_switches.iter().for_each(|r| tasks.poll(r));
    tasks.finish(tally)
}

#[test]
fn states_sum_to_lives_and_parts_to_polls() {
    let report = report(true, TIMELINE);
    for n in &report.names {
        let states = n.polled_ns + n.queued_ns + n.waiting_ns + n.unstarted_ns + n.unknown_ns;
        assert_eq!((states, n.polls.parts.total_ns()), (n.lives_ns, n.polls.total_ns), "{n:?}");
    }
    let found: Vec<_> = report.names.iter().map(|n| (&*n.name, n.tasks, n.dropped)).collect();
    assert_eq!(found, [("x.rs:3", 2, 1), ("x.rs:4", 1, 0)]);
    let queued = &report.names[0].queued;
    assert_eq!((queued.polls, queued.total_ns, queued.behind_ns), (1, 1700, 1700));
    let [behind] = &report.behind[..] else { panic!("{:?}", report.behind) };
    assert_eq!((&*behind.behind, behind.total_ns), ("x.rs:4", 1700));
    let [blocked] = &report.blocked[..] else { panic!("{:?}", report.blocked) };
    assert_eq!((&*blocked.cause, blocked.total_ns, blocked.times), ("asleep", 5000, 1));
    assert_eq!(report.longest.iter().map(|l| l.dur_ns).collect::<Vec<_>>(), [5300, 1800, 100]);
}

#[test]
fn a_worker_that_had_work_and_no_cpu_was_starved() {
    // a is woken for task 7 at 110 and has a CPU at 400; b, on a CPU, polls task 8 at once.
    let timeline = "
        0 0 .>a S
        0 1 .>b S
        10 make a 7 3
        20 run a 7
        30 ran a 7 0
        40 0 a>X S
        50 make b 8 4
        60 run b 8
        70 ran b 8 0
        100 rouse b 7
        110 wake b a 0
        200 rouse b 8
        210 run b 8
        230 ran b 8 1
        400 0 X>a S
        410 run a 7
        420 0 a>X R
        450 0 X>a S
        460 ran a 7 1";
    let report = report(true, timeline);
    let found: Vec<_> = report.workers.iter().map(|w| (&*w.comm, w.polls, w.polled_ns)).collect();
    assert_eq!(found, [("a", 2, 60), ("b", 2, 30)]);
    let starved = report.workers.iter().map(|w| [w.starved_ns(), w.dispatch_ns]);
    assert_eq!(starved.collect::<Vec<_>>(), [[320, 290], [0, 0]]);
    let text = format!("{:150}", report.section());
    assert!(text.contains("Threads that polled, the longest without a CPU first"), "{text}");
}

#[test]
fn of_tasks_that_hooks_tell_of_it_says_what_is_not_known() {
    let hooked = TIMELINE.replace(" 8", " 1000000000000008");
    let report = report(true, &hooked);
    assert_eq!((report.hooked, report.names[1].unknown_ns), (1, 200));
    let text = format!("{:150}", report.section());
    assert!(
        text.contains("Of 1 task, followed by hooks of the executor, there are no wake-ups"),
        "{text}"
    );
}

#[test]
fn page_faults_stand_beside_the_longest_polls_where_there_were_any() {
    let faulting =
        format!("{TIMELINE}\n 9300 run a 7\n 9301 fault a\n 9302 fault a\n 9900 ran a 7 1");
    let report = report(true, &faulting);
    let found: Vec<_> = report.longest.iter().map(|l| (l.dur_ns, l.faults)).collect();
    assert_eq!(found, [(5300, None), (1800, None), (600, Some(2)), (100, None)]);
    let text = format!("{:150}", report.section());
    assert!(text.contains("faults"), "{text}");
}

#[test]
fn what_counters_counted_in_polls_is_told_by_the_names_of_tasks() {
    let timeline = "
        5 make a 7 3
        6 make a 8 4
        10 count a 5 100 7
        10 run a 7
        20 count a 5 150 9
        20 ran a 7 0
        30 count a 5 160 9
        30 run a 8
        40 count a 5 460 10
        40 ran a 8 1
        50 count a 5 470 10
        50 run a 7
        60 count a 5 490 30
        60 ran a 7 0
        70 run a 7
        80 ran a 7 1";
    let (rows, mut tally) = run(false, timeline);
    tally.counting.names = ["instructions", "cache-misses"].map(String::from).into();
    let report = report_of(&rows, &tally);
    let totals = |n: &TaskName| {
        n.polls.counted.iter().map(|c| (c.intervals, c.total, c.max)).collect::<Vec<_>>()
    };
    let found: Vec<_> = report.names.iter().map(|n| (&*n.name, totals(n))).collect();
    let expected =
        [("x.rs:3", vec![(2, 70, 50), (2, 22, 20)]), ("x.rs:4", vec![(1, 300, 300), (1, 1, 1)])];
    assert_eq!(found, expected);
    let text = format!("{:150}", report.section());
    let tables: Vec<_> = text.split("What counters counted").collect();
    let [_, instructions, misses] = tables[..] else { panic!("{text}") };
    let is_first =
        |name, other, table: &str| table.find(name).expect(name) < table.find(other).expect(other);
    assert!(is_first("x.rs:4", "x.rs:3", instructions), "{text}");
    assert!(is_first("x.rs:3", "x.rs:4", misses), "{text}");
}

/// Applications nest polls and queue tasks as they like.
#[test]
fn sums_that_no_number_holds_are_the_most_that_one_holds() {
    let (rows, tally) = run(true, TIMELINE);
    let long = rows.async_switches.iter().find(|r| r.behind_ns > Some(0)).expect("one");
    let mut long = long.clone();
    (long.behind_ns, long.queued_dispatch_ns) = (Some(i64::MAX), Some(i64::MAX));
    long.parts.as_mut().expect("a kernel stream").running_ns = i64::MAX;
    let mut tasks = Tasks::default();
    (0..2).for_each(|_| tasks.poll(&long));
    let [name] = &tasks.finish(&tally).names[..] else { panic!("one name") };
    let found = [name.queued.behind_ns, name.queued.dispatch_ns, name.polls.parts.total_ns()];
    assert_eq!(found, [i64::MAX; 3]);
}

#[test]
fn it_says_what_it_knows() {
    let text = format!("{:150}", report(true, TIMELINE).section());
    for part in ["3 tasks, all exact", "1 poll not counted", "x.rs:3", "asleep", "queued behind"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let alone = format!("{:150}", report(false, TIMELINE).section());
    assert!(alone.contains("x.rs:3") && !alone.contains("preempted"), "{alone}");
    let none = format!("{:120}", report(true, "0 0 .>a S").section());
    assert!(none.contains("No async task was recorded") && !none.contains("hooks"), "{none}");
}
