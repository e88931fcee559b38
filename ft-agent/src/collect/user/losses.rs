//! How much a process can have lost.
//!
//! Counts of losses lie in memory that the process writes. Rule: before one is stored or summed, it is bounded by the
//! time that the process has had: no thread loses an event faster than [`FASTEST_LOSS_NS`], and no more threads than
//! CPUs do it at once.

use rustix::param::clock_ticks_per_second;
use rustix::time::ClockId;

use crate::clock::now_ns;
use ft_trace::spool::FASTEST_LOSS_NS;

/// What a program reports of losses, and what can be true of it.
pub(super) struct LostEvents {
    /// Start of the process, ns since the boot; 0 when that is not known.
    started_ns: u64,
    cpus: u64,
    /// Believed so far.
    told: u64,
}

impl LostEvents {
    /// For a process that has started `start_time` ticks after the boot.
    pub(super) fn since(start_time: u64) -> LostEvents {
        let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
        // SAFETY: takes no pointer.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        LostEvents {
            started_ns: start_time.saturating_mul(tick_ns),
            cpus: u64::try_from(cpus).unwrap_or(1).max(1),
            told: 0,
        }
    }

    /// How many of `count` more losses can be.
    pub(super) fn believe(&mut self, count: u64) -> u64 {
        let believed = count.min(self.most().saturating_sub(self.told));
        self.told += believed;
        believed
    }

    /// As much of `all`, the losses of its whole life, as can be.
    pub(super) fn possible(&self, all: u64) -> u64 {
        if all == 0 { 0 } else { all.min(self.most()) }
    }

    /// What it can have lost in its whole life.
    fn most(&self) -> u64 {
        let now_ns = now_ns(ClockId::Boottime) as u64;
        now_ns.saturating_sub(self.started_ns) / FASTEST_LOSS_NS * self.cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_believed_than_there_was_time_for() {
        let seconds = now_ns(ClockId::Boottime) as u64 / 1_000_000_000;
        let ticks = seconds * clock_ticks_per_second();
        let mut losses = LostEvents::since(ticks.saturating_sub(100 * clock_ticks_per_second()));
        let cpus = losses.cpus;
        assert_eq!(losses.believe(1_000_000), 1_000_000);
        let believed = losses.believe(u64::MAX);
        assert!((80_000_000_000..240_000_000_000).contains(&(believed / cpus)), "{believed}");
        assert!(losses.believe(u64::MAX) < believed);
    }
}
