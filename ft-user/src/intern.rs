//! Numbers for names and source places, so that an event carries four bytes instead of a string.
//!
//! A number is the index of the string's address in a fixed [`Table`], plus one. The thread that
//! inserts an address writes what it stands for to the directory. Since the strings are `'static`, the
//! tables alone suffice to write a directory anew, as a forked child must.
//!
//! A full table gives 0, "unknown": the event is written, its place or name is not known.

use core::panic::Location;
use core::sync::atomic::Ordering::Relaxed;
use core::{slice, str};

use crate::atomic::AtomicU64;
use crate::directory::Directory;
use crate::process;

mod table;

use table::{MAX_PROBES, Number, Table};

impl<const N: usize> Table<N> {
    const fn new() -> Self {
        assert!(N.is_power_of_two() && N >= MAX_PROBES);
        Table { keys: [const { AtomicU64::new(0) }; N], used: AtomicU64::new(0) }
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
