//! The first call of `ft_user::init` in a process, without an agent.

use std::time::Instant;

use crate::{cpu, tell};

/// Tells `init`, µs, and `sites`.
pub fn measure() {
    cpu::pin(cpu::measured());
    let start = Instant::now();
    let status = ft_user::init();
    let us = start.elapsed().as_nanos() as f64 / 1e3;
    tell("init", us);
    tell("sites", status.map_or(0, |status| status.sites) as f64);
}
