//! Every export of longer and longer traces: time, size and peak memory.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ft_report::export::{self, FORMATS};
use ft_trace::store::Trace;

use crate::scale::{LIMIT_MIB, PART_EVENTS, peak_mib, size};
use crate::trace;

/// Argument of the process that writes one export, so that its peak memory is its own.
pub(crate) const CHILD: &str = "export-one";

/// Formats of call chains, of which the made-up trace has none.
const OF_CHAINS: [&str; 3] = ["collapsed", "flamegraph", "pprof"];

/// Prints a line for each length, in millions of events, and format.
pub(crate) fn table(millions: &[u64]) {
    println!(
        "{:>12} {:>10} {:>10} {:>10} {:>13}",
        "events", "format", "time", "size", "peak memory"
    );
    for million in millions {
        let dir = tempfile::tempdir().expect("a directory");
        let rounds = million * 1_000_000 / trace::events_of(1);
        trace::write(dir.path(), rounds, PART_EVENTS).expect("the trace is written");
        for format in FORMATS.iter().filter(|format| !OF_CHAINS.contains(&format.name)) {
            let out = tempfile::tempdir().expect("a directory");
            let me = std::env::current_exe().expect("this program");
            let mut child = Command::new(me);
            child.args([CHILD, format.name]).arg(dir.path()).arg(out.path().join("out"));
            let output = child.output().expect("it starts");
            let text = String::from_utf8_lossy(&output.stdout);
            let figures: Vec<f64> =
                text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
            let [seconds, peak] = figures[..] else {
                panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
            };
            println!(
                "{:>12} {:>10} {seconds:>8.1} s {:>7.1} MB {peak:>9.0} MiB",
                trace::events_of(rounds),
                format.name,
                size(out.path()) as f64 / 1e6,
            );
            assert!(peak < LIMIT_MIB, "more than {LIMIT_MIB} MiB");
        }
    }
}

/// Writes one export; prints seconds and peak MiB.
pub(crate) fn child(format: &str, dir: &Path, out: &Path) {
    let trace = Trace::open(dir).expect("a trace");
    let format = export::find(format).expect("a format");
    let start = Instant::now();
    let go_on = &mut |_| ControlFlow::Continue(());
    export::export(&trace, format, i64::MIN..i64::MAX, out, go_on).expect("exported");
    println!("{} {}", start.elapsed().as_secs_f64(), peak_mib());
}
