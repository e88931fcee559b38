//! The rows of time that are drawn, and their lanes.
//!
//! Slices of one of Perfetto's tracks must lie within each other or apart, and come in order. Ours come when they end, and some overlap:
//! readers hold a lock together, scopes may end in any order. So a row has as many tracks as overlap at a time, its
//! *lanes*, and each slice goes to the first lane that is free. All have the row's name: viewers draw tracks of one name
//! as one, and those of locks by their address.

use std::collections::HashMap;

use super::packets::{Packets, clean};
use super::proto::{
    BY_SIBLING_MERGE_KEY, LEXICOGRAPHIC, ProcessDescriptor, ThreadDescriptor, TrackDescriptor,
};
use crate::export::Result;
use crate::tracks::Args;
use ft_trace::ids::{Cpu, Pid, ThreadKey};

/// Locks of a process that have rows of their own; the slices of further ones share two.
///
/// Limit: holders and waiters of further ones share two rows, named *further locks*; each entry says which lock it is,
/// and none is left out.
/// Shown by: `further_locks_share_rows`.
const MAX_LOCKS: usize = 1 << 12;

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Row {
    Process(Pid),
    /// The locks of a process.
    Locks(Pid),
    /// Who holds a lock, by its address.
    Holders(Pid, i64),
    Waiters(Pid, i64),
    FurtherHolders(Pid),
    FurtherWaiters(Pid),
    /// Instants of a thread.
    Thread(ThreadKey),
    /// What it does, and why, while it does not run.
    Why(ThreadKey),
    Scopes(ThreadKey),
    /// Async tasks that it polls.
    Polls(ThreadKey),
    Gaps(ThreadKey),
    Syscalls(ThreadKey),
    KernelLocks(ThreadKey),
    /// Interrupt vectors of a CPU.
    Vectors(Cpu),
    Losses,
}

impl Row {
    fn parent(self) -> Option<Row> {
        match self {
            Row::Process(_) | Row::Thread(_) | Row::Vectors(_) | Row::Losses => None,
            Row::Locks(pid) => Some(Row::Process(pid)),
            Row::Holders(pid, _)
            | Row::Waiters(pid, _)
            | Row::FurtherHolders(pid)
            | Row::FurtherWaiters(pid) => Some(Row::Locks(pid)),
            Row::Why(key)
            | Row::Scopes(key)
            | Row::Polls(key)
            | Row::Gaps(key)
            | Row::Syscalls(key)
            | Row::KernelLocks(key) => Some(Row::Thread(key)),
        }
    }

    /// Its name; that of a lock is told.
    fn name(self, lock: &str) -> String {
        match self {
            Row::Process(_) | Row::Thread(_) => String::new(),
            Row::Locks(_) => "Locks".into(),
            Row::Holders(..) => format!("{lock}: holders"),
            Row::Waiters(..) => format!("{lock}: waiters"),
            Row::FurtherHolders(_) => "further locks: holders".into(),
            Row::FurtherWaiters(_) => "further locks: waiters".into(),
            Row::Why(_) => "why it does not run".into(),
            Row::Scopes(_) => "scopes".into(),
            Row::Polls(_) => "polls of tasks".into(),
            Row::Gaps(_) => "gaps".into(),
            Row::Syscalls(_) => "system calls".into(),
            Row::KernelLocks(_) => "waits for kernel locks".into(),
            Row::Vectors(cpu) => format!("interrupt vectors of CPU {cpu}"),
            Row::Losses => "lost".into(),
        }
    }
}

/// A track: its number, and when its last slice ended.
type Lane = (u64, i64);

