//! Slots to rows of `user_events`.
//!
//! Two steps, since the order is known only at the end of a segment: [`UserSlots::scan`] copies the
//! slots of a frame, judges them, and notes time and place of each event (24 bytes); after
//! [`UserSlots::sort`], [`UserSlots::row`] decodes one event after the other.
//!
//! An application wrote these bytes. A first slot counts when it is committed, has the tag of its
//! index, a known site, a time within an hour of the clock samples, and as many good continuation
//! slots as it says; otherwise it is counted as rejected, and the next slot is tried.

mod judge;
mod payload;

use std::collections::HashMap;

use ft_user::layout::{LOSS_KEY, MAX_ARGS, MAX_EVENT_SLOTS, SharedSlot, Slot, commit, marker};

use super::registry::Registry;
use crate::clock::Cursor;
use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid, Tsc};
use crate::spool::FASTEST_LOSS_NS;
use crate::spool::frame::{Shared, Slots};
use crate::tables::{LossOrigin, LossReason, LossRow, SiteKind, UserEvent};
pub(super) use judge::Judge;
use payload::{Payload, arguments};

/// The beginning of a loss is read after its event has begun, and times are whole nanoseconds.
///
/// Limit: as `FASTEST_LOSS_NS` of `spool/mod.rs`.
const LOST_AT_ONCE: u64 = 1;

/// Words of a slot.
const SLOT_WORDS: usize = size_of::<Slot>() / 8;

/// Words of a slot of a shared ring.
const SHARED_SLOT_WORDS: usize = size_of::<SharedSlot>() / 8;

/// One event, not decoded yet.
#[derive(Clone, Copy)]
struct Entry {
    ts: Nanos,
    /// Where its first slot is in `words`, in units of a slot.
    slot: u32,
    thread: u32,
    site: SiteId,
    shared: bool,
}

/// The user events of one segment.
pub(super) struct UserSlots {
    words: Vec<u64>,
    entries: Vec<Entry>,
    /// Process and thread by the number that entries carry.
    threads: Vec<(Pid, Tid)>,
    thread_numbers: HashMap<(Pid, Tid), u32>,
    /// Losses that slots report.
    pub(super) losses: Vec<LossRow>,
    /// Slots that were not valid.
    pub(super) rejected: u64,
    /// Events outside the samples, and how far at most (ns, bound in ns).
    pub(super) beyond: (u64, i64, i64),
}

/// CPU of an event with this commit word.
fn cpu(word: u64) -> Cpu {
    match u64::from(commit::cpu(word)) {
        commit::CPU_UNKNOWN => Cpu::UNKNOWN,
        cpu => Cpu(cpu as i32),
    }
}

impl UserSlots {
    /// Without events, and with room for so many bytes of slots: memory that grows step by step leaves holes in
    /// the heap, other ones with each segment.
    pub(super) fn with_capacity(bytes: usize) -> UserSlots {
        UserSlots {
            words: Vec::with_capacity(bytes / 8),
            entries: Vec::with_capacity(bytes / size_of::<Slot>()),
            threads: Vec::new(),
            thread_numbers: HashMap::new(),
            losses: Vec::new(),
            rejected: 0,
            beyond: (0, 0, 0),
        }
    }

    /// Takes a frame of a per-thread ring.
    pub(super) fn scan(&mut self, frame: &Slots<'_>, judge: &mut Judge<'_>) {
        let base = self.words.len() / SLOT_WORDS;
        let count = frame.bytes.len() / size_of::<Slot>();
        let Some(pid) = judge.registry.pid(frame.source) else {
            self.rejected += count as u64;
            return;
        };
        self.append(frame.bytes);
        let thread = self.thread(pid, Tid(frame.tid));
        let mut sites = SiteCache::new(frame.source);
        let mut i = 0;
        while i < count {
            let (taken, entry) = self.judge_slot(frame, base, i, count, judge, &mut sites);
            match entry {
                Verdict::Event(ts, site) => {
                    let slot = (base + i) as u32;
                    self.entries.push(Entry { ts, slot, thread, site, shared: false });
                }
                // Of a child that was forked while its parent told one: it has none.
                Verdict::Loss(row) if row.count == 0 => {}
                Verdict::Loss(row) => self.losses.push(LossRow { pid, ..row }),
                Verdict::Rejected => self.rejected += 1,
            }
            i += taken;
        }
    }

