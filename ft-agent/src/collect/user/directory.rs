//! The directory of a process: its sites and their triggers.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use ft_user::directory::{self, Entry};
use ft_user::layout::{DIR_BYTES, DirEntry};

use super::{Offence, Sink, Source};
use crate::clock::read_tsc;
use crate::collect::{late, outside};
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Directory, Frame, Loss};
use ft_trace::tables::{LossOrigin, LossReason};

/// Names of triggers that are kept of a process: twice what a directory holds. What is beyond cannot be switched from
/// outside; it is recorded all the same.
///
/// Limit: as `MAX_REPLY_BYTES` of `socket.rs`.
const MAX_TRIGGER_BYTES: usize = 2 * DIR_BYTES as usize;

/// The head of an entry: its kind and its size.
const ENTRY_BYTES: usize = size_of::<DirEntry>();

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
            // What sleds tell is declared with the hooks of `-finstrument-functions`.
            .filter(|site| site.sled.is_none() && !self.sites.contains_key(&site.key()))
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
            let loss = self.loss(LossOrigin::Directory, LossReason::DirectoryFull, -1, lost.into());
            self.tell_loss(Loss { from, to, ..loss }, sink)?;
        }
        let head = self.memory.header().dir_head.load(Acquire).min(DIR_BYTES) as usize;
        let from = self.directory_bytes;
        let to = if self.directory_broken { from } else { self.complete_entries(from, head) };
        if from == to {
            return Ok(());
        }
        self.scratch.resize(to - from, 0);
        let at = self.memory.geometry().dir_offset + from;
        if self.memory.read(at, &mut self.scratch).is_err() {
            self.directory_broken = true;
            return Ok(());
        }
        let mut entries = directory::parse(&self.scratch);
        // By reference: `consumed` is asked afterwards.
        for entry in &mut entries {
            match entry {
                Ok(Entry::SiteMeta { key, name, .. }) => {
                    self.sites.insert(key, name.to_owned());
                }
                Ok(Entry::Site { key, address }) => {
                    // Many triggers of one long name would take a thousand times what declares them.
                    let named = self.sites.get(&key).filter(|name| {
                        self.trigger_bytes += name.len();
                        self.trigger_bytes <= MAX_TRIGGER_BYTES
                    });
                    self.triggers.extend(named.map(|name| (name.clone(), address)));
                }
                // The conversion judges and counts the rest.
                Ok(_) | Err(_) => {}
            }
        }
        let whole = entries.consumed();
        if self.trigger_bytes > MAX_TRIGGER_BYTES {
            self.offences.add(Offence::Directory);
        }
        if whole < to - from {
            self.directory_broken = true;
            self.offences.add(Offence::Directory);
        }
        self.directory_bytes += whole;
        let bytes = &self.scratch[..whole];
        sink(&Frame::Directory(Directory { source: self.number, bytes }))
    }

    /// Up to where entries from offset `from` of the directory on are complete; marks it as broken where one
    /// reaches beyond `head`.
    fn complete_entries(&mut self, from: usize, head: usize) -> usize {
        let words = self.memory.directory();
        let mut at = from;
        // SYNC: directory-entry (with the store of the kind: the entry is complete).
        while at + ENTRY_BYTES <= head && words[at / 4].load(Acquire) != 0 {
            let bytes = words[at / 4 + 1].load(Relaxed) as usize;
            if bytes < ENTRY_BYTES || !bytes.is_multiple_of(8) || bytes > head - at {
                // Nothing behind it can be found.
                self.directory_broken = true;
                self.offences.add(Offence::Directory);
                break;
            }
            at += bytes;
        }
        at
    }
}
