//! What a wait is spared through all holders of its chain, and that nothing is spared that was not waited.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::tests::simulated::Machine;
use crate::tests::timelines::CHAIN;
use crate::tests::{Decomposition, Rows, run};
use ft_trace::tables::{CriticalSection, LockWait};

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
        let lost = |r: &Option<Decomposition>| {
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
