//! A set of keys with a number each, which threads and signal handlers share: an open-addressing table of atomics.
//!
//! A look-up is one load when the first probe hits, and at most [`MAX_PROBES`]. Nothing is ever taken out.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::AtomicU64;

/// Slots that a look-up visits at most. At three quarters full, a probe sequence this long is rare.
///
/// Limit: the lock is called by its address, the place is empty; events and holds are still there. Not counted.
/// Shown by: `full_table_refuses_and_keeps_what_it_has`, `locks_whose_names_have_no_number_are_told_without`.
pub(crate) const MAX_PROBES: usize = 64;

/// Keys, each with a number from 1 to `N` (a power of two).
pub(crate) struct Table<const N: usize> {
    pub(crate) keys: [AtomicU64; N],
    /// Whether there may be a key at all: an empty table is not worth the page faults of a walk.
    pub(crate) used: AtomicU64,
}

/// Outcome of [`Table::number`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// The key was there.
    Known(u32),
    /// The key was inserted by this call.
    New(u32),
    /// No room.
    Full,
}

impl<const N: usize> Table<N> {
    /// The number of `key`, which is not 0. Wait-free.
    #[inline]
    pub(crate) fn number(&self, key: u64) -> Number {
        // Addresses of neighbours differ in their low bits; the multiplication spreads those over the
        // high ones (Knuth's multiplicative hash, 2^64 / golden ratio).
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - N.trailing_zeros());
        for probe in 0..MAX_PROBES {
            let index = (hash as usize + probe) & (N - 1);
            let slot = &self.keys[index];
            // What a key points to is immutable; whoever knows one finds it in a walk, too.
            // SYNC: key
            let mut found = slot.load(Acquire);
            if found == 0 {
                // Before the key: a handler may fork in between.
                self.used.store(1, Relaxed);
                // SYNC: key
                match slot.compare_exchange(0, key, Release, Acquire) {
                    Ok(_) => return Number::New(index as u32 + 1),
                    Err(other) => found = other,
                }
            }
            if found == key {
                return Number::Known(index as u32 + 1);
            }
        }
        Number::Full
    }

    /// All numbers and keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let keys: &[AtomicU64] = if self.used.load(Relaxed) != 0 { &self.keys } else { &[] };
        let keys = keys.iter().map(|key| key.load(Relaxed));
        (1..).zip(keys).filter(|&(_, key)| key != 0)
    }
}
