//! Holds whose waits could have been shorter, by how much being known.

use std::collections::HashMap;

use proptest::prelude::*;

use super::simulated::Machine;
use super::timelines::CHAIN;
use super::{Rows, run};
use crate::Mark;
use ft_trace::tables::{CriticalSection, LockWait, WhatIf};

/// `a L 20+60 x2 ran 30 nothing: 2 waited 70, 40 run on, 50 prio, 55 own`, `?` where nobody is let in; behind `!` those of
/// real time, what they waited, and what they can be spared; `~` when not exact.
fn told(r: &WhatIf) -> String {
    let figures = [r.waited_ns, r.run_on_ns, r.prioritized_ns, r.own_cpu_ns, r.inherited_ns];
    let waits = match (r.waiters, figures) {
        (Some(waiters), [Some(waited), Some(run_on), Some(prio), Some(own), Some(_)]) => {
            format!("{waiters} waited {waited}, {run_on} run on, {prio} prio, {own} own")
        }
        (None, [None, None, None, None, None]) => "?".to_owned(),
        found => panic!("{found:?}"),
    };
    let urgent = match (r.urgent, r.urgent_ns, r.inherited_ns) {
        (Some(0) | None, ..) => String::new(),
        (Some(n), Some(ns), Some(spared)) => format!(" !{n} {ns} {spared}"),
        found => panic!("{found:?}"),
    };
    format!(
        "{} {} {}+{} x{} ran {} {}: {waits}{urgent}{}",
        r.tid.0 as u8 as char,
        r.lock as u8 as char,
        r.ts,
        r.dur,
        r.times,
        r.parts.expect("parts").running_ns,
        r.bar,
        if r.mark == Mark::Exact { "" } else { " ~" }
    )
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    let found: Vec<_> = rows.what_ifs.iter().map(told).collect();
    assert_eq!(found, expected, "{timeline}");
}

#[test]
fn what_would_have_been_waited_all_the_same_is_not_spared() {
    // cpu 0: a [==|XXXXXXXX|=i=], off the CPU from 20 to 50. It runs 12 more, beside 3 of an interrupt, and releases at 65.
    // Had it run on, it had ended at 32: b, there since 15, is spared 33, and c, which comes at 40, all of its 25. With a
    // CPU of its own it had ended at 35.
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 acquire a L
         15 wait b L
         20 0 a>X R
         40 wait c L
         50 0 X>a S
         55 irq a soft 3
         65 release a L
         66 acquire b L",
        &["a L 20+45 x1 ran 12 nothing: 2 waited 70, 58 run on, 55 prio, 55 own"],
    );
}

#[test]
fn what_is_left_of_a_hold_ends_behind_its_last_preemption() {
    // It runs 10 between, and 5 at the end.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         20 0 a>X R
         25 wait b L
         40 0 X>a S
         50 0 a>Y R
         80 0 Y>a S
         85 release a L",
        &["a L 20+65 x2 ran 15 nothing: 1 waited 60, 50 run on, 50 prio, 50 own"],
    );
}

#[test]
fn a_grant_ends_with_a_sleep_a_call_and_in_the_kernel() {
    // Something that concerns nobody.
    const QUIET: &str = "31 wake X X 0";
    let bar = |leaves: &str, then: &str| {
        let text = format!(
            "0 0 .>a S
             0 call a read 1
             10 acquire a L
             {leaves}
             30 0 X>a S
             {then}
             60 release a L"
        );
        let (rows, _) = run(true, text.trim());
        assert_eq!(rows.what_ifs.len(), 1, "{text}");
        rows.what_ifs[0].bar.to_string()
    };
    assert_eq!(bar("20 0 a>X R", QUIET), "nothing");
    assert_eq!(bar("12 call a getpid 2\n 20 0 a>X R", QUIET), "nothing", "it was over");
    assert_eq!(bar("20 0 a>X R", "40 call a getpid 2"), "call");
    assert_eq!(bar("15 call a getpid 20\n 20 0 a>X R", QUIET), "kernel");
    assert_eq!(bar("15 fault a 20 minor\n 20 0 a>X R", QUIET), "kernel");
    assert_eq!(bar("20 0 a>X R+", QUIET), "kernel", "its own code was preempted");
    assert_eq!(bar("20 0 a>X R", "40 0 a>X S\n 45 wake X a 0\n 50 0 X>a S"), "sleep");
    assert_eq!(bar("20 0 a>X S\n 25 wake X a 0", QUIET), "sleep", "before it");
}

