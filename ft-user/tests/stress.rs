//! The tracer under load: signal storms, threads that come and go, processes killed at any instruction.
//!
//! Each test runs for a short time here. With `FT_STRESS=N` it does N times as much:
//!
//! ```text
//! FT_STRESS=20 cargo test -p ft-user --release --test stress -- --nocapture
//! ```

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(feature = "off")))]

mod common;
#[path = "stress/kill.rs"]
mod kill;
#[path = "stress/storm.rs"]
mod storm;
#[path = "stress/threads.rs"]
mod threads;
#[path = "stress/toggle.rs"]
mod toggle;

use std::sync::Mutex;

/// One test after the other: they share the process's memfd.
static ALONE: Mutex<()> = Mutex::new(());

/// How much of `short` to do.
fn scaled(short: u64) -> u64 {
    let factor = std::env::var("FT_STRESS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    short.saturating_mul(factor)
}

/// Starts tracing with rings enough for a part of the threads only.
fn start() {
    common::start(ft_user::Config { ring_slots: 1 << 16, rings: 64, ..Default::default() });
}
