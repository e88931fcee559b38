//! What a test says of itself, for `cargo xtask test` to count: a test that passes prints nothing under `cargo test`, and one
//! that returned early looks the same.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each program of tests uses its part, some as a module of their own"
)]

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that the calling test runs.
pub fn ran() {
    report(&format!("ran {}", test()));
}

/// Reports that the calling test does not run, and why.
pub fn skipped(reason: &str) {
    report(&format!("skipped {}: {reason}", test()));
}

/// Reports a figure that the calling test has measured.
pub fn measured(figure: &str) {
    report(&format!("measured {figure}"));
}

/// The test harness names a test's thread after the test.
fn test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// Adds a line to the file that `cargo xtask test` reads.
fn report(line: &str) {
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("FT_KERNEL_TEST_LOG") {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("test log");
        file.write_all(format!("{line}\n").as_bytes()).expect("test log");
    }
}