#[test]
fn who_is_woken_and_kept_waiting_counts_from_its_wake_up_on() {
    // Asleep from 20 to 40, then behind X until 55: no grant, but a CPU of its own would have let it end at 45.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 0 a>X S
         40 wake X a 0
         55 0 X>a S
         60 release a L",
        &["a L 40+20 x1 ran 5 sleep: 1 waited 20, 15 run on, 15 prio, 15 own"],
    );
}

#[test]
fn a_priority_helps_against_ordinary_threads_alone() {
    // X has a real-time priority, Y an ordinary one, and from 50 to 60 the CPU is idle.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 0 a>X@49 R
         30 0 X@49>Y R
         50 0 Y>. S
         60 0 .>a S
         65 release a L",
        &["a L 20+45 x1 ran 5 nothing: 1 waited 45, 40 run on, 20 prio, 40 own"],
    );
}

#[test]
fn only_waiters_of_higher_real_time_priority_hand_theirs_on() {
    // Of the 40 that a has no CPU, Z (9, first of all) has 10, Y (80) 20, and X, which is ordinary, 10.
    let timeline = |b: &str| {
        format!(
            "0 0 .>a S
             0 1 .>{b} S
             0 2 .>c S
             10 acquire a L
             20 0 a>Z@9 R
             30 0 Z@9>Y@80 R
             35 wait b L
             36 wait c L
             50 0 Y@80>X R
             60 0 X>a S
             65 release a L"
        )
    };
    let plain = "a L 20+45 x1 ran 5 nothing: 2 waited 59, 59 run on, 20 prio, 59 own";
    check(&timeline("b"), &[plain]);
    // Before both Y and X: but it was there for 25 of their 30 alone.
    check(&timeline("b@49"), &[&format!("{plain} !1 30 25")]);
    check(&timeline("b@99"), &[&format!("{plain} !1 30 10")]);
    check(&timeline("b@9"), &[&format!("{plain} !1 30 25")]);
}

#[test]
fn a_holder_of_the_same_priority_inherits_nothing() {
    let (rows, _) = run(
        true,
        "0 0 .>a@49 S
         0 1 .>b@49 S
         10 acquire a L
         15 wait b L
         20 0 a@49>X R
         30 0 X>a@49 S
         40 release a L",
    );
    assert_eq!((rows.what_ifs[0].prio, rows.what_ifs[0].urgent), (Some(49), Some(0)));
}

#[test]
fn a_reader_that_goes_may_let_nobody_in() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 read a L
         15 wait b L
         20 0 a>X R
         30 0 X>a S
         40 release a L",
        &["a L 20+20 x1 ran 10 nothing: ?"],
    );
}

#[test]
fn who_gave_up_and_what_is_not_released_count_for_nothing() {
    let text = "0 0 .>a S
         0 1 .>b S
         5 acquire a K
         10 acquire a L
         15 wait b L
         20 0 a>X R
         30 0 X>a S
         35 abandon b L
         40 release a L";
    let (rows, tally) = run(true, text);
    let found: Vec<_> = rows.what_ifs.iter().map(told).collect();
    let expected = "a L 20+20 x1 ran 10 nothing: 0 waited 0, 0 run on, 0 prio, 0 own";
    assert_eq!((found, tally.unreleased_held_up), (vec![expected.to_owned()], 1));
}