/// All rows that were drawn so far.
pub(super) struct Rows<'a> {
    args: &'a Args,
    lanes: HashMap<Row, Vec<Lane>>,
    /// Locks with rows, by process.
    locks: HashMap<Pid, usize>,
    next: u64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(args: &'a Args) -> Rows<'a> {
        // Far from the numbers that others give out, should traces be put together.
        Rows { args, lanes: HashMap::new(), locks: HashMap::new(), next: 0xf7 << 48 }
    }

    /// The row of a lock's holders or waiters.
    pub(super) fn of_lock(&mut self, pid: Pid, lock: i64, waits: bool) -> Row {
        let row = if waits { Row::Waiters(pid, lock) } else { Row::Holders(pid, lock) };
        if self.lanes.contains_key(&row) {
            return row;
        }
        let other = if waits { Row::Holders(pid, lock) } else { Row::Waiters(pid, lock) };
        let locks = self.locks.entry(pid).or_default();
        if !self.lanes.contains_key(&other) {
            if *locks == MAX_LOCKS {
                return if waits { Row::FurtherWaiters(pid) } else { Row::FurtherHolders(pid) };
            }
            *locks += 1;
        }
        row
    }

    /// The track of a row for a slice `from .. to`; slices come in the order of their ends. `lock`: the name of the row's
    /// lock.
    pub(super) fn lane(
        &mut self,
        row: Row,
        from: i64,
        to: i64,
        lock: &str,
        out: &mut Packets<'_>,
    ) -> Result<u64> {
        let lanes = self.lanes.entry(row).or_default();
        if let Some(lane) = lanes.iter_mut().find(|(_, end)| *end <= from) {
            lane.1 = to;
            return Ok(lane.0);
        }
        let uuid = self.begin(row, lock, out)?;
        self.lanes.entry(row).or_default().push((uuid, to));
        Ok(uuid)
    }

    /// The track of a row without slices that could overlap.
    pub(super) fn track(&mut self, row: Row, out: &mut Packets<'_>) -> Result<u64> {
        self.lane(row, i64::MAX, i64::MIN, "", out)
    }

    /// Makes another track of a row.
    fn begin(&mut self, row: Row, lock: &str, out: &mut Packets<'_>) -> Result<u64> {
        let parent_uuid = row.parent().map(|parent| self.track(parent, out)).transpose()?;
        self.next += 1;
        let name = clean(&row.name(lock));
        let mut track = TrackDescriptor {
            uuid: Some(self.next),
            name: Some(name).filter(|name| !name.is_empty()),
            parent_uuid,
            ..TrackDescriptor::default()
        };
        match row {
            Row::Process(pid) => {
                let process_name = Some(clean(self.args.process(pid)));
                track.process = Some(ProcessDescriptor { pid: Some(pid.0), process_name });
            }
            Row::Thread(ThreadKey { pid, tid }) => {
                let thread_name = Some(clean(self.args.thread(Some(pid), tid)));
                let (pid, tid) = (Some(pid.0), Some(tid.0));
                track.thread = Some(ThreadDescriptor { pid, tid, thread_name });
            }
            Row::Locks(_) => track.child_ordering = Some(LEXICOGRAPHIC),
            Row::Holders(_, address) | Row::Waiters(_, address) => {
                // Several locks may have one name.
                track.sibling_merge_behavior = Some(BY_SIBLING_MERGE_KEY);
                let waits = matches!(row, Row::Waiters(..));
                track.sibling_merge_key = Some(format!("{address:#x} {waits}"));
            }
            _ => {}
        }
        out.describe(track)?;
        Ok(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::Trace;
    use super::*;
    use ft_trace::ids::Tid;
    use prost::Message;

    /// Rows of a trace that knows nobody.
    fn rows(test: impl FnOnce(&mut Rows<'_>, &mut Packets<'_>)) -> Vec<TrackDescriptor> {
        let (args, mut bytes) = (Args::nobody(), Vec::new());
        test(&mut Rows::new(&args), &mut Packets::new(&mut bytes));
        let packets = Trace::decode(&*bytes).unwrap().packet;
        packets.into_iter().filter_map(|packet| packet.track_descriptor).collect()
    }

    #[test]
    fn slices_that_overlap_have_lanes_of_their_own() {
        //        0    5    10   15
        // a      |----|
        // b         |--------|          ends after a
        // c           |----------|      after a, during b
        let row = Row::Scopes(ThreadKey { pid: Pid(1), tid: Tid(2) });
        let tracks = rows(|rows, out| {
            let mut lane = |from, to| rows.lane(row, from, to, "", out).unwrap();
            let (a, b, c) = (lane(0, 5), lane(3, 10), lane(5, 15));
            assert_eq!((a, a != b), (c, true));
            assert_eq!(lane(10, 10), b);
        });
        // The thread, and two lanes of one name.
        let names: Vec<_> = tracks.iter().map(|t| t.name.as_deref()).collect();
        assert_eq!(names, [None, Some("scopes"), Some("scopes")]);
        assert!(tracks[1..].iter().all(|lane| lane.parent_uuid == tracks[0].uuid));
    }

    #[test]
    fn further_locks_share_rows() {
        rows(|rows, out| {
            for lock in 0..MAX_LOCKS as i64 + 2 {
                for waits in [false, true] {
                    let row = rows.of_lock(Pid(1), lock, waits);
                    let own = match row {
                        Row::Holders(..) | Row::Waiters(..) => true,
                        Row::FurtherHolders(_) | Row::FurtherWaiters(_) => false,
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(own, lock < MAX_LOCKS as i64);
                    rows.lane(row, lock, lock + 1, "lock", out).unwrap();
                }
            }
            assert!(matches!(rows.of_lock(Pid(2), 7, false), Row::Holders(..)), "another process");
        });
    }
}
