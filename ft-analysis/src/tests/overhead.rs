//! What the recording itself did: process 9 (upper case) has recorded.

use crate::timeline::{LATE_JOB, run, run_by_agent, run_recorded};
use crate::{HeldUp, Overhead, RequestKind};
use ft_trace::ids::Pid;
use ft_trace::tables::Part;

/// A holder is preempted by the agent and by another, and a woken thread waits behind the agent.
///
/// ```text
/// cpu 0  a ==[==|XXX|bb|=|XXXXX|===]--      L from 10 to 110; X the agent, b another recorded thread
/// cpu 1  c ==......w.................=      waits for L from 30
/// ```
const TIMELINE: &str = "
    0 0 .>a S
    0 1 .>c S
    10 acquire a L
    20 0 a>X R+
    30 wait c L
    50 0 X>b S
    60 0 b>a R
    65 0 a>X S
    70 wake b a 0
    100 0 X>a S
    110 release a L
    110 acquire c L
    120 release c L
    130 0 a>b R+
    150 0 b>a S";

#[test]
fn each_row_tells_how_long_the_agent_had_the_cpu() {
    let (rows, _) = run_by_agent(TIMELINE);
    // 20..50 preempted, 70..100 woken; 65..70 it slept.
    let holds: Vec<_> =
        rows.critical_sections.iter().map(|r| (r.tid.0, r.dur, r.agent_ns)).collect();
    assert_eq!(holds, [(b'a'.into(), 100, Some(60)), (b'c'.into(), 10, Some(0))]);
    // Of the first only what lies in the wait, which began in the middle of it.
    let waits: Vec<_> = rows.lock_waits.iter().map(|r| (r.dur, r.agent_ns)).collect();
    assert_eq!(waits, [(80, Some(50))]);
    let preemptions = rows.lock_preemptions.iter().map(|r| (r.ts.0, r.dur, r.agent_ns));
    assert_eq!(preemptions.collect::<Vec<_>>(), [(20, 40, Some(30)), (70, 30, Some(30))]);
    let dispatch: Vec<_> = rows.dispatch_latency.iter().map(|r| (r.dur, r.agent_ns)).collect();
    assert_eq!(dispatch, [(30, Some(30))]);
    let of_a = rows.thread_time.iter().filter(|r| r.tid.0 == i32::from(b'a'));
    let of_a = of_a.map(|r| (r.part, r.culprit.as_deref(), r.spent_ns, r.agent_ns));
    assert_eq!(
        of_a.collect::<Vec<_>>(),
        [
            (Part::Running, None, 55, Some(0)),
            (Part::Preempted, Some("X"), 30, Some(30)),
            (Part::Preempted, Some("b"), 30, Some(0)),
            (Part::Dispatch, Some("X"), 30, Some(30)),
            (Part::Blocked, Some("asleep"), 5, Some(0)),
        ]
    );
}

/// A task keeps a lock while it is not polled, and its thread waits behind the agent meanwhile.
#[test]
fn what_could_have_been_tells_of_the_times_that_its_parts_have() {
    let (rows, _) = run_by_agent(
        "0 0 .>a S
         5 run a 4
         10 acquire a L
         20 0 a>b R
         30 0 b>a S
         35 ran a 4 0
         40 0 a>X S
         60 wake X a 0
         80 0 X>a S
         85 run a 4
         90 release a L",
    );
    let told = rows.what_ifs.iter().map(|r| (r.ts.0, r.parts.unwrap().dispatch_ns, r.agent_ns));
    assert_eq!(told.collect::<Vec<_>>(), [(20, 20, Some(20))]);
}

#[test]
fn scopes_and_gaps_tell_it_too() {
    let (rows, _) = run_by_agent(
        "0 0 .>a S
         5 poll a 0
         10 open a
         20 0 a>X R+
         40 0 X>b S
         50 0 b>a R
         60 gap a 0 15 55
         70 close a",
    );
    let gaps: Vec<_> = rows.gaps.iter().map(|r| (r.ts.0, r.dur, r.agent_ns)).collect();
    assert_eq!(gaps, [(15, 40, Some(20))]);
    let scopes: Vec<_> = rows.scopes.iter().map(|r| (r.ts.0, r.dur, r.agent_ns)).collect();
    assert_eq!(scopes, [(10, 60, Some(20))]);
}

#[test]
fn functions_tell_it_of_themselves_and_with_what_they_called() {
    let (rows, _) = run_by_agent(
        "0 0 .>a S
         10 in a F 90
         20 into a
         30 0 a>X R+
         70 0 X>b S
         80 0 b>a R
         100 out-of a
         110 out a F 90",
    );
    let told: Vec<_> = rows
        .functions
        .iter()
        .map(|r| (r.total_ns, r.total_agent_ns, r.self_ns, r.self_agent_ns))
        .collect();
    assert_eq!(told, [(100, Some(40), 20, Some(0)), (80, Some(40), 80, Some(40))]);
}

