//! Workers that a tick has woken before they were due.

use super::*;

/// A worker that sleeps until 1000, while X has its CPU, and has read the clock at 1052; what happens from 990 on.
fn sleep(happens: &str) -> String {
    let timeline = format!(
        "0 0 .>a S
         10 worker a 2 6 3
         20 sleep a 1000
         30 0 a>X S
         {happens}
         1055 woke a 1000 1052"
    );
    let (rows, tally) = run(true, &timeline);
    hold(&rows, &tally);
    let [r] = &rows.timer_latency[..] else { panic!("{:?}", rows.timer_latency) };
    let parts = [r.timer_ns, r.interrupt_ns, r.dispatch_ns, r.return_ns];
    let parts = parts.map(|ns| ns.map_or("?".into(), |ns| ns.to_string())).join("+");
    let by = r.running_comm.as_ref().zip(r.running_ns);
    let by = by.map_or(String::new(), |(comm, ns)| format!(" by {comm} {ns}"));
    let mark = if r.mark == Mark::Exact { "" } else { r.mark.word() };
    format!("{}={parts}{by} {mark}", r.dur).trim_end().to_owned()
}

/// ```text
/// due                1000
/// a       z z z z z w|w w w w w|=       z asleep, w woken, = runs
/// CPU     X X X X X X X X X X X|a
/// ```
#[test]
fn a_worker_that_is_woken_before_it_is_due_and_waits_for_its_cpu() {
    let one = "990 wake X a 0
               1050 0 X>a R";
    assert_eq!(sleep(one), "52=0+0+50+2 by X 50");
    // Of X it is not known whether it had the CPU after it was due; Y had it for 30 since then at least.
    let two = "990 wake X a 0
               1010 0 X>Y R
               1050 0 Y>a R";
    assert_eq!(sleep(two), "52=0+0+50+2 by Y 30 lower bound");
    let long_before = "900 wake X a 0
                       1045 0 X>Y R
                       1050 0 Y>a R";
    assert_eq!(sleep(long_before), "52=0+0+50+2 by X 45 lower bound");
    let nobody_surely = "900 wake X a 0
                         960 0 X>Y R
                         1050 0 Y>a R";
    assert_eq!(sleep(nobody_surely), "52=0+0+50+2 lower bound");
}

#[test]
fn a_worker_that_is_woken_runs_and_loses_the_cpu_before_it_has_read_the_clock() {
    let before_due = "990 wake X a 0
                      992 0 X>a R
                      996 0 a>X R
                      1050 0 X>a R";
    assert_eq!(sleep(before_due), "52=0+0+50+2 by X 50");
    let after_due = "990 wake X a 0
                     992 0 X>a R
                     1010 0 a>X R
                     1050 0 X>a R";
    assert_eq!(sleep(after_due), "52=0+0+40+12 by X 40");
    let in_time = "980 wake X a 0
                   982 0 X>a R
                   984 0 a>X R
                   999 0 X>a R";
    assert_eq!(sleep(in_time), "52=0+0+0+52");
}

#[test]
fn a_worker_that_goes_back_to_sleep_is_late_by_its_next_waking() {
    let woken_again = "980 wake X a 0
                       982 0 X>a R
                       984 0 a>X S
                       1010 wake X a 0
                       1050 0 X>a R";
    assert_eq!(sleep(woken_again), "52=10+0+40+2 by X 40");
    let without_record = "980 wake X a 0
                          982 0 X>a R
                          984 0 a>X S
                          1050 0 X>a R";
    assert_eq!(sleep(without_record), "52=?+?+?+? lower bound");
}

/// Its event comes behind its reading of the clock: what happens in between is not of its sleep.
#[test]
fn a_worker_that_has_read_the_clock_is_no_later_whatever_comes_then() {
    let preempted = "990 wake X a 0
                     992 0 X>a R
                     1053 0 a>X R
                     1054 0 X>a R";
    assert_eq!(sleep(preempted), "52=0+0+0+52");
    let asleep = "990 wake X a 0
                  992 0 X>a R
                  1053 0 a>X S
                  1054 wake X a 0
                  1054 0 X>a R";
    assert_eq!(sleep(asleep), "52=0+0+0+52");
    let late = "1010 wake X a 0
                1050 0 X>a R
                1053 0 a>X S
                1054 wake X a 0
                1054 0 X>a R";
    assert_eq!(sleep(late), "52=10+0+40+2 by X 40");
    // Which of several times it slept was the one, only the last two could say.
    let twice = "990 wake X a 0
                 992 0 X>a R
                 1053 0 a>X R
                 1053 0 X>a R
                 1054 0 a>X S
                 1054 wake X a 0
                 1054 0 X>a R
                 1054 0 a>X S
                 1054 wake X a 0
                 1055 0 X>a R";
    assert_eq!(sleep(twice), "52=?+?+?+? lower bound");
}
