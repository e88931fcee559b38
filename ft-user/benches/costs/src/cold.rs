//! One event with cold caches: 1.5 MiB are walked before each, which is more than a second-level cache
//! of today's cores holds. Most such caches hold what the first-level ones hold, code too, so the walk
//! makes the event's own instructions cold as well.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::cycles::{begin, end, rdtsc};
use crate::{cpu, cycles, fewer, tell};

const WALKED_WORDS: usize = 3 << 16;
const LINE_WORDS: usize = 8;
/// Words of an event of two u64 in a ring.
const SLOT_WORDS: u64 = 4;

/// Rounds of [`BLOCK`] events with the subject, and as many without.
const ROUNDS: u64 = 10;
const BLOCK: u64 = 1500;

/// Measures `event`, and the same without it, in turns; tells the difference in ns as `name`.
///
/// The counter may advance in steps that are as long as an event (10 ns on some virtual machines), so a
/// median would be a multiple of them. The mean of the middle nine tenths is not.
pub fn measure(name: &str, event: impl Fn(u64, u64) + Copy) {
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
        std::thread::sleep(Duration::from_millis(20));
    }
    tell(name, (middle(with) - middle(without)) / per_ns);
}

/// Tells `cold.rdtsc`, and `cold.store`: the counter and 32 bytes stored to a ring whose position is known.
/// No event can cost less. And `cold.miss`: a load from a line that the walk has evicted.
pub fn measure_floor() {
    let ring: Vec<AtomicU64> = (0..BLOCK * SLOT_WORDS).map(AtomicU64::new).collect();
    measure("cold.rdtsc", |_, _| _ = black_box(rdtsc()));
    // Not the line behind the last one, which a prefetcher would guess.
    let line = |n: u64| (n * 97 * LINE_WORDS as u64 % ring.len() as u64) as usize;
    measure("cold.miss", |_, n| _ = black_box(ring[line(n)].load(Relaxed)));
    measure("cold.store", |a, b| {
        let slot = &ring[(b * SLOT_WORDS) as usize..][..SLOT_WORDS as usize];
        for (place, word) in slot.iter().zip([1, rdtsc(), a, b]) {
            place.store(word, Relaxed);
        }
    });
}

#[inline(never)]
fn block(memory: &[u64], event: impl Fn(u64, u64), times: &mut Vec<u64>) {
    times.reserve(BLOCK as usize);
    for n in 0..BLOCK {
        for line in memory.chunks_exact(LINE_WORDS) {
            black_box(line[0]);
        }
        let start = begin();
        event(start, n);
        times.push(end() - start);
    }
}

/// Mean of the middle nine tenths.
fn middle(mut times: Vec<u64>) -> f64 {
    times.sort_unstable();
    let middle = &times[times.len() / 20..times.len() * 19 / 20];
    middle.iter().sum::<u64>() as f64 / middle.len() as f64
}
