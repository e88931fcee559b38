//! Numbers for names and source places, so that an event carries four bytes instead of a string.
//!
//! A number is the index of the string's address in a fixed open-addressing table of atomics, plus
//! one. A look-up is one load when the first probe hits, and at most [`MAX_PROBES`]; the thread that
//! inserts an address writes what it stands for to the directory. Since the strings are `'static`, the
//! tables alone suffice to write a directory anew, as a forked child must.
//!
//! A full table gives 0, "unknown": the event is written, its place or name is not known.

use core::panic::Location;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use core::{slice, str};

use crate::directory::Directory;
use crate::process;

/// Slots that a look-up visits at most. At three quarters full, a probe sequence this long is rare.
const MAX_PROBES: usize = 64;

/// Set of keys, each with a number from 1 to `N` (a power of two).
pub(crate) struct Table<const N: usize> {
    keys: [AtomicU64; N],
    /// Whether there may be a key at all: an empty table is not worth the page faults of a walk.
    used: AtomicBool,
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
    pub(crate) const fn new() -> Self {
        assert!(N.is_power_of_two() && N >= MAX_PROBES);
        Table { keys: [const { AtomicU64::new(0) }; N], used: AtomicBool::new(false) }
    }

    /// The number of `key`, which is not 0. Wait-free.
    #[inline]
    pub(crate) fn number(&self, key: u64) -> Number {
        // Addresses of neighbours differ in their low bits; the multiplication spreads those over the
        // high ones (Knuth's multiplicative hash, 2^64 / golden ratio).
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - N.trailing_zeros());
        for probe in 0..MAX_PROBES {
            let index = (hash as usize + probe) & (N - 1);
            let slot = &self.keys[index];
            // Relaxed: the key is all there is, what it points to is immutable.
            let mut found = slot.load(Relaxed);
            if found == 0 {
                match slot.compare_exchange(0, key, Relaxed, Relaxed) {
                    Ok(_) => {
                        self.used.store(true, Relaxed);
                        return Number::New(index as u32 + 1);
                    }
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
        let keys: &[AtomicU64] = if self.used.load(Relaxed) { &self.keys } else { &[] };
        let keys = keys.iter().map(|key| key.load(Relaxed));
        (1..).zip(keys).filter(|&(_, key)| key != 0)
    }
}

static PLACES: Table<4096> = Table::new();
static NAMES: Table<1024> = Table::new();

/// Number of a source place.
#[inline]
pub(crate) fn intern_place(place: &'static Location<'static>) -> u32 {
    match PLACES.number(core::ptr::from_ref(place) as u64) {
        Number::Known(id) => id,
        Number::New(id) => {
            write(|directory| directory.place(id, place));
            id
        }
        Number::Full => 0,
    }
}

/// Whether this is the number of the place.
#[inline]
pub(crate) fn is_place(number: u32, place: &'static Location<'static>) -> bool {
    let key = PLACES.keys.get((number as usize).wrapping_sub(1));
    key.is_some_and(|key| key.load(Relaxed) == core::ptr::from_ref(place) as u64)
}

/// Number of a name. Two copies of one text may have two numbers.
#[inline]
pub(crate) fn intern_name(name: &'static str) -> u32 {
    match NAMES.number(name_key(name)) {
        Number::Known(id) => id,
        Number::New(id) => {
            write(|directory| directory.name(id, name));
            id
        }
        Number::Full => 0,
    }
}

/// Address and length in one word: user addresses of x86-64 have 47 bits (Intel SDM 1, 3.3.7.1), and the
/// directory takes less than 2^16 bytes of a name.
fn name_key(name: &'static str) -> u64 {
    (name.len().min(0xffff) as u64) << 48 | name.as_ptr() as u64 & 0xffff_ffff_ffff
}

#[cold]
fn write(entry: impl FnOnce(Directory)) {
    if let Some(memfd) = process::memfd() {
        entry(memfd.directory());
    }
}

/// Writes all that is interned to a new directory.
pub(crate) fn write_all(directory: &Directory) {
    for (id, key) in PLACES.iter() {
        // SAFETY: the keys of this table are addresses of static places.
        directory.place(id, unsafe { &*(key as *const Location<'static>) });
    }
    for (id, key) in NAMES.iter() {
        let (address, bytes) = (key & 0xffff_ffff_ffff, key >> 48);
        // SAFETY: the keys of this table come from static strings. A cut one may end inside of a
        // character, so it is checked again.
        let bytes = unsafe { slice::from_raw_parts(address as *const u8, bytes as usize) };
        directory.name(id, str::from_utf8(bytes).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable_and_distinct() {
        static TABLE: Table<256> = Table::new();
        let new: Vec<_> = (1..100).map(|key| TABLE.number(key * 24)).collect();
        for (key, number) in (1..100).zip(new) {
            let Number::New(id) = number else { panic!("{number:?}") };
            assert_eq!(TABLE.number(key * 24), Number::Known(id));
            assert!(TABLE.iter().any(|entry| entry == (id, key * 24)));
        }
        assert_eq!(TABLE.iter().count(), 99);
    }

    #[test]
    fn full_table_refuses_and_keeps_what_it_has() {
        static TABLE: Table<64> = Table::new();
        for key in 1..=64 {
            assert!(matches!(TABLE.number(key), Number::New(1..=64)));
        }
        assert_eq!(TABLE.number(65), Number::Full);
        assert!((1..=64).all(|key| matches!(TABLE.number(key), Number::Known(_))));
    }

    #[test]
    fn threads_agree() {
        static TABLE: Table<1024> = Table::new();
        let number = |key| match TABLE.number(key) {
            Number::New(id) | Number::Known(id) => id,
            Number::Full => 0,
        };
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(move || (1..500).map(number).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(!all[0].contains(&0));
    }

    #[test]
    fn prefix_of_a_name_is_another_name() {
        let long = "accounts";
        assert_ne!(name_key(long), name_key(&long[..3]));
        assert_eq!(name_key(long), name_key(long));
    }
}
