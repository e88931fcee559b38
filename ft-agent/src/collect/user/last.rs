//! The last look at a source: all that is left is copied, and what never comes is told.

use ft_trace::spool::WriteError;
use ft_user::layout::Counting;

use super::{Round, Sink, Source};
use crate::collect::work::Work;

/// How far the last look at a source is.
pub(super) struct LastLook {
    /// What is left of it, over all rounds.
    pub(super) work: Work,
    /// The rings before this one are done with.
    pub(super) next_ring: u32,
}

impl Default for LastLook {
    fn default() -> LastLook {
        LastLook { work: Work::last(), next_ring: 0 }
    }
}

impl Source {
    /// The last look: copies everything that is left, also of rings in overwrite mode, and accounts for losses that no
    /// event tells, as far as there is work left; the next call goes on from there. With `ended`, the process has ended,
    /// and what is not committed never will be. Whether it is done.
    ///
    /// All calls together do no more than [`Work::last`]: what is left then, in rings that somebody still fills, is told
    /// as a loss.
    ///
    /// # Errors
    ///
    /// What the sink says.
    pub fn finish(
        &mut self,
        now_ns: i64,
        ended: bool,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<(Round, bool), WriteError> {
        // Nobody makes room from now on, nor reads what is counted.
        self.wait_when_full(None);
        self.count_with_events(Counting::default());
        let share = self.last.work.and(work);
        // There is work for it in later rounds.
        let goes_on = work.left() < self.last.work.left();
        let (mut round, mut left) = (Round::default(), share.clone());
        let done = self.finish_rings(now_ns, ended, goes_on, &mut round, &mut left, sink)?;
        if done {
            self.drain_shared(now_ns, &mut round, &mut left, sink)?;
        }
        let done = done && !(goes_on && left.is_done());
        for paid in [&mut self.last.work, work] {
            paid.spend(left.since(&share));
        }
        if done {
            self.last.next_ring = 0;
        }
        self.drain_directory(sink)?;
        if done {
            self.tell_unfinished_shared(ended, sink)?;
            self.tell_unknown(sink)?;
        }
        self.count();
        self.look_for_faults();
        Ok((round, done))
    }
}
