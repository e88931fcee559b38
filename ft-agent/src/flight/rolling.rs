//! Which segments of the spool are kept: those that reach into the window, newest first, as long as
//! they fit into the budget.

use std::collections::VecDeque;

use ft_trace::spool::Segment;

/// The closed segments that are kept, oldest first.
#[derive(Debug)]
pub(super) struct Rolling {
    window_ns: i64,
    budget_bytes: u64,
    segments: VecDeque<Segment>,
    bytes: u64,
}

impl Rolling {
    pub(super) fn new(window_ns: i64, budget_bytes: u64) -> Rolling {
        Rolling { window_ns, budget_bytes, segments: VecDeque::new(), bytes: 0 }
    }

    /// Takes a segment that was just closed. Returns the numbers of those to delete, this one never.
    pub(super) fn push(&mut self, segment: Segment) -> Vec<u32> {
        self.segments.push_back(segment);
        self.bytes += segment.bytes;
        let from = segment.to_ns.saturating_sub(self.window_ns);
        let mut gone = Vec::new();
        while self.segments.len() > 1
            && let Some(&oldest) = self.segments.front()
            && (oldest.to_ns <= from || self.bytes > self.budget_bytes)
        {
            self.segments.pop_front();
            self.bytes -= oldest.bytes;
            gone.push(oldest.number);
        }
        gone
    }

    /// Begin of the window that ends with the newest segment, and the segments that it needs. The window
    /// is shorter when it does not fit into the budget.
    pub(super) fn window(&self) -> (i64, impl Iterator<Item = u32>) {
        let end = self.segments.back().map_or(0, |s| s.to_ns);
        let kept = self.segments.front().map_or(0, |s| s.from_ns);
        let from = kept.max(end.saturating_sub(self.window_ns));
        (from, self.segments.iter().map(|s| s.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segment N lasts from 10 N to 10 N + 10.
    fn segment(number: u32, bytes: u64) -> Segment {
        let from_ns = i64::from(number) * 10;
        Segment { number, from_ns, to_ns: from_ns + 10, bytes }
    }

    fn window(rolling: &Rolling) -> (i64, Vec<u32>) {
        let (from, numbers) = rolling.window();
        (from, numbers.collect())
    }

    #[test]
    fn what_is_older_than_the_window_goes() {
        let mut rolling = Rolling::new(25, 1000);
        for (number, gone) in [(0, vec![]), (1, vec![]), (2, vec![]), (3, vec![0]), (4, vec![1])] {
            assert_eq!(rolling.push(segment(number, 1)), gone, "{number}");
        }
        assert_eq!(window(&rolling), (25, vec![2, 3, 4]));
    }

    #[test]
    fn a_segment_that_ends_where_the_window_begins_is_not_needed() {
        let mut rolling = Rolling::new(20, 1000);
        assert_eq!([0, 1, 2].map(|n| rolling.push(segment(n, 1)).len()), [0, 0, 1]);
        assert_eq!(window(&rolling), (10, vec![1, 2]));
    }

    #[test]
    fn the_budget_cuts_the_window() {
        let mut rolling = Rolling::new(1000, 100);
        assert_eq!(rolling.push(segment(0, 60)), [0; 0]);
        assert_eq!(rolling.push(segment(1, 40)), [0; 0]);
        assert_eq!(rolling.push(segment(2, 30)), [0]);
        assert_eq!(window(&rolling), (10, vec![1, 2]));
        // A segment that is larger than everything is still kept: there is nothing else.
        assert_eq!(rolling.push(segment(3, 500)), [1, 2]);
        assert_eq!(window(&rolling), (30, vec![3]));
    }

    #[test]
    fn the_window_is_as_long_as_the_recording_at_first() {
        let mut rolling = Rolling::new(1000, 100);
        rolling.push(segment(0, 1));
        assert_eq!(window(&rolling), (0, vec![0]));
    }
}
