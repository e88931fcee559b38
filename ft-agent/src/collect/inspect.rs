//! Looks at a process from outside: what it has mapped, which threads it has, which sites its libraries brought.
//!
//! All of this can take as long as the process likes, so it is done aside (`control/looks.rs`), not by the
//! collecting thread; only before a recording begins is it waited for. What was found under the number of a
//! process is its own only if it still has that number afterwards ([`Identity::has_number`]): whoever uses
//! it asks that.
//!
//! Mappings are reported when they have changed. What a process loads and unloads between two looks is not seen.
//! A library that is loaded with `dlopen` brings sites that nobody has declared: the process looks for sites
//! only when it switches some itself. So they are looked for when the list of mapped files has changed. Where
//! the process may not be traced, its own declarations must do.
//!
//! At each look the bytes of all sites are looked at, too: what something else has put on a site that is on (`changed.rs`) is a
//! loss of unknown number.
//!
//! A library can also bring a copy of the tracer, whose memfd is one more mapped file. In a process that has
//! registered it registers, too; one that was attached to may not know of the agent, so its memfds are looked for.
//!
//! [`Identity::has_number`]: super::discover::Identity::has_number

mod changed;

use std::cell::LazyCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Deref;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ft_user::glob;
use ft_user::patch::{PatchError, Text};

use super::discover::Identity;
use crate::clock::monotonic_ns;

use super::outside::{self, Site};
use super::remote::Remote;
use super::{discover, maps, rates};
use ft_trace::build_id;
use ft_trace::foreign_file::{FileKey, ForeignFile};
use ft_trace::mounts::Mounts;
use ft_trace::reach::Loading;
use ft_trace::spool::frame::Thread;
use ft_trace::spool::mapping::{Mapping, Mappings};

use changed::Watched;
pub use changed::{Changed, ChangedSite};

/// Files whose build ids are kept; then the cache starts anew.
///
/// Limit: as `MAX_MAPS_BYTES` of `proof.rs`.
const MAX_FILES: usize = 4096;

/// Threads that are named when a process is found; the others when they claim a ring.
///
/// Limit: the others have their name only from their first event or switch on.
/// Shown by: `of_very_many_threads_the_first_are_named`; no figure, since who does anything has its name from that.
const MAX_THREADS: usize = 4096;

/// What one look has found.
#[derive(Debug, Default)]
pub struct Found {
    /// Program text, if that has changed.
    pub mappings: Option<Mappings>,
    /// Threads, when it was asked for them.
    pub threads: Vec<Thread>,
    /// Inodes of the memfds of tracers that are mapped, when it was asked for them and all mappings could be read.
    pub tracers: Option<Vec<u64>>,
    /// All sites, if the objects have changed.
    pub sites: Vec<Site>,
    /// Memfds of a process that was attached to, if its objects have changed: those that are recorded, and others.
    pub memfds: Vec<(Identity, File)>,
    /// Why these could not be opened.
    pub unopened: Option<io::Error>,
    /// Why sites could not be switched on.
    pub refused: Vec<PatchError>,
    /// Sites that something else has changed, if there are any.
    pub changed: Option<Changed>,
    /// The program is gone: the process has executed another one. Nothing else was looked for.
    pub left: bool,
}

/// A process, and what is known of it from looks before.
#[derive(Debug)]
pub struct Inspected {
    pid: i32,
    user: u32,
    /// It was attached to: nothing in it need know of the agent.
    is_attached: bool,
    /// Inode of the memfd that its program has mapped for good; 0 while it is not known.
    memfd: AtomicU64,
    /// Somebody is at it.
    busy: AtomicBool,
    /// What looks at it have cost.
    cost: AtomicU32,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// As they were reported last, without what their files say.
    mappings: Vec<Mapping>,
    /// Where the starts of files were mapped.
    objects: Vec<u64>,
    /// Its sites, as they were seen last.
    watched: Watched,
    /// What was switched on from outside.
    remote: Option<Remote>,
    /// It was said that some of its sleds cannot be switched.
    is_told_of_sleds: bool,
}

impl Inspected {
    /// The process with this number, of this user, that has registered.
    pub fn new(pid: i32, user: u32) -> Inspected {
        let (memfd, busy) = (AtomicU64::new(0), AtomicBool::new(false));
        let (cost, known) = (AtomicU32::new(0), Mutex::default());
        Inspected { pid, user, is_attached: false, memfd, busy, cost, known }
    }

    /// The same, that was attached to.
    pub fn attached(pid: i32, user: u32) -> Inspected {
        Inspected { is_attached: true, ..Inspected::new(pid, user) }
    }

    /// The program has this memfd mapped, until the process executes another one.
    pub fn holds(&self, memfd: Option<u64>) {
        self.memfd.store(memfd.unwrap_or(0), Relaxed);
    }

    /// Whether the process has executed another program since, by its mappings.
    fn has_left(&self, maps: &str) -> bool {
        let memfd = self.memfd.load(Relaxed);
        memfd != 0 && tracers(maps).is_some_and(|mut mapped| !mapped.any(|inode| inode == memfd))
    }

