//! How much of a CPU watching takes: a share of one, and no more.
//!
//! What all threads of this process have used is read from the kernel before each look. What is left of the share says
//! how many bytes may be looked at, at the price of those before; what was used too much is missing the next time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Unused time is kept for so long, and a debt remembered.
const KEPT: Duration = Duration::from_secs(2);

/// What a byte costs as long as it is not known, ns: an event of 32 bytes in a microsecond.
const FIRST_PRICE: f64 = 30.0;

/// Bytes that are looked at in one go, at most: they stand in memory as rows.
const MOST_BYTES: u64 = 8 << 20;

/// Of the share, what is meant for bytes; the rest is for finding and drawing.
const FOR_BYTES: f64 = 0.7;

/// The budget.
#[derive(Debug)]
pub(super) struct Budget {
    share: f64,
    /// What may be used until the next look, ns; a debt if it is negative.
    credit: f64,
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
        Budget { share, credit: 0.0, used, began: used, price: FIRST_PRICE, start }
    }

    /// So much time has gone by since the last look.
    pub(super) fn renew(&mut self, elapsed: Duration) {
        let now = cpu_ns();
        let most = self.share * KEPT.as_nanos() as f64;
        self.credit += self.share * elapsed.as_nanos() as f64 - (now - self.used);
        // A start that took long is not paid for by seconds of blindness.
        self.credit = self.credit.clamp(-most, most);
        (self.used, self.began) = (now, now);
    }

    /// Bytes that may be looked at.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = self.credit * FOR_BYTES / self.price;
        (bytes.max(0.0) as u64).min(MOST_BYTES)
    }

    /// The credit of this look is used up.
    pub(super) fn is_spent(&self) -> bool {
        cpu_ns() - self.began >= self.credit.max(0.0)
    }

    /// So many bytes were looked at since [`Budget::renew`].
    pub(super) fn looked_at(&mut self, bytes: u64) {
        if bytes > 0 {
            let price = (cpu_ns() - self.began) / bytes as f64;
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
        let before = budget.bytes();
        assert_eq!(before, (1e6 * FOR_BYTES / FIRST_PRICE) as u64);
        budget.price = 10.0 * FIRST_PRICE;
        assert_eq!(budget.bytes(), before / 10);
        budget.credit = -1.0;
        assert_eq!(budget.bytes(), 0);
        assert!(budget.is_spent());
        budget.credit = 1e18;
        assert_eq!(budget.bytes(), MOST_BYTES);
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
}
