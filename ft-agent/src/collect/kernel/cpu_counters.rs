//! The counters of each CPU, which the programs read at its switches.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use aya::{Ebpf, maps::Map};
use ft_user::counters::open_on_cpu;
use ft_user::layout::{COUNTERS_AT_ONCE, Counter};

use super::{KernelError, bpf, load::no_map};

/// Where the programs find each of them, by the number of the CPU.
pub(super) const MAPS: [&str; COUNTERS_AT_ONCE] = ["COUNTER_0", "COUNTER_1"];

/// Opens each counter on each of these CPUs, and puts it into its map, which keeps it as long as the programs are loaded. A CPU
/// that comes later has none: what threads do there is not counted, and said to be unknown.
///
/// # Errors
///
/// [`KernelError::NoCounter`] where one cannot be had.
pub(super) fn open(
    ebpf: &Ebpf,
    counters: &[&'static Counter],
    cpus: &[u32],
) -> Result<(), KernelError> {
    for (name, counter) in MAPS.into_iter().zip(counters) {
        let Some(Map::PerfEventArray(map)) = ebpf.map(name) else { return Err(no_map(name)) };
        for &cpu in cpus {
            let put = |event: OwnedFd| bpf::update(map.fd().as_fd(), &cpu, &event.as_raw_fd());
            let put = open_on_cpu(counter, cpu).map_err(io::Error::from_raw_os_error).and_then(put);
            put.map_err(|source| KernelError::NoCounter { name: counter.name, source })?;
        }
    }
    Ok(())
}
