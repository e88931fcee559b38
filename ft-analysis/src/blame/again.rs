//! Waits that a timer of the waiter has cut, and that go on: as where it looks for a deadlock after a second, or asks again each 5 ms.
//!
//! **Rule.** A sleep in which another thread can say something, or for a lock, that a timer has ended is a part of the wait that goes on
//! at the same place before the thread sleeps anywhere else. All parts are behind the thread that ends the last one.

use super::asleep::{hears, is_lock};
use super::sums::{For, Whole};
use super::{Blame, Most, Wait};
use crate::requests::{Piece, Waker};
use crate::world::{Thread, World};
use ft_trace::Mark;
use ft_trace::ids::ThreadKey;
use ft_trace::tables::Sleep;

/// Parts of one wait that are kept until it is over.
///
/// Limit: of more, the oldest are behind nobody, as a sleep until a time is.
/// Shown by: `parts_of_one_wait_are_bounded`.
const MAX_PARTS: usize = if cfg!(test) { 4 } else { 1 << 12 };

/// A part of a wait that a timer has ended.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) of: For,
    slept: Whole,
    /// Until the thread had a CPU again.
    until: i64,
    mark: Mark,
    /// What was done meanwhile, if nobody ends the wait.
    pieces: Vec<Piece>,
    /// The row that has most of its way to a CPU.
    dispatch: Most,
}

impl Blame {
    /// Whether a timer has ended a sleep at `t` that may go on.
    pub(super) fn is_cut(&self, thread: ThreadKey, asleep: Option<&Sleep>, t: i64) -> bool {
        let may_go_on = |sleep: &Sleep| sleep.until.is_none() && (hears(sleep) || is_lock(sleep));
        let wake = || self.history.of(thread)?.wake(t);
        asleep.is_some_and(may_go_on)
            && wake().is_some_and(|wake| matches!(wake.waker, Waker::Timer(_)))
    }

    /// A timer has ended a part of a wait; its way to a CPU is summed.
    pub(super) fn cut(
        &mut self,
        thread: &Thread,
        (slept, until): (Whole, i64),
        (of, mark): (For, Mark),
        dispatch: Most,
        world: &World,
    ) {
        let pieces = self.pieces(thread.key, slept);
        let parts = &mut self.threads.of(thread).parts;
        parts.push_back(Cut { of, slept, until, mark, pieces, dispatch });
        if parts.len() > MAX_PARTS
            && let Some(oldest) = parts.pop_front()
        {
            self.alone(thread, oldest, world);
        }
    }

    /// A thread has slept at another place, or nobody that is known has ended its wait: each part is a wait of its own.
    pub(super) fn apart(&mut self, thread: &Thread, world: &World) {
        while let Some(part) = self.threads.of(thread).parts.pop_front() {
            self.alone(thread, part, world);
        }
    }

    fn alone(&mut self, thread: &Thread, part: Cut, world: &World) {
        let Cut { of, slept, until, mark, pieces, dispatch } = part;
        let whole = Whole { from: slept.from, to: until };
        self.threads.of(thread).places.waited(&of, None);
        let wait = Wait { of, waker: None, asked: false, again: false, whole, mark };
        let most = self.blocked(thread, &wait, &pieces, None, world);
        most.max(dispatch).over(&mut self.sums);
    }

    /// A thread has ended a wait at last, of which this is the last part. Returns since when that went on, and the row that has most of what
    /// is before that part.
    pub(super) fn joined(
        &mut self,
        thread: &Thread,
        wait: &Wait,
        waker: ThreadKey,
        world: &World,
    ) -> (i64, Most) {
        let parts = std::mem::take(&mut self.threads.of(thread).parts);
        let from = parts.front().map_or(wait.whole.from, |first| first.slept.from);
        let whole = Whole { from, ..wait.whole };
        let mut most = Most::default();
        for part in parts {
            self.history.goes_on(thread.key, part.slept.to, waker);
            let pieces = self.pieces(thread.key, part.slept);
            let wait = Wait { again: true, whole, mark: part.mark, ..wait.clone() };
            let blocked = self.blocked(thread, &wait, &pieces, None, world);
            most = most.max(blocked).max(part.dispatch);
        }
        (from, most)
    }
}
