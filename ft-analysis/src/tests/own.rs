//! What waiters did themselves while nobody held their lock, and who took it before them.

use super::run;
use ft_trace::tables::LockWait;

fn thread(tid: i32) -> char {
    tid as u8 as char
}

/// `b 14+30 free14 asleep3 runnable7 running4 woken by a after 3, behind X7, overtaken 1`.
fn text(r: &LockWait) -> String {
    let did = [
        ("asleep", r.free_asleep_ns),
        ("runnable", r.free_runnable_ns),
        ("running", r.free_running_ns),
        ("unknown", r.free_unknown_ns),
    ];
    let sum: i64 = did.iter().filter_map(|(_, ns)| *ns).sum();
    assert_eq!(sum, r.no_holder_ns, "{r:?}");
    let did = did.iter().filter(|(_, ns)| *ns != Some(0));
    let did: String = did.map(|(what, ns)| format!(" {what}{}", ns.unwrap())).collect();
    let woken = r.waker_tid.zip(r.woken_after_ns);
    let woken =
        woken.map_or(String::new(), |(tid, ns)| format!(" woken by {} after {ns}", thread(tid)));
    let behind = r.behind_tid.zip(r.behind_ns);
    let behind = behind.map_or(String::new(), |(tid, ns)| format!(" behind {}{ns}", thread(tid)));
    let overtaken = match r.overtaken {
        0 => String::new(),
        n => format!(" overtaken {n}"),
    };
    let (tid, free) = (thread(r.tid.0), r.no_holder_ns);
    format!("{tid} {}+{} free{free}{did}{woken}{behind}{overtaken}", r.ts, r.dur)
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    assert_eq!(rows.lock_waits.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
}

#[test]
fn the_way_of_a_lock_to_its_sleeping_waiter() {
    // a  [=======]w           released at 30, wakes b at 33
    // b    w......___X___--|  X has the CPU of b until 40
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         14 wait b L
         15 1 b>X S
         30 release a L
         33 wake a b 1
         40 1 X>b R
         44 acquire b L
         50 release b L",
        &["b 14+30 free14 asleep3 runnable7 running4 woken by a after 3 behind X7"],
    );
}

#[test]
fn a_waiter_that_spins_or_is_preempted() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         14 wait b L
         20 release a L
         22 irq b vector 5
         30 1 b>X R
         35 1 X>b R
         36 acquire b L
         40 release b L",
        &["b 14+22 free16 runnable5 running11 behind X5"],
    );
}

#[test]
fn others_that_come_later_take_it_first() {
    // b sleeps from 15 on; c, which came later, and d, which did not wait, have the lock before it.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         14 wait b L
         15 1 b>c S
         18 wait c L
         30 release a L
         32 acquire c L
         34 release c L
         35 0 a>d S
         37 acquire d L
         39 release d L
         42 wake d b 1
         43 1 c>b S
         45 acquire b L
         50 release b L",
        &[
            "c 18+14 free2 running2",
            "b 14+31 free11 asleep8 runnable1 running2 woken by d after 3 behind c1 overtaken 2",
        ],
    );
}

#[test]
fn who_has_waited_for_a_semaphore_and_takes_a_lock_overtakes_who_waits_for_that() {
    // Also where nobody else takes a lock in between.
    for others in ["", "26 acquire a M\n 27 release a M\n"] {
        let timeline = format!(
            "0 0 .>a S
             0 1 .>b S
             10 acquire a L
             14 wait b L
             15 1 b>c S
             16 wait c S
             20 take c S
             {others}
             30 release a L
             32 acquire c L
             34 release c L
             42 wake c b 1
             43 1 c>b S
             45 acquire b L
             50 release b L"
        );
        check(
            &timeline,
            &[
                "c 16+4 free4 running4",
                "b 14+31 free13 asleep10 runnable1 running2 woken by c after 8 behind c1 overtaken 1",
            ],
        );
    }
}

#[test]
fn a_lock_that_is_taken_again_before_the_waiter_runs_was_not_its_turn() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         14 wait b L
         15 1 b>X S
         20 release a L
         24 wake a b 1
         26 acquire a L
         30 1 X>b S
         40 release a L
         41 acquire b L
         50 release b L",
        // Of the way from 24 to 30 the lock was free for 2, and X had all of it.
        &["b 14+27 free7 asleep4 runnable2 running1 behind X2 overtaken 1"],
    );
}

#[test]
fn a_wake_up_of_who_can_run_already_changes_nothing() {
    // Of X's time from 20 to 35 the lock was free for 5; that a wakes b at 32, who has lost its CPU, is of no effect.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         14 wait b L
         20 1 b>X R
         30 release a L
         32 wake a b 1
         35 1 X>Y S
         40 1 Y>b S
         44 acquire b L
         50 release b L",
        &["b 14+30 free14 runnable10 running4 behind X5"],
    );
}

#[test]
fn without_the_kernel_it_is_not_known() {
    let timeline = "10 acquire a L
                    14 wait b L
                    30 release a L
                    34 acquire b L
                    40 release b L";
    let (rows, _) = run(false, timeline);
    let [wait] = &rows.lock_waits[..] else { panic!("{:?}", rows.lock_waits) };
    assert_eq!((wait.no_holder_ns, wait.free_asleep_ns, wait.waker_tid), (4, None, None));
}
