//! Drains the memfd of one process into frames.
//!
//! Rule: rings first, then the directory. A process writes the directory entry of a site before it
//! enables the site, so a round in this order never copies an event whose entry it has not copied.
//! Whole committed events are copied, unparsed; positions are our own.
//!
//! A ring in discard mode is drained in every round. A ring in overwrite mode keeps its events until
//! its thread, the process or the recording ends ([`Source::finish`]), or a snapshot is taken
//! ([`Source::snapshot`]), and then gives the newest.
//!
//! Whatever is done is paid for by the user of the process ([`Work`]). In discard mode each event that was written
//! is either copied or lost, and each loss is reported once.

mod directory;
mod last;
mod losses;
mod offence;
mod owners;
mod ring;
mod shared;
mod snapshot;

pub use offence::Offence;
pub use owners::Seen;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use ft_user::handover;
use ft_user::layout::{Counting, Mode, lease, ring_state};
use ft_user::shared_ring;

use super::attach::Memory;
use super::discover::Identity;
use super::work::{self, Work};
use crate::clock::read_tsc;
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss, Process};
use ft_trace::tables::{LossOrigin, LossReason};

use last::LastLook;
use losses::LostEvents;
use offence::Offences;
use owners::Owners;
use ring::{Look, Owned};

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
    /// How full the fullest ring was, `0 ..= FULL`.
    pub fill: u32,
}

/// [`Round::fill`] of a ring without room.
pub const FULL: u32 = 1 << 10;

