//! How long locks of the kernel were held, and how deeply nested, as they were counted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::document::{Builder, Data, N, Ns, Section, Share, Step, Table, Text, Word};
use crate::stats::OwnRows;
use crate::text;
use ft_trace::tables::{KernelSections, LossRow, LostRecords, SectionCount};

/// Callers that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Sections of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeldLocks {
    /// Kind of the lock, of interrupts apart.
    pub lock: String,
    /// Function that took it; missing in the rows of all, and where it is not known.
    pub caller: Option<String>,
    /// Sections whose begin and end were seen; what follows is of these.
    pub sections: u64,
    /// Together, ns.
    pub total_ns: i64,
    /// Half of them are no longer, ns.
    pub p50_ns: i64,
    /// Of a hundred, 99 are no longer, ns.
    pub p99_ns: i64,
    /// The longest, ns.
    pub max_ns: i64,
    /// How many lie within how many others.
    pub depths: BTreeMap<i64, u64>,
    /// Shortest length of a bin, ns, and how many sections.
    pub lengths: BTreeMap<i64, u64>,
    /// Sections that have begun; this and what follows for all callers together.
    pub begun: u64,
    /// Of these, not followed, for too many were open.
    pub full: u64,
    /// Ends without a begin.
    pub end_only: u64,
    /// What of `sections` is the recording's own: of threads of its agent, and under locks that its programs in the kernel take; null
    /// where that was not counted.
    pub of_recording: Option<OwnRows>,
    /// The longest of each bin.
    #[serde(skip)]
    longest: BTreeMap<i64, i64>,
}

/// All of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Held {
    /// By kind of lock, of threads and of interrupts.
    pub locks: Vec<HeldLocks>,
    /// By caller, too, the most time first.
    pub callers: Vec<HeldLocks>,
    /// Begins and ends, of all threads, that struck while one was being counted, and were not.
    pub skipped: u64,
    /// Such as the kernel did not even report, by its own count.
    pub missed: u64,
}

impl HeldLocks {
    fn add(&mut self, r: &KernelSections) {
        let count = r.count.max(0) as u64;
        match r.what {
            SectionCount::Length => {
                self.sections += count;
                self.total_ns = self.total_ns.saturating_add(r.total_ns);
                self.max_ns = self.max_ns.max(r.max_ns);
                *self.lengths.entry(r.at_least).or_default() += count;
                let longest = self.longest.entry(r.at_least).or_default();
                *longest = r.max_ns.max(*longest);
            }
            SectionCount::Depth => *self.depths.entry(r.at_least).or_default() += count,
            SectionCount::Begun => self.begun += count,
            SectionCount::Full => self.full += count,
            SectionCount::EndOnly => self.end_only += count,
            SectionCount::Recording => {
                let own = self.of_recording.get_or_insert_default();
                own.count += count;
                own.total_ns = own.total_ns.saturating_add(r.total_ns);
            }
            SectionCount::Skipped => {}
        }
    }

    /// So many of a hundred are no longer than this, the longest of their bin.
    fn percentile(&self, percent: u64) -> i64 {
        let mut below = 0;
        for (from, count) in &self.lengths {
            below += count;
            if below * 100 >= self.sections * percent {
                return self.longest.get(from).copied().unwrap_or(self.max_ns);
            }
        }
        self.max_ns
    }

    fn finish(mut self) -> HeldLocks {
        (self.p50_ns, self.p99_ns) = (self.percentile(50), self.percentile(99));
        self
    }

    /// Sections whose end was not seen.
    fn open(&self) -> u64 {
        self.begun.saturating_sub(self.full + self.sections)
    }
}

/// Sums up rows.
#[derive(Debug, Default)]
pub(super) struct Sums {
    locks: BTreeMap<String, HeldLocks>,
    callers: BTreeMap<(String, String), HeldLocks>,
    skipped: u64,
    missed: u64,
}

impl Sums {
    pub(super) fn add(&mut self, r: &KernelSections) {
        if r.what == SectionCount::Skipped {
            self.skipped += r.count.max(0) as u64;
            return;
        }
        let lock = format!("{}{}", r.lock, if r.interrupt { " in interrupts" } else { "" });
        let all = self.locks.entry(lock.clone()).or_default();
        all.lock.clone_from(&lock);
        all.add(r);
        if matches!(r.what, SectionCount::Length | SectionCount::Depth) {
            let caller = r.caller.as_deref().unwrap_or_default().to_owned();
            let of_caller = self.callers.entry((lock.clone(), caller.clone())).or_default();
            of_caller.lock = lock;
            of_caller.caller = Some(caller).filter(|caller| !caller.is_empty());
            of_caller.add(r);
        }
    }

    pub(super) fn add_loss(&mut self, r: &LossRow) {
        if r.records() == Some(LostRecords::Sections) {
            self.missed += r.count.max(0) as u64;
        }
    }

    pub(super) fn finish(self) -> Held {
        let mut callers: Vec<_> = self.callers.into_values().map(HeldLocks::finish).collect();
        callers.sort_by_key(|held| -held.total_ns);
        let locks = self.locks.into_values().map(HeldLocks::finish).collect();
        Held { locks, callers, skipped: self.skipped, missed: self.missed }
    }
}

