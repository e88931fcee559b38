//! The directory of a process: its sites and their triggers.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use ft_user::directory::{self, Entry};
use ft_user::layout::DIR_BYTES;

use super::{Sink, Source};
use crate::clock::read_tsc;
use crate::collect::{late, outside};
use crate::spool::WriteError;
use crate::spool::frame::{Directory, Frame, Loss};

/// Sites that are declared in one frame: at most 28 KiB each, by the limits of [`directory`].
const LATE_SITES: usize = 1024;

impl Source {
    /// Declares sites that were found from outside and that the process has not declared itself; of two
    /// with one key, the first counts. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// What the sink says.
    pub fn declare(
        &mut self,
        found: &[outside::Site],
        sink: &mut impl Sink,
    ) -> Result<bool, WriteError> {
        let mut owners = HashMap::new();
        let new: Vec<_> = found
            .iter()
            .filter(|site| !self.sites.contains_key(&site.key()))
            .filter(|site| *owners.entry(site.key()).or_insert(site.meta) == site.meta)
            .collect();
        for site in &new {
            self.sites.insert(site.key(), site.name.clone());
            self.triggers.push((site.name.clone(), site.address));
        }
        // Several entries, of which none may be cut.
        for part in new.chunks(LATE_SITES) {
            let bytes = &late::entries(part);
            sink(&Frame::Directory(Directory { source: self.number, bytes }))?;
        }
        Ok(!new.is_empty())
    }

    /// Copies the entries that were completed since the last time.
    pub(super) fn drain_directory(&mut self, sink: &mut impl Sink) -> Result<(), WriteError> {
        let header = self.memory.header();
        let looked = read_tsc();
        let from = std::mem::replace(&mut self.directory_looked, looked) as i64;
        let dropped = header.dir_dropped.load(Relaxed);
        if dropped > self.directory_dropped {
            let lost = dropped - self.directory_dropped;
            self.directory_dropped = dropped;
            let to = read_tsc() as i64;
            let loss = self.loss("directory", "directory full", -1, lost.into());
            sink(&Frame::Loss(Loss { from, to, ..loss }))?;
        }
        let head = header.dir_head.load(Acquire).min(DIR_BYTES) as usize;
        let words = self.memory.directory();
        let (from, to) = (self.directory_bytes / 4, head / 4);
        // SYNC: directory-entry (with the store of the kind: the entry is complete).
        let complete = from < to && words[from].load(Acquire) != 0;
        if !complete || self.directory_broken {
            return Ok(());
        }
        self.scratch.clear();
        for word in &words[from..to] {
            // SYNC: directory-entry
            self.scratch.extend_from_slice(&word.load(Acquire).to_ne_bytes());
        }
        let mut entries = directory::parse(&self.scratch);
        // By reference: `consumed` is asked afterwards.
        for entry in &mut entries {
            match entry {
                Ok(Entry::Meta { key, name, .. }) => {
                    self.sites.insert(key, name.to_owned());
                }
                Ok(Entry::Site { key, address }) => {
                    let name = self.sites.get(&key).cloned();
                    self.triggers.extend(name.map(|name| (name, address)));
                }
                // The conversion judges and counts the rest.
                Ok(_) | Err(_) => {}
            }
        }
        let whole = entries.consumed();
        // A complete entry that reaches beyond what is reserved: nothing behind it can be found.
        self.directory_broken = whole == 0;
        self.directory_bytes += whole;
        let bytes = &self.scratch[..whole];
        sink(&Frame::Directory(Directory { source: self.number, bytes }))
    }
}
