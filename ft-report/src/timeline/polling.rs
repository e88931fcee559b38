//! What a polling thread says of its own time: in a gap it did not run, whatever the scheduler says.
//!
//! A stretch of *running* may come before the gap that it lies in. So those of polling threads are held back until a
//! gap behind them has come, or the thread leaves so many that no more gaps are expected.

use std::collections::VecDeque;

use ft_trace::Mark;

/// Stretches of one thread that are held back; as many as its analysis remembers.
///
/// Limit: what a gap says of older ones comes too late, and they count as running.
/// Shown by: `a_thread_that_tells_no_more_is_not_kept`.
const MAX_HELD_BACK: usize = 4096;

/// A piece of the time in which a thread had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) mark: Mark,
    /// On which; -1 when not known.
    pub(super) cpu: i32,
    /// Or it did not.
    pub(super) ran: bool,
}

/// A polling thread.
#[derive(Debug, Default)]
pub(super) struct Polling {
    stretches: VecDeque<Piece>,
    gaps: VecDeque<(i64, i64)>,
}

impl Polling {
    /// It had a CPU; what is settled now goes to `out`.
    pub(super) fn ran(&mut self, stretch: Piece, out: &mut Vec<Piece>) {
        self.stretches.push_back(stretch);
        if self.stretches.len() > MAX_HELD_BACK {
            self.settle(1, out);
        }
    }

    /// It says that it did not run.
    pub(super) fn gap(&mut self, from: i64, to: i64, out: &mut Vec<Piece>) {
        self.gaps.push_back((from, to));
        let settled = self.stretches.partition_point(|s| s.to <= to);
        self.settle(settled, out);
    }

    /// Nothing more is to come.
    pub(super) fn end(&mut self, out: &mut Vec<Piece>) {
        self.settle(self.stretches.len(), out);
    }

    fn settle(&mut self, count: usize, out: &mut Vec<Piece>) {
        for stretch in self.stretches.drain(..count) {
            while self.gaps.front().is_some_and(|gap| gap.1 <= stretch.from) {
                self.gaps.pop_front();
            }
            let mut at = stretch.from;
            for &(from, to) in self.gaps.iter().take_while(|gap| gap.0 < stretch.to) {
                let (from, to) = (from.max(at), to.min(stretch.to));
                if from < to {
                    out.push(Piece { from: at, to: from, ..stretch });
                    out.push(Piece { from, to, ran: false, ..stretch });
                    at = to;
                }
            }
            out.push(Piece { from: at, ..stretch });
        }
        out.retain(|piece| piece.from < piece.to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(tell: impl FnOnce(&mut Polling, &mut Vec<Piece>)) -> Vec<(i64, i64, bool)> {
        let (mut polling, mut out) = (Polling::default(), Vec::new());
        tell(&mut polling, &mut out);
        polling.end(&mut out);
        out.into_iter().map(|p| (p.from, p.to, p.ran)).collect()
    }

    fn stretch(from: i64, to: i64) -> Piece {
        Piece { from, to, mark: Mark::Exact, cpu: 0, ran: true }
    }

    #[test]
    fn what_lies_in_gaps_was_not_run_whichever_was_told_first() {
        let expected = [(0, 12, true), (12, 15, false), (25, 28, false), (28, 40, true)];
        let gap_last = pieces(|p, out| {
            p.ran(stretch(0, 15), out);
            p.ran(stretch(25, 40), out);
            p.gap(12, 28, out);
        });
        let gap_first = pieces(|p, out| {
            p.ran(stretch(0, 15), out);
            p.gap(12, 28, out);
            p.ran(stretch(25, 40), out);
        });
        assert_eq!((&gap_last[..], &gap_first[..]), (&expected[..], &expected[..]));
    }

    #[test]
    fn a_stretch_can_have_several_gaps_and_the_next_gap_may_begin_where_one_ended() {
        let found = pieces(|p, out| {
            p.gap(10, 20, out);
            p.gap(20, 30, out);
            p.ran(stretch(0, 25), out);
            p.ran(stretch(25, 50), out);
        });
        let expected =
            [(0, 10, true), (10, 20, false), (20, 25, false), (25, 30, false), (30, 50, true)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_thread_that_tells_no_more_is_not_kept() {
        let mut polling = Polling::default();
        let mut out = Vec::new();
        for i in 0..2 * MAX_HELD_BACK as i64 {
            polling.ran(stretch(2 * i, 2 * i + 1), &mut out);
        }
        assert_eq!((polling.stretches.len(), out.len()), (MAX_HELD_BACK, MAX_HELD_BACK));
    }
}