#[test]
fn what_a_loss_hides_is_no_upper_bound() {
    let timeline = |loss: &str| {
        format!(
            "0 0 .>a S
             0 1 .>b S
             10 acquire a L
             15 wait b L
             20 0 a>X R
             30 0 X>a S
             35 {loss}
             40 release a L"
        )
    };
    let exact = "a L 20+20 x1 ran 10 nothing: 1 waited 20, 10 run on, 10 prio, 10 own";
    check(&timeline("call b getpid 1"), &[exact]);
    check(&timeline("lose calls 2"), &[&format!("{exact} ~")]);
}

/// `a L 20+60 45`: of each wait the most that it can be spared through all holders of its chain; `?` where that is not known.
fn spared(timeline: &str) -> Vec<String> {
    let (rows, _) = run(true, timeline);
    let told = |r: &LockWait| {
        let ns = r.own_cpu_ns.map_or("?".to_owned(), |ns| ns.to_string());
        format!("{} {} {}+{} {ns}", r.tid.0 as u8 as char, r.lock as u8 as char, r.ts, r.dur)
    };
    rows.lock_waits.iter().map(told).collect()
}

#[test]
fn what_a_holder_is_spared_of_its_own_wait_it_hands_on() {
    // With CPUs of their own a had released at 30, and b 30 + 10 earlier.
    assert_eq!(spared(CHAIN), ["b K 15+47 30", "c L 25+58 41"]);
    // Of a wait that was given up, what it had been spared by then: nothing yet.
    let given_up =
        CHAIN.replace("60 wake a b 1", "40 wake X b 1").replace("61 1 .>b S", "41 1 .>b S");
    let given_up = given_up.replace("62 acquire b K\n    63 release b K", "62 abandon b K");
    let mut lines: Vec<&str> = given_up.lines().collect();
    lines.sort_by_key(|line| line.trim().split(' ').next().and_then(|ts| ts.parse::<i64>().ok()));
    assert_eq!(spared(&lines.join("\n")), ["c L 25+58 41"]);
}

#[test]
fn what_is_lost_of_one_hold_hides_what_is_spared_of_the_whole_chain() {
    let timeline = |release: &str| {
        format!(
            "0 0 .>a S
             0 1 .>b S
             0 2 .>c S
             10 acquire a K
             12 acquire b L
             15 wait b K
             20 0 a>X R
             25 wait c L
             50 0 X>a S
             {release}
             62 acquire b K
             63 release b K
             80 release b L
             83 acquire c L"
        )
    };
    assert_eq!(spared(&timeline("60 release a K")), ["b K 15+47 30", "c L 25+58 30"]);
    assert_eq!(spared(&timeline("60 lose ring 1 a")), ["b K 15+47 ?", "c L 25+58 ?"]);
}

/// The same by going through all time, nanosecond by nanosecond, and through all holds, each as often as it is asked for.
struct Naive<'a> {
    rows: &'a Rows,
    /// Of each thread, in each nanosecond: it could run, and had no CPU.
    lost: HashMap<i32, Vec<bool>>,
}