    /// Its user.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Says that somebody goes to look at it. False when somebody is at it already.
    pub fn begin(&self) -> bool {
        !self.busy.swap(true, AcqRel)
    }

    /// What was begun is over.
    pub fn end(&self) {
        self.busy.store(false, Release);
    }

    /// What looks at it have cost since this was asked last.
    pub fn take_cost(&self) -> u32 {
        self.cost.swap(0, Relaxed)
    }

    /// Mappings, threads, and memfds of tracers.
    pub fn introduce(&self, files: &BuildIds) -> Found {
        let text = maps::read(self.pid).unwrap_or_default();
        let mappings = self.mappings(&mut self.known(), &text, files, &self.mounts());
        let threads = discover::threads(self.pid).into_iter();
        Found {
            mappings,
            threads: self.named(threads, |tid| discover::comm(self.pid, tid)),
            tracers: tracers(&text).map(Iterator::collect),
            ..Found::default()
        }
    }

    /// The first of its threads, with their names.
    fn named(
        &self,
        threads: impl Iterator<Item = i32>,
        name: impl Fn(i32) -> Option<String>,
    ) -> Vec<Thread> {
        let thread = |tid| {
            let name = name(tid)?;
            Some(Thread { tid, pid: self.pid, name, ts: monotonic_ns() })
        };
        threads.take(MAX_THREADS).filter_map(thread).collect()
    }

    /// Its mappings, if they have changed, and if they are the process's whose number it was before they were read, and that
    /// `is_it`.
    pub fn locate(&self, files: &BuildIds, is_it: impl Fn(&Identity) -> bool) -> Option<Mappings> {
        let identity = Identity::of(self.pid).ok().filter(is_it)?;
        let before = auxv(self.pid);
        let text = maps::read(self.pid).ok()?;
        let mut mappings = self.mappings(&mut self.known(), &text, files, &self.mounts())?;
        // It has addresses of the program, so one that was executed meanwhile has another.
        mappings.loading = Loading::of(&before).filter(|_| before == auxv(self.pid));
        identity.has_number().then_some(mappings)
    }

    /// What of its mappings has changed, and the sites if its objects have.
    pub fn look(&self, files: &BuildIds) -> Found {
        let Ok(text) = maps::read(self.pid) else { return Found::default() };
        if self.has_left(&text) {
            return Found { left: true, ..Found::default() };
        }
        let (mut known, mounts) = (self.known(), self.mounts());
        let mappings = self.mappings(&mut known, &text, files, &mounts);
        let objects = outside::objects(&text);
        let mut found = Found { mappings, ..Found::default() };
        if known.objects != objects
            && let Ok(sites) = outside::sites(self.pid, &mounts)
        {
            known.watched.renew(&sites);
            (known.objects, found.sites) = (objects, sites);
            if self.is_attached {
                self.find_memfds(&mut found);
            }
        }
        if let Ok(memory) = File::open(format!("/proc/{}/mem", self.pid)) {
            found.changed = known.watched.look(&memory);
        }
        found
    }

    /// The same; and once, of a process that switches its sites itself, why it cannot switch a sled that is asked for.
    pub fn look_for(&self, files: &BuildIds, globs: &[String]) -> Found {
        let mut found = self.look(files);
        let mut known = self.known();
        if !self.is_attached && !known.is_told_of_sleds {
            let unprepared = self.unprepared(&found.sites, globs);
            known.is_told_of_sleds = unprepared.is_some();
            found.refused.extend(unprepared);
        }
        found
    }

    fn unprepared(&self, sites: &[Site], globs: &[String]) -> Option<PatchError> {
        let is_wanted = |site: &&Site| globs.iter().any(|g| glob::matches(g, &site.name));
        let sleds = sites.iter().filter(|site| site.sled.is_some()).filter(is_wanted);
        let mut sleds = sleds.filter_map(|site| site.sled).peekable();
        sleds.peek()?;
        let text = Text::of(self.pid).ok()?;
        sleds
            .filter_map(|sled| text.sled_state(sled).err())
            .find(|why| matches!(why, PatchError::Executed { .. } | PatchError::Unprepared { .. }))
    }

    /// All that are there. Those that are recorded the collecting thread tells from the others.
    fn find_memfds(&self, found: &mut Found) {
        match discover::memfds(self.pid) {
            Ok(files) => {
                let identified = |file| Some((Identity::of(self.pid).ok()?, file));
                found.memfds = files.into_iter().filter_map(identified).collect();
            }
            Err(error) => found.unopened = Some(error),
        }
    }

    /// What was found came too late: it will be found again.
    pub fn forget(&self) {
        self.known().mappings.clear();
    }

    /// The next look is at all sites and memfds, whatever has changed.
    pub fn look_again(&self) {
        self.known().objects.clear();
    }

