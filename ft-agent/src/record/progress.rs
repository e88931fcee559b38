//! Counters of a running recording, and the line that shows them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::status_line::StatusLine;
use ft_report::units;
use ft_trace::number::{count, quantity};

/// Counters of a running recording. The collection thread writes them, whoever likes reads them; they
/// are a display, so each is only as new as it is.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Slots of user events that were copied.
    pub(super) slots: AtomicU64,
    /// Kernel records that were copied.
    pub(super) kernel_records: AtomicU64,
    /// Bytes of the spool.
    pub(super) bytes: AtomicU64,
    /// Events that processes which run now have lost.
    pub(super) lost_alive: AtomicU64,
    /// Events that processes which have ended had lost.
    pub(super) lost_ended: AtomicU64,
    /// Kernel records that were lost.
    pub(super) lost_kernel: AtomicU64,
    /// Threads that own a ring.
    pub(super) threads: AtomicU64,
    /// Processes that are recorded.
    pub(super) processes: AtomicU64,
    /// Bytes of closed segments that wait for their conversion.
    pub(super) unconverted: AtomicU64,
}

impl Counters {
    /// Events of applications and records of the kernel that were lost so far.
    pub(super) fn lost(&self) -> u64 {
        let lost = [&self.lost_alive, &self.lost_ended, &self.lost_kernel];
        lost.iter().map(|counter| counter.load(Relaxed)).fold(0, u64::saturating_add)
    }
}

/// From progress line to progress line.
const TICK: Duration = Duration::from_millis(500);

/// Draws the line, over itself.
#[derive(Debug)]
pub(super) struct Line {
    ticks: Interval,
    began: Instant,
    last: Instant,
    last_count: u64,
    line: StatusLine,
}

impl Line {
    /// To be made within the control plane.
    pub(super) fn new() -> Line {
        let now = Instant::now();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Line { ticks, began: now, last: now, last_count: 0, line: StatusLine }
    }

    /// Waits until it is to be drawn again.
    pub(super) async fn tick(&mut self) {
        self.ticks.tick().await;
    }

    /// Draws the present state.
    pub(super) fn draw(&mut self, counters: &Counters) {
        let now = Instant::now();
        let count = counters.slots.load(Relaxed) + counters.kernel_records.load(Relaxed);
        let rate = rate(count - self.last_count.min(count), now - self.last);
        (self.last, self.last_count) = (now, count);
        self.line.draw(&text(counters, rate, now - self.began));
    }

    /// Takes the line away, so that something else can be printed.
    pub(super) fn clear(&mut self) {
        self.line.clear();
    }
}

fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-3)
}

fn text(counters: &Counters, rate: f64, age: Duration) -> String {
    let get = |c: &AtomicU64| c.load(Relaxed);
    let behind = match get(&counters.unconverted) {
        0 => String::new(),
        bytes => format!("  {} to convert", units::short_bytes(bytes)),
    };
    format!(
        "{:.1} s  {} events/s  {}  {} lost  {} in {}{behind}",
        age.as_secs_f64(),
        units::short(rate),
        units::short_bytes(get(&counters.bytes)),
        count(counters.lost()),
        quantity(get(&counters.threads), "thread"),
        quantity(get(&counters.processes), "process"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_rate_bytes_losses_and_threads() {
        let counters = Counters::default();
        counters.bytes.store(3 << 20, Relaxed);
        counters.lost_alive.store(3, Relaxed);
        counters.lost_kernel.store(2, Relaxed);
        counters.threads.store(4, Relaxed);
        counters.processes.store(2, Relaxed);
        let rate = rate(1_500_000, Duration::from_millis(500));
        assert_eq!(
            text(&counters, rate, Duration::from_millis(2500)),
            "2.5 s  3.00 M events/s  3.00 MiB  5 lost  4 threads in 2 processes"
        );
        counters.processes.store(1, Relaxed);
        let line = text(&counters, rate, Duration::from_secs(2));
        assert!(line.ends_with(" 4 threads in 1 process"), "{line}");
        counters.unconverted.store(5 << 29, Relaxed);
        let line = text(&counters, rate, Duration::from_secs(2));
        assert!(line.ends_with(" 1 process  2.50 GiB to convert"), "{line}");
        // A process may say so.
        counters.lost_alive.store(u64::MAX, Relaxed);
        assert_eq!(counters.lost(), u64::MAX);
    }
}
