//! Processes that come to a recording and go from it: what is recorded of them, and what is enabled in them.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::scope::overlooked;
use super::told::New;
use super::{Attached, Collector, Recorded, Scope};
use crate::clock::{monotonic_ns, read_tsc};
use crate::collect::arrivals::Arrival;
use crate::collect::attach::{Memory, Refusal};
use crate::collect::discover::{self, Identity};
use crate::collect::inspect::{BuildIds, Found, Inspected};
use crate::collect::shares::Place;
use crate::collect::user::{Since, Source};
use crate::control::registration::{self, Registration};
use crate::control::socket::Answer;
use crate::record::RecordError;
use crate::record::notice::{Notice, SHOWN};
use ft_trace::look;
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Process, Refused, Thread};
use ft_trace::spool::mapping::{Mappings, TOO_MANY};
use ft_user::layout::lease;
use ft_user::patch::PatchError;

/// Registrations of one process at once: each of its objects can have one, and each program that it has
/// executed has left one behind. The oldest goes when a new one comes.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
const MAX_OF_PROCESS: usize = 64;

/// Names of sites that are remembered, to say at the end which are there.
///
/// Limit: a glob that matched a later one is said to match none.
/// Shown by: not shown: no figure, a warning about globs at the end.
pub(super) const MAX_SITE_NAMES: usize = 1 << 16;

/// How a process came to be recorded.
struct Arrived {
    /// When: while it still waited, if it did. CLOCK_MONOTONIC ns.
    ts: i64,
    /// It waited for an answer.
    waited: bool,
    /// As [`Process::executed`].
    executed: bool,
    /// As [`Process::unanswered`].
    unanswered: bool,
    /// As [`Process::on_ns`].
    on_ns: Option<i64>,
}

impl Arrived {
    /// One that was found, and did not ask.
    fn found() -> Arrived {
        let ts = monotonic_ns();
        Arrived { ts, waited: false, executed: false, unanswered: false, on_ns: None }
    }
}

impl Collector {
    /// Records a process that runs already: enables its sites and drains its rings from now on, if it has
    /// any.
    ///
    /// # Errors
    ///
    /// When the spool cannot be written.
    pub(in crate::record) fn attach(&mut self, attached: Attached) -> Result<(), WriteError> {
        let Attached { identity, memory } = attached;
        let pid = identity.pid;
        self.observe(pid);
        let Some(memory) = memory else {
            self.plain.push(pid);
            return self.introduce_plain(&identity);
        };
        let subject = Arc::new(Inspected::attached(pid, identity.uid));
        subject.holds(memory.inode());
        // Nothing is collected yet, so it can be waited for, if not for ever.
        let (intake, looked_at) = (self.intake.clone(), subject.clone());
        let look = |look: fn(&Inspected, &BuildIds) -> Found| {
            let (intake, subject) = (intake.clone(), looked_at.clone());
            look::at(pid, move || look(&subject, &intake.files))
        };
        self.introduce(look(Inspected::introduce).unwrap_or_default())?;
        let source = self.add(identity, memory, Since::Now, Arrived::found())?;
        let mut recorded = Recorded::new(source, subject, Vec::new()).unaware();
        // The directory, which tells where the triggers are.
        self.drain_source(&mut recorded.source)?;
        // Of one that does not answer the next look finds the same, if it ever comes to an end.
        if let Some(found) = look(Inspected::look) {
            self.declare(&mut recorded, &found)?;
            // Copies of the tracer that it has started since it was looked for them.
            recorded.subject.look_again();
        }
        self.sources.push(recorded);
        Ok(())
    }

