//! Reading the clocks: samples of the TSC and CLOCK_MONOTONIC together, whether the CPUs' counters agree, what the
//! CPU announces of them, what the kernel itself takes for its clock, and how well it knows the time of day. What is made
//! of samples is in [`ft_trace::clock`].

mod announced;
mod host;
mod probe;
mod sample;

pub use announced::{has_flag, unannounced};
pub use host::{ptp_clocks, sample_with_host};
pub use probe::{Agreement, probe};
pub use sample::{monotonic_ns, now_ns, read_tsc, sample};

/// The name of the kernel's clock source; empty when it cannot be read.
pub fn source() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
