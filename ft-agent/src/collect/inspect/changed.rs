//! Sites that something else has changed: a probe of the kernel or a debugger has put a breakpoint on one that is on, or its code
//! was written over.
//!
//! The kernel goes on behind its breakpoint as the instruction of the file would, which is that of a site that is off. So the events
//! of such a site are not written, and no count tells how many: what a look finds is a loss of unknown number from the look before
//! on. What is put on a site and taken away again between two looks is not seen.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ft_user::layout::{SLED_BYTES, Sled, SledKind, SledState, TRIGGER_OFF};
use ft_user::patch::{state, without_breakpoint};

use crate::clock::monotonic_ns;
use crate::collect::outside::Site;

/// Changed sites that one look names; further ones are one more.
///
/// Limit: further ones are one row with their number; no figure depends on it, as all mark the process alike.
/// Shown by: `many_changed_sites_are_bounded_and_counted`.
const MOST_NAMED: usize = 8;

/// Bytes of memory that are read at once.
const WINDOW_BYTES: usize = 4096;

/// The sites of a process, as they were seen last.
#[derive(Debug)]
pub(super) struct Watched {
    sites: Vec<WatchedSite>,
    /// When they were looked at, CLOCK_MONOTONIC ns.
    looked_ns: i64,
}

#[derive(Debug)]
struct WatchedSite {
    address: u64,
    sled: Option<Sled>,
    name: Box<str>,
    was_on: bool,
}

/// What a look has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The look before, CLOCK_MONOTONIC ns.
    pub from_ns: i64,
    /// This look.
    pub to_ns: i64,
    /// Sites, with what a reader should know of each.
    pub sites: Vec<ChangedSite>,
    /// Further ones.
    pub others: usize,
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSite {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// A breakpoint stands on it; else its code is another one.
    pub is_breakpoint: bool,
}

/// How a site stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    On,
    Off,
    /// It is on, and a breakpoint stands on it.
    Hidden,
    /// These are not the bytes of a site.
    Other,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched { sites: Vec::new(), looked_ns: monotonic_ns() }
    }
}

impl Watched {
    /// These are its sites now, by address.
    pub(super) fn renew(&mut self, sites: &[Site]) {
        let before = std::mem::take(&mut self.sites);
        let was_on = |address| match before.binary_search_by_key(&address, |site| site.address) {
            Ok(at) => before[at].was_on,
            Err(_) => false,
        };
        self.sites = sites
            .iter()
            .map(|site| WatchedSite {
                address: site.address,
                sled: site.sled,
                name: site.name.as_str().into(),
                was_on: was_on(site.address),
            })
            .collect();
    }

    /// Addresses of those that are triggers.
    pub(super) fn triggers(&self) -> impl Iterator<Item = u64> {
        self.sites.iter().filter(|site| site.sled.is_none()).map(|site| site.address)
    }

    /// Looks at the bytes of each.
    pub(super) fn look(&mut self, memory: &File) -> Option<Changed> {
        self.look_with(monotonic_ns(), &|at, bytes| memory.read_at(bytes, at).unwrap_or(0))
    }

    /// The same; `read` fills a buffer from an address on, and returns how far.
    fn look_with(
        &mut self,
        now_ns: i64,
        read: &dyn Fn(u64, &mut [u8]) -> usize,
    ) -> Option<Changed> {
        let from_ns = std::mem::replace(&mut self.looked_ns, now_ns);
        let mut changed = Changed { from_ns, to_ns: now_ns, sites: Vec::new(), others: 0 };
        let (mut at, mut window, mut known) = (0, [0; WINDOW_BYTES], 0);
        for site in &mut self.sites {
            let bytes = site.bytes();
            let end = site.address.saturating_add(bytes as u64);
            if site.address < at || end > at.saturating_add(known as u64) {
                (at, known) = (site.address, read(site.address, &mut window));
            }
            // It may be unmapped by now.
            let Some(found) = window[..known].get((site.address - at) as usize..) else { continue };
            let Some(standing) = site.standing(found) else { continue };
            let is_changed = match standing {
                Standing::On | Standing::Off => false,
                Standing::Hidden => true,
                Standing::Other => site.was_on,
            };
            if is_changed && changed.sites.len() < MOST_NAMED {
                changed.sites.push(ChangedSite {
                    name: site.name.to_string(),
                    address: site.address,
                    is_breakpoint: standing == Standing::Hidden,
                });
            } else {
                changed.others += usize::from(is_changed);
            }
            if !is_changed {
                site.was_on = standing == Standing::On;
            }
        }
        (!changed.sites.is_empty()).then_some(changed)
    }
}

impl WatchedSite {
    fn bytes(&self) -> usize {
        if self.sled.is_some() { SLED_BYTES as usize } else { size_of_val(&TRIGGER_OFF) }
    }