impl Held {
    /// Says it.
    pub(super) fn say(&self, s: &mut Section) {
        if self.locks.iter().all(|held| held.begun + held.sections + held.end_only == 0) {
            s.say("No section under a lock of the kernel was counted.");
            return;
        }
        let t = columns(Table::of(&self.locks).column("held", |h| Word(&h.lock)))
            .column("end unseen", |h| N(h.open()))
            .column("begin unseen", |h| N(h.end_only))
            .notes("not followed", |h| (h.full > 0).then_some(N(h.full)))
            .notes("recording's own", |h| own(h).map(|own| N(own.count)))
            .notes("in these", |h| own(h).map(|own| Ns(own.total_ns)));
        s.table(t.titled("How long locks of the kernel were held, from taken to released"));
        if self.locks.iter().any(|held| own(held).is_some()) {
            s.say(
                "The recording's own: sections of threads of ft-agent, and under locks that its programs in the kernel take. They are in all \
                 figures here.",
            );
        }
        let t = Table::first(SHOWN, &self.callers)
            .counted("callers")
            .column("held", |h| Word(&h.lock))
            .column("taken by", |h| Word(h.caller.as_deref().unwrap_or("(others)")));
        s.table(columns(t).titled("By who took them, the most time first"));
        for held in self.locks.iter().filter(|held| held.sections > 0) {
            // Where no section was of a length there is no bin: each begins where it does, not at the end of the one before.
            let steps = held.lengths.iter().map(|(&from_ns, &count)| {
                let longest = held.longest.get(&from_ns).copied().unwrap_or(from_ns);
                Step { from_ns, to_ns: Some(longest.max(from_ns)), count }
            });
            let lengths = Data::Cumulative {
                axis: "not longer than",
                counted: "sections",
                steps: steps.collect(),
                bins: Vec::new(),
                each: Vec::new(),
            };
            s.figure(text!("Lengths: {}", Word(&held.lock)), lengths);
            let bars = held.depths.iter().map(|(depth, count)| (*depth as u64, *count)).collect();
            let depths =
                Data::Bars { axis: "within others", counted: "sections", bars, each: Vec::new() };
            s.figure(text!("Depths: {}", Word(&held.lock)), depths);
        }
        s.say(
            "A percentile is the longest length of its bin, of which there are two for each power of two. Depths count what the \
             same CPU holds of locks that spin, of interrupts apart, and what the same thread holds of the others. Lengths contain \
             what counting itself takes of sections within.",
        );
        let left_out = [
            (self.skipped, "struck while another was being counted"),
            (self.missed, "were not reported, by the kernel's own count"),
        ];
        let left_out = left_out.iter().filter(|(n, _)| *n > 0);
        let left_out = left_out.map(|(n, why)| text!("{} {}", N(*n), *why));
        if let Some(left_out) = Text::join(left_out, "; ") {
            s.say(text!(
                "Begins and ends of all threads, observed or not, that were not counted: {}.",
                left_out
            ));
        }
        let open: u64 = self.locks.iter().map(HeldLocks::open).sum();
        if open > 0 {
            s.say(text!(
                "Of {} sections no end was seen: some may have been open when the recording ended; where the end was not counted, \
                 depths are too large until that shows.",
                N(open)
            ));
        }
    }
}

/// What of them is the recording's own, if there is any.
fn own(held: &HeldLocks) -> Option<OwnRows> {
    held.of_recording.filter(|own| own.count > 0)
}

/// Columns of both tables.
fn columns(t: Builder<&HeldLocks>) -> Builder<&HeldLocks> {
    t.column("sections", |h| N(h.sections))
        .column("total", |h| Ns(h.total_ns))
        .column("p50", |h| Ns(h.p50_ns))
        .column("p99", |h| Ns(h.p99_ns))
        .column("max", |h| Ns(h.max_ns))
        .column("not nested", |h| Share::of(h.depths.get(&0).copied().unwrap_or(0), h.sections))
        .column("deepest", |h| N(h.depths.keys().next_back().copied().unwrap_or(0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::Nanos;
    use ft_trace::tables::SectionLock;

    fn row(what: SectionCount, at_least: i64, count: i64, max_ns: i64) -> KernelSections {
        KernelSections {
            ts: Nanos(9),
            lock: SectionLock::Mutex,
            interrupt: false,
            caller: Some("vfs_write".into()),
            caller_address: 1,
            what,
            at_least,
            count,
            total_ns: count * max_ns,
            max_ns,
        }
    }

    #[test]
    fn lengths_depths_and_what_is_missing_are_those_of_the_rows() {
        let mut sums = Sums::default();
        for row in [
            row(SectionCount::Length, 64, 97, 90),
            row(SectionCount::Length, 1024, 3, 1_500),
            row(SectionCount::Depth, 0, 80, 90),
            row(SectionCount::Depth, 2, 20, 90),
            row(SectionCount::Begun, 0, 110, 0),
            row(SectionCount::Full, 0, 4, 0),
            row(SectionCount::EndOnly, 0, 2, 0),
            row(SectionCount::Skipped, 0, 5, 0),
            row(SectionCount::Recording, 0, 7, 80),
        ] {
            sums.add(&row);
        }
        let held = sums.finish();
        let all = &held.locks[0];
        assert_eq!((all.sections, all.p50_ns, all.p99_ns, all.max_ns), (100, 90, 1_500, 1_500));
        assert_eq!((all.open(), all.full, all.end_only, held.skipped), (6, 4, 2, 5));
        let of_recording = Some(OwnRows { count: 7, total_ns: 560 });
        assert_eq!((all.of_recording, held.callers[0].of_recording), (of_recording, None));
        assert_eq!(held.callers[0].caller.as_deref(), Some("vfs_write"));
        let mut section = Section::new("kernel-locks", "held");
        held.say(&mut section);
        let text = format!("{section:200}");
        for word in [
            "mutex",
            "vfs_write",
            "80.0 %",
            "of all threads",
            "5 struck while",
            "Of 6 sections no",
            "recording's own",
            "560 ns",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