impl<'a> Naive<'a> {
    /// By the lines of a timeline of [`Machine`].
    fn of(rows: &'a Rows, text: &'a str) -> Naive<'a> {
        #[derive(Clone, Copy, PartialEq)]
        enum Is {
            On,
            Runnable,
            Asleep,
        }
        let mut lost: HashMap<i32, Vec<bool>> = HashMap::new();
        let mut threads: HashMap<&str, Is> = HashMap::new();
        let mut before = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let now = words[0].parse().expect("a time");
            for (thread, is) in &threads {
                let lost = lost.entry(i32::from(thread.as_bytes()[0])).or_default();
                lost.resize(before, false);
                lost.resize(now, *is == Is::Runnable);
            }
            before = now;
            if words[1] == "wake" {
                let is = threads.entry(words[3]).or_insert(Is::Asleep);
                *is = if *is == Is::On { Is::On } else { Is::Runnable };
            } else if let Some((from, to)) = words[2].split_once('>') {
                let stays = ["R", "S!"].contains(&words[3]);
                threads.insert(from, if stays { Is::Runnable } else { Is::Asleep });
                threads.insert(to, Is::On);
            }
        }
        Naive { rows, lost }
    }

    fn lost_ns(&self, tid: i32, from: i64, to: i64) -> i64 {
        let lost = self.lost.get(&tid).map_or(&[][..], Vec::as_slice);
        (from..to).filter(|&ns| lost.get(ns as usize) == Some(&true)).count() as i64
    }

    fn earliest(&self, hold: &CriticalSection) -> i64 {
        let (from, to) = (hold.ts.0, hold.ts.0 + hold.dur);
        let waits = self.rows.lock_waits.iter().filter(|w| w.tid == hold.tid);
        let within = waits.filter(|w| from <= w.ts.0 && w.ts.0 + w.dur <= to);
        let gained: i64 = within.map(|wait| self.spared(wait)).sum();
        from.max(to - self.lost_ns(hold.tid.0, from, to) - gained)
    }

    fn spared(&self, wait: &LockWait) -> i64 {
        let (from, to) = (wait.ts.0, wait.ts.0 + wait.dur);
        let holds = self.rows.critical_sections.iter().filter(|h| h.lock == wait.lock);
        let ended = holds.map(|h| (h, h.ts.0 + h.dur)).filter(|(_, end)| (from..=to).contains(end));
        ended.map(|(hold, end)| end - self.earliest(hold).max(from)).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No what-if spares a wait more than it lasted, and all holds of a lock together not more than was waited for it; a
    /// smaller change spares no more than a larger one.
    #[test]
    fn nothing_is_spared_that_was_not_waited(seed in 1_u64..1_000_000) {
        let (rows, _) = run(true, &Machine::new(seed).run().0);
        let mut left: HashMap<i64, i64> = HashMap::new();
        let waits = rows.lock_waits.iter().map(|r| (r.lock, r.dur));
        for (lock, ns) in waits.chain(rows.unfinished_waits.iter().map(|r| (r.lock, r.dur))) {
            *left.entry(lock).or_default() += ns;
        }
        for r in &rows.what_ifs {
            let parts = r.parts.expect("parts");
            prop_assert_eq!(parts.total_ns(), r.dur);
            let all = r.waited_ns.expect("exclusive");
            let lost = parts.runnable_ns();
            let waiters = i64::from(r.waiters.expect("exclusive"));
            let spared = [r.prioritized_ns, r.own_cpu_ns, r.run_on_ns];
            let [prioritized, own, run_on] = spared.map(|ns| ns.expect("exclusive"));
            prop_assert!(0 <= prioritized && prioritized <= own, "{:?}", r);
            // To run on spares the sleeps and interrupts that came afterwards, too.
            prop_assert!(own <= run_on && own <= lost * waiters, "{:?}", r);
            prop_assert!(run_on <= all && all <= r.dur * waiters, "{:?}", r);
            *left.entry(r.lock).or_default() -= all;
        }
        prop_assert!(left.values().all(|ns| *ns >= 0), "{:?}", left);
        // They are the holds that have lost the CPU by the other table.
        let lost = |r: &Option<crate::tests::Decomposition>| {
            r.is_some_and(|parts| parts.runnable_ns() > 0)
        };
        let held_up = rows.critical_sections.iter().filter(|r| lost(&r.parts)).count();
        prop_assert_eq!(held_up, rows.what_ifs.len());
    }
}

/// Each wait is spared what going through all time says, and no more than it lasted.
#[test]
fn chains_of_holders_are_followed_as_far_as_they_go() {
    let (mut known, mut chained, mut unknown) = (0, 0, 0);
    for seed in 1..=100 {
        let text = Machine::new(seed).run().0;
        let (rows, _) = run(true, &text);
        let naive = Naive::of(&rows, &text);
        for r in &rows.lock_waits {
            let Some(spared) = r.own_cpu_ns else {
                unknown += 1;
                continue;
            };
            assert_eq!(spared, naive.spared(r), "seed {seed}: {r:?}");
            assert!((0..=r.dur).contains(&spared), "seed {seed}: {r:?}");
            known += 1;
            chained += usize::from(r.chain > 1 && spared > 0);
        }
    }
    assert!(known > 500 && chained > 50 && unknown * 10 < known, "{known} {chained} {unknown}");
}
