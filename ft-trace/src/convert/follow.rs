//! Follows a running recording in memory: what the analyses would see of it, segment by segment.
//!
//! It decodes a closed segment like the conversion, and writes nothing. The release rule of
//! [`crate::stream`] does not suffice here, where nobody merges the parts afterwards: an event may lie in a
//! later segment than its time says, by as long as the collector takes for a round. So the events of the
//! last [`HOLD_BACK_NS`] of a segment wait for the next.

use std::path::Path;

use super::ledger::Ledger;
use super::registry::Registry;
use super::segment::{Decoded, decode, decode_from};
use super::threads::Threads;
use super::{ConvertError, Result};
use crate::clock::ClockSample;
use crate::event::{Event, LeanUserEvent};
use crate::ids::{Cpu, Nanos, Pid, Tid};
use crate::spool::{News, ReadError, Segment, Spool};
use crate::tables::{LossOrigin, LossReason, LossRow, NameRow, SiteRow, ThreadRow};

/// How much later than its time an event may come.
///
/// Limit: counted as out of order (`disordered`), with a warning; conversion of a whole recording has no such bound. A
/// wait for room (`--on-full wait`) comes as late as it was long.
/// Shown by: `events_out_of_order_are_left_out`.
const HOLD_BACK_NS: i64 = 50_000_000;

/// From the first event behind a gap to those that are all there: some of the collector's rounds.
const ROUND_NS: i64 = 2_000_000;

/// Clock samples that are kept, from which the time stamps behind them have their times.
const SAMPLES: usize = 32;

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
    /// Events and records that were decoded; behind a gap not all are passed on.
    pub decoded: u64,
    /// The segment was gone: one loss stands for its events.
    pub missed: bool,
}

/// Follows one recording.
pub struct Follower {
    spool: Spool,
    registry: Registry,
    samples: Vec<ClockSample>,
    held: Vec<Event>,
    /// Time of the newest event that was passed on.
    newest: Nanos,
    /// What came last has a gap behind it.
    ends_in_gap: bool,
    /// How much of the registry was passed on: sites, names, processes, threads.
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
        Ok(Follower {
            spool,
            registry,
            samples: Vec::new(),
            held: Vec::new(),
            newest: Nanos(i64::MIN),
            ends_in_gap: false,
            told: [0; 4],
        })
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
                followed.decoded += self.take(decoded, &mut threads);
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
        followed.events = self.due(until);
        self.tell(threads, &mut followed);
        Ok(followed)
    }

    /// Decodes what came of a segment that is still written. Where frames were skipped, one loss stands for their events,
    /// and nothing waits for the next time, before which frames will be skipped again.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`].
    pub fn news(&mut self, news: &News) -> Result<Followed> {
        self.registry.update()?;
        let (mut followed, mut threads) = (Followed::default(), Threads::default());
        let gap = news.skipped || self.ends_in_gap;
        // What waits is older than the gap.
        followed.events = if gap { self.due(i64::MAX) } else { Vec::new() };
        self.samples.extend_from_slice(&news.samples);
        for piece in &news.pieces {
            let mut ledger = Ledger::default();
            let open = || piece.reader();
            let (path, samples) = (&piece.path, &self.samples);
            let decoded = decode_from(path, &open, samples, &self.registry, &mut ledger, None)?;
            followed.bound_ns =
                followed.bound_ns.max(decoded.model.as_ref().map_or(0, |m| m.bound_ns()));
            self.samples.extend_from_slice(&decoded.own_samples);
            followed.decoded += self.take(decoded, &mut threads);
        }
        let old = self.samples.len().saturating_sub(SAMPLES);
        self.samples.drain(..old);
        if gap {
            self.begin_behind_gap(&mut followed);
        }
        if !news.pieces.is_empty() || news.skipped {
            self.ends_in_gap = news.skipped;
        }
        let newest = self.held.iter().map(|event| event.ts().0).max().unwrap_or(i64::MIN);
        let until = if news.skipped { newest } else { newest.saturating_sub(HOLD_BACK_NS) };
        followed.events.extend(self.due(until));
        self.tell(threads, &mut followed);
        Ok(followed)
    }

    /// Rings and the kernel's buffer were copied at different times: what lies at the begin is not all that there was.
    fn begin_behind_gap(&mut self, followed: &mut Followed) {
        let Some(first) = self.held.iter().map(|event| event.ts().0).min() else { return };
        let (from, to) = (self.newest.0.max(0), first.saturating_add(ROUND_NS).max(self.newest.0));
        self.held.retain(|event| event.ts().0 > to);
        let from = if from == 0 { first.min(to) } else { from };
        followed.events.push(Event::Loss(not_watched(from, to)));
        followed.missed = true;
        self.newest = Nanos(to);
    }

    /// The events up to then, in order.
    fn due(&mut self, until: i64) -> Vec<Event> {
        self.held.sort_by_key(|event| (event.ts(), event.rank()));
        let due = self.held.partition_point(|event| event.ts().0 <= until);
        let events: Vec<Event> = self.held.drain(..due).collect();
        self.newest = events.last().map_or(self.newest, |event| event.ts().max(self.newest));
        events
    }

    /// The events of a segment; returns how many there are, without losses.
    fn take(&mut self, decoded: Decoded, threads: &mut Threads) -> u64 {
        let Decoded { model, user, kernel, threads: seen, losses, .. } = decoded;
        threads.add(&seen.sightings());
        self.held.extend(losses.into_iter().map(Event::Loss));
        let before = self.held.len();
        self.held.extend(kernel.into_events());
        if let Some(model) = &model {
            let mut cursor = model.cursor();
            for at in 0..user.len() {
                let row = user.row(at, &self.registry, &mut cursor);
                self.held.push(Event::User(LeanUserEvent::from(&row)));
            }
        }
        (self.held.len() - before) as u64
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
    not_watched(segment.from_ns, segment.to_ns)
}

