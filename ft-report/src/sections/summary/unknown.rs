//! What a recording without holds does not know, and what would record it.

use super::Answers;
use crate::document::{Ns, Share, Text};
use crate::text;

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
        text!(
            "; threads were blocked for {}{} in all, {} of their time; whether that was at locks{} was not recorded: \
             -k default,futex records waits at futexes and semaphores{}",
            bound,
            Ns(parts.blocked_ns),
            Share(parts.blocked_ns, parts.total_ns()),
            which,
            pthread
        )
    }
}
