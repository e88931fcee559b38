//! How the agent comes to look at the rings (`--reader`).
//!
//! Beamonte and Dagenais ("Linux Low-Latency Tracing for Multicore Hard Real-Time Systems", 2015, section 5) compare a
//! reader that the traced program wakes with one that looks again and again, without pause or by a timer: waking costs the
//! program a system call, and with it a chance to lose its CPU. `ft-user` makes none, so by itself it wakes nobody; a program
//! that wants to is told a descriptor for it. All but [`Reader::Adaptive`] are there to show what that costs.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::RecordError;
use super::pace::Pace;
use crate::threads::Pause;

/// How the agent comes to look at the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    /// As often as they are filled.
    #[default]
    Adaptive,
    /// At this distance, whatever they hold.
    Timed(Duration),
    /// Again and again, without a pause: this takes a CPU.
    Active,
    /// When the command wakes it, by writing a number (`u64`) to the descriptor that `FT_WAKE` in its environment tells
    /// (eventfd(2)); and every 10 ms.
    Waking,
}

/// Distances of [`Reader::Timed`]. A shorter one is active; after a longer one nothing that is asked of the agent is answered.
pub(super) const DISTANCES: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(10)..=Duration::from_millis(100);

/// How long a reader sleeps that nobody wakes.
const UNWOKEN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The pauses between rounds.
pub(super) enum Pauses {
    Adaptive(Pace),
    Timed(Duration),
    Active,
    Waking(OwnedFd),
}

impl Reader {
    /// What it needs to wait.
    ///
    /// # Errors
    ///
    /// When the kernel gives no descriptor.
    pub(super) fn pauses(self) -> Result<Pauses, RecordError> {
        Ok(match self {
            Reader::Adaptive => Pauses::Adaptive(Pace::new()),
            Reader::Timed(distance) => Pauses::Timed(distance),
            Reader::Active => Pauses::Active,
            // Inherited by the command.
            Reader::Waking => Pauses::Waking(
                eventfd(0, EventfdFlags::NONBLOCK)
                    .map_err(|e| RecordError::system("be woken")(e.into()))?,
            ),
        })
    }
}

impl Pauses {
    /// What the command is told in its environment.
    pub(super) fn environment(&self) -> Option<(&'static str, OsString)> {
        match self {
            Pauses::Waking(descriptor) => {
                Some(("FT_WAKE", descriptor.as_raw_fd().to_string().into()))
            }
            _ => None,
        }
    }

    /// Waits in `pause` after a round that began at `began` and found the fullest ring filled to `fill`: `longest` at most, unless its
    /// distance is told.
    pub(super) fn wait(&mut self, pause: &mut Pause, began: Instant, fill: u32, longest: Duration) {
        match self {
            Pauses::Adaptive(pace) => pause.wait(pace.wait(began, fill, longest)),
            Pauses::Timed(distance) => pause.wait(distance.saturating_sub(began.elapsed())),
            Pauses::Active => {}
            Pauses::Waking(descriptor) => {
                // Interrupted, it looks now; and whoever writes again wakes it again.
                let _ = poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&UNWOKEN));
                let _ = rustix::io::read(&*descriptor, &mut [0u8; 8][..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Bell;

    #[test]
    fn a_reader_that_is_woken_takes_what_woke_it() {
        let mut pauses = Reader::Waking.pauses().unwrap();
        let (name, number) = pauses.environment().unwrap();
        assert_eq!(name, "FT_WAKE");
        let Pauses::Waking(descriptor) = &pauses else { panic!("it waits to be woken") };
        assert_eq!(number, *descriptor.as_raw_fd().to_string());
        rustix::io::write(descriptor, &7u64.to_ne_bytes()).unwrap();
        let mut pause = Pause::new(Bell::new().unwrap(), []).unwrap();
        pauses.wait(&mut pause, Instant::now(), 0, Duration::ZERO);
        let Pauses::Waking(descriptor) = &pauses else { panic!("it waits to be woken") };
        // What it was told is taken: nothing is there to be read.
        let again = rustix::io::read(descriptor, &mut [0u8; 8][..]);
        assert_eq!(again, Err(rustix::io::Errno::AGAIN));
        assert_eq!(Reader::Active.pauses().unwrap().environment(), None);
    }
}
