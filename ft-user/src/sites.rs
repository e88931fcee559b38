//! The sites of this process as the directory tells them and as `enable` may switch them.
//!
//! Events name their site by the low half of its metadata's address. Two objects far apart can hold two
//! metadata with one such key: the first that is found keeps it, the other's sites are refused and
//! counted, so that no event is ever taken for another.

use crate::critical::Held;
use crate::directory::Directory;
use crate::intern::{Number, Table};
use crate::layout::{Meta, commit};
use crate::patch;
use crate::site::{self, SiteRef};

const MAX_METAS: usize = 4096;

/// Addresses of the metadata that are in the directory, one for each key.
static METAS: Table<MAX_METAS> = Table::new();

/// Numbers of sites, see [`crate::Status`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) all: usize,
    pub(crate) refused: usize,
    pub(crate) enabled: usize,
}

/// Describes all sites in a new directory.
pub(crate) fn write_all(directory: &Directory, held: &Held<'_>) -> Count {
    METAS.clear();
    for_each(directory, held, |_| ())
}

/// Calls `f` with each site that may be enabled, and counts them all afterwards. Those of objects that
/// were loaded since the last call are described in the directory first.
pub(crate) fn for_each(
    directory: &Directory,
    _held: &Held<'_>,
    mut f: impl FnMut(SiteRef),
) -> Count {
    let mut count = Count::default();
    // Metadata lie in the object of their sites. So when they are new, all their sites are.
    let mut new = [false; MAX_METAS];
    site::for_each(|site| {
        count.all += 1;
        let Some(number) = number(directory, site.meta, &mut new) else {
            count.refused += 1;
            return;
        };
        if new[number as usize - 1] {
            directory.site(key(site.meta), site.trigger);
        }
        f(site);
        count.enabled += is_on(site) as usize;
    });
    count
}

/// The number of the metadata in [`METAS`], unless another's events would be taken for theirs. Describes
/// them and marks them in `new` when they are.
fn number(directory: &Directory, meta: &'static Meta, new: &mut [bool; MAX_METAS]) -> Option<u32> {
    let address = core::ptr::from_ref(meta) as u64;
    let same = |found| commit::key(found) == key(meta);
    match METAS.number_of(key(meta).into(), address, same) {
        Number::Full => None,
        Number::New(number) => {
            directory.meta(key(meta), meta);
            new[number as usize - 1] = true;
            Some(number)
        }
        Number::Known(number) => (METAS.key(number) == address).then_some(number),
    }
}

fn key(meta: &'static Meta) -> u32 {
    commit::key(core::ptr::from_ref(meta) as u64)
}

fn is_on(site: SiteRef) -> bool {
    // SAFETY: the trigger is in the text of a loaded object. Another thread may switch it meanwhile,
    // which the volatile read sees before or after: one byte tells.
    let found = unsafe { (site.trigger as *const [u8; 4]).read_volatile() };
    patch::state(found) == Some(true)
}