    /// Switches on from outside what of `triggers` matches, until [`Inspected::look_last`].
    pub fn enable(&self, triggers: &[(String, u64)], globs: &[String]) -> Found {
        let mut known = self.known();
        let opened = match known.remote.take() {
            Some(remote) => Ok(remote),
            None => Remote::open(self.pid),
        };
        let refused = match opened {
            Ok(mut remote) => {
                let outcome = remote.enable_found(triggers, globs);
                known.remote = Some(remote);
                outcome.refused
            }
            Err(reason) => vec![reason],
        };
        // Of a program that is gone nothing can be switched, and nothing is missed.
        let is_gone = || maps::read(self.pid).is_ok_and(|text| self.has_left(&text));
        if !refused.is_empty() && is_gone() {
            return Found { left: true, ..Found::default() };
        }
        Found { refused, ..Found::default() }
    }

    /// The last look of [`Inspected::look_for`], behind which all sites are off that are on for an agent: those that
    /// [`Inspected::enable`] has switched on, that the process has when it registered, and that an agent has left which was killed.
    pub fn look_last(&self, files: &BuildIds, globs: &[String]) -> Found {
        let opened = self.known().remote.take().or_else(|| Remote::open(self.pid).ok());
        // First: a site that is off misses nothing.
        let found = self.look_for(files, globs);
        if let Some(mut remote) = opened {
            match found.left {
                true => remote.leave(),
                false => remote.adopt(self.known().watched.triggers()),
            }
        }
        found
    }

    /// It is not recorded any more: what is switched on stays so, and dies with it.
    pub fn let_go(&self) {
        // Who is at it has its own hold, and drops it aside.
        if let Ok(mut known) = self.known.try_lock()
            && let Some(remote) = known.remote.take()
        {
            remote.leave();
        }
    }

    /// What is mounted for it, read when it is needed.
    fn mounts(&self) -> LazyCell<Mounts, impl FnOnce() -> Mounts> {
        LazyCell::new(|| {
            let mounts = Mounts::of(self.pid);
            self.cost.fetch_add(rates::of_mounts(mounts.bytes()), Relaxed);
            mounts
        })
    }

    fn mappings(
        &self,
        known: &mut Known,
        text: &str,
        files: &BuildIds,
        mounts: &impl Deref<Target = Mounts>,
    ) -> Option<Mappings> {
        let mappings: Vec<_> = maps::parse(text).collect();
        let are_new = mappings != known.mappings;
        self.cost.fetch_add(rates::cost(mappings.len(), are_new), Relaxed);
        if mappings.is_empty() || !are_new {
            return None;
        }
        known.mappings.clone_from(&mappings);
        let mut told = mappings;
        told.iter_mut().for_each(|mapping| files.tell(self.pid, mapping, mounts));
        let (pid, user) = (self.pid, Some(self.user));
        let start_time = discover::start_time_of(pid);
        let (ts, has_too_many_mounts) = (monotonic_ns(), mounts.are_too_many());
        let loading = None;
        Some(Mappings { pid, ts, user, start_time, has_too_many_mounts, loading, mappings: told })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the kernel has told the program that the process executes (getauxval(3)); empty when it is gone, or may not be looked at.
fn auxv(pid: i32) -> Vec<u8> {
    /// It has some twenty pairs of words.
    const MOST: u64 = 4096;
    let mut auxv = Vec::new();
    let file = File::open(format!("/proc/{pid}/auxv"));
    // What was read before an error is compared, too.
    let _ = file.map(|file| file.take(MOST).read_to_end(&mut auxv));
    auxv
}

/// The inodes of all memfds of tracers that these mappings show; `None` where they are none, or not all.
fn tracers(maps: &str) -> Option<impl Iterator<Item = u64>> {
    // The end of a very long list is not there.
    let is_whole = (maps.len() as u64) < maps::MAX_MAPS_BYTES && !maps.is_empty();
    is_whole.then(|| discover::tracers(maps))
}

/// Build id, and address of the first byte, by file, and by the offset and the bytes of a mapping, on which the address depends.
type OfFiles = HashMap<(FileKey, u64, u64), (String, Option<u64>)>;

/// What files said that were read, for all processes.
#[derive(Debug, Default)]
pub struct BuildIds(Mutex<OfFiles>);

impl BuildIds {
    /// Tells the mapping what its file says; nothing when that cannot be read.
    fn tell(&self, pid: i32, mapping: &mut Mapping, mounts: &Mounts) {
        let Some(file) = ForeignFile::mapped(pid, mapping, mounts) else { return };
        mapping.file = file.facts().map(|facts| facts.key);
        let bytes = mapping.end.saturating_sub(mapping.start);
        let key = mapping.file.map(|key| (key, mapping.offset, bytes));
        let known = key.and_then(|key| self.known().get(&key).cloned());
        let said = known.unwrap_or_else(|| {
            let said = build_id::of_mapped(&file, mapping);
            let mut known = self.known();
            if known.len() >= MAX_FILES {
                known.clear();
            }
            known.extend(key.map(|key| (key, said.clone())));
            said
        });
        (mapping.build_id, mapping.address) = said;
    }

    fn known(&self) -> MutexGuard<'_, OfFiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
