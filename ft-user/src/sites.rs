//! The sites of this process as the directory tells them and as `enable` may switch them.
//!
//! Events name their site by the low half of its metadata's address. Two objects far apart can hold two
//! metadata with one such key: the first that is found keeps it, the other's sites are refused and
//! counted, so that no event is ever taken for another.

use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};

use crate::critical::Held;
use crate::described::DESCRIBED;
use crate::directory::Directory;
use crate::layout::{SiteMeta, commit};
use crate::patch;
use crate::site::{self, SiteRef};

/// The metadata that are in the directory.
static METAS: Metas = Metas::new();

/// Numbers of sites, see [`crate::Status`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) all: usize,
    pub(crate) refused: usize,
    pub(crate) enabled: usize,
}

/// Describes all sites in a new directory.
pub(crate) fn write_all(directory: &Directory, held: &Held<'_>) -> Count {
    METAS.clear(held);
    DESCRIBED.clear(held);
    #[cfg(all(feature = "dynamic", not(ft_off)))]
    crate::dynamic::describe_all(directory, held);
    for_each(directory, held, |_, _| ())
}

/// Calls `f` with each site that may be enabled, and counts them all afterwards. Those of objects that
/// were loaded since the last call are described in the directory first, and `f` is told that they are new.
pub(crate) fn for_each(
    directory: &Directory,
    held: &Held<'_>,
    mut f: impl FnMut(SiteRef, bool),
) -> Count {
    let mut count = Count::default();
    // Metadata lie in the object of their sites. So when they are new, all their sites are.
    let known = METAS.len();
    let mut described = known;
    site::for_each(|site| {
        count.all += 1;
        let Some(number) = METAS.number(address(site.meta), held) else {
            count.refused += 1;
            return;
        };
        if number >= known {
            let key = commit::key(address(site.meta) as u64);
            if number == described {
                DESCRIBED.add(directory.meta(key, site.meta), held);
                described += 1;
            }
            DESCRIBED.add(directory.site(key, site.trigger), held);
        }
        f(site, number >= known);
        count.enabled += is_on(site) as usize;
    });
    count
}

/// Has the metadata at `address`, which are made at run time, known as those of the other sites are; `None` if their events
/// would be taken for those of others, or there is no room.
#[cfg(all(feature = "dynamic", not(ft_off)))]
pub(crate) fn number(address: usize, held: &Held<'_>) -> Option<usize> {
    METAS.number(address, held)
}

/// Whether there is no room for any more.
#[cfg(all(feature = "dynamic", not(ft_off)))]
pub(crate) fn are_full() -> bool {
    METAS.len() >= MAX_METAS
}

fn address(meta: &'static SiteMeta) -> usize {
    core::ptr::from_ref(meta) as usize
}

fn is_on(site: SiteRef) -> bool {
    // SAFETY: the trigger is in the text of a loaded object. Another thread may switch it meanwhile,
    // which the volatile read sees before or after: one byte tells.
    let found = unsafe { (site.trigger as *const [u8; 4]).read_volatile() };
    patch::state(found) == Some(true)
}

/// Most entries of a directory of sites.
///
/// Limit: as `DIR_BYTES` of `layout.rs`.
pub(crate) const MAX_METAS: usize = 4096;

/// Metadata that are looked at when one is searched, at most; then there is no room for it.
///
/// Limit: as `DIR_BYTES` of `layout.rs`.
const MAX_PROBES: usize = 64;

/// Addresses of metadata, one for each key, numbered from 0 in the order of their coming.
///
/// A hash table of small numbers beside a dense array of addresses: new pages of memory cost more at the start
/// than anything else, and so 500 sites touch three of them, where a hash table of addresses takes eight.
/// Atomics for a static's sake: whoever reads or writes holds the process lock.
struct Metas {
    /// Numbers plus one, 0 where nothing is. Open addressing.
    index: [AtomicU16; MAX_METAS],
    addresses: [AtomicUsize; MAX_METAS],
    len: AtomicUsize,
}

impl Metas {
    const fn new() -> Metas {
        Metas {
            index: [const { AtomicU16::new(0) }; MAX_METAS],
            addresses: [const { AtomicUsize::new(0) }; MAX_METAS],
            len: AtomicUsize::new(0),
        }
    }

    fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// The number of the metadata at `address`, the next one if they are new. `None` if their events would
    /// be taken for those of others, or there is no room.
    fn number(&self, address: usize, _held: &Held<'_>) -> Option<usize> {
        let key = commit::key(address as u64);
        // Knuth's multiplicative hash, 2^32 / golden ratio.
        let hash = key.wrapping_mul(0x9e37_79b9) >> (32 - MAX_METAS.trailing_zeros());
        for probe in 0..MAX_PROBES {
            let slot = &self.index[(hash as usize + probe) % MAX_METAS];
            let Some(number) = slot.load(Relaxed).checked_sub(1) else {
                let number = self.len();
                self.addresses.get(number)?.store(address, Relaxed);
                slot.store(number as u16 + 1, Relaxed);
                self.len.store(number + 1, Relaxed);
                return Some(number);
            };
            let found = self.addresses[number as usize].load(Relaxed);
            if commit::key(found as u64) == key {
                return (found == address).then_some(number.into());
            }
        }
        None
    }

    fn clear(&self, _held: &Held<'_>) {
        self.index.iter().for_each(|slot| slot.store(0, Relaxed));
        self.len.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critical::Lock;

    /// Addresses of metadata that lie one behind the other.
    fn address(n: usize) -> usize {
        0x5555_0000_0000 + n * size_of::<SiteMeta>()
    }

    #[test]
    fn metadata_are_numbered_as_they_come_and_found_again() {
        static TABLE: Metas = Metas::new();
        let (lock, count) = (Lock::new(), 1000);
        for _ in 0..2 {
            let numbers = (0..count).map(|n| TABLE.number(address(n), &lock.hold()));
            assert!(numbers.eq((0..count).map(Some)));
        }
        TABLE.clear(&lock.hold());
        assert_eq!(TABLE.number(address(7), &lock.hold()), Some(0));
    }

    #[test]
    fn the_later_of_two_with_one_key_is_refused() {
        static TABLE: Metas = Metas::new();
        let lock = Lock::new();
        assert_eq!(TABLE.number(address(0), &lock.hold()), Some(0));
        assert_eq!(TABLE.number(address(0) + (1 << 32), &lock.hold()), None);
        assert_eq!(TABLE.number(address(0), &lock.hold()), Some(0));
    }

    #[test]
    fn a_full_table_refuses_and_keeps_what_it_has() {
        static TABLE: Metas = Metas::new();
        let lock = Lock::new();
        let taken =
            (0..2 * MAX_METAS).filter(|&n| TABLE.number(address(n), &lock.hold()).is_some());
        let taken: Vec<usize> = taken.collect();
        assert!((MAX_METAS / 2..=MAX_METAS).contains(&taken.len()), "{}", taken.len());
        let again = taken.iter().map(|&n| TABLE.number(address(n), &lock.hold()));
        assert!(again.eq((0..taken.len()).map(Some)));
    }
}
