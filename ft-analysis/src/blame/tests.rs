use std::collections::BTreeMap;

use crate::timeline::{nonsense, run};
use ft_trace::Mark;
use ft_trace::tables::{Blame, Part, PathKind};

fn thread(tid: i32) -> char {
    char::from(tid as u8)
}

/// `who part of lock@holder <waker depth behind kind culprit [withheld] (call)#stack ns waits longest mark`.
fn text(r: &Blame) -> String {
    let call = r.call.as_ref().map_or(String::new(), |call| format!(" {call}"));
    let lock = if r.lock { "!" } else { "" };
    let holder = r.holder_tid.map_or(String::new(), |tid| format!("@{}", thread(tid)));
    let waker = r.waker_tid.map_or(String::new(), |tid| format!(" <{}", thread(tid)));
    let behind = r.behind_tid.map_or(String::new(), |tid| format!(" {}{}", r.depth, thread(tid)));
    let at = r.behind_stack.map_or(String::new(), |stack| format!("#{stack}"));
    let culprit = r.culprit.as_ref().map_or(String::new(), |culprit| format!(" {culprit}"));
    let withheld = r.withheld.map_or(String::new(), |withheld| format!(" [{withheld}]"));
    let slept = r.behind_call.as_ref().map_or(String::new(), |call| format!(" in {call}"));
    let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
    format!(
        "{} {}{call}{lock}{holder}{waker}{behind} {}{culprit}{withheld}{slept}{at} {} x{} {}@{}{mark}",
        thread(r.tid.0),
        r.part,
        r.kind,
        r.ns,
        r.waits,
        r.longest_ns,
        r.longest_ts
    )
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    assert_eq!(rows.blame.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
}

#[test]
fn a_wait_for_a_mutex_is_what_its_holder_did() {
    // a  |runs 10|waits 10..60                    |dispatch|
    // b           |runs 20|sleeps 30..50 (timer)|runs|wakes a
    check(
        "0 0 .>a S
         5 0 a>b R
         7 0 b>a R
         10 asleep a futex 4096 b
         10 0 a>b S
         30 chain b wait 7
         30 asleep b nanosleep 1
         30 0 b>. S
         50 irq . vector 4 0 local_timer
         51 wake . b 0 0
         55 0 .>b S
         60 wake b a 0 0
         60 chain b wake 8 a
         65 0 b>a R
         70 0 a>. X",
        &[
            "a preempted 0b preempted b 2 x1 2@5",
            "b preempted 0a preempted a 3 x1 3@7",
            "a blocked futex!@b <b 1b running 20 x0 55@10",
            "a blocked futex!@b <b 1b timer local_timer in nanosleep#7 21 x1 55@10",
            "a blocked futex!@b <b 1b dispatch . 4 x0 55@10",
            "a blocked futex!@b <b 1b running#8 5 x0 55@10",
            "a dispatch futex!@b <b 0b dispatch b 5 x0 55@10",
            "b blocked nanosleep timer local_timer 21 x1 25@30",
            "b dispatch nanosleep interrupt local_timer 3 x0 25@30",
            "b dispatch nanosleep dispatch . 1 x0 25@30",
            "b preempted preempted not known 5 x1 5@65 lower bound",
        ],
    );
}

/// Of all rows, these are there.
fn has(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    let rows: Vec<String> = rows.blame.iter().map(text).collect();
    for row in expected {
        assert!(rows.iter().any(|r| r == row), "{row} of {rows:#?}");
    }
}

#[test]
fn what_a_quota_takes_is_nobodys() {
    // a |runs|throttled 10..60, B has the CPU 20..40|idle, 60..80|
    let timeline = "0 0 .>a S
        10 throttle a 50
        10 0 a>. R
        20 0 .>B S
        40 0 B>. S
        80 0 .>a S
        90 0 a>. X";
    check(
        timeline,
        &[
            "a preempted preempted cgroup web, 20 ms of each 100 ms [quota] 50 x1 70@10",
            "a preempted preempted B 20 x0 70@10",
        ],
    );
    // What is left of an idle CPU is the way to it.
    has(
        &timeline.replace("throttle a 50", "throttle a 30"),
        &[
            "a preempted preempted cgroup web, 20 ms of each 100 ms [quota] 30 x1 70@10",
            "a preempted preempted . [way to an idle CPU] 20 x0 70@10",
        ],
    );
}

#[test]
fn ordinary_threads_that_run_instead_of_real_time_ones_are_let() {
    // b sleeps until 8; a has to leave its CPU at 5 for B, which is no real-time thread.
    has(
        "0 0 .>b@49 S
         1 asleep b nanosleep 1
         1 0 b@49>a@49 S
         5 0 a@49>B R
         8 wake B b 0 0
         15 0 B>b@49 S
         18 asleep b nanosleep 1
         18 0 b@49>. S
         20 0 .>a@49 S
         30 0 a@49>B R!
         40 0 B>a@49 S
         50 0 a@49>. X",
        &[
            "a preempted preempted B [real-time share] 20 x2 15@5",
            "b dispatch nanosleep dispatch B [real-time share] 7 x0 14@1",
        ],
    );
    // One that had the CPU before may be where nobody can take it.
    has(
        "0 0 .>b@49 S
         1 asleep b nanosleep 1
         1 0 b@49>B S
         8 wake B b 0 0
         15 0 B>b@49 S
         20 0 b@49>. X",
        &["b dispatch nanosleep dispatch B 7 x0 14@1"],
    );
}

#[test]
fn a_thread_with_a_deadline_has_used_up_its_budget_or_yields() {
    has(
        "0 0 .>a@-1 S
         5 0 a@-1>B R
         9 0 B>a@-1 S
         20 asleep a sched_yield
         20 0 a@-1>. R
         50 0 .>a@-1 S
         60 0 a@-1>. X",
        &[
            "a preempted preempted B [deadline budget] 4 x1 4@5",
            "a preempted sched_yield preempted . [next period] 30 x1 30@20",
        ],
    );
}

#[test]
fn a_timer_is_late_by_what_lies_behind_its_time() {
    let of = |until: i64| {
        format!(
            "0 0 .>a S
             10 asleep a clock_nanosleep 1 - {until}
             10 0 a>. S
             50 irq . vector 5 0 local_timer
             51 wake . a 0 0
             60 0 .>a S
             70 0 a>. X"
        )
    };
    check(
        &of(40),
        &[
            "a blocked clock_nanosleep timer local_timer 30 x1 50@10",
            "a blocked clock_nanosleep timer local_timer [late timer] 11 x0 20@40",
            "a dispatch clock_nanosleep interrupt local_timer 4 x0 20@40",
            "a dispatch clock_nanosleep dispatch . 5 x0 20@40",
        ],
    );
    has(&of(51), &["a blocked clock_nanosleep timer local_timer 41 x1 50@10"]);
    has(&of(5), &["a blocked clock_nanosleep timer local_timer [late timer] 41 x1 50@10"]);
}

#[test]
fn what_interrupts_took_of_those_that_had_the_cpu_is_theirs() {
    // B runs 10..60, and softirqs strike it for most of that.
    has(
        "0 0 .>a S
         10 asleep a nanosleep 1
         10 0 a>B S
         15 irq B soft 30 0 NET_RX
         20 irq B vector 2 0 local_timer
         21 wake B a 0 0
         60 0 B>a S
         70 0 a>. X",
        &[
            "a dispatch nanosleep interrupt NET_RX 23 x1 50@10",
            "a dispatch nanosleep interrupt local_timer 1 x0 50@10",
            "a dispatch nanosleep dispatch B 15 x0 50@10",
        ],
    );
}

/// Who has asked whom, and who waits between, is told of each wait.
#[test]
fn a_client_has_asked_and_its_server_has_not() {
    // a asks b, which sleeps for it and answers; then a sleeps, and b waits for it.
    let round = |t: i64| {
        let [t1, t2, t3, t4, t5, t6] = [5, 10, 31, 35, 40, 60].map(|at| t + at);
        format!(
            "{t} wake a b 0 0
             {t1} asleep a read 3
             {t1} 0 a>b S
             {t2} asleep b nanosleep 1
             {t2} 0 b>. S
             {} irq . vector 4 0 local_timer
             {t3} wake . b 0 0
             {t4} 0 .>b S
             {t5} wake b a 0 0
             {} asleep b read 4
             {} 0 b>a S
             {} asleep a nanosleep 1
             {} 0 a>. S
             {t6} irq . vector 8 0 local_timer
             {} wake . a 0 0
             {} 0 .>a S\n",
            t + 30,
            t + 41,
            t + 41,
            t + 45,
            t + 45,
            t + 62,
            t + 70
        )
    };
    let begin = "0 0 .>b S\n2 asleep b read 4 pipe\n2 0 b>a S\n";
    let timeline = [begin, &round(10), &round(100), &round(200)].concat();
    let (rows, _) = run(true, &timeline);
    let asked = |tid: char, asked: bool| {
        let of = |row: &&Blame| thread(row.tid.0) == tid && row.call.as_deref() == Some("read");
        let with = rows.blame.iter().filter(of).filter(|row| row.waker_tid.is_some());
        with.filter(|row| row.asked == asked).map(|row| row.ns).sum::<i64>()
    };
    assert!(asked('a', true) > 60 && asked('a', false) == 0, "{:#?}", rows.blame);
    assert!(asked('b', false) > 60 && asked('b', true) == 0, "{:#?}", rows.blame);
}

/// A server b is made and has no CPU; its client a has asked meanwhile. Then a sleeps by its own choice, and says a second word.
#[test]
fn a_server_that_had_no_cpu_has_not_asked_whom_it_finds_waiting() {
    let asked = |begin: &str| {
        let timeline = format!(
            "{begin}
             2000010 wake b a 0 0
             2000020 asleep b epoll_wait 4
             2000020 0 b>a S
             2000030 asleep a nanosleep 1
             2000030 0 a>. S
             2500000 irq . vector 4 0 local_timer
             2500001 wake . a 0 0
             2500010 0 .>a S
             2500020 wake a b 0 0
             2500030 asleep a read 3
             2500030 0 a>b S
             2500040 wake b a 0 0
             2500050 asleep b epoll_wait 4
             2500050 0 b>. S"
        );
        let (rows, _) = run(true, &timeline);
        let waits = |row: &&Blame| thread(row.tid.0) == 'b' && row.part == Part::Blocked;
        let timed = rows.blame.iter().filter(waits).filter(|row| row.depth == 1);
        timed.map(|row| row.asked).collect::<Vec<_>>()
    };
    let no_cpu = "0 0 .>a S
        5 new a b 0 0
        10 asleep a read 3
        10 0 a>C S
        2000000 0 C>b S";
    let asked_last = asked(no_cpu);
    assert!(!asked_last.is_empty() && asked_last.iter().all(|asked| !asked), "{asked_last:?}");
    // It slept for something else, and could have been asked.
    let asleep = "0 0 .>b S
        5 asleep b nanosleep 1
        5 0 b>a S
        10 asleep a read 3
        10 0 a>. S
        1999990 irq . vector 4 0 local_timer
        1999991 wake . b 0 0
        2000000 0 .>b S";
    let asked_first = asked(asleep);
    assert!(asked_first.contains(&true), "{asked_first:?}");
}

/// a waits for what b keeps until 70. Its own timer wakes it at 30, and it goes on at the same place.
const CUT_BY_A_TIMER: &str = "0 0 .>a S
     5 0 a>b R
     7 0 b>a R
     10 asleep a epoll_wait 4
     10 0 a>b S
     11 chain a wait 7
     20 asleep b nanosleep 1
     20 0 b>. S
     30 irq . vector 2 0 local_timer
     31 wake . a 0 0
     34 0 .>a S
     40 asleep a epoll_wait 4
     40 0 a>. S
     41 chain a wait 7
     50 irq . vector 2 0 local_timer
     51 wake . b 0 0
     55 0 .>b S
     70 wake b a 0 0
     75 0 b>a S
     80 0 a>. X";

#[test]
fn a_wait_that_a_timer_of_the_waiter_cuts_is_behind_who_ends_it_at_last() {
    let (rows, _) = run(true, CUT_BY_A_TIMER);
    let of_a = |row: &&Blame| thread(row.tid.0) == 'a' && row.call.is_some();
    let rows: Vec<_> = rows.blame.iter().filter(of_a).map(|row| (text(row), row.again)).collect();
    let rows: Vec<_> = rows.iter().map(|(text, again)| (&**text, *again)).collect();
    assert_eq!(
        rows,
        [
            ("a dispatch epoll_wait interrupt local_timer 1 x0 24@10", false),
            ("a dispatch epoll_wait dispatch . 2 x0 24@10", false),
            ("a blocked epoll_wait <b 1b running 10 x0 65@10", true),
            ("a blocked epoll_wait <b 1b timer local_timer in nanosleep 11 x0 65@10", true),
            ("a blocked epoll_wait <b 1b timer local_timer in nanosleep 11 x0 65@10", false),
            ("a blocked epoll_wait <b 1b dispatch . 4 x0 65@10", false),
            ("a blocked epoll_wait <b 1b running 15 x1 65@10", false),
            ("a dispatch epoll_wait <b 0b dispatch b 5 x0 35@40", false),
        ],
        "one wait"
    );
    // Elsewhere it is another wait.
    for other in [
        CUT_BY_A_TIMER.replace("41 chain a wait 7", "41 chain a wait 8"),
        CUT_BY_A_TIMER.replace("70 wake b a 0 0", "69 irq b hard 3 0 disk\n70 wake b a 0 0"),
        CUT_BY_A_TIMER.replace("asleep a epoll_wait 4", "asleep a nanosleep 1"),
    ] {
        let (rows, _) = run(true, &other);
        assert!(rows.blame.iter().all(|row| !row.again), "{other}");
        let timed = |row: &&Blame| thread(row.tid.0) == 'a' && row.depth == 0;
        let timed = rows.blame.iter().filter(timed).find(|row| row.kind == PathKind::Timer);
        assert_eq!(timed.map(|row| (row.ns, row.waits)), Some((21, 1)), "{other}");
    }
}

/// b, which ends the wait of a, is made by c in the last part of it.
#[test]
fn a_part_from_before_the_birth_of_who_ends_the_wait_is_behind_who_made_that_one() {
    let timeline = "0 0 .>c S
         5 0 c>a R
         10 asleep a epoll_wait 4
         10 0 a>c S
         11 chain a wait 7
         30 irq c vector 2 0 local_timer
         31 wake c a 0 0
         34 0 c>a R
         40 asleep a epoll_wait 4
         40 0 a>c S
         41 chain a wait 7
         45 new c b 0 0
         55 0 c>b R
         70 wake b a 0 0
         75 0 b>a R
         80 0 a>. X";
    let (rows, _) = run(true, timeline);
    let again = rows.blame.iter().filter(|row| thread(row.tid.0) == 'a' && row.again);
    let again: Vec<_> = again.map(text).collect();
    assert_eq!(
        again,
        [
            "a blocked epoll_wait <b 2c running 20 x1 65@10",
            "a blocked epoll_wait <b 2c interrupt local_timer 1 x0 65@10",
        ]
    );
}

#[test]
fn parts_of_one_wait_are_bounded() {
    let mut timeline = "0 0 .>b S\n1 0 b>a R\n".to_owned();
    for t in (100..1100).step_by(100) {
        timeline += &format!(
            "{t} asleep a epoll_wait 4
             {t} 0 a>b S
             {} irq b vector 2 0 local_timer
             {} wake b a 0 0
             {} 0 b>a R\n",
            t + 50,
            t + 51,
            t + 60
        );
    }
    timeline += "1100 asleep a epoll_wait 4\n1100 0 a>b S\n1150 wake b a 0 0\n1160 0 b>a S\n";
    let (rows, _) = run(true, &timeline);
    let of_a = |row: &&Blame| thread(row.tid.0) == 'a' && row.part == Part::Blocked;
    let sum = |again: bool, depth: i32| -> i64 {
        let rows = rows.blame.iter().filter(of_a);
        rows.filter(|row| (row.again, row.depth) == (again, depth)).map(|row| row.ns).sum()
    };
    assert_eq!([sum(false, 0), sum(true, 1), sum(false, 1)], [6 * 51, 4 * 51, 50]);
}

/// b computes in chain 5, and wakes c in chain 6 shortly before it loses its CPU there. a waits for it.
#[test]
fn a_sample_says_more_of_where_one_ran_than_where_it_lost_its_cpu() {
    let rows = |sample: &str| {
        let timeline = format!(
            "0 0 .>a S
             5 asleep a futex 4096 b
             5 0 a>b S
             {sample}
             40 0 b>C R
             41 chain b preempted 6
             60 0 C>b S
             70 wake b a 0 0
             80 0 b>a S
             90 0 a>. X"
        );
        let (rows, _) = run(true, &timeline);
        let behind =
            rows.blame.iter().filter(|row| row.behind_tid.is_some_and(|t| thread(t) == 'b'));
        let mut all: Vec<_> =
            behind.map(|row| (row.kind, row.behind_stack, row.sampled, row.ns)).collect();
        all.sort_unstable_by_key(|row| row.3);
        all.retain(|row| row.3 > 15);
        all
    };
    let preempted = (PathKind::Preempted, Some(6), false, 20);
    assert_eq!(rows("30 sample b 5"), [preempted, (PathKind::Running, Some(5), true, 35)]);
    assert_eq!(rows("30 chain b wait 1"), [preempted, (PathKind::Running, Some(6), false, 35)]);
}

/// The one between is named, with what it waits for.
#[test]
fn a_chain_is_told_with_the_one_between() {
    let (rows, _) = run(
        true,
        "0 0 .>a S
         5 0 a>b R
         7 0 b>c R
         9 0 c>a R
         10 asleep a futex 4096 b
         10 0 a>b S
         20 asleep b futex 8192 c
         20 0 b>c S
         30 asleep c nanosleep 1
         30 0 c>. S
         50 irq . vector 4 0 local_timer
         51 wake . c 0 0
         55 0 .>c S
         60 wake c b 0 0
         65 0 c>b S
         70 wake b a 0 0
         75 0 b>a S
         80 0 a>. X",
    );
    let deep = rows.blame.iter().filter(|row| thread(row.tid.0) == 'a' && row.depth == 2);
    let deep: Vec<_> = deep
        .map(|row| (row.through_comm.as_deref(), row.through_call.as_deref(), row.through_needs))
        .collect();
    assert!(
        !deep.is_empty() && deep.iter().all(|via| *via == (Some("b"), Some("futex"), true)),
        "{deep:?}"
    );
}

/// Three that are woken by one: two of them come for nothing. A lock is no queue.
#[test]
fn a_herd_goes_back_to_sleep() {
    let vain = |expected: i64| {
        // Each of a, b and c sleeps and lets the next run; d wakes them and lets them run; twice, then they sleep again.
        let mut timeline = "0 0 .>a S\n".to_owned();
        let mut t = 0;
        for _ in 0..3 {
            for (who, next) in [('a', 'b'), ('b', 'c'), ('c', 'd')] {
                t += 5;
                timeline +=
                    &format!("{t} asleep {who} futex 4096 - - {expected}\n{t} 0 {who}>{next} S\n");
                timeline += &format!("{} chain {who} wait 7\n", t + 1);
            }
            for who in ['a', 'b', 'c'] {
                t += 1;
                timeline += &format!("{t} wake d {who} 0 0\n");
            }
            t += 5;
            timeline += &format!("{t} asleep d nanosleep 1\n{t} 0 d>a S\n{} wake a d 0 0\n", t + 1);
        }
        let (rows, _) = run(true, &timeline);
        rows.blame.iter().map(|row| row.vain).sum::<i64>()
    };
    // Of the second herd, only the first one is known to sleep again.
    assert_eq!(vain(0), 2 + 1);
    assert_eq!(vain(2), 0, "of a lock, one is woken after the other");
}

/// The rows of a thread and its running sum to its wall time.
#[test]
fn whatever_happens_the_parts_sum() {
    for seed in 0..400 {
        let timeline = nonsense(seed);
        let (rows, _) = run(true, &timeline);
        let mut sums: BTreeMap<_, i64> = BTreeMap::new();
        for row in &rows.blame {
            assert!(row.ns > 0 && row.longest_ns >= 0, "{row:?}\n{timeline}");
            *sums.entry((row.pid, row.tid)).or_default() += row.ns;
        }
        let mut walls: BTreeMap<_, i64> = BTreeMap::new();
        for row in &rows.thread_time {
            // What a polling thread denies is of its *running*.
            let denied = row.part == Part::Unexplained && row.culprit.as_deref() == Some("in gaps");
            let counts = row.part != Part::Running && !denied;
            *walls.entry((row.pid, row.tid)).or_default() += if counts { row.spent_ns } else { 0 };
        }
        walls.retain(|_, ns| *ns != 0);
        assert_eq!(sums, walls, "{seed}\n{timeline}");
    }
}

/// b has what a waits for at a futex that says nothing of what it is, and runs until it has done with it.
#[test]
fn who_waits_at_a_futex_once_in_the_midst_of_its_work_was_kept_from_it() {
    let round = |t: i64| {
        format!(
            "{t} asleep a futex 4096 - - 0
             {t} 0 a>b S
             {} chain a wait 7
             {} wake b a 0 0
             {} 0 b>a R\n",
            t + 1,
            t + 50_000_000,
            t + 50_000_010
        )
    };
    let turns = |works: i64, rounds: i64| {
        let begin = "0 0 .>b S\n1 0 b>a R\n".to_owned();
        let rounds: String = (0..rounds).map(|n| round(works + n * 100_000_000)).collect();
        let (rows, _) = run(true, &(begin + &rounds + "900000000 0 a>. X"));
        let waits = rows.blame.iter().filter(|row| thread(row.tid.0) == 'a' && row.call.is_some());
        waits.map(|row| row.turns).collect::<Vec<_>>()
    };
    assert_eq!(turns(5_000_000, 1), [true; 2], "asleep, and on its way");
    assert_eq!(turns(5_000_000, 2), [false; 2], "it comes back, as one does for work");
}

/// c waits for b, whose own timer cuts its wait for a, which sleeps.
#[test]
fn who_waits_for_one_whose_wait_a_timer_cuts_is_behind_whom_that_waits_for() {
    let timeline = "0 0 .>c S
         5 asleep c futex 4096 - - 2
         5 0 c>b S
         10 asleep b epoll_wait 4
         10 0 b>a S
         11 chain b wait 7
         20 asleep a nanosleep 1
         20 0 a>. S
         30 irq . vector 2 0 local_timer
         31 wake . b 0 0
         34 0 .>b S
         40 asleep b epoll_wait 4
         40 0 b>. S
         41 chain b wait 7
         50 irq . vector 2 0 local_timer
         51 wake . a 0 0
         55 0 .>a S
         70 wake a b 0 0
         75 0 a>b S
         80 wake b c 0 0
         85 0 b>c S
         90 0 c>. X";
    let (rows, _) = run(true, timeline);
    let of_c = |row: &&Blame| thread(row.tid.0) == 'c' && row.behind_tid.is_some();
    let behind = |who: char| -> i64 {
        let rows = rows.blame.iter().filter(of_c).filter(|row| row.part == Part::Blocked);
        rows.filter(|row| row.behind_tid.map(thread) == Some(who)).map(|row| row.ns).sum()
    };
    // b ran, or was on its way, in 5..10, 31..40 and 70..80.
    assert_eq!([behind('a'), behind('b')], [21 + 30, 5 + 9 + 10]);
}