impl Round {
    /// Takes note of a ring with `taken` of its `slots`.
    fn found(&mut self, taken: u64, slots: u64) {
        self.fill = self.fill.max((taken.min(slots) * u64::from(FULL) / slots) as u32);
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
    /// Of each ring, events that were lost before the recording.
    lost_before: Vec<u64>,
    /// The ring with which the next round begins.
    next_ring: u32,
    owners: Owners,
    losses: LostEvents,
    offences: Offences,
    /// As far as was seen: threads that have a ring, and events that were lost.
    threads: usize,
    lost: u64,
    /// How far the shared ring is read.
    shared_position: shared_ring::Position,
    /// Slots of it from there on that are in memory.
    shared_backed: u32,
    shared_lost: u64,
    /// Events lost by threads that may not read the time stamp counter, and the TSC of the last look at their number.
    without_tsc: u64,
    without_tsc_looked: u64,
    /// A site that was switched on beneath a breakpoint, by its key, and the TSC when this was seen.
    hidden: Option<(u32, u64)>,
    /// Children of which nobody knew before.
    children_before: u32,
    /// There are more now: the TSC when this was seen.
    unknown_children: Option<u64>,
    /// TSC since when it is looked at.
    since_tsc: u64,
    /// TSC when all of the shared ring was last read: what is not read was begun later.
    shared_read_at: u64,
    /// Between which times the slots of it were begun that were passed over, TSC.
    shared_passed: Option<(u64, u64)>,
    /// Events of it that were never finished, and are told, or are of a time before the recording.
    shared_left: u64,
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
    /// Bytes of their names.
    trigger_bytes: usize,
    /// Words on their way from a ring into a frame.
    scratch: Vec<u8>,
    last: LastLook,
}

impl Source {
    /// A source with this number in the recording. `seen` is what all of a recording have seen.
    pub fn new(
        number: u32,
        mut identity: Identity,
        memory: Memory,
        since: Since,
        seen: Seen,
    ) -> Source {
        if identity.pidfd.is_none() {
            // Nobody else can tell any more.
            let inner = i32::try_from(memory.geometry().pid).unwrap_or(0);
            identity.inner = Some(inner).filter(|&inner| inner != identity.pid);
            if memory.is_claimed(0) {
                identity.comm = ring::name(&memory.ring(0));
            }
        }
        let since_tsc = read_tsc();
        let (control, slots) = memory.shared();
        let shared_position = shared_ring::Reader::resume(control, slots).into_position();
        let shared_lost = control.lost.load(Relaxed);
        let without_tsc = control.without_tsc.load(Relaxed);
        let children = control.unknown_children.load(Relaxed);
        if since == Since::Now {
            // What stands on a site by now, a look finds.
            control.hidden_site.store(0, Relaxed);
        }
        let mut source = Source {
            number,
            rings: Vec::new(),
            lost_before: Vec::new(),
            next_ring: 0,
            owners: Owners::new(seen),
            losses: LostEvents::since(identity.start_time),
            offences: Offences::default(),
            threads: 0,
            lost: 0,
            identity,
            memory,
            shared_position,
            shared_backed: 0,
            since_tsc,
            shared_read_at: since_tsc,
            shared_passed: None,
            shared_left: 0,
            directory_looked: since_tsc,
            shared_lost: if since == Since::Now { shared_lost } else { 0 },
            without_tsc: if since == Since::Now { without_tsc } else { 0 },
            without_tsc_looked: since_tsc,
            hidden: None,
            children_before: if since == Since::Now { children } else { 0 },
            unknown_children: None,
            directory_bytes: 0,
            directory_broken: false,
            directory_dropped: 0,
            sites: HashMap::new(),
            triggers: Vec::new(),
            trigger_bytes: 0,
            scratch: Vec::new(),
            last: LastLook::default(),
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

    /// The inode of its memfd.
    pub fn inode(&self) -> Option<u64> {
        self.memory.inode()
    }

    /// Names of the sites that its directory declared so far.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.sites.values().map(String::as_str)
    }

    /// Names and addresses of the triggers that its directory declared so far.
    pub fn triggers(&self) -> &[(String, u64)] {
        &self.triggers
    }

    /// Threads that own a ring and have written to it, as of the last time that all rings were looked at.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Events that the process says it lost, as of the last time that all rings were looked at, for display.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What it has done that no honest process does, each kind once.
    pub fn offences(&mut self) -> Vec<Offence> {
        self.offences.take()
    }

    /// Nothing can be read from it any more.
    pub fn is_dead(&self) -> bool {
        self.memory.has_faulted()
    }

    /// What introduces it, but for how and when it came.
    pub fn introduce(&self) -> Process {
        let geometry = self.memory.geometry();
        Process {
            source: Some(self.number),
            pid: self.identity.pid,
            start_time: self.identity.start_time,
            comm: self.identity.comm.clone(),
            exe: self.identity.exe.clone(),
            ring_slots: geometry.ring_slots,
            overwrite: geometry.mode == Mode::Overwrite,
            ..Process::default()
        }
    }

    /// Says how long its threads wait for room in a full ring. Another agent may have left its own word.
    pub fn wait_when_full(&self, limit: Option<Duration>) {
        let us = limit.map_or(0, |limit| u32::try_from(limit.as_micros()).unwrap_or(u32::MAX));
        self.memory.header().full_wait_us.store(us, Relaxed);
    }

    /// Says what its threads read with each event. Another agent may have left its own word.
    pub fn count_with_events(&self, counting: Counting) {
        self.memory.header().counting.store(counting.0, Relaxed);
    }

    /// Says that sites stay on for some seconds more; false if the process has switched them off meanwhile, for nobody had said so in time.
    pub fn extend_lease(&self) -> bool {
        let until = read_tsc().saturating_add(lease::TICKS);
        self.memory.header().lease.swap(until, Relaxed) != lease::TAKEN_BACK
    }

    /// Says that it is not recorded any more: sites that are still on for an agent are to go off.
    pub fn end_lease(&self) {
        self.memory.header().lease.store(lease::OVER, Relaxed);
    }

    /// Copies what is there now, as far as there is work left; the next call goes on from there.
    ///
    /// # Errors
    ///
    /// What the sink says.
    pub fn drain(
        &mut self,
        now_ns: i64,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<Round, WriteError> {
        let mut round = Round::default();
        work.spend(work::SOURCE);
        // First, for it holds little.
        self.drain_shared(now_ns, &mut round, work, sink)?;
        let used = self.rings_used();
        for turn in 0..used {
            if work.is_done() {
                break;
            }
            let index = (self.next_ring + turn) % used;
            self.drain_ring(index, now_ns, Look::Round, &mut round, work, sink)?;
            if work.is_done() {
                // Whoever fills its ring all the time does not keep the others waiting.
                self.next_ring = (index + 1) % used;
            }
        }
        self.drain_directory(sink)?;
        if !work.is_done() {
            self.count();
        }
        self.look_for_faults();
        Ok(round)
    }

    /// Copies what rings in overwrite mode hold now and what was not copied yet; those in discard mode
    /// are drained anyway.
    ///
    /// # Errors
    ///
    /// What the sink says.
    pub fn snapshot(
        &mut self,
        now_ns: i64,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let mut round = Round::default();
        for index in 0..self.rings_used() {
            self.snapshot_ring(index, Look::Round, now_ns, &mut round, work, sink)?;
        }
        Ok(())
    }

    fn look_for_faults(&mut self) {
        if self.is_dead() {
            self.offences.add(Offence::Fault);
        }
    }

    /// Threads and losses of the rings that were seen.
    fn count(&mut self) {
        let shared = self.memory.shared().0;
        let mut lost = shared.lost.load(Relaxed);
        lost = lost.saturating_add(shared.without_tsc.load(Relaxed));
        self.threads = 0;
        for (index, owned) in self.rings.iter().enumerate() {
            if owned.is_some() {
                let control = self.memory.ring(index as u32).control;
                self.threads += usize::from(control.state.load(Relaxed) == ring_state::LIVE);
                lost = lost.saturating_add(control.lost.load(Relaxed));
            }
        }
        self.lost = self.losses.possible(lost);
    }

    fn rings_used(&self) -> u32 {
        handover::used(&self.memory.header().rings_used).min(self.memory.geometry().ring_count)
    }

    /// Frees the rings of what was written before the recording.
    fn discard_old(&mut self) {
        for index in (0..self.rings_used()).filter(|&index| self.memory.is_claimed(index)) {
            let ring = self.memory.ring(index);
            let head = ring.control.head.load(Acquire);
            if ring.control.tail.load(Relaxed) < head {
                // A write among what is old may not be finished. Before the tail, as `Reader::pass_unfinished` does.
                ring.control.passed_at.store(head, Relaxed);
            }
            ring.control.tail.store(head, Release); // SYNC: consumed
            let lost = ring.control.lost.load(Relaxed);
            self.lost_before.resize(index as usize + 1, 0);
            self.lost_before[index as usize] = lost;
            // Events that told of losses are among the old.
            let pending = ring.control.lost_pending.load(Relaxed);
            ring.control.told.store(lost.saturating_sub(pending), Relaxed);
        }
        let (control, slots) = self.memory.shared();
        let position = std::mem::take(&mut self.shared_position);
        let mut reader = shared_ring::Reader::at(control, slots, position);
        for _ in slots {
            let (from, backed) = (reader.position(), self.memory.backed_shared(reader.position()));
            if backed > 0 && reader.read().is_none() {
                reader.pass(backed);
            }
            if reader.position() == from {
                break;
            }
        }
        self.shared_left = reader.taken();
        self.shared_position = reader.into_position();
    }

    /// Tells of a loss from `from` to `to`, as far as it can be.
    fn tell_loss(&mut self, loss: Loss, sink: &mut impl Sink) -> Result<(), WriteError> {
        let count = self.losses.believe(loss.count);
        if count < loss.count {
            self.offences.add(Offence::Losses);
        }
        if count == 0 {
            return Ok(());
        }
        sink(&Frame::Loss(Loss { count, ..loss }))
    }

    fn loss(&self, origin: LossOrigin, reason: LossReason, tid: i32, count: u64) -> Loss {
        Loss {
            origin: origin.word().into(),
            what: reason.word().into(),
            cpu: -1,
            pid: self.identity.pid,
            tid,
            is_tsc: true,
            count,
            ..Loss::default()
        }
    }
}

#[cfg(test)]
mod account;
#[cfg(test)]
pub(crate) mod forged;
#[cfg(test)]
mod left;
#[cfg(test)]
mod tests;
