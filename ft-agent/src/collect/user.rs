//! Drains the memfd of one process into frames.
//!
//! Rule: rings first, then the directory. A process writes the directory entry of a site before it
//! enables the site, so a round in this order never copies an event whose entry it has not copied.
//! Whole committed events are copied, unparsed; positions are our own.
//!
//! A ring in discard mode is drained in every round. A ring in overwrite mode keeps its events until
//! its thread, the process or the recording ends ([`Source::finish`]), or a snapshot is taken
//! ([`Source::snapshot`]), and then gives the newest.

use std::collections::HashMap;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use ft_user::directory::{self, Entry};
use ft_user::layout::{DIR_BYTES, Mode, SharedSlot, ring_state};
use ft_user::reader::{Reader, Uncommitted};
use ft_user::ring::Ring;
use ft_user::shared_ring;

use super::attach::Memory;
use super::discover::{self, Identity};
use super::{late, outside};
use crate::clock::read_tsc;
use crate::spool::WriteError;
use crate::spool::frame::{Directory, Frame, Loss, Process, Shared, Slots, Thread};

/// Slots copied into one frame: 1 MiB.
const FRAME_SLOTS: u64 = 1 << 15;

/// Sites that are declared in one frame: at most 28 KiB each, by the limits of [`directory`].
const LATE_SITES: usize = 1024;

/// From which event on a process is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// All that its rings hold: it has just registered.
    Start,
    /// What comes from now on: it ran before the recording, and no clock sample covers what is old.
    Now,
}

/// What one round found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Slots that were copied.
    pub slots: u64,
    /// A ring was more than a quarter full: come back sooner.
    pub crowded: bool,
}

/// Where reading of one ring stands, and whose it is.
struct Owned {
    reader: Reader,
    /// Claim of the ring to which `tid` belongs; `None` before its first event.
    generation: Option<u32>,
    tid: i32,
    /// TSC when the ring was last seen empty: what is never committed was begun later.
    empty_at: u64,
}

impl Owned {
    /// A ring that was not seen before, read from what the last reader, or the first claim, left.
    fn unknown(ring: &Ring<'_>) -> Owned {
        let head = ring.control.head.load(Acquire);
        // Indices below the length of the ring are never written: they would match zeroed memory.
        let oldest = head.saturating_sub(ring.len()).max(ring.len());
        let tail = ring.control.tail.load(Relaxed).clamp(oldest, head.max(oldest));
        Owned { reader: Reader::at(tail), generation: None, tid: -1, empty_at: 0 }
    }

    /// Looks who owns the ring now; the thread when it is another one.
    fn update(&mut self, identity: &Identity, ring: &Ring<'_>, ts: i64) -> Option<Thread> {
        // SYNC: ring-owner (with the claim: thread id and name are in place).
        let generation = Some(ring.control.generation.load(Acquire));
        if self.generation == generation {
            return None;
        }
        let (tid, name) = owner(identity, ring);
        (self.generation, self.tid) = (generation, tid);
        Some(Thread { tid, pid: identity.pid, name, ts })
    }
}

