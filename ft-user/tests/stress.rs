//! The tracer under load: signal storms, threads that come and go, processes killed at any instruction.
//!
//! Each test is short here, and does `FT_STRESS=N` times as much. `cargo xtask stress` runs them at full
//! length and shows their counts.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

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

/// Slots of a ring.
const SLOTS: u32 = 1 << 16;

/// Starts tracing with rings enough for a part of the threads only.
fn start() {
    common::start(ft_user::Config { ring_slots: SLOTS, rings: 64, ..Default::default() });
}
