//! Follows a running recording in memory: what the analyses would see of it, segment by segment.
//!
//! It decodes a closed segment like the conversion, and writes nothing. The release rule of
//! [`crate::stream`] does not suffice here, where nobody merges the parts afterwards: an event may lie in a
//! later segment than its time says, by as long as the collector takes for a round. So the events of the
//! last [`HOLD_BACK_NS`] of a segment wait for the next.

use std::path::Path;

use super::ledger::Ledger;
use super::registry::Registry;
use super::segment::{Decoded, decode};
use super::threads::Threads;
use super::{ConvertError, Result};
use crate::clock::ClockSample;
use crate::event::{Event, LeanUserEvent};
use crate::ids::{Cpu, Nanos, Pid, Tid};
use crate::spool::{ReadError, Segment, Spool};
use crate::tables::{LossOrigin, LossRow, NameRow, SiteRow, ThreadRow};

/// How much later than its time an event may come.
const HOLD_BACK_NS: i64 = 50_000_000;

/// What a segment adds.
#[derive(Debug, Default)]
pub struct Followed {
    /// Largest error of a user time, ns.
    pub bound_ns: i64,
    /// Threads that were seen.
    pub threads: Vec<ThreadRow>,
    /// Sites that are new.
    pub sites: Vec<SiteRow>,
    /// Names that are new.
    pub names: Vec<NameRow>,
    /// Events in order, none older than those of the segment before.
    pub events: Vec<Event>,
    /// The segment was gone: one loss stands for its events.
    pub missed: bool,
}

/// Follows one recording.
pub struct Follower {
    spool: Spool,
    registry: Registry,
    samples: Vec<ClockSample>,
    held: Vec<Event>,
    /// How much of the registry was told: sites, names, processes, threads.
    told: [usize; 4],
}

impl Follower {
    /// Opens the spool of a trace directory.
    ///
    /// # Errors
    ///
    /// When the registry cannot be read.
    pub fn new(dir: &Path) -> Result<Follower> {
        let spool = Spool::of(dir);
        let registry = Registry::open(&spool)?;
        Ok(Follower { spool, registry, samples: Vec::new(), held: Vec::new(), told: [0; 4] })
    }

    /// Scheduler records are recorded.
    pub fn records_kernel(&self) -> bool {
        !self.registry.start.kernel_groups.is_empty()
    }

    /// The process that records, if it says so.
    pub fn agent(&self) -> Option<Pid> {
        self.registry.start.agent_pid.map(Pid)
    }

    /// The recording has compacted its registry: this follower learns nothing new any more.
    pub fn is_outdated(&self) -> bool {
        self.registry.is_replaced()
    }

    /// Decodes a closed segment, which stays. Segments come in ascending order.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`]; a segment that was deleted already is none.
    pub fn segment(&mut self, segment: &Segment) -> Result<Followed> {
        self.registry.update()?;
        let mut ledger = Ledger::default();
        let path = self.spool.segment(segment.number);
        let mut threads = Threads::default();
        let mut followed = Followed::default();
        match decode(&path, &self.samples, &self.registry, &mut ledger) {
            Ok(decoded) => {
                followed.bound_ns = decoded.model.as_ref().map_or(0, |m| m.bound_ns());
                self.samples.clone_from(&decoded.own_samples);
                self.take(decoded, &mut threads);
            }
            Err(ConvertError::Spool(ReadError { source, .. }))
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                followed.missed = true;
                self.held.push(Event::Loss(missed(segment)));
            }
            Err(error) => return Err(error),
        }
        let until = segment.to_ns.saturating_sub(HOLD_BACK_NS);
        self.held.sort_by_key(|event| (event.ts(), event.rank()));
        let due = self.held.partition_point(|event| event.ts().0 <= until);
        followed.events = self.held.drain(..due).collect();
        self.tell(threads, &mut followed);
        Ok(followed)
    }

    /// The events of a segment.
    fn take(&mut self, decoded: Decoded, threads: &mut Threads) {
        let Decoded { model, user, kernel, threads: seen, losses, .. } = decoded;
        *threads = seen;
        self.held.extend(losses.into_iter().map(Event::Loss));
        self.held.extend(kernel.into_events());
        let Some(model) = &model else { return };
        let mut cursor = model.cursor();
        for at in 0..user.len() {
            let row = user.row(at, &self.registry, &mut cursor);
            self.held.push(Event::User(LeanUserEvent::from(&row)));
        }
    }

    /// What the registry holds since the last time.
    fn tell(&mut self, mut threads: Threads, followed: &mut Followed) {
        let registry = &self.registry;
        let [sites, names, processes, named] = self.told;
        for process in &registry.processes[processes..] {
            let (pid, name) = (process.pid, process.comm.as_str().into());
            threads.seen(Pid(pid), Tid(pid), Nanos(process.ts), Some(&name), None);
        }
        for thread in &registry.threads[named..] {
            let name = thread.name.as_str().into();
            threads.seen(Pid(thread.pid), Tid(thread.tid), Nanos(thread.ts), Some(&name), None);
        }
        followed.threads = threads.rows(registry);
        followed.sites = registry.sites()[sites..].iter().map(|site| site.row.clone()).collect();
        followed.names = registry.names[names..].to_vec();
        self.told = [
            registry.sites().len(),
            registry.names.len(),
            registry.processes.len(),
            registry.threads.len(),
        ];
    }
}

/// The loss that stands for a segment that was not seen.
fn missed(segment: &Segment) -> LossRow {
    LossRow {
        ts: Nanos(segment.from_ns),
        dur: segment.to_ns.saturating_sub(segment.from_ns),
        origin: LossOrigin::Agent,
        what: "segment not watched".into(),
        cpu: Cpu(-1),
        pid: Pid(-1),
        tid: Tid(-1),
        count: 1,
    }
}