    /// Judges the slot at `i` of the frame; returns how many slots are done with.
    fn judge_slot(
        &mut self,
        frame: &Slots<'_>,
        base: usize,
        i: usize,
        count: usize,
        judge: &mut Judge<'_>,
        sites: &mut SiteCache,
    ) -> (usize, Verdict) {
        let rejected = (1, Verdict::Rejected);
        let good = |i: usize, flags: u64| {
            let word = self.words[(base + i) * SLOT_WORDS];
            word & (commit::COMMITTED | commit::CONTINUATION) == flags
                && word >> commit::TAG_SHIFT
                    == commit::tag(frame.first_index.wrapping_add(i as u64))
        };
        if !good(i, commit::COMMITTED) {
            return rejected;
        }
        let first = &self.words[(base + i) * SLOT_WORDS..][..SLOT_WORDS];
        let slots = 1 + commit::continuations(first[0]) as usize;
        let rest_is_good = (i + 1..i + slots)
            .all(|i| i < count && good(i, commit::COMMITTED | commit::CONTINUATION));
        if slots > MAX_EVENT_SLOTS as usize || !rest_is_good {
            return rejected;
        }
        let (word, tsc) = (first[0], first[1]);
        let (begin, lost) = (first[2], first[3]);
        let key = commit::key(word);
        let Some(ts) = self.time(tsc, judge) else { return rejected };
        if key == LOSS_KEY {
            let Some(from) = self.time(begin, judge) else { return rejected };
            let possible = LOST_AT_ONCE + (ts - from).max(0) as u64 / FASTEST_LOSS_NS;
            // What a process claims beyond that is counted, not summed.
            self.rejected += u64::from(lost > possible);
            let count = lost.min(possible);
            let row =
                loss_row(LossOrigin::Ring, LossReason::RingFull, from, ts, Tid(frame.tid), count);
            return (slots, Verdict::Loss(row));
        }
        match sites.find(judge.registry, key) {
            Some(site) => (slots, Verdict::Event(ts, site)),
            None => (slots, Verdict::Rejected),
        }
    }

    /// Takes a frame of a shared ring.
    pub(super) fn scan_shared(&mut self, frame: &Shared<'_>, judge: &mut Judge<'_>) {
        let base = self.words.len();
        let count = frame.bytes.len() / size_of::<SharedSlot>();
        let Some(pid) = judge.registry.pid(frame.source) else {
            self.rejected += count as u64;
            return;
        };
        self.append(frame.bytes);
        let mut sites = SiteCache::new(frame.source);
        for i in 0..count {
            let at = base + i * SHARED_SLOT_WORDS;
            // Marker and thread share the first word, in this order (little-endian).
            let (marker, tid) = (self.words[at] as u32, (self.words[at] >> 32) as i32);
            let site = sites.find(judge.registry, commit::key(self.words[at + 1]));
            let ts = self.time(self.words[at + 2], judge);
            match (marker, site, ts) {
                (marker::READY, Some(site), Some(ts)) => {
                    let thread = self.thread(pid, Tid(tid));
                    let slot = (at / SLOT_WORDS) as u32;
                    self.entries.push(Entry { ts, slot, thread, site, shared: true });
                }
                _ => self.rejected += 1,
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let words =
            bytes.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap_or_default()));
        self.words.extend(words);
    }

    fn thread(&mut self, pid: Pid, tid: Tid) -> u32 {
        *self.thread_numbers.entry((pid, tid)).or_insert_with(|| {
            self.threads.push((pid, tid));
            self.threads.len() as u32 - 1
        })
    }

    /// Converts a time, if it can be believed.
    #[inline]
    fn time(&mut self, tsc: u64, judge: &mut Judge<'_>) -> Option<Nanos> {
        if !judge.sampled.contains(&tsc) {
            if !judge.believed.contains(&tsc) {
                return None;
            }
            let (model, tsc) = (judge.model, Tsc(tsc));
            let (events, distance, bound) = self.beyond;
            let distance = distance.max(model.beyond_ns(tsc));
            self.beyond = (events + 1, distance, bound.max(model.bound_at(tsc)));
        }
        Some(judge.cursor.to_ns(Tsc(tsc)))
    }

    /// Puts the events in order: by time, and where that is equal, as they were recorded.
    pub(super) fn sort(&mut self) {
        // Rings are nearly sorted each: a stable merge sort finds their runs.
        self.entries.sort_by_key(|e| e.ts);
    }

