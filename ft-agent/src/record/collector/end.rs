//! The end of a recording: a last look at every process, and at everything that it has written.

use std::time::{Duration, Instant};

use super::{ARRIVALS, Collected, Collector};
use crate::clock;
use crate::collect::kernel::Kernel;
use crate::record::{Closed, Wish, host};
use crate::threads::Pause;
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{End, Frame};

/// How long the end waits for the last looks, and for sites to be switched off.
///
/// Limit: what was mapped since the look before may have no names, and what was switched on from outside may stay on;
/// events are read all the same.
/// Shown by: not shown: it takes processes that cannot be looked at within a second.
const LAST_LOOKS: Duration = Duration::from_secs(1);

/// From round to round meanwhile, unless something arrives.
///
/// Limit: as `LAST_LOOKS`.
const LAST_ROUNDS: Duration = Duration::from_millis(1);

impl Collector {
    /// Disables what was enabled from outside, drains everything a last time, closes the spool.
    pub(super) fn finish(
        mut self,
        reason: String,
        exit_code: Option<i32>,
        pause: &mut Pause,
    ) -> Result<Collected, WriteError> {
        // Who has registered by now is recorded, however many they are.
        while self.welcome(Instant::now() + ARRIVALS)? {}
        self.is_ending = true;
        self.sources.iter_mut().for_each(|recorded| recorded.next_look = Instant::now());
        let until = Instant::now() + LAST_LOOKS;
        // Of those that end meanwhile nothing is left to look at.
        while self.sources.iter().any(|recorded| !recorded.is_done) && Instant::now() < until {
            self.round()?;
            pause.wait(LAST_ROUNDS);
        }
        // What one user's processes have left delays the kernel's records, and those of others, by one share at most.
        while !self.sources.is_empty() {
            self.budgets.renew();
            for recorded in std::mem::take(&mut self.sources) {
                let ended = recorded.has_ended();
                let unfinished = self.close_source(recorded, ended)?;
                self.sources.extend(unfinished);
            }
            self.drain_kernel()?;
        }
        for refused in self.intake.refusals.take_grown() {
            self.writer.push(&Frame::Refused(refused))?;
        }
        // From here on the rings and what is under way are of one time.
        let ended_ns = self.kernel.as_mut().map(Kernel::end);
        self.empty_kernel()?;
        self.keep_unreturned()?;
        self.tell_kernel_losses(true)?;
        self.show();
        let clock = clock::sample_with_host();
        // Whoever has asked for one just now gets this one.
        let answers = self.snapshot.take().map(|wish| wish.answers).unwrap_or_default();
        let reason_of_last = format!("the recording ended ({reason})");
        let snapshot = Some(Wish { reason: reason_of_last, is_awaited: true, answers });
        let steal_ns = host::steal_ns();
        let agent_cpu_ns = Some(host::cpu_ns() - self.cpu_before_ns);
        let own_lock_waits = self.kernel.as_ref().and_then(Kernel::own_lock_waits);
        let ts = ended_ns.map_or(clock.mono_ns, |ns| ns as i64);
        let end =
            End { ts, reason, exit_code, steal_ns, agent_cpu_ns, own_lock_waits, ..End::default() };
        self.finished.bytes = self.writer.bytes();
        let segment = self.writer.finish(clock, end)?;
        self.segments.add_to_backlog(segment.bytes);
        let _ = self.segments.closed.send(Closed { segment, snapshot, last: true });
        Ok(self.finished)
    }
}
