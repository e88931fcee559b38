//! The execution trace while it is written: runs of all threads, in memory that is there before they start.
//!
//! A thread that finds a gap takes the next record and fills it in; nobody waits, and nothing is allocated. A record
//! that finds no room is counted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The thread did nothing for it: it was preempted, or an interrupt came.
    Unasked,
    /// The thread yielded the CPU.
    Yielded,
    /// The thread went to sleep.
    Slept,
    /// The thread was at its end.
    Finished,
}

/// A time in which a thread had the CPU without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whose.
    pub thread: u32,
    /// Where it began; a thread changes its CPU in a gap only.
    pub cpu: u16,
    /// The first reading of the counter in it.
    pub start_tsc: u64,
    /// The last one.
    pub end_tsc: u64,
    /// What came then.
    pub ended: Ended,
}

#[derive(Default)]
struct Record {
    start: AtomicU64,
    end: AtomicU64,
    /// Thread, CPU and end, from the lowest bit on: 32, 16, 2.
    rest: AtomicU64,
}

/// Room for the runs of all threads.
pub(super) struct Tape {
    records: Box<[Record]>,
    next: AtomicUsize,
}

impl Tape {
    /// Makes room for that many, and touches it; `None` where there is not as much memory.
    pub(super) fn new(records: usize) -> Option<Self> {
        let mut room = Vec::new();
        room.try_reserve_exact(records).ok()?;
        // Not zero, or the pages would stay those of the kernel's zero until the first run is written.
        room.resize_with(records, || Record {
            rest: AtomicU64::new(u64::MAX),
            ..Record::default()
        });
        Some(Tape { records: room.into_boxed_slice(), next: AtomicUsize::new(0) })
    }

    /// Takes down a run.
    #[inline]
    pub(super) fn push(&self, run: Run) {
        let Some(record) = self.records.get(self.next.fetch_add(1, Relaxed)) else { return };
        record.start.store(run.start_tsc, Relaxed);
        record.end.store(run.end_tsc, Relaxed);
        let rest = u64::from(run.thread) | u64::from(run.cpu) << 32 | (run.ended as u64) << 48;
        record.rest.store(rest, Relaxed);
    }

    /// The runs by CPU and time, and how many found no room. The threads that wrote them have been joined.
    pub(super) fn into_runs(self) -> (Vec<Run>, usize) {
        let written = self.next.load(Relaxed);
        let run = |record: &Record| {
            let rest = record.rest.load(Relaxed);
            Run {
                thread: rest as u32,
                cpu: (rest >> 32) as u16,
                start_tsc: record.start.load(Relaxed),
                end_tsc: record.end.load(Relaxed),
                ended: [Ended::Unasked, Ended::Yielded, Ended::Slept, Ended::Finished]
                    [(rest >> 48 & 3) as usize],
            }
        };
        let mut runs: Vec<Run> = self.records.iter().take(written).map(run).collect();
        runs.sort_by_key(|run| (run.start_tsc, run.thread));
        (runs, written.saturating_sub(self.records.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_in_order_and_those_without_room_are_counted() {
        let tape = Tape::new(2).unwrap();
        let run = |thread, start_tsc, ended| Run {
            thread,
            cpu: 65_535,
            start_tsc,
            end_tsc: start_tsc + 5,
            ended,
        };
        let (late, early) = (run(u32::MAX, 20, Ended::Finished), run(3, 10, Ended::Yielded));
        for run in [late, early, run(9, 30, Ended::Slept)] {
            tape.push(run);
        }
        assert_eq!(tape.into_runs(), (vec![early, late], 1));
        assert!(Tape::new(usize::MAX / 2).is_none());
    }
}