/// Where frames go.
pub trait Sink: FnMut(&Frame<'_>) -> Result<(), WriteError> {}
impl<F: FnMut(&Frame<'_>) -> Result<(), WriteError>> Sink for F {}

/// One registered or attached process.
pub struct Source {
    number: u32,
    identity: Identity,
    memory: Memory,
    rings: Vec<Option<Owned>>,
    /// Next slot of the shared ring, modulo 2^32.
    shared_position: u32,
    shared_lost: u64,
    /// TSC since when it is looked at.
    since_tsc: u64,
    /// TSC when the shared ring was last seen empty: what is never committed was begun later.
    shared_empty_at: u64,
    /// TSC of the last look at the directory.
    directory_looked: u64,
    /// Bytes of the directory that were copied.
    directory_bytes: usize,
    directory_broken: bool,
    directory_dropped: u32,
    /// Names of sites by their key.
    sites: HashMap<u32, String>,
    /// Name and address of each trigger.
    triggers: Vec<(String, u64)>,
    /// Words on their way from a ring into a frame.
    scratch: Vec<u8>,
}

impl Source {
    /// A source with this number in the recording.
    pub fn new(number: u32, mut identity: Identity, memory: Memory, since: Since) -> Source {
        if identity.pidfd.is_none() {
            // Nobody else can tell any more.
            let inner = i32::try_from(memory.geometry().pid).unwrap_or(0);
            identity.inner = Some(inner).filter(|&inner| inner != identity.pid);
            identity.comm = name(&memory.ring(0));
        }
        let since_tsc = read_tsc();
        let (control, slots) = memory.shared();
        // What is neither free nor read stands before the write index.
        let taken =
            slots.len() as u32 - control.free.load(Acquire).clamp(0, slots.len() as i32) as u32;
        let oldest = control.write.load(Relaxed).wrapping_sub(taken);
        let shared_lost = control.lost.load(Relaxed);
        let mut source = Source {
            number,
            identity,
            rings: (0..memory.geometry().ring_count).map(|_| None).collect(),
            memory,
            shared_position: oldest,
            since_tsc,
            shared_empty_at: since_tsc,
            directory_looked: since_tsc,
            shared_lost: if since == Since::Now { shared_lost } else { 0 },
            directory_bytes: 0,
            directory_broken: false,
            directory_dropped: 0,
            sites: HashMap::new(),
            triggers: Vec::new(),
            scratch: Vec::new(),
        };
        if since == Since::Now {
            source.discard_old();
        }
        source
    }

    /// Its number in the recording.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it is the process with this number, read through this memfd.
    pub fn is(&self, pid: i32, memfd: BorrowedFd<'_>) -> bool {
        self.identity.pid == pid && self.memory.is(memfd)
    }

    /// Names of the sites that its directory declared so far.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.sites.values().map(String::as_str)
    }

    /// Names and addresses of the triggers that its directory declared so far.
    pub fn triggers(&self) -> &[(String, u64)] {
        &self.triggers
    }

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

    /// Threads that own a ring and have written to it.
    pub fn threads(&self) -> usize {
        let alive = |index| self.memory.ring(index).control.state.load(Relaxed) == ring_state::LIVE;
        (0..self.rings_used()).filter(|&i| self.rings[i as usize].is_some() && alive(i)).count()
    }

    /// Events that the process says it lost, for display.
    pub fn lost(&self) -> u64 {
        let ring = |index| self.memory.ring(index).control.lost.load(Relaxed);
        let rings = (0..self.rings_used()).map(ring).fold(0, u64::saturating_add);
        rings.saturating_add(self.memory.shared().0.lost.load(Relaxed))
    }

    /// The frame that introduces it.
    pub fn introduce(&self, ts: i64) -> Frame<'static> {
        let geometry = self.memory.geometry();
        Frame::Process(Process {
            source: Some(self.number),
            pid: self.identity.pid,
            start_time: self.identity.start_time,
            comm: self.identity.comm.clone(),
            exe: self.identity.exe.clone(),
            ring_slots: geometry.ring_slots,
            overwrite: geometry.mode == Mode::Overwrite,
            ts,
        })
    }

    /// Copies what is there now.
    ///
    /// # Errors
    ///
    /// What the sink says.
    pub fn drain(&mut self, now_ns: i64, sink: &mut impl Sink) -> Result<Round, WriteError> {
        let mut round = Round::default();
        for index in 0..self.rings_used() {
            self.drain_ring(index, now_ns, false, &mut round, sink)?;
        }
        self.drain_shared(false, &mut round, sink)?;
        self.drain_directory(sink)?;
        Ok(round)
    }

    /// Copies what rings in overwrite mode hold now and what was not copied yet; those in discard mode
    /// are drained anyway.
    ///
    /// # Errors
    ///
    /// What the sink says.
    pub fn snapshot(&mut self, now_ns: i64, sink: &mut impl Sink) -> Result<(), WriteError> {
        let mut round = Round::default();
        (0..self.rings_used())
            .try_for_each(|index| self.snapshot_ring(index, now_ns, &mut round, sink))
    }

    /// Copies everything that is left, also of rings in overwrite mode, and accounts for losses that no
    /// event tells. With `ended`, the process has ended, and what is not committed never will be.
    ///
    /// # Errors
    ///
    /// What the sink says.
    pub fn finish(
        &mut self,
        now_ns: i64,
        ended: bool,
        sink: &mut impl Sink,
    ) -> Result<Round, WriteError> {
        let mut round = Round::default();
        for index in 0..self.rings_used() {
            self.drain_ring(index, now_ns, ended, &mut round, sink)?;
            self.snapshot_ring(index, now_ns, &mut round, sink)?;
            self.tell_pending_loss(index, sink)?;
        }
        self.drain_shared(ended, &mut round, sink)?;
        self.drain_directory(sink)?;
        Ok(round)
    }

    fn rings_used(&self) -> u32 {
        // SYNC: rings-used (with the claim: the control pages below are in place).
        self.memory.header().rings_used.load(Acquire).min(self.memory.geometry().ring_count)
    }

    /// Frees the rings of what was written before the recording.
    fn discard_old(&mut self) {
        for index in 0..self.rings_used() {
            let ring = self.memory.ring(index);
            let head = ring.control.head.load(Acquire);
            ring.control.tail.store(head, Release); // SYNC: consumed
        }
        let (control, slots) = self.memory.shared();
        let mut reader = shared_ring::Reader::new(control, slots, self.shared_position);
        for _ in slots {
            if reader.read().is_none() {
                break;
            }
        }
        self.shared_position = reader.position();
    }

    /// One ring: its owner, its events, its end.
    fn drain_ring(
        &mut self,
        index: u32,
        now_ns: i64,
        ended: bool,
        round: &mut Round,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let ring = self.memory.ring(index);
        // SYNC: ring-exit (with the thread that ends: all that it wrote is there).
        let state = ring.control.state.load(Acquire);
        if state == ring_state::FREE || ring.control.head.load(Acquire) < ring.len() {
            return Ok(());
        }
        self.rings[index as usize].get_or_insert_with(|| Owned::unknown(&ring));
        let over = ended || state == ring_state::EXITED;
        if self.memory.geometry().mode == Mode::Discard {
            let uncommitted = if over { Uncommitted::Skip } else { Uncommitted::Wait };
            self.copy(index, uncommitted, now_ns, round, sink)?;
        }
        if state == ring_state::EXITED {
            self.snapshot_ring(index, now_ns, round, sink)?;
            self.tell_pending_loss(index, sink)?;
            // SYNC: ring-free (with the thread that claims it next: all of it is read).
            self.memory.ring(index).control.state.store(ring_state::FREE, Release);
        }
        Ok(())
    }

    /// Copies from the reader's position on, at most two rings full: a process that writes faster than
    /// this copies must not keep the others waiting.
    fn copy(
        &mut self,
        index: u32,
        uncommitted: Uncommitted,
        now_ns: i64,
        round: &mut Round,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let Some(owned) = &mut self.rings[index as usize] else { return Ok(()) };
        let ring = self.memory.ring(index);
        let before = read_tsc();
        let waiting = ring.control.head.load(Acquire).saturating_sub(owned.reader.tail());
        if waiting == 0 {
            owned.empty_at = before;
        }
        round.crowded |= waiting > ring.len() / 4;
        let (mut copied, mut skipped) = (0, 0);
        while copied < 2 * ring.len() {
            self.scratch.clear();
            let drained = owned.reader.drain(&ring, uncommitted, FRAME_SLOTS, &mut self.scratch);
            skipped += drained.skipped;
            if drained.slots > 0 {
                copied += drained.slots;
                // The owner is asked for after its events were read: a ring changes hands only when
                // all of it is read, so one drain never mixes two owners.
                if let Some(thread) = owned.update(&self.identity, &ring, now_ns) {
                    sink(&Frame::Thread(thread))?;
                }
                sink(&Frame::Slots(Slots {
                    source: self.number,
                    ring: index,
                    tid: owned.tid,
                    generation: owned.generation.unwrap_or(0),
                    first_index: drained.first_index,
                    bytes: &self.scratch,
                }))?;
            }
            if !drained.more {
                break;
            }
        }
        round.slots += copied;
        let (tid, from) = (owned.tid, owned.empty_at.max(self.since_tsc) as i64);
        if skipped > 0 && self.memory.geometry().mode == Mode::Discard {
            let to = read_tsc() as i64;
            let loss = self.loss("ring", "slots never committed", tid, skipped);
            sink(&Frame::Loss(Loss { from, to, ..loss }))?;
        }
        Ok(())
    }

    /// The newest events of a ring in overwrite mode.
    fn snapshot_ring(
        &mut self,
        index: u32,
        now_ns: i64,
        round: &mut Round,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        if self.memory.geometry().mode == Mode::Discard {
            return Ok(());
        }
        let ring = self.memory.ring(index);
        if let Some(owned) = &mut self.rings[index as usize] {
            let newest = Reader::newest(&ring);
            if newest.tail() > owned.reader.tail() {
                owned.reader = newest;
            }
        }
        self.copy(index, Uncommitted::Skip, now_ns, round, sink)
    }

    /// Losses behind the last event of a ring.
    fn tell_pending_loss(&self, index: u32, sink: &mut impl Sink) -> Result<(), WriteError> {
        let Some(owned) = &self.rings[index as usize] else { return Ok(()) };
        let control = self.memory.ring(index).control;
        let count = control.lost_pending.load(Relaxed);
        if count == 0 {
            return Ok(());
        }
        let now = read_tsc();
        let begin = control.loss_begin_tsc.load(Relaxed).min(now);
        let loss = self.loss("ring", "ring full", owned.tid, count);
        sink(&Frame::Loss(Loss { from: begin as i64, to: now as i64, ..loss }))
    }

    fn drain_shared(
        &mut self,
        ended: bool,
        round: &mut Round,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let before = read_tsc();
        let (control, slots) = self.memory.shared();
        if control.free.load(Acquire) == slots.len() as i32 {
            self.shared_empty_at = before;
        }
        let mut reader = shared_ring::Reader::new(control, slots, self.shared_position);
        let mut skipped = 0;
        self.scratch.clear();
        while self.scratch.len() < size_of_val(slots) && skipped < slots.len() as u64 {
            if let Some(record) = reader.read() {
                let tid = self.identity.translate(record.tid);
                let tid = tid.unwrap_or_else(|| discover::unnumbered(record.tid));
                encode_shared(&record, tid, &mut self.scratch);
            } else if ended && reader.skip() {
                skipped += 1;
            } else {
                break;
            }
        }
        self.shared_position = reader.position();
        let loss = reader.loss();
        if !self.scratch.is_empty() {
            round.slots += (self.scratch.len() / size_of::<SharedSlot>()) as u64;
            sink(&Frame::Shared(Shared { source: self.number, bytes: &self.scratch }))?;
        }
        if skipped > 0 {
            let (from, to) = (self.shared_empty_at as i64, read_tsc() as i64);
            let loss = self.loss("shared-ring", "slots never committed", -1, skipped);
            sink(&Frame::Loss(Loss { from, to, ..loss }))?;
        }
        let lost = loss.events.saturating_sub(self.shared_lost);
        if lost > 0 {
            self.shared_lost = loss.events;
            let [from, to] = loss.tsc.map(|tsc| tsc as i64);
            let loss = self.loss("shared-ring", "shared ring full", -1, lost);
            sink(&Frame::Loss(Loss { from, to, ..loss }))?;
        }
        Ok(())
    }

    /// Copies the entries that were completed since the last time.
    fn drain_directory(&mut self, sink: &mut impl Sink) -> Result<(), WriteError> {
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

    fn loss(&self, origin: &str, what: &str, tid: i32, count: u64) -> Loss {
        Loss {
            origin: origin.into(),
            what: what.into(),
            cpu: -1,
            pid: self.identity.pid,
            tid,
            is_tsc: true,
            count,
            ..Loss::default()
        }
    }
}

/// Thread and name of the owner of a ring; a thread without a number when it is none of this process.
fn owner(identity: &Identity, ring: &Ring<'_>) -> (i32, String) {
    let said = ring.control.tid.load(Relaxed);
    let Some(tid) = identity.translate(said) else {
        return (discover::unnumbered(said), name(ring));
    };
    if let Some(name) = discover::comm(identity.pid, tid) {
        return (tid, name);
    }
    // A thread that has ended is nowhere; one that lives elsewhere is not this process's.
    let foreign = discover::comm(tid, tid).is_some();
    (if foreign { discover::unnumbered(said) } else { tid }, name(ring))
}

/// Name of the owner of a ring, as it was when it claimed the ring.
fn name(ring: &Ring<'_>) -> String {
    let bytes = ring.control.name.each_ref().map(|word| word.load(Relaxed).to_ne_bytes()).concat();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}

/// A record in the form of [`SharedSlot`], with the thread id of the agent's namespace.
fn encode_shared(record: &shared_ring::Record, tid: i32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&ft_user::layout::marker::READY.to_ne_bytes());
    out.extend_from_slice(&tid.to_ne_bytes());
    out.extend_from_slice(&record.commit.to_ne_bytes());
    out.extend_from_slice(&record.tsc.to_ne_bytes());
    for word in record.words {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.resize(start + size_of::<SharedSlot>(), 0);
}

#[cfg(test)]
mod tests;
