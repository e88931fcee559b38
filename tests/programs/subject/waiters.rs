//! A chain of three waiters, each of which holds what the next one waits for.
//!
//! ```text
//! holder   ══0══════════════════════════╗ release
//! first      ══1══ waits for 0 ─────────╚══
//! second        ══2══ waits for 1 ─────────╚══
//! third            ══3══ waits for 2 ─────────╚══
//! ```

use std::thread;

use ft_user::sync::Mutex;
use serde_json::json;

use crate::sched::{self, Start, now_ns};

/// Between the steps of the figure above.
const STEP_NS: i64 = 400_000;

/// From one round to the next.
const PERIOD_NS: i64 = 12 * STEP_NS;

const NAMES: [&str; 4] = ["chain-0", "chain-1", "chain-2", "chain-3"];

/// Prints for each round: when the holder had its lock, and when it began to release it; for each waiter, when it called
/// `lock` and when that returned.
pub(crate) fn run(rounds: u64) -> String {
    let locks = NAMES.map(|name| Mutex::named(name, ()));
    let start = Start::of(NAMES.len());
    let begin = || {
        let start = start.wait();
        move |round: u64| start + round as i64 * PERIOD_NS
    };
    thread::scope(|s| {
        let holder = sched::on_stage(s, "ft-chain-0", 20, || {
            let round_at = begin();
            let hold = |round| {
                sched::sleep_until(round_at(round));
                let lock = locks[0].lock().expect("not poisoned");
                let held = now_ns();
                sched::sleep_until(round_at(round) + 6 * STEP_NS);
                let release = now_ns();
                drop(lock);
                [held, release]
            };
            (sched::gettid(), (0..rounds).map(hold).collect::<Vec<_>>())
        });
        let waiters = [1, 2, 3].map(|n: usize| {
            let (locks, begin) = (&locks, &begin);
            sched::on_stage(s, &format!("ft-chain-{n}"), 20, move || {
                let round_at = begin();
                let wait = |round| {
                    sched::sleep_until(round_at(round) + n as i64 * STEP_NS);
                    let _own = locks[n].lock().expect("not poisoned");
                    let called = now_ns();
                    let _waited_for = locks[n - 1].lock().expect("not poisoned");
                    [called, now_ns()]
                };
                (sched::gettid(), (0..rounds).map(wait).collect::<Vec<_>>())
            })
        });
        let (holder, holds) = holder.join().expect("holder");
        let waiters = waiters.map(|waiter| waiter.join().expect("waiter"));
        let told: Vec<Vec<i64>> = holds
            .into_iter()
            .enumerate()
            .map(|(round, hold)| {
                let waits = waiters.iter().flat_map(|(_, waits)| waits[round]);
                hold.into_iter().chain(waits).collect()
            })
            .collect();
        let tids = waiters.map(|(tid, _)| tid);
        json!({ "holder": holder, "waiters": tids, "rounds": told }).to_string()
    })
}
