//! A sleep, a signal and two migrations inside of a hold.

use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, Decomposition, SchedMigrate};
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage, gate};
use crate::holes::Holes;

const ROUNDS: &str = "60";
const LEAST: usize = 60;
/// Of those with every switch.
const LEAST_WHOLE: usize = 50;

/// From a reading of the clock into the kernel and off the CPU, and back, where nothing comes between.
const SYSTEM_CALL_NS: i64 = 100_000;

/// From a reading of the clock to the event of a lock, where nothing comes between.
const EVENT_NS: i64 = 20_000;

fn recorded(stage: &Stage, scenario: &str) -> (Value, Trace) {
    let (truth, dir) = stage.record(&[], &[scenario, ROUNDS]);
    (truth, harness::open(&dir))
}

fn holds(trace: &Trace, lock: &str) -> Vec<CriticalSection> {
    let holds = trace.rows::<CriticalSection>().map(|row| row.expect("a row"));
    holds.filter(|hold| &*hold.lock_name == lock).collect()
}

/// Time in which the thread had no CPU.
fn off_cpu(hold: &CriticalSection) -> i64 {
    let Decomposition { preempted_ns, dispatch_ns, blocked_ns, .. } = hold.parts.expect("parts");
    preempted_ns + dispatch_ns + blocked_ns
}

#[test]
fn a_sleep_inside_of_a_hold_is_blocked_time() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, trace) = recorded(&stage, "sleep");
    let bound = trace.meta().clock.bound_ns;
    // Turned round: the program sleeps for as long as it says at most.
    let mut errors =
        Errors::of("asleep for 1 ms inside of a hold, time not reported as off the CPU");
    let mut blocked = Vec::new();
    let holds = holds(&trace, "held");
    let rounds = errors::rounds(&truth);
    assert_eq!(holds.len(), rounds.len());
    for ([before, after], hold) in rounds.into_iter().zip(&holds) {
        let off = off_cpu(hold);
        // It may have lost the CPU between the lock and its reading of the clock.
        let around = hold.dur - (after - before);
        errors.check(after - before - off, -around..=hold.dur - off, bound);
        blocked.push(hold.parts.expect("parts").blocked_ns);
    }
    blocked.sort_unstable();
    // Not all of them: the timers of a virtual machine may be late.
    let p10 = blocked[blocked.len() / 10];
    assert!(
        (900_000..=1_100_000).contains(&p10),
        "it waited for its timer, not for a CPU: {blocked:?}"
    );
    errors.tell(SYSTEM_CALL_NS, LEAST);
}

#[test]
fn a_signal_handler_holds_its_lock_inside_of_the_hold_that_it_interrupts() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, trace) = recorded(&stage, "signal");
    // Two times of user events, each within the bound.
    let bound = 2 * trace.meta().clock.bound_ns;
    let (outer, inner) = (holds(&trace, "held"), holds(&trace, "in-handler"));
    let rounds = errors::rounds(&truth);
    assert_eq!([outer.len(), inner.len()], [rounds.len(); 2]);
    let mut errors = ["interrupted", "in the handler of a signal"]
        .map(|which| Errors::of(format!("hold {which}")));
    for ([a, b, c, d, before, locked, unlock, after], (outer, inner)) in
        rounds.into_iter().zip(outer.iter().zip(&inner))
    {
        assert!(locked < a && d < unlock, "the timer's signal came too late");
        errors[0].check(outer.dur, unlock - locked..=after - before, bound);
        errors[1].check(inner.dur, c - b..=d - a, bound);
        assert_eq!((outer.depth, inner.depth), (0, 1));
        assert!(outer.ts < inner.ts && inner.ts.0 + inner.dur < outer.ts.0 + outer.dur);
        let parts = outer.parts.expect("parts");
        assert!(
            parts.vector_ns + parts.hardirq_ns > 0,
            "an interrupt brought the signal: {outer:?}"
        );
    }
    errors.into_iter().for_each(|errors| errors.tell(EVENT_NS, LEAST));
}

#[test]
fn a_hold_goes_on_where_its_thread_is_moved_to() {
    if std::thread::available_parallelism().map_or(1, |n| n.get()) < 2 {
        return gate::skipped("there is one CPU");
    }
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let mut errors = Errors::of("moved to another CPU and back inside of a hold, time off the CPU");
    stage.record_until(&[], &["migrate", ROUNDS], |truth, trace| {
        moved(truth, trace, &mut errors);
        errors.count() >= LEAST_WHOLE
    });
    errors.tell(SYSTEM_CALL_NS, LEAST_WHOLE);
}

fn moved(truth: &Value, trace: &Trace, errors: &mut Errors) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let tid = errors::tid(truth, "tid");
    let moves = trace.rows::<SchedMigrate>().map(|row| row.expect("a row"));
    let moves: Vec<SchedMigrate> = moves.filter(|m| m.tid.0 == tid).collect();
    let holds = holds(trace, "held");
    let rounds = errors::rounds(truth);
    assert_eq!(holds.len(), rounds.len());
    for ([before, there, back, after, lost], hold) in rounds.into_iter().zip(&holds) {
        if !holes.judged(hold.mark, hold.ts.0, hold.dur) {
            continue;
        }
        errors.check(off_cpu(hold), 1..=there - before + after - back + lost, bound);
        let parts = hold.parts.expect("parts");
        assert_eq!(parts.unexplained_ns, 0, "{hold:?}");
        let path: Vec<_> = moves
            .iter()
            .filter(|m| hold.ts <= m.ts && m.ts.0 <= hold.ts.0 + hold.dur)
            .map(|m| {
                let first = (before - bound..=there + bound).contains(&m.ts.0);
                assert!(first || (back - bound..=after + bound).contains(&m.ts.0), "{m:?}");
                (first, m.from_cpu.0, m.to_cpu.0)
            })
            .collect();
        let [(true, stage, 0), (false, 0, home)] = path[..] else { panic!("{path:?}") };
        assert_eq!(stage, home);
    }
}
