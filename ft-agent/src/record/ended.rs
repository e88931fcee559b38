//! Processes that have ended, until nothing that is kept of the recording speaks of them.
//!
//! A flight recorder deletes old segments, and runs without end while processes come and go. What the
//! registry says of a process is needed as long as the segment in which it ended is there.

use std::collections::{HashSet, VecDeque};

use ft_trace::spool::frame::{Directory, Frame, Process};

/// Sources and processes that have ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Segment in which it ended, number of the source if it had one, process; in this order.
    needed: VecDeque<(u32, Option<u32>, i32)>,
    /// Source and process: what only deleted segments knew.
    unneeded: Vec<(Option<u32>, i32)>,
}

/// What the registry has for nobody.
#[derive(Debug)]
pub(super) struct Unneeded {
    sources: HashSet<u32>,
    /// Processes.
    pub(super) pids: HashSet<i32>,
}

impl Unneeded {
    /// Whether a frame of the registry is needed.
    pub(super) fn keeps(&self, frame: &Frame<'_>) -> bool {
        match frame {
            Frame::Process(Process { source: Some(source), .. })
            | Frame::Directory(Directory { source, .. }) => !self.sources.contains(source),
            Frame::Thread(thread) => !self.pids.contains(&thread.pid),
            Frame::Mappings(mappings) => !self.pids.contains(&mappings.pid),
            _ => true,
        }
    }
}

impl Ended {
    /// A source ended while the segment with this number was open; or a process that had none.
    pub(super) fn push(&mut self, segment: u32, source: Option<u32>, pid: i32) {
        self.needed.push_back((segment, source, pid));
    }

    /// Segments below `oldest` are gone.
    pub(super) fn deleted_below(&mut self, oldest: u32) {
        while let Some((_, source, pid)) = self.needed.pop_front_if(|ended| ended.0 < oldest) {
            self.unneeded.push((source, pid));
        }
    }

    /// The registry holds something that nobody needs.
    pub(super) fn any_unneeded(&self) -> bool {
        !self.unneeded.is_empty()
    }

    /// What of the registry is not needed. A process number may have come again: what is recorded of it
    /// stays while one of those `alive`, or one that ended lately, has it.
    pub(super) fn take_unneeded(&mut self, alive: impl Iterator<Item = i32>) -> Unneeded {
        let (sources, mut pids): (Vec<_>, HashSet<i32>) = self.unneeded.drain(..).unzip();
        for pid in alive.chain(self.needed.iter().map(|&(_, _, pid)| pid)) {
            pids.remove(&pid);
        }
        Unneeded { sources: sources.into_iter().flatten().collect(), pids }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::spool::frame::Thread;
    use ft_trace::spool::mapping::Mappings;

    #[test]
    fn what_deleted_segments_knew_is_not_needed() {
        let process = |source, pid| Process { source, pid, ..Process::default() };
        let frames = |source, pid| {
            [
                Frame::Process(process(Some(source), pid)),
                Frame::Directory(Directory { source, bytes: &[] }),
                Frame::Thread(Thread { pid, tid: pid, name: "a".into(), ts: 1 }),
                Frame::Mappings(Mappings { pid, ts: 1, ..Mappings::default() }),
            ]
        };
        let mut ended = Ended::default();
        for (segment, source, pid) in [(3, 0, 100), (4, 1, 101), (5, 2, 102), (5, 3, 101)] {
            ended.push(segment, Some(source), pid);
        }
        ended.deleted_below(3);
        assert!(!ended.any_unneeded());
        ended.deleted_below(5);
        assert!(ended.any_unneeded());
        // Process 100 lives again, as another source; 101 has ended twice, the second time lately.
        let unneeded = ended.take_unneeded([100].into_iter());
        let needed = |frame: &Frame<'_>| unneeded.keeps(frame);
        assert_eq!(frames(0, 100).each_ref().map(&needed), [false, false, true, true]);
        assert_eq!(frames(1, 101).each_ref().map(&needed), [false, false, true, true]);
        assert_eq!(frames(2, 102).each_ref().map(&needed), [true; 4]);
        assert!(needed(&Frame::Process(process(None, 100))));
        ended.deleted_below(6);
        let unneeded = ended.take_unneeded(std::iter::empty());
        let needed = |frame: &Frame<'_>| unneeded.keeps(frame);
        assert_eq!(frames(3, 101).each_ref().map(needed), [false; 4]);
        // One that was looked at, and has not registered.
        ended.push(6, None, 104);
        ended.deleted_below(7);
        let unneeded = ended.take_unneeded(std::iter::empty());
        let needed = |frame: &Frame<'_>| unneeded.keeps(frame);
        assert_eq!(frames(4, 104).each_ref().map(needed), [true, true, false, false]);
    }
}
