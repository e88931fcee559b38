//! A known chain of three waiters.

use ft_trace::tables::{CriticalSection, LockWait};

use ft_trace::store::Trace;
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage};

const ROUNDS: &str = "54";
const LEAST: usize = 50;

/// From a reading of the clock to the event of a lock, and from a wake-up to the next reading, where nothing comes between.
const EVENT_NS: i64 = 50_000;

#[test]
fn each_of_three_waiters_in_a_chain_shows_its_wait() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&[], &["waiters", ROUNDS]);
    let trace = harness::open(&dir);
    // Two times of user events, each within the bound.
    let bound = 2 * trace.meta().clock.bound_ns;
    let holds: Vec<CriticalSection> =
        trace.rows::<CriticalSection>().map(|row| row.expect("a row")).collect();
    let waiters = truth["waiters"].as_array().expect("waiters");
    let rounds = errors::rounds::<7>(&truth);
    for (n, waiter) in waiters.iter().enumerate() {
        let lock = format!("chain-{n}");
        let waited = |h: &&CriticalSection| {
            Some(i64::from(h.tid.0)) == waiter.as_i64() && *h.lock_name == *lock
        };
        let holds: Vec<&CriticalSection> = holds.iter().filter(waited).collect();
        assert_eq!(holds.len(), rounds.len(), "one hold of {lock} a round");
        let mut errors = Errors::of(format!("wait in a chain, place {}, not reported", n + 1));
        for (round, hold) in rounds.iter().zip(holds) {
            let ([release, ..], [called, got]) = (*round, [round[1 + 2 * n], round[2 + 2 * n]]);
            assert_eq!(hold.depth, 1, "it holds its own lock");
            // A machine that is itself preempted can be late.
            let calls = [round[1], round[3], round[5]];
            if !(calls.is_sorted() && calls[2] < release) {
                continue;
            }
            assert!(hold.wait_ns >= release - called - EVENT_NS.max(got - release), "{hold:?}");
            errors.check(got - called - hold.wait_ns, 0..=got - called, bound);
        }
        errors.tell(EVENT_NS, LEAST);
        blame(&trace, n, &truth);
    }
}

/// Each wait knows its holder, and who was at the end of the chain.
fn blame(trace: &Trace, n: usize, truth: &Value) {
    let thread = |n: usize| match n {
        0 => errors::tid(truth, "holder"),
        n => truth["waiters"][n - 1].as_i64().expect("a waiter") as i32,
    };
    let waits = trace.rows::<LockWait>().map(|row| row.expect("a row"));
    let waits: Vec<LockWait> = waits.filter(|wait| wait.tid.0 == thread(n + 1)).collect();
    let as_planned = |wait: &&LockWait| {
        let parts = wait.parts.expect("parts");
        assert_eq!(parts.total_ns() + wait.no_holder_ns + wait.cycle_ns, wait.dur, "{wait:?}");
        (wait.chain as usize, wait.holder_tid, wait.root_tid, wait.root_lock.as_deref())
            == (n + 1, Some(thread(n)), Some(thread(0)), Some("chain-0"))
            // It sleeps while it holds the lock.
            && parts.blocked_ns > wait.dur / 2
    };
    assert!(waits.iter().filter(as_planned).count() >= LEAST, "{:#?}", waits.first());
}
