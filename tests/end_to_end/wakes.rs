//! A known number of wake-ups, each with a known blocker.

use ft_trace::store::Trace;
use ft_trace::tables::DispatchLatency;
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::Stage;
use crate::holes::Holes;

const ROUNDS: &str = "60";
const LEAST: usize = 50;

/// The wake-up itself, and the switch from the one to the other, where nothing comes between.
const SWITCH_NS: i64 = 100_000;

#[test]
fn every_wake_up_shows_how_long_it_took_and_behind_whom() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let mut errors = Errors::of("woken by a thread that keeps the CPU");
    stage.record_until(&[], &["wakes", ROUNDS], |truth, trace| {
        judge(truth, trace, &mut errors);
        errors.count() >= LEAST
    });
    errors.tell(SWITCH_NS, LEAST);
}

fn judge(truth: &Value, trace: &Trace, errors: &mut Errors) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let (sleeper, blocker) = (errors::tid(truth, "sleeper"), errors::tid(truth, "blocker"));
    let wakes = trace.rows::<DispatchLatency>().map(|row| row.expect("a row"));
    let wakes: Vec<DispatchLatency> = wakes.filter(|wake| wake.tid.0 == sleeper).collect();
    let rounds = errors::rounds(truth);
    for pair in rounds.windows(2) {
        let [[.., slept_before], [a, b, c, d, slept]]: [[i64; 5]; 2] = [pair[0], pair[1]];
        let within = |wake: &&DispatchLatency| (a - bound..=b + bound).contains(&wake.ts.0);
        let found: Vec<&DispatchLatency> = wakes.iter().filter(within).collect();
        if found.len() as i64 != slept - slept_before {
            // Who was woken by a hidden process, or dispatched by one, has no row.
            assert!(holes.touch(a, d), "one for each time that it slept: {found:?}");
            continue;
        }
        for wake in found {
            assert_eq!(wake.waker_tid.0, blocker, "{wake:?}");
            if !holes.judged(wake.mark, wake.ts.0, wake.dur) {
                continue;
            }
            errors.check(wake.dur, c - b..=d - a, bound);
            assert_eq!(wake.running_tid, Some(blocker), "{wake:?}");
            assert_eq!(wake.running_comm.as_deref(), Some("ft-blocker"));
            let blocked = wake.running_ns.expect("an occupant");
            assert!(c - b - bound <= blocked && blocked <= wake.dur, "{wake:?}");
        }
    }
}
