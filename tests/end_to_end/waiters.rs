//! A known chain of three waiters.

use ft_trace::tables::{CriticalSection, LockWait};

use ft_trace::store::Trace;
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage};
use crate::holes::Holes;

const ROUNDS: &str = "54";
const LEAST: usize = 50;

/// From a reading of the clock to the event of a lock, and from a wake-up to the next reading, where nothing comes between.
const EVENT_NS: i64 = 50_000;

/// What the threads did in a round, by their own clocks.
struct Round {
    release: i64,
    /// Of each waiter: when it called `lock`, and when it had it.
    waits: [[i64; 2]; 3],
    /// Each came after the one that it was to wait for, and before the release: a machine that is itself preempted can be
    /// late.
    as_planned: bool,
}

impl Round {
    fn of([held, release, a, b, c, d, e, f]: [i64; 8]) -> Round {
        let as_planned = [held, a, c, e, release].is_sorted();
        Round { release, waits: [[a, b], [c, d], [e, f]], as_planned }
    }
}

#[test]
fn each_of_three_waiters_in_a_chain_shows_its_wait() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = |truth: &Value| errors::rounds(truth).into_iter().map(Round::of).collect();
    let (truth, dir) = stage.record_until(&[], &["waiters", ROUNDS], |truth, _| {
        let rounds: Vec<Round> = rounds(truth);
        rounds.iter().filter(|round| round.as_planned).count() >= LEAST
    });
    let (trace, rounds) = (harness::open(&dir), rounds(&truth));
    // Two times of user events, each within the bound.
    let bound = 2 * trace.meta().clock.bound_ns;
    let holds: Vec<CriticalSection> =
        trace.rows::<CriticalSection>().map(|row| row.expect("a row")).collect();
    let waiters = truth["waiters"].as_array().expect("waiters");
    for (n, waiter) in waiters.iter().enumerate() {
        let lock = format!("chain-{n}");
        let waited = |h: &&CriticalSection| {
            Some(i64::from(h.tid.0)) == waiter.as_i64() && *h.lock_name == *lock
        };
        let holds: Vec<&CriticalSection> = holds.iter().filter(waited).collect();
        assert_eq!(holds.len(), rounds.len(), "one hold of {lock} a round");
        let mut errors = Errors::of(format!("wait in a chain, place {}, not reported", n + 1));
        for (round, hold) in rounds.iter().zip(holds) {
            let (release, [called, got]) = (round.release, round.waits[n]);
            assert_eq!(hold.depth, 1, "it holds its own lock");
            if round.as_planned {
                let late = EVENT_NS.max(got - release);
                assert!(hold.wait_ns >= release - called - late, "{hold:?}");
                errors.check(got - called - hold.wait_ns, 0..=got - called, bound);
            }
        }
        errors.tell(EVENT_NS, LEAST);
        blame(&trace, n, &truth, &rounds);
    }
}

/// Each wait knows its holder, and who was at the end of the chain.
fn blame(trace: &Trace, n: usize, truth: &Value, rounds: &[Round]) {
    let thread = |n: usize| match n {
        0 => errors::tid(truth, "holder"),
        n => truth["waiters"][n - 1].as_i64().expect("a waiter") as i32,
    };
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let waits = trace.rows::<LockWait>().map(|row| row.expect("a row"));
    let waits: Vec<LockWait> = waits.filter(|wait| wait.tid.0 == thread(n + 1)).collect();
    let (mut judged, mut slept) = (0, 0);
    for round in rounds.iter().filter(|round| round.as_planned) {
        let (release, [called, got]) = (round.release, round.waits[n]);
        // The holder had it for most of the time, whoever was late then.
        if got - release >= release - called {
            continue;
        }
        let inside = called - bound..=got + bound;
        let wait = waits.iter().find(|wait| inside.contains(&wait.ts.0)).expect("its wait");
        if !holes.judged(wait.mark, wait.ts.0, wait.dur) {
            continue;
        }
        let parts = wait.parts.expect("parts");
        assert_eq!(parts.total_ns() + wait.no_holder_ns + wait.cycle_ns, wait.dur, "{wait:?}");
        assert_eq!(
            (wait.chain as usize, wait.holder_tid, wait.root_tid, wait.root_lock.as_deref()),
            (n + 1, Some(thread(n)), Some(thread(0)), Some("chain-0")),
            "{wait:?}"
        );
        judged += 1;
        slept += usize::from(parts.blocked_ns > wait.dur / 2);
    }
    // It sleeps while it holds the lock; on a machine that stands still, not for half of each.
    assert!(judged >= LEAST / 2 && slept > judged / 2, "{slept} of {judged}: {:?}", waits.first());
}