    /// Whether the kernel's records of a process are taken.
    pub(in crate::record) fn observes(&self, pid: i32) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.is_observed(pid as u32))
    }

    /// Enables from outside what all attached processes declare: after the last of them is attached, so
    /// that whoever sees one site on finds all of them recorded.
    ///
    /// # Errors
    ///
    /// When the spool cannot be written.
    pub(in crate::record) fn enable_attached(&mut self) -> Result<(), WriteError> {
        let mut sources = std::mem::take(&mut self.sources);
        for recorded in &mut sources {
            let (subject, globs) = (recorded.subject.clone(), self.globs.clone());
            let triggers = recorded.source.triggers().to_vec();
            let enable = move || subject.enable(&triggers, &globs);
            let found = look::at(recorded.source.identity().pid, enable).unwrap_or_default();
            recorded.is_being_enabled();
            self.tell_refused(recorded, found.refused);
            let on_ns = Some(monotonic_ns());
            let process = Process { on_ns, ..recorded.source.introduce() };
            self.writer.push(&Frame::Process(process))?;
        }
        self.sources = sources;
        Ok(())
    }

    /// Enables more sites, from outside in those that are recorded; the others are told when they register.
    pub(super) fn enable(&mut self, mut globs: Vec<String>) -> Answer {
        globs.retain(|glob| !self.globs.contains(glob));
        let all = [&*self.globs, &globs].concat();
        if registration::reply(&all).is_none() {
            return Answer::Error(RecordError::TooManyGlobs.to_string());
        }
        self.globs = all;
        self.sources.iter_mut().for_each(Recorded::enable_from_outside);
        Answer::Enabled { processes: self.sources.len() as u64 }
    }

    /// Says why sites stay off. Of a process that has ended none can be switched, and none is missed.
    pub(super) fn tell_refused(&self, recorded: &Recorded, refused: Vec<PatchError>) {
        if !recorded.has_ended() {
            let pid = recorded.source.identity().pid;
            refused.into_iter().for_each(|reason| self.notice(Notice::NotEnabled { pid, reason }));
        }
    }

    /// Takes what has arrived, until it takes too long; whether there is more.
    pub(super) fn welcome(&mut self, until: Instant) -> Result<bool, WriteError> {
        while let Some(arrival) = self.intake.pop() {
            match arrival {
                Arrival::Registration(registration) => self.register(registration)?,
                Arrival::Found { source, found } => self.found(source, found)?,
                Arrival::Located(mappings) => self.tell_mappings(mappings)?,
                Arrival::Parents(all) => self.observe_overlooked(&all),
            }
            if Instant::now() >= until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn register(&mut self, mut registration: Registration) -> Result<(), WriteError> {
        let identity = &registration.identity;
        let pid = identity.pid;
        let memfd = registration.memfd.as_fd();
        if self.sources.iter().any(|recorded| recorded.source.is(pid, memfd)) {
            // It was found before its message was read.
            let _ = registration.accept(&self.globs);
            return Ok(());
        }
        let strangers = &mut self.finished.strangers;
        if !self.scope.takes(&registration, self.kernel.as_ref(), strangers) {
            // Not answered, it enables nothing.
            return Ok(());
        }
        let Some((memory, addresses)) = self.map(identity, memfd, false) else {
            return Ok(());
        };
        self.make_room(pid)?;
        // Before the process goes on: its first event finds the kernel watching.
        if !identity.has_ended() {
            self.observe(pid);
        }
        let executed = self.has_executed(&registration);
        // A process that loads no more and ends at once may be gone after the answer.
        self.introduce(std::mem::take(&mut registration.found))?;
        memory.header().counting.store(self.counting.0, Relaxed);
        let until = read_tsc().saturating_add(lease::TICKS);
        let was_taken_back = memory.header().lease.swap(until, Relaxed) == lease::TAKEN_BACK;
        // Answered, it may execute another program before the next line.
        let ts = monotonic_ns();
        // A forked child does not wait for the answer: it has inherited what is enabled. Whoever does, and
        // has given up, goes on with its sites off.
        let gave_up = registration.accept(&self.globs).is_err() && registration.waits;
        self.finished.unanswered += u64::from(gave_up);
        let Registration { identity, subject, place, waits, .. } = registration;
        subject.holds(memory.inode());
        // What a forked child has inherited was on before; but its first thread holds what its parent's held.
        let on_ns = (!waits).then_some(ts);
        let arrived = Arrived { ts, waited: waits, executed, unanswered: gave_up, on_ns };
        let source = self.add(identity, memory, Since::Start, arrived)?;
        let mut recorded = Recorded::new(source, subject, vec![place, addresses]);
        if (gave_up || was_taken_back) && !recorded.source.identity().has_ended() {
            recorded = recorded.unaware();
            // The directory, which tells where the triggers are.
            self.drain_source(&mut recorded.source)?;
            recorded.enable_soon();
        } else if self.globs.iter().any(|glob| glob.starts_with("fn.")) {
            // Which of its functions have sleds shows from outside alone.
            recorded.next_look = Instant::now();
        }
        self.sources.push(recorded);
        Ok(())
    }

    /// Records a copy of the tracer that a process has which was attached to, unless it is recorded already.
    pub(super) fn adopt(&mut self, identity: Identity, memfd: &File) -> Result<(), WriteError> {
        let (pid, uid, memfd) = (identity.pid, identity.uid, memfd.as_fd());
        if self.sources.iter().any(|recorded| recorded.source.is(pid, memfd)) {
            return Ok(());
        }
        let Some((memory, addresses)) = self.map(&identity, memfd, true) else {
            return Ok(());
        };
        self.make_room(pid)?;
        let subject = Arc::new(Inspected::attached(pid, uid));
        subject.holds(memory.inode());
        let arrived = Arrived::found();
        let source = self.add(identity, memory, Since::Start, arrived)?;
        let mut recorded = Recorded::new(source, subject, vec![addresses]).unaware();
        // The directory, which tells where the triggers are.
        self.drain_source(&mut recorded.source)?;
        recorded.enable_soon();
        self.sources.push(recorded);
        Ok(())
    }

    /// Maps a memfd, within the share of addresses of its user; else says who is refused, of whom something else
    /// `is_recorded`, or nothing.
    fn map(
        &self,
        identity: &Identity,
        memfd: BorrowedFd<'_>,
        is_recorded: bool,
    ) -> Option<(Memory, Place)> {
        let mapped = Memory::attach(memfd).and_then(|memory| {
            // At most half a tebibyte, as `Geometry` allows.
            let gib = memory.geometry().total_bytes.div_ceil(1 << 30) as u32;
            let addresses =
                self.addresses.take_many(identity.uid, gib, false).ok_or(Refusal::Large(gib))?;
            Ok((memory, addresses))
        });
        mapped
            .inspect_err(|reason| {
                self.refuse(identity, reason.kind(), &reason.to_string(), is_recorded);
            })
            .ok()
    }

    /// Says in the trace what of a process is not used.
    pub(super) fn refuse(
        &self,
        identity: &Identity,
        kind: &'static str,
        reason: &str,
        is_recorded: bool,
    ) {
        self.refuse_as(identity, kind, reason, Refused { is_recorded, ..Refused::default() });
    }

    /// The same, `as_what` says of it.
    pub(super) fn refuse_as(
        &self,
        identity: &Identity,
        kind: &'static str,
        reason: &str,
        as_what: Refused,
    ) {
        let Identity { uid, pid, ref comm, .. } = *identity;
        let (comm, reason) = (comm.clone(), reason.to_owned());
        let refused = || Refused { uid, pid, comm, reason, count: 1, ..as_what };
        self.intake.refusals.add(kind, uid, refused);
    }

    /// Lets go of the oldest registration of a process that has too many.
    fn make_room(&mut self, pid: i32) -> Result<(), WriteError> {
        let numbers =
            || self.sources.iter().enumerate().filter(|(_, r)| r.source.identity().pid == pid);
        if numbers().count() >= MAX_OF_PROCESS
            && let Some((at, _)) = numbers().min_by_key(|(_, r)| r.source.number())
        {
            let oldest = self.sources.swap_remove(at);
            let ended = oldest.source.identity().has_ended();
            self.close_source(oldest, ended)?;
        }
        Ok(())
    }

    /// Makes a source, and introduces it.
    fn add(
        &mut self,
        identity: Identity,
        memory: Memory,
        since: Since,
        arrived: Arrived,
    ) -> Result<Source, WriteError> {
        let source = Source::new(self.next_source, identity, memory, since, self.seen.clone());
        source.wait_when_full(self.full_wait);
        source.count_with_events(self.counting);
        source.extend_lease();
        self.next_source += 1;
        let Arrived { ts, waited, executed, unanswered, on_ns } = arrived;
        let process = Process { ts, waited, executed, unanswered, on_ns, ..source.introduce() };
        self.writer.push(&Frame::Process(process))?;
        Ok(source)
    }

    /// Whether nothing of what the process has registered before is mapped in it any more.
    fn has_executed(&self, Registration { identity, found, .. }: &Registration) -> bool {
        let is_same = |other: &Identity| identity.is_same(other);
        let earlier = self.sources.iter().map(|recorded| &recorded.source);
        let mut inodes = earlier.filter(|s| is_same(s.identity())).filter_map(Source::inode);
        let mapped = found.tracers.as_ref();
        mapped.is_some_and(|mapped| !inodes.any(|inode| mapped.contains(&inode)))
    }

    /// Tells the mappings and threads that were found of a process.
    pub(super) fn introduce(&mut self, found: Found) -> Result<(), WriteError> {
        if let Some(mappings) = found.mappings {
            self.tell_mappings(mappings)?;
        }
        found.threads.into_iter().try_for_each(|thread| self.writer.push(&Frame::Thread(thread)))
    }

    /// Tells of mappings what the registry does not have, as far as there is room for it.
    fn tell_mappings(&mut self, mut mappings: Mappings) -> Result<(), WriteError> {
        let pid = mappings.pid;
        let New { is_any, is_cut } = self.told.new_of(&mut mappings);
        if let (true, Some(user)) = (is_cut, mappings.user) {
            let refused = || Refused {
                pid,
                comm: discover::comm(pid, pid).unwrap_or_default(),
                reason: TOO_MANY.into(),
                is_recorded: true,
                has_unnamed: true,
                ..Refused::default()
            };
            self.intake.refusals.add("mappings", user, refused);
        }
        if is_any { self.writer.push(&Frame::Mappings(mappings)) } else { Ok(()) }
    }

    fn introduce_plain(&mut self, identity: &Identity) -> Result<(), WriteError> {
        let pid = identity.pid;
        self.writer.push(&Frame::Process(Process {
            source: None,
            pid,
            start_time: identity.start_time,
            comm: identity.comm.clone(),
            exe: identity.exe.clone(),
            ts: monotonic_ns(),
            ..Process::default()
        }))?;
        for tid in discover::threads(pid) {
            if let Some(name) = discover::comm(pid, tid) {
                self.writer.push(&Frame::Thread(Thread { tid, pid, name, ts: monotonic_ns() }))?;
            }
        }
        Ok(())
    }

    /// Records from now on what was started while the kernel did not say so.
    fn observe_overlooked(&mut self, all: &[(i32, i32)]) {
        let overlooked = overlooked(all, |pid| self.observes(pid));
        overlooked.iter().for_each(|pid| self.observe(*pid));
        // Names are asked of as many as are shown: there may be very many.
        let name = |(n, pid): (usize, i32)| {
            let name = if n < SHOWN { discover::comm(pid, pid) } else { None };
            (pid, name.unwrap_or_default())
        };
        let who: Vec<_> = overlooked.into_iter().enumerate().map(name).collect();
        if !who.is_empty() {
            self.notice(Notice::Overlooked { who });
        }
    }

    fn observe(&mut self, pid: i32) {
        // By its cgroup a process is observed as long as it is in it.
        if !matches!(self.scope, Scope::Cgroup(_))
            && let (Some(kernel), Ok(number)) = (&mut self.kernel, u32::try_from(pid))
        {
            kernel.observe(number);
        }
    }

    /// The last look at a source, as far as its user has work left in this round; gives it back when there is more.
    pub(super) fn close_source(
        &mut self,
        mut recorded: Recorded,
        ended: bool,
    ) -> Result<Option<Recorded>, WriteError> {
        let (writer, source) = (&mut self.writer, &mut recorded.source);
        let work = self.budgets.of(source.identity().uid);
        let sink = &mut |frame: &Frame<'_>| writer.push(frame);
        let (round, done) = source.finish(monotonic_ns(), ended, work, sink)?;
        self.counters.slots.fetch_add(round.slots, Relaxed);
        if !done {
            recorded.is_over = ended;
            return Ok(Some(recorded));
        }
        self.tell_taken_back(&mut recorded)?;
        let Recorded { mut source, subject, .. } = recorded;
        subject.let_go();
        source.end_lease();
        if ended {
            let number = Some(source.number());
            self.ended.push(self.writer.number(), number, source.identity().pid);
        }
        self.tell_offences(&mut source);
        self.counters.lost_ended.fetch_add(source.lost(), Relaxed);
        self.finished.sources += 1;
        for site in source.sites() {
            if self.finished.sites.len() >= MAX_SITE_NAMES {
                break;
            }
            if !self.finished.sites.contains(site) {
                self.finished.sites.insert(site.to_owned());
            }
        }
        Ok(None)
    }
}
