//! When the next collection round comes.
//!
//! So soon that the fullest ring, filled as fast as before, is an eighth full then. A burst is met by the
//! longest distance: a default ring (2^18 slots) holds four times what a thread that makes 64 million events a second
//! writes in it.

use std::time::{Duration, Instant};

use crate::collect::user::FULL;

/// From round to round while there is little to do.
const LONGEST: Duration = Duration::from_millis(1);

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
    /// (of [`FULL`]).
    pub(super) fn wait(&mut self, began: Instant, fill: u32) -> Duration {
        let filled_in = began.duration_since(std::mem::replace(&mut self.last, began));
        distance(filled_in, fill)
    }
}

/// From round to round when it took `filled_in` to fill a ring to `fill`.
fn distance(filled_in: Duration, fill: u32) -> Duration {
    (filled_in.min(LONGEST) * TARGET / fill.max(1)).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_met_when_it_is_an_eighth_full() {
        let us = Duration::from_micros;
        assert_eq!(distance(us(1000), 0), LONGEST);
        assert_eq!(distance(us(1000), TARGET), us(1000));
        assert_eq!(distance(us(1000), 2 * TARGET), us(500));
        assert_eq!(distance(us(500), 2 * TARGET), us(250));
        assert_eq!(distance(us(500), TARGET / 2), us(1000));
        assert_eq!(distance(us(100), FULL), SHORTEST);
        // Nobody knows when in a long time it was filled.
        assert_eq!(distance(us(100_000), FULL), us(125));
    }
}
