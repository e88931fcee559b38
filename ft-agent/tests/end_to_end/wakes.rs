//! A known number of wake-ups, each with a known blocker.

use ft_agent::store::rows::DispatchLatency;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage};

const ROUNDS: &str = "60";
const LEAST: usize = 50;

/// The wake-up itself, and the switch from the one to the other, in the median.
const SWITCH_NS: i64 = 100_000;

#[test]
fn every_wake_up_shows_how_long_it_took_and_behind_whom() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&[], &["wakes", ROUNDS]);
    let trace = harness::open(&dir);
    let bound = trace.meta().clock.bound_ns;
    let (sleeper, blocker) = (errors::tid(&truth, "sleeper"), errors::tid(&truth, "blocker"));
    let wakes = trace.rows::<DispatchLatency>().map(|row| row.expect("a row"));
    let wakes: Vec<DispatchLatency> = wakes.filter(|wake| wake.tid.0 == sleeper).collect();
    let rounds = errors::rounds(&truth);
    let mut errors = Errors::of("woken by a thread that keeps the CPU");
    let mut occupied = 0;
    for pair in rounds.windows(2) {
        let [[.., slept_before], [a, b, c, d, slept]]: [[i64; 5]; 2] = [pair[0], pair[1]];
        let within = |wake: &&DispatchLatency| (a - bound..=b + bound).contains(&wake.ts.0);
        let found: Vec<&DispatchLatency> = wakes.iter().filter(within).collect();
        assert_eq!(found.len() as i64, slept - slept_before, "one for each time that it slept");
        // On some machines switches are missing, which is told.
        for wake in found.into_iter().filter(|wake| &*wake.mark == "exact") {
            errors.check(wake.dur, c - b..=d - a, bound);
            assert_eq!(wake.waker_tid.0, blocker, "{wake:?}");
            // The latency is exact all the same when the switch to the occupant is missing.
            let Some(running) = wake.running_tid else { continue };
            occupied += 1;
            assert_eq!(running, blocker, "{wake:?}");
            assert_eq!(wake.running_comm.as_deref(), Some("ft-blocker"));
            let blocked = wake.running_ns.expect("an occupant");
            assert!(c - b - bound <= blocked && blocked <= wake.dur, "{wake:?}");
        }
    }
    errors.tell(SWITCH_NS, LEAST);
    assert!(occupied >= LEAST, "the occupant is known {occupied} times of {ROUNDS}");
}