/// The loss that stands for what was not looked at.
fn not_watched(from_ns: i64, to_ns: i64) -> LossRow {
    LossRow {
        ts: Nanos(from_ns),
        dur: to_ns.saturating_sub(from_ns),
        origin: LossOrigin::Agent,
        what: LossReason::NotWatched.word().into(),
        cpu: Cpu(-1),
        pid: Pid(-1),
        tid: Tid(-1),
        count: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::kernel::test_bytes as bytes;
    use crate::convert::synthetic::{file, registry, sample};
    use crate::spool::frame::Frame;
    use crate::spool::{Tail, Wanted};

    fn switch(us: u64) -> Vec<u8> {
        bytes(&ft_ebpf::Switch {
            header: ft_ebpf::Header { ts: us * 1000, kind: ft_ebpf::kind::SWITCH, cpu: 0, tid: 1 },
            ..Default::default()
        })
    }

    /// A segment with a switch at each of these times.
    fn segment(spool: &Spool, number: u32, times: &[u64]) {
        let switches: Vec<_> = times.iter().map(|us| switch(*us)).collect();
        let clock = |us: u64| Frame::Clock(sample(us * 1000));
        let mut frames = vec![clock(times[0])];
        frames.extend(switches.iter().map(|bytes| Frame::Kernel(bytes)));
        frames.push(clock(times[times.len() - 1]));
        file(&spool.segment(number), &frames);
    }

    fn newest(bytes: u64) -> Wanted {
        Wanted { bytes, at_most: bytes }
    }

    fn times(followed: &Followed) -> Vec<i64> {
        let switches = followed.events.iter().filter(|event| matches!(event, Event::Switch(_)));
        switches.map(|event| event.ts().0 / 1000).collect()
    }

    #[test]
    fn news_without_gaps_are_told_whole_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        registry(dir.path(), &[], true);
        let spool = Spool::of(dir.path());
        let mut follower = Follower::new(dir.path()).unwrap();
        let mut tail = Tail::new(spool.clone());
        let mut found = Vec::new();
        for (number, at) in [(0, 1_000), (1, 101_000), (2, 201_000)] {
            segment(&spool, number, &[at, at + 10_000, at + 99_000]);
            let news = tail.read(newest(1 << 20), || true).unwrap();
            let followed = follower.news(&news).unwrap();
            assert!(!followed.missed);
            found.extend(times(&followed));
        }
        // What is younger than 50 ms waits.
        assert_eq!(found, [1_000, 11_000, 100_000, 101_000, 111_000, 200_000, 201_000, 211_000]);
    }

    #[test]
    fn a_loss_stands_for_what_was_skipped() {
        let dir = tempfile::tempdir().unwrap();
        registry(dir.path(), &[], true);
        let spool = Spool::of(dir.path());
        let mut follower = Follower::new(dir.path()).unwrap();
        let mut tail = Tail::new(spool.clone());
        segment(&spool, 0, &[1_000, 2_000]);
        assert_eq!(
            times(&follower.news(&tail.read(newest(1 << 20), || true).unwrap()).unwrap()),
            [0; 0]
        );
        segment(&spool, 1, &[100_000, 200_000, 300_000, 303_000]);
        // The last two switches, and the closing sample.
        let frame = |bytes: usize| (bytes + crate::spool::frame::HEADER_BYTES) as u64;
        let most = 2 * frame(switch(0).len()) + frame(48);
        let followed = follower.news(&tail.read(newest(most), || true).unwrap()).unwrap();
        // Those that waited; and of the others, what is sure to be all there.
        assert_eq!(times(&followed), [1_000, 2_000, 303_000]);
        let losses = followed.events.iter().filter_map(|event| match event {
            Event::Loss(loss) => {
                Some((loss.ts.0 / 1000, (loss.ts.0 + loss.dur) / 1000, loss.origin))
            }
            _ => None,
        });
        assert_eq!(losses.collect::<Vec<_>>(), [(2_000, 302_000, LossOrigin::Agent)]);
        assert!(followed.missed);
        assert_eq!(followed.decoded, 2, "one is not told");
    }
}
