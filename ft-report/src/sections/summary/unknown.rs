//! What a recording without holds does not know, and what would record it.

use super::super::Input;
use super::Answers;
use crate::document::{Ns, Share, Text};
use crate::text;
use ft_trace::store::Result;
use ft_trace::tables::Blame;

/// Whether it is known in which calls threads slept.
pub(in super::super) fn knows_sleeps(input: Input<'_>) -> Result<bool> {
    let mut rows = input.trace.rows::<Blame>();
    let known = rows.find_map(|row| row.map(|row| row.call.is_some().then_some(())).transpose());
    known.transpose().map(|known| known.is_some())
}

impl Answers {
    /// Without holds and futexes: how long threads were blocked, of which it is not known whether for a lock, and how to
    /// learn that.
    pub(super) fn unknown(&self) -> Text {
        if self.futexes.recorded {
            return Text::default();
        }
        let parts = self.time.parts();
        if parts.blocked_ns == 0 {
            return text!(
                "; what threads of any program wait for is recorded with -k default,futex"
            );
        }
        let bound = if self.time.marks.lower_bounds > 0 { "at least " } else { "" };
        let (which, pthread) = match self.preload {
            true => (" that --preload does not see", ""),
            false => ("", ", --preload those for pthread locks"),
        };
        let known = match self.sleeps {
            true => text!("`ft-agent findings` says at what"),
            false => text!("whether that was at locks{} was not recorded", which),
        };
        text!(
            "; threads were blocked for {}{} in all, {} of their time; {}: \
             -k default,futex records waits at futexes and semaphores{}",
            bound,
            Ns(parts.blocked_ns),
            Share(parts.blocked_ns, parts.total_ns()),
            known,
            pthread
        )
    }
}
