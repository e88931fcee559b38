//! Whether tests on the running kernel can run, and telling that they did.
//!
//! A test that passes prints nothing under `cargo test`, and one that returned early looks the same. So
//! each kernel test reports, and `cargo xtask test` counts the reports.

use std::fs::OpenOptions;
use std::io::Write;

use ft_agent::collect::kernel::{Kernel, KernelError, KernelOptions};

/// Loads the kernel side; where this machine does not let it be loaded, reports why and returns nothing.
///
/// A kernel that has all it needs and still refuses is a failure, not a reason to skip.
pub(crate) fn kernel_or_skip(options: &KernelOptions) -> Option<Kernel> {
    match Kernel::load(options) {
        Ok(kernel) => {
            ran();
            Some(kernel)
        }
        Err(
            error @ (KernelError::NoObject
            | KernelError::MissingCapability { .. }
            | KernelError::PidNamespace
            | KernelError::NoBtf(_)),
        ) => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Reports that the calling test runs.
pub(crate) fn ran() {
    report(&format!("ran {}", test()));
}

/// Reports that the calling test does not run, and why.
pub(crate) fn skipped(reason: &str) {
    report(&format!("skipped {}: {reason}", test()));
}

/// Reports a figure that the calling test has measured.
#[allow(dead_code, reason = "not every test binary measures")]
pub(crate) fn measured(figure: &str) {
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
