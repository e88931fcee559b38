//! One event with cold caches: before each, twice as much memory is walked as the core's second-level cache
//! holds, 1.5 MiB at least. Most such caches hold what the first-level ones hold, code too, so the walk
//! makes the event's own instructions cold as well.

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::cycles::{begin, end, rdtsc};
use crate::{cpu, cycles, fewer, tell};

/// Bytes that are walked where the second-level cache is small, or its size is not known.
const LEAST_WALKED: u64 = 3 << 19;
const WORD_BYTES: u64 = 8;
const LINE_WORDS: usize = 8;
/// Words of an event of two u64 in a ring.
const SLOT_WORDS: u64 = 4;

/// Rounds of a block of events with the subject, and one without.
const ROUNDS: u64 = 10;
/// Events of a block: so many where [`LEAST_WALKED`] is walked, and fewer in the same time where it is more.
const BLOCK: u64 = 1500;

/// Measures `event`, and the same without it, in turns; tells the difference in ns as `name`, and the bytes that
/// were walked as `cold.walked`.
///
/// The counter may advance in steps that are as long as an event (10 ns on some virtual machines), so a
/// median would be a multiple of them. The mean of the middle nine tenths is not.
pub fn measure(name: &str, event: impl Fn(u64, u64) + Copy) {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    tell("fifo", f64::from(cpu::real_time()));
    let walked = walked_bytes();
    tell("cold.walked", walked as f64);
    let memory = vec![1u64; (walked / WORD_BYTES) as usize];
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
    let events = BLOCK * LEAST_WALKED / (memory.len() as u64 * WORD_BYTES);
    times.reserve(events as usize);
    for n in 0..events {
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

/// Twice what the second-level cache of the measured CPU holds, [`LEAST_WALKED`] at least.
fn walked_bytes() -> u64 {
    let directory = format!("/sys/devices/system/cpu/cpu{}/cache", cpu::measured());
    let caches = fs::read_dir(directory).into_iter().flatten().flatten();
    let of_level_two = caches.filter_map(|cache| {
        let read = |name| fs::read_to_string(cache.path().join(name)).ok();
        if read("level")?.trim() == "2" { kibibytes(&read("size")?) } else { None }
    });
    of_level_two.max().map_or(LEAST_WALKED, |cache| LEAST_WALKED.max(2 * cache))
}

/// The bytes of a cache's size as the kernel writes it: `2048K` (Documentation/ABI/testing/sysfs-devices-system-cpu).
fn kibibytes(size: &str) -> Option<u64> {
    let kib: u64 = size.trim().strip_suffix('K')?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_of_a_cache_is_read() {
        assert_eq!(kibibytes("2048K\n"), Some(2 << 20));
        assert_eq!((kibibytes("2M"), kibibytes(""), kibibytes("K")), (None, None, None));
    }
}
