// What the cases in Rust share: their clock and the truth that they print, as `common.h` has them.
use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

pub struct Case {
    end: Instant,
    lost_ns: AtomicU64,
    unsure_ns: AtomicU64,
}

impl Case {
    pub fn new(run_ms: u64) -> Case {
        let end = Instant::now() + Duration::from_millis(run_ms);
        Case { end, lost_ns: AtomicU64::new(0), unsure_ns: AtomicU64::new(0) }
    }

    /// Whether the time of the case is not over yet.
    pub fn going(&self) -> bool {
        Instant::now() < self.end
    }

    /// Counts what the call takes as lost, unless it is short.
    pub fn wait<T>(&self, call: impl FnOnce() -> T) -> T {
        let (ready, since) = (ready_ns(), Instant::now());
        let result = call();
        let waited = since.elapsed();
        if waited >= Duration::from_micros(20) {
            self.lost_ns.fetch_add(waited.as_nanos() as u64, Relaxed);
            self.unsure_ns.fetch_add(ready_ns() - ready, Relaxed);
        }
        result
    }

    pub fn truth(&self, who: &str, what: &str, behind: &str, place: &str) {
        let ms = |ns: &AtomicU64| ns.load(Relaxed) as f64 / 1e6;
        let (lost, unsure) = (ms(&self.lost_ns), ms(&self.unsure_ns));
        eprintln!(
            "TRUTH who={who} what={what} behind={behind} where={place} lost_ms={lost:.1} unsure_ms={unsure:.1}"
        );
    }
}

/// For how long this thread has been ready without a CPU, in all.
fn ready_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Computes for somebody who has woken this thread and waits for it; asleep first, so that it does not preempt that one.
#[allow(dead_code, reason = "not each case computes")]
pub fn compute_answer(time: Duration) {
    std::thread::sleep(Duration::from_micros(200));
    let since = Instant::now();
    while since.elapsed() < time {}
}