#[test]
fn a_function_whose_thread_waits_for_the_agent_to_the_end_tells_it_of_that_wait() {
    let (rows, _) = run_by_agent("0 0 .>a S\n10 in a F 90\n30 0 a>X R+\n70 0 X>. S");
    let [f] = &rows.functions[..] else { panic!("{:?}", rows.functions) };
    assert_eq!((f.total_ns, f.total_preempted_ns, f.total_agent_ns), (60, Some(40), Some(40)));
}

#[test]
fn jobs_tell_it_of_their_responses() {
    // Half of the time in which X has the CPU is of another thread.
    let timeline = LATE_JOB.replace("1900 0 X>a S", "1500 0 X>b S\n1900 0 b>a S");
    let (rows, _) = run_by_agent(&timeline);
    let told: Vec<_> = rows.jobs.iter().map(|r| (r.number, r.dur, r.agent_ns)).collect();
    assert_eq!(told, [(0, 1170, Some(400)), (1, 500, Some(0))]);
}

/// a gets late, behind X, and wakes b, which waits behind c.
#[test]
fn paths_tell_it_of_the_waits_in_which_the_agent_had_the_cpu_longest() {
    let timeline = "
        0 0 a>X S
        0 1 b>c S
        40 irq X vector 6 0 local_timer
        44 wake X a 0 0
        90 0 X>a S
        95 wake a b 1 0
        110 1 c>b S
        120 answer b 7";
    let asked = RequestKind::reaction("timer:a", "event:http.end", None).expect("a reaction");
    let told = |by| {
        let (rows, _) = run_recorded(by, std::slice::from_ref(&asked), timeline);
        let [r] = &rows.requests[..] else { panic!("{:?}", rows.requests) };
        (r.dur, r.path_dispatch_ns, r.path_agent_ns)
    };
    assert_eq!(told(Some(Pid(9))), (80, Some(61), Some(46)));
    assert_eq!(told(None), (80, Some(61), None));
}

#[test]
fn the_tally_tells_what_it_had_in_all() {
    let overhead = run_by_agent(TIMELINE).1.overhead.expect("it is known who recorded");
    assert_eq!(
        overhead,
        Overhead {
            cpu_ns: 65,
            shared_ns: 65,
            // a from 20 to 50, b from 65 to 100.
            preempted: HeldUp { times: 2, total_ns: 65, longest_ns: 35 },
            woken: HeldUp { times: 1, total_ns: 30, longest_ns: 30 },
            // a: 0..20, 60..65, 100..130; b: 50..60, 130..150; c until the end.
            running_ns: 55 + 30 + 150,
        }
    );
}

/// A CPU that only the agent and threads which are not recorded share does not disturb those that are.
#[test]
fn only_cpus_of_recorded_threads_are_shared() {
    let (_, tally) = run_by_agent("0 0 .>a S\n0 1 .>X S\n50 1 X>. S\n60 0 a>X S\n70 0 X>. S");
    let overhead = tally.overhead.expect("it is known who recorded");
    assert_eq!((overhead.cpu_ns, overhead.shared_ns), (60, 10));
    assert_eq!((overhead.preempted, overhead.woken), Default::default());
}

/// What a waiting thread takes to another CPU counts there no more.
#[test]
fn a_thread_that_is_moved_keeps_what_it_has_seen() {
    let (rows, _) = run_by_agent(
        "0 0 .>a S
         0 1 .>Y S
         10 acquire a L
         20 0 a>X R+
         50 move a 0 1
         60 1 Y>. S
         65 1 .>a S
         70 0 X>. S
         80 release a L",
    );
    // 20..50 by X, 50..60 by Y.
    assert_eq!(rows.critical_sections[0].agent_ns, Some(40));
    assert_eq!(rows.lock_preemptions[0].agent_ns, Some(40));
}

#[test]
fn of_a_switch_that_was_not_recorded_nobody_is_blamed() {
    // X has the CPU from 20; that it has left unseen shows at 50, when Y leaves.
    let (rows, tally) = run_by_agent(
        "0 0 .>a S
         10 acquire a L
         20 0 a>X R+
         50 0 Y>a S
         60 release a L",
    );
    assert_eq!(rows.critical_sections[0].agent_ns, Some(0));
    assert_eq!(tally.overhead.map(|o| o.cpu_ns), Some(0));
}

#[test]
fn who_recorded_may_not_be_known() {
    let (rows, tally) = run(true, TIMELINE);
    assert_eq!(tally.overhead, None);
    assert!(rows.critical_sections.iter().all(|r| r.agent_ns.is_none()));
    assert!(rows.lock_waits.iter().all(|r| r.agent_ns.is_none()));
    assert!(rows.lock_preemptions.iter().all(|r| r.agent_ns.is_none()));
    assert!(rows.dispatch_latency.iter().all(|r| r.agent_ns.is_none()));
    assert!(rows.thread_time.iter().all(|r| r.agent_ns.is_none()));
    assert!(rows.scopes.iter().all(|r| r.agent_ns.is_none()));
    let (rows, _) = run(true, "0 0 .>a S\n10 in a F 90\n20 out a F 90");
    assert_eq!((rows.functions[0].total_agent_ns, rows.functions[0].self_agent_ns), (None, None));
}
