//! A thread is woken while the one that wakes it keeps the CPU for a known time.
//!
//! ```text
//! blocker  FIFO 50  ──a wakes b────keeps the CPU────c sleep
//! sleeper  FIFO 10  blocked ···runnable··················└──d
//! ```

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;

use serde_json::json;

use crate::sched::{self, now_ns};

/// How long the blocker keeps the CPU, ns, round by round.
const LENGTHS_NS: [i64; 3] = [100_000, 300_000, 1_000_000];

/// Prints for each round the moments a, b, c, d of the figure, and the sleeper's voluntary switches so far.
pub(crate) fn run(rounds: u64) -> String {
    let (sleeper_end, blocker_end) = pipe().expect("pipe");
    thread::scope(|s| {
        let sleeper = sched::on_stage(s, "ft-sleeper", 10, move || sleep(sleeper_end));
        let blocker = sched::on_stage(s, "ft-blocker", 50, move || block(blocker_end, rounds));
        let (blocker, blocks) = blocker.join().expect("blocker");
        let (sleeper, wakes) = sleeper.join().expect("sleeper");
        let told: Vec<Vec<i64>> =
            blocks.iter().zip(&wakes).map(|(b, w)| [&b[..], &w[..]].concat()).collect();
        json!({ "blocker": blocker, "sleeper": sleeper, "rounds": told }).to_string()
    })
}

fn block(mut to: PipeWriter, rounds: u64) -> (i32, Vec<[i64; 3]>) {
    let blocks = (0..rounds as usize).map(|round| {
        sched::sleep_until(now_ns() + 1_500_000);
        let a = now_ns();
        to.write_all(&[1]).expect("pipe");
        let b = now_ns();
        sched::spin_until(a + LENGTHS_NS[round % LENGTHS_NS.len()]);
        [a, b, now_ns()]
    });
    let blocks = blocks.collect();
    sched::sleep_until(now_ns() + 1_500_000);
    (sched::gettid(), blocks)
}

/// Reads until the other end is closed.
fn sleep(mut from: PipeReader) -> (i32, Vec<[i64; 2]>) {
    let mut wakes = Vec::new();
    while from.read(&mut [0]).expect("pipe") == 1 {
        wakes.push([now_ns(), sched::switches().0 as i64]);
    }
    (sched::gettid(), wakes)
}
