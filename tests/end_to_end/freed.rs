//! What a waiter does while nobody holds its lock: a known time asleep, a known time behind a thread, a known number of others first.

use ft_trace::store::Trace;
use ft_trace::tables::LockWait;
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage};
use crate::holes::Holes;
use crate::recomputed::agrees;

/// Rounds of the subject, in the short form, and how many of them must be whole.
const ROUNDS: usize = 16;
const LEAST: usize = 8;

/// From a reading of the clock to the event of a lock, where nothing comes between.
const EVENT_NS: i64 = 50_000;

/// A wake-up and a switch, likewise.
const SWITCH_NS: i64 = 100_000;

#[test]
fn a_waiter_for_a_free_lock_sleeps_queues_and_is_overtaken_as_it_is_known() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = harness::rounds(ROUNDS).to_string();
    let mut errors =
        ["asleep beside a free lock", "woken late", "queued behind the holder"].map(Errors::of);
    let (_, dir) = stage.record_until(&[], &["freed", &rounds], |truth, trace| {
        judge(truth, trace, &mut errors);
        errors[0].count() >= harness::rounds(LEAST)
    });
    let [asleep, late, queued] = errors;
    asleep.tell(EVENT_NS, harness::rounds(LEAST));
    late.tell(EVENT_NS, harness::rounds(LEAST));
    queued.tell(SWITCH_NS, harness::rounds(LEAST));
    agrees("a lock whose waiter is woken late", &dir);
}

fn judge(truth: &Value, trace: &Trace, errors: &mut [Errors; 3]) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let (waiter, holder) = (errors::tid(truth, "waiter"), errors::tid(truth, "holder"));
    let waits = trace.rows::<LockWait>().map(|row| row.expect("a row"));
    let waits: Vec<LockWait> =
        waits.filter(|w| w.tid.0 == waiter && &*w.lock_name == "unwoken").collect();
    let rounds: Vec<[i64; 9]> = errors::rounds(truth);
    assert_eq!(waits.len(), rounds.len(), "it waits once in each round");
    for (wait, [taken, a0, a1, l0, l1, q0, q1, lost, got]) in waits.iter().zip(rounds) {
        let end = wait.ts.0 + wait.dur;
        assert!(end <= got + bound, "{wait:?} ended before {got}");
        // Whoever took it first: no clock and no switch is needed for that.
        assert_eq!(i64::from(wait.overtaken), taken, "{wait:?}");
        // At least from the release before the wake-up on. The row's own mark is about its holders.
        if !holes.judged(wait.mark, wait.ts.0, wait.dur) || wait.free_unknown_ns != Some(0) {
            assert!(holes.touch(wait.ts.0, end), "{wait:?}");
            continue;
        }
        let [asleep, late, queued] = errors;
        // A user event at each end of each time in which it is free.
        let ends = 2 * (taken + 1) * bound;
        asleep.check(wait.free_asleep_ns.expect("a kernel stream"), a0..=a1, ends);
        late.check(wait.woken_after_ns.expect("it was woken"), l0..=l1, 2 * bound);
        queued.check(wait.free_runnable_ns.expect("a kernel stream"), q0..=q1, 2 * bound);
        assert_eq!((wait.waker_tid, wait.waker_comm.as_deref()), (Some(holder), Some("ft-holder")));
        // Others of a higher priority may have had the CPU of the holder meanwhile.
        let behind = wait.behind_ns.expect("somebody");
        if q0 - lost > lost {
            assert_eq!(wait.behind_tid, Some(holder), "{wait:?}");
            assert!((q0 - lost - bound..=q1 + bound).contains(&behind), "{wait:?}");
        }
    }
}
