//! When the next collection round comes.
//!
//! So soon that the fullest ring, filled as fast as before, is an eighth full then. A burst is met by the
//! longest distance: a default ring (2^18 slots) holds four times what a thread that makes 64 million events a second
//! writes in it.

use std::time::{Duration, Instant};

use crate::collect::user::FULL;

/// From round to round while there is little to do.
///
/// Limit: part of the definition: a ring is to be an eighth full by then.
/// Shown by: `a_ring_is_met_when_it_is_an_eighth_full`.
pub(super) const LONGEST: Duration = Duration::from_millis(1);

/// The same while nobody writes but the kernel, whose programs end the pause when a buffer is an eighth full
/// (`ft-ebpf/programs/src/record.rs`).
///
/// Limit: part of the definition: a buffer of the kernel that is an eighth full ends the pause.
/// Shown by: `a_buffer_that_comes_to_be_an_eighth_full_wakes_once`.
pub(super) const LONGEST_OF_KERNEL: Duration = Duration::from_millis(25);

/// A round that finds nothing takes a few microseconds; it must not come so often that this counts.
const SHORTEST: Duration = Duration::from_micros(100);

/// How full a ring should be when its round comes.
const TARGET: u32 = FULL / 8;

/// The distance between rounds.
pub(super) struct Pace {
    last: Instant,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace { last: Instant::now() }
    }

    /// How long to wait after a round that began at `began` and found the fullest ring filled to `fill`
    /// (of [`FULL`]), at most `longest`.
    pub(super) fn wait(&mut self, began: Instant, fill: u32, longest: Duration) -> Duration {
        let filled_in = began.duration_since(std::mem::replace(&mut self.last, began));
        distance(filled_in, fill, longest)
    }
}

/// From round to round when it took `filled_in` to fill a ring to `fill`.
fn distance(filled_in: Duration, fill: u32, longest: Duration) -> Duration {
    (filled_in.min(longest) * TARGET / fill.max(1)).clamp(SHORTEST, longest.max(SHORTEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_met_when_it_is_an_eighth_full() {
        let us = Duration::from_micros;
        let distance = |filled_in, fill| super::distance(filled_in, fill, LONGEST);
        assert_eq!(distance(us(1000), 0), LONGEST);
        assert_eq!(distance(us(1000), TARGET), us(1000));
        assert_eq!(distance(us(1000), 2 * TARGET), us(500));
        assert_eq!(distance(us(500), 2 * TARGET), us(250));
        assert_eq!(distance(us(500), TARGET / 2), us(1000));
        assert_eq!(distance(us(100), FULL), SHORTEST);
        // Nobody knows when in a long time it was filled.
        assert_eq!(distance(us(100_000), FULL), us(125));
        // A clock sample is due before.
        assert_eq!(super::distance(us(1000), 0, us(300)), us(300));
        assert_eq!(super::distance(us(1000), 0, us(3)), SHORTEST);
    }
}
