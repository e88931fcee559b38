//! How much of a CPU watching takes: a share of one, and no more.
//!
//! What all threads of this process have used is read from the kernel before each look. What is left of the share says
//! how many bytes may be looked at, at the price of those before; what was used too much is missing the next time.

use std::time::{Duration, Instant};

use ft_trace::spool::Wanted;
use rustix::time::{ClockId, clock_gettime};

/// Unused time is kept for so long, and a debt remembered.
///
/// Limit: as `KEPT` of `window.rs`.
const KEPT: Duration = Duration::from_secs(2);

/// What a byte costs as long as it is not known, ns: an event of 32 bytes in a microsecond.
const FIRST_PRICE: f64 = 30.0;

/// Bytes that are looked at in one go, at most: they stand in memory as rows.
///
/// Limit: older bytes are skipped: the screen says how much of the time was looked at.
/// Shown by: `what_is_too_dear_is_looked_at_less`.
const MOST_BYTES: u64 = 8 << 20;

/// Frames that are longer than what there is credit for are looked at up to here: the longest of the kernel's records.
///
/// Limit: the time that it took is taken from the next looks; a longer frame, of a large shared ring, is skipped.
/// Shown by: `what_looking_took_is_paid_back_in_full_and_a_start_is_not`.
const LONGEST_FRAME: u64 = (1 << 20) + 4096;

/// Of the share, what is meant for bytes; the rest is for finding and drawing.
const FOR_BYTES: f64 = 0.7;

/// Of the share since the last look, what may go into coming to the newest bytes: it must leave something for these, and be
/// less than the share, so that a debt is paid back.
const FOR_SKIPPING: f64 = 0.4;

/// The budget.
#[derive(Debug)]
pub(super) struct Budget {
    share: f64,
    /// What may be used until the next look, ns; a debt if it is negative.
    credit: f64,
    /// What looking at bytes has taken and is not earned yet, ns: how far a debt can go beyond [`KEPT`].
    owed: f64,
    /// The share since the last look, ns.
    income: f64,
    /// CPU time at the last look, ns.
    used: f64,
    /// CPU time of this look when it began, ns.
    began: f64,
    price: f64,
    start: (Instant, f64),
}

impl Budget {
    /// A share of one CPU. What starting the program took does not count.
    pub(super) fn new(share: f64) -> Budget {
        let used = cpu_ns();
        let start = (Instant::now(), used);
        Budget {
            share,
            credit: 0.0,
            owed: 0.0,
            income: 0.0,
            used,
            began: used,
            price: FIRST_PRICE,
            start,
        }
    }

    /// So much time has gone by since the last look.
    pub(super) fn renew(&mut self, elapsed: Duration) {
        let now = cpu_ns();
        let most = self.share * KEPT.as_nanos() as f64;
        self.income = self.share * elapsed.as_nanos() as f64;
        self.credit += self.income - (now - self.used);
        // A start that took long is not paid for by seconds of blindness; what was looked at is.
        self.credit = self.credit.clamp(-most - self.owed, most);
        self.owed = (self.owed - self.income).max(0.0);
        (self.used, self.began) = (now, now);
    }

    /// Bytes that may be looked at; a frame is looked at whole, and what that is too much is a debt.
    pub(super) fn wanted(&self) -> Wanted {
        let bytes = self.credit * FOR_BYTES / self.price;
        let bytes = (bytes.max(0.0) as u64).min(MOST_BYTES);
        Wanted { bytes, at_most: bytes.max(LONGEST_FRAME) }
    }

    /// There is time to skip more, whatever the credit: who falls behind has more to skip the next time.
    pub(super) fn may_skip(&self) -> bool {
        cpu_ns() - self.began < FOR_SKIPPING * self.income
    }

    /// So many bytes were looked at since [`Budget::renew`].
    pub(super) fn looked_at(&mut self, bytes: u64) {
        if bytes > 0 {
            let took = cpu_ns() - self.began;
            self.owed += took;
            let price = took / bytes as f64;
            self.price = (0.7 * self.price + 0.3 * price).clamp(0.1, 1e6);
        }
    }

    /// What was used of one CPU since the start.
    pub(super) fn used(&self) -> f64 {
        let (start, before) = self.start;
        (cpu_ns() - before) / (start.elapsed().as_nanos() as f64).max(1e6)
    }
}

/// CPU time of this process, ns.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_dear_is_looked_at_less() {
        let mut budget = Budget::new(0.5);
        budget.credit = 1e6;
        let before = budget.wanted();
        assert_eq!(before.bytes, (1e6 * FOR_BYTES / FIRST_PRICE) as u64);
        assert_eq!(before.at_most, LONGEST_FRAME);
        budget.price = 10.0 * FIRST_PRICE;
        assert_eq!(budget.wanted().bytes, before.bytes / 10);
        budget.credit = -1.0;
        assert_eq!(budget.wanted().bytes, 0);
        budget.credit = 1e18;
        assert_eq!(budget.wanted().bytes, MOST_BYTES);
    }

    #[test]
    fn a_debt_does_not_keep_it_from_skipping() {
        let mut budget = Budget::new(1.0);
        assert!(!budget.may_skip(), "nothing has been earned");
        budget.renew(Duration::from_secs(3600));
        budget.credit = -1e9;
        assert!(budget.may_skip());
        budget.began -= FOR_SKIPPING * 3600e9;
        assert!(!budget.may_skip());
    }

    #[test]
    fn what_was_used_is_subtracted() {
        let mut budget = Budget::new(0.01);
        let began = cpu_ns();
        while cpu_ns() - began < 5e6 {}
        budget.renew(Duration::from_millis(100));
        // 1 ms is its share, and 5 ms were used.
        assert!(budget.credit <= -4e6, "{budget:?}");
        budget.renew(Duration::from_secs(3600));
        assert!(budget.credit <= 0.01 * 2e9);
    }

    #[test]
    fn what_looking_took_is_paid_back_in_full_and_a_start_is_not() {
        let mut budget = Budget::new(0.01);
        let spend = |budget: &mut Budget, ns: f64| {
            (budget.used, budget.began) = (cpu_ns() - ns, cpu_ns() - ns)
        };
        spend(&mut budget, 1e9);
        budget.renew(Duration::ZERO);
        assert_eq!(budget.credit, -0.01 * 2e9, "two seconds' worth");
        spend(&mut budget, 1e9);
        budget.looked_at(1 << 20);
        budget.renew(Duration::ZERO);
        assert!(budget.credit <= -1e9, "{budget:?}");
        // A hundred seconds later.
        budget.renew(Duration::from_secs(103));
        assert!(budget.credit > 0.0 && budget.owed == 0.0, "{budget:?}");
    }
}
