//! What stands in for the tracer where there is no trigger: the same functions, which do nothing, so that
//! a program that embeds the crate builds for every Linux target.

use crate::{Config, InitError, Status, Switched};

/// Does nothing on this target.
///
/// # Errors
///
/// None on this target.
pub fn init() -> Result<Status, InitError> {
    init_with(Config::default())
}

/// Does nothing on this target.
///
/// # Errors
///
/// None on this target.
pub fn init_with(config: Config) -> Result<Status, InitError> {
    Ok(Status::without_sites(config))
}

/// Does nothing on this target: there is no site to enable.
pub fn enable(_glob: &str) -> usize {
    0
}

/// Does nothing on this target: there is no site to disable.
pub fn disable(_glob: &str) -> usize {
    0
}

/// Does nothing on this target: there is no site to switch.
pub fn switch(_glob: &str, _on: bool) -> Switched {
    Switched::default()
}

/// Does nothing on this target.
#[cfg(feature = "sleds")]
pub fn find_sleds() {}

/// Does nothing on this target.
#[doc(hidden)]
pub fn __loaded() {}

/// Does nothing on this target.
pub fn thread_init() {}

/// Stands in for the time stamp counter: `CLOCK_MONOTONIC` in nanoseconds.
pub(crate) fn rdtsc() -> u64 {
    crate::gap::monotonic_ns()
}

/// Numbers of nothing: no event carries them.
pub(crate) fn intern_place(_: &'static core::panic::Location<'static>) -> u32 {
    0
}

/// As [`intern_place`].
pub(crate) fn is_place(_: u32, _: &'static core::panic::Location<'static>) -> bool {
    true
}

/// As [`intern_place`].
pub(crate) fn intern_name(_: &'static str) -> u32 {
    0
}