    /// Slots that an event takes on average, rounded up; 1 without events.
    pub(super) fn slots_per_event(&self) -> u64 {
        (self.words.len() / SLOT_WORDS).div_ceil(self.len().max(1)).max(1) as u64
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Processes and threads, by the numbers of [`UserSlots::times`].
    pub(super) fn threads(&self) -> &[(Pid, Tid)] {
        &self.threads
    }

    /// Time and thread number of each event, in order.
    pub(super) fn times(&self) -> impl Iterator<Item = (Nanos, u32)> {
        self.entries.iter().map(|e| (e.ts, e.thread))
    }

    /// Time, thread number and CPU of each event, in order.
    pub(super) fn places(&self) -> impl Iterator<Item = (Nanos, u32, Cpu)> {
        self.entries.iter().map(|e| {
            let first = e.slot as usize * SLOT_WORDS;
            (e.ts, e.thread, cpu(self.words[first + usize::from(e.shared)]))
        })
    }

    /// The thread with this number is this one.
    pub(super) fn renumber(&mut self, thread: u32, tid: Tid) {
        self.threads[thread as usize].1 = tid;
    }

    /// Time of the first event of each thread; `None` for one whose slots were all rejected.
    pub(super) fn first_times(&self) -> Vec<Option<Nanos>> {
        let mut first = vec![None; self.threads.len()];
        for (ts, thread) in self.times() {
            first[thread as usize].get_or_insert(ts);
        }
        first
    }

    /// The event at this place in the order.
    pub(super) fn row(&self, at: usize, registry: &Registry, cursor: &mut Cursor<'_>) -> UserEvent {
        let mut row = blank();
        self.read(at, registry, cursor, &mut row);
        row
    }

    /// Puts the event at this place in the order into `row`, [`blank`] or another event of this registry:
    /// events of one site share what is costly to make.
    pub(super) fn read(
        &self,
        at: usize,
        registry: &Registry,
        cursor: &mut Cursor<'_>,
        row: &mut UserEvent,
    ) {
        let entry = self.entries[at];
        let site = registry.site(entry.site);
        let (pid, tid) = self.threads[entry.thread as usize];
        let start = entry.slot as usize * SLOT_WORDS;
        let (word, tsc) = if entry.shared {
            (self.words[start + 1], self.words[start + 2])
        } else {
            (self.words[start], self.words[start + 1])
        };
        let payload = Payload {
            words: &self.words[start..],
            continuations: commit::continuations(word) as usize,
            shared: entry.shared,
        };
        let cpu = cpu(word);
        (row.ts, row.tsc) = (entry.ts, tsc as i64);
        (row.pid, row.tid, row.cpu) = (pid, tid, cpu);
        if row.site != entry.site {
            row.site = entry.site;
            row.event.clone_from(&site.row.event);
            row.category.clone_from(&site.row.category);
            row.kind = site.row.kind;
        }
        row.arg = [None; MAX_ARGS];
        row.argf = [None; MAX_ARGS];
        row.argt.fill(None);
        arguments(row, site, &payload, cursor);
    }
}

/// No event.
pub(super) fn blank() -> UserEvent {
    UserEvent {
        ts: Nanos(0),
        tsc: 0,
        pid: Pid(-1),
        tid: Tid(-1),
        cpu: Cpu::UNKNOWN,
        site: SiteId(-1),
        event: Name::default(),
        category: Name::default(),
        kind: SiteKind::Event,
        arg: [None; MAX_ARGS],
        argf: [None; MAX_ARGS],
        argt: [const { None }; MAX_ARGS],
    }
}

/// A row of `loss`, its process to be filled in.
fn loss_row(
    origin: LossOrigin,
    reason: LossReason,
    from: Nanos,
    to: Nanos,
    tid: Tid,
    count: u64,
) -> LossRow {
    LossRow {
        ts: from.min(to),
        dur: (to - from).max(0),
        origin,
        what: reason.word().into(),
        cpu: Cpu::UNKNOWN,
        pid: Pid(-1),
        tid,
        count: i64::try_from(count).unwrap_or(i64::MAX),
    }
}

/// What a slot turned out to be.
enum Verdict {
    Event(Nanos, SiteId),
    Loss(LossRow),
    Rejected,
}

/// Sites of one source that were found lately, by their key.
struct SiteCache {
    source: u32,
    recent: [Option<(u32, SiteId)>; 64],
}

impl SiteCache {
    fn new(source: u32) -> SiteCache {
        SiteCache { source, recent: [None; 64] }
    }

    #[inline]
    fn find(&mut self, registry: &Registry, key: u32) -> Option<SiteId> {
        // Keys are addresses of static metadata, multiples of 8 and mostly near to each other.
        let recent = &mut self.recent[(key >> 3) as usize % 64];
        match *recent {
            Some((known, id)) if known == key => Some(id),
            _ => {
                let id = registry.site_id(self.source, key)?;
                *recent = Some((key, id));
                Some(id)
            }
        }
    }
}

#[cfg(test)]
mod tests;
