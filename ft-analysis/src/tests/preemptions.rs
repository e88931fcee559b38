//! Holders that could have run and did not.

use super::{Tally, run};
use crate::Mark;
use ft_trace::tables::{LockPreemption, PreemptionCause};

/// `a L0 20+30 by X25 prio 120 ran 40`, `~` when woken, `.` when not the innermost, and whom it delayed.
fn preemption(r: &LockPreemption) -> String {
    let by = r.preemptor_comm.as_ref().zip(r.preemptor_ns);
    let by = by.map_or(String::new(), |(comm, ns)| format!(" by {comm}{ns}"));
    let delayed = match r.longest_waiter_tid.zip(r.longest_waiter_ns) {
        None => String::new(),
        Some((tid, ns)) => {
            format!(" delays {}: {} most {}{ns}", r.waiters, r.delayed_ns, tid as u8 as char)
        }
    };
    let ran = r.ran_after_ns.map_or("?".into(), |ns| ns.to_string());
    let touched = if r.mark == Mark::Exact { "" } else { " touched" };
    format!(
        "{} {}{}{} {}{}+{} #{}{by}{delayed} ran {ran}{touched}",
        r.tid.0 as u8 as char,
        r.lock as u8 as char,
        r.depth,
        if r.innermost { "" } else { "." },
        if r.cause == PreemptionCause::Woken { "~" } else { "" },
        r.ts,
        r.dur,
        r.nth
    )
}

fn check(timeline: &str, expected: &[&str]) -> Tally {
    let (rows, tally) = run(true, timeline);
    let found: Vec<_> = rows.lock_preemptions.iter().map(preemption).collect();
    assert_eq!(found, expected, "{timeline}");
    tally
}

#[test]
fn a_holder_is_preempted_while_two_wait() {
    // cpu 0: a [===|XXXXX|YY|==|Z|==]     20..55 and 65..70
    let tally = check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 acquire a L
         15 wait b L
         20 0 a>X R+
         40 wait c L
         45 0 X>Y S
         55 0 Y>a S
         65 0 a>Z R+
         70 0 Z>a S
         72 irq a hard 3
         80 release a L",
        &[
            "a L0 20+35 #1 by X25 delays 2: 50 most b35 ran 20",
            "a L0 65+5 #2 by Z5 delays 2: 10 most b5 ran 10",
        ],
    );
    assert_eq!((tally.preemptions, tally.unfinished_preemptions), (2, Default::default()));
}

#[test]
fn nested_locks_have_a_row_each_and_one_is_the_innermost() {
    let tally = check(
        "0 0 .>a S
         10 acquire a K
         12 acquire a L
         20 0 a>X R
         30 0 X>a S
         35 release a L
         50 release a K
         60 0 a>X R
         70 0 X>a S",
        &["a L1 20+10 #1 by X10 ran 5", "a K0. 20+10 #1 by X10 ran 20"],
    );
    assert_eq!(tally.preemptions, 1);
}

#[test]
fn a_sleep_is_not_a_preemption_and_the_wait_for_a_cpu_after_it_is_told_apart() {
    check(
        "0 0 .>a S
         10 acquire a L
         20 0 a>X R
         30 0 X>a R
         40 0 a>X S
         60 wake Y a 0
         75 0 X>a R
         80 release a L",
        &["a L0 20+10 #1 by X10 ran 15", "a L0 ~60+15 #1 by X15 ran 5"],
    );
}

#[test]
fn what_ran_after_is_not_known_without_a_release() {
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         20 0 a>X R
         30 0 X>a R
         40 0 a>X R",
        &["a L0 20+10 #1 by X10 ran ?"],
    );
    assert_eq!(tally.unfinished_preemptions.at_end, 1, "the second had no end");
}

/// That it was held is known when it is posted, so there are no rows, and the holds are counted.
#[test]
fn holders_of_semaphores_are_counted() {
    let tally = check(
        "0 0 .>a S
         10 take a L
         20 0 a>X R
         30 0 X>a R
         40 post a L
         50 take a L
         60 post a L",
        &[],
    );
    assert_eq!((tally.holds, tally.semaphores_held_up), (2, 1));
}

#[test]
fn a_preemption_across_a_loss_is_counted() {
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         20 0 a>X R
         25 lose sched 3
         30 0 X>a R
         35 release a L
         40 acquire a L
         42 lose irq 5
         45 0 a>X R
         50 0 X>a R
         55 release a L",
        &["a L0 45+5 #1 by X5 ran 5 touched"],
    );
    assert_eq!(tally.unfinished_preemptions.at_loss, 1);
}

#[test]
fn of_many_those_after_the_first_are_told_without_what_ran_after() {
    let mut text = "0 0 .>a S\n 10 acquire a L\n".to_owned();
    for i in 2..50 {
        text += &format!("{}0 0 a>X R\n {}5 0 X>a R\n", i, i);
    }
    let (rows, _) = run(true, &(text + "1000 release a L"));
    let known = rows.lock_preemptions.iter().filter(|r| r.ran_after_ns.is_some()).count();
    assert_eq!((rows.lock_preemptions.len(), known), (48, 32));
    let nth: Vec<i32> = rows.lock_preemptions.iter().map(|r| r.nth).collect();
    let expected: Vec<i32> = (2..=17).chain([1]).chain(18..=48).collect();
    assert_eq!(nth, expected, "the first is there to the end");
}
