//! One event with cold caches: 1.5 MiB are walked before each, which is more than a second-level cache
//! of today's cores holds.

use std::hint::black_box;

use crate::cycles::{begin, end};
use crate::{cpu, cycles, fewer, tell};

const WALKED_WORDS: usize = 3 << 16;
const LINE_WORDS: usize = 8;

/// Rounds of [`BLOCK`] events with the subject, and as many without.
const ROUNDS: u64 = 10;
const BLOCK: u64 = 1500;

/// Measures `event`, and the same without it, in turns; tells `cold`, the difference in ns.
///
/// The counter may advance in steps that are as long as an event (10 ns on some virtual machines), so a
/// median would be a multiple of them. The mean of the middle half is not.
pub fn measure(event: fn(u64, u64)) {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    tell("fifo", f64::from(cpu::real_time()));
    let memory = vec![1u64; WALKED_WORDS];
    let (mut without, mut with) = (Vec::new(), Vec::new());
    block(&memory, event, &mut Vec::new());
    for _ in 0..fewer(ROUNDS, 5) {
        block(&memory, |_, _| (), &mut without);
        block(&memory, event, &mut with);
        // What real-time threads may use of a second is bounded.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    tell("cold", (middle(with) - middle(without)) / per_ns);
}

fn block(memory: &[u64], event: fn(u64, u64), times: &mut Vec<u64>) {
    for n in 0..BLOCK {
        for line in memory.chunks_exact(LINE_WORDS) {
            black_box(line[0]);
        }
        let start = begin();
        event(start, n);
        times.push(end() - start);
    }
}

/// Mean of the middle half.
fn middle(mut times: Vec<u64>) -> f64 {
    times.sort_unstable();
    let half = &times[times.len() / 4..times.len() * 3 / 4];
    half.iter().sum::<u64>() as f64 / half.len() as f64
}
