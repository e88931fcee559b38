//! The sites of this process as the directory tells them and as `enable` may switch them.
//!
//! Events name their site by the low half of its metadata's address. Two objects far apart can hold two
//! metadata with one such key: the first that is found keeps it, the other's sites are refused and
//! counted, so that no event is ever taken for another.

use core::sync::atomic::{AtomicU64, Ordering::*};

use crate::critical::Held;
use crate::directory::Directory;
use crate::intern::{Number, Table};
use crate::layout::{Meta, OPCODE_ON, commit};
use crate::site::{self, SiteRef};

const MAX_METAS: usize = 4096;

/// Keys of the metadata that are in the directory.
static KEYS: Table<MAX_METAS> = Table::new();
/// The whole address of the metadata whose key has the number of the index, less one.
static METAS: [AtomicU64; MAX_METAS] = [const { AtomicU64::new(0) }; MAX_METAS];
/// Addresses of the triggers that are in the directory.
static TRIGGERS: Table<16384> = Table::new();

/// Numbers of sites, see [`crate::Status`].
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) all: usize,
    pub(crate) refused: usize,
    pub(crate) enabled: usize,
}

/// Describes all sites in a new directory.
pub(crate) fn write_all(directory: &Directory, held: &Held<'_>) {
    KEYS.clear();
    TRIGGERS.clear();
    for_each(directory, held, |_| ());
}

/// Calls `f` with each site that may be enabled. Those of objects that were loaded since the last call
/// are described in the directory first.
pub(crate) fn for_each(directory: &Directory, _held: &Held<'_>, mut f: impl FnMut(SiteRef)) {
    site::for_each(|site| {
        if accept(directory, site) {
            f(site);
        }
    });
}

/// Counts the sites.
pub(crate) fn count(directory: &Directory, held: &Held<'_>) -> Count {
    let mut count = Count::default();
    site::for_each(|_| count.all += 1);
    let mut accepted = 0;
    for_each(directory, held, |site| {
        accepted += 1;
        count.enabled += is_on(site) as usize;
    });
    count.refused = count.all.saturating_sub(accepted);
    count
}

fn accept(directory: &Directory, site: SiteRef) -> bool {
    let address = core::ptr::from_ref::<Meta>(site.meta) as u64;
    let key = commit::key(address);
    match KEYS.number(key.into()) {
        Number::Full => return false,
        // Whoever calls holds the process lock, so nobody is between these two stores.
        Number::New(number) => {
            METAS[number as usize - 1].store(address, Relaxed);
            directory.meta(key, site.meta);
        }
        Number::Known(number) => {
            if METAS[number as usize - 1].load(Relaxed) != address {
                return false;
            }
        }
    }
    match TRIGGERS.number(site.trigger as u64) {
        Number::Full => return false,
        Number::New(_) => directory.site(key, site.trigger),
        Number::Known(_) => {}
    }
    true
}

fn is_on(site: SiteRef) -> bool {
    // SAFETY: the trigger is in the text of a loaded object. Another thread may switch it meanwhile,
    // which the volatile read of one byte sees before or after.
    unsafe { (site.trigger as *const u8).read_volatile() == OPCODE_ON }
}