    /// How it stands, by its bytes; `None` where they are too few.
    fn standing(&self, found: &[u8]) -> Option<Standing> {
        let Some(sled) = self.sled else {
            let found = *found.first_chunk()?;
            let first = TRIGGER_OFF.to_le_bytes()[0];
            return Some(standing(found, without_breakpoint(found, first), state));
        };
        let found = *found.first_chunk()?;
        // Of a return the first byte is the state.
        let beneath = match sled.kind {
            SledKind::Return => found,
            _ => without_breakpoint(found, sled.first_byte()),
        };
        let is_on = |bytes| sled.state(bytes).map(|state| state == SledState::On);
        Some(standing(found, beneath, is_on))
    }
}

/// How these bytes stand, which are `beneath` if a breakpoint is left out; `is_on` says what a site's are.
fn standing<B: Copy>(found: B, beneath: B, is_on: impl Fn(B) -> Option<bool>) -> Standing {
    match (is_on(found), is_on(beneath)) {
        (Some(true), _) => Standing::On,
        (None, Some(true)) => Standing::Hidden,
        (Some(false), _) | (None, Some(false)) => Standing::Off,
        (None, None) => Standing::Other,
    }
}

#[cfg(test)]
mod tests {
    use ft_user::layout::{SiteKind, TRIGGER_ON};

    use super::*;

    const BASE: u64 = 0x7000;

    fn site(number: u64, sled: Option<SledKind>) -> Site {
        let address = BASE + 16 * number;
        Site {
            address,
            meta: 0,
            kind: SiteKind::Event,
            line: 1,
            name: format!("a.site{number}"),
            file: String::new(),
            format: String::new(),
            args: Vec::new(),
            sled: sled.map(|kind| Sled { address, function: address, kind }),
        }
    }

    fn named(changed: Option<Changed>) -> Vec<(String, bool)> {
        let sites = changed.into_iter().flat_map(|changed| changed.sites);
        sites.map(|site| (site.name, site.is_breakpoint)).collect()
    }

    /// What looks at these memories find, one after the other, a second apart.
    fn looks(sites: &[Site], memories: &[&[&[u8]]]) -> Vec<Vec<(String, bool)>> {
        let mut watched = Watched { sites: Vec::new(), looked_ns: 0 };
        watched.renew(sites);
        let look = |(second, memory): (usize, &&[&[u8]])| {
            let read = |at: u64, to: &mut [u8]| {
                let image: Vec<u8> = memory
                    .iter()
                    .flat_map(|bytes| [bytes, &[0; 16][bytes.len()..]].concat())
                    .collect();
                let from = &image[(at - BASE) as usize..];
                to[..from.len()].copy_from_slice(from);
                from.len()
            };
            named(watched.look_with(second as i64, &read))
        };
        memories.iter().enumerate().map(look).collect()
    }

    const ON: [u8; 4] = TRIGGER_ON.to_le_bytes();
    const OFF: [u8; 4] = TRIGGER_OFF.to_le_bytes();

    fn under(mut bytes: [u8; 4]) -> [u8; 4] {
        bytes[0] = 0xcc;
        bytes
    }

    #[test]
    fn a_breakpoint_on_a_site_that_is_on_hides_events() {
        let (sites, hidden) = ([site(0, None), site(1, None)], under(ON));
        let found =
            looks(&sites, &[&[&ON, &OFF], &[&hidden, &OFF], &[&hidden, &under(OFF)], &[&ON, &OFF]]);
        let first = vec![("a.site0".to_owned(), true)];
        assert_eq!(found, [vec![], first.clone(), first, vec![]]);
    }

    #[test]
    fn other_code_is_told_where_the_site_was_on() {
        let sites = [site(0, None), site(1, None)];
        let jump = [0xe9, 1, 2, 3];
        let found = looks(&sites, &[&[&ON, &OFF], &[&jump, &jump], &[&jump, &jump]]);
        let first = vec![("a.site0".to_owned(), false)];
        assert_eq!(found, [vec![], first.clone(), first]);
    }

    #[test]
    fn a_sled_is_known_by_its_own_bytes() {
        let begin = site(0, Some(SledKind::Begin));
        let mut on = begin.sled.and_then(|sled| sled.off(BASE + 64)).unwrap();
        let (state, byte) = begin.sled.map(|sled| sled.switch(true)).unwrap();
        on[state as usize] = byte;
        let mut hidden = on;
        hidden[0] = 0xcc;
        let found = looks(&[begin], &[&[&on], &[&hidden]]);
        assert_eq!(found, [vec![], vec![("a.site0".to_owned(), true)]]);
    }

    #[test]
    fn many_changed_sites_are_bounded_and_counted() {
        let sites: Vec<Site> = (0..100).map(|number| site(number, None)).collect();
        let mut watched = Watched { sites: Vec::new(), looked_ns: 0 };
        watched.renew(&sites);
        let read = |at: u64, to: &mut [u8]| {
            let bytes = (BASE + 1600 - at) as usize;
            to[..bytes].chunks_mut(16).for_each(|site| site[..4].copy_from_slice(&under(ON)));
            bytes
        };
        let changed = watched.look_with(5, &read).unwrap();
        assert_eq!((changed.sites.len(), changed.others), (MOST_NAMED, 100 - MOST_NAMED));
        assert_eq!((changed.from_ns, changed.to_ns), (0, 5));
        // Nothing can be read any more.
        assert_eq!(watched.look_with(6, &|_, _| 0), None);
    }
}
