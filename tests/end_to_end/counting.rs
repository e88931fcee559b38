//! The scenario `endless`, which numbers its events: how far it has come, and whether all are there.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ft_trace::store::Trace;
use ft_trace::tables::UserEvent;

/// Number of the newest event that the subject has committed.
pub(crate) fn progress(path: &Path) -> u64 {
    let mut bytes = [0; 8];
    File::open(path).expect("progress file").read_exact(&mut bytes).expect("eight bytes");
    u64::from_ne_bytes(bytes)
}

/// Waits until the subject has come to `number`.
pub(crate) fn reach(path: &Path, number: u64) {
    let patience = Instant::now();
    while progress(path) < number {
        assert!(patience.elapsed() < Duration::from_secs(300), "the subject stands still");
        sleep(Duration::from_millis(5));
    }
}

/// Checks that the recorded numbers are 1, 2, 3 … without a hole, each untorn; returns the last.
pub(crate) fn last_number(trace: &Trace) -> u64 {
    let mut last = 0;
    for event in trace.rows::<UserEvent>() {
        let event = event.expect("a row");
        if &*event.event != "endless.step" {
            continue;
        }
        let number = event.arg[0].expect("number") as u64;
        assert_eq!(number, last + 1, "an event is missing, doubled or out of order");
        assert_eq!(
            event.arg[1].expect("check") as u64,
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            "torn event"
        );
        last = number;
    }
    last
}
