//! What of a CPU's records workers of loads are held against: its switches.
//!
//! Kept while there are workers. Memory: a few words for each CPU.

use crate::world::PerCpu;
use ft_trace::ids::Cpu;

/// The switches of one CPU.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// How many switches there were.
    pub(super) switches: u64,
    /// When the last one was.
    pub(super) last: i64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Cpus(PerCpu<Records>);

impl Cpus {
    /// What is known of a CPU.
    pub(super) fn of(&mut self, cpu: Cpu) -> Option<&mut Records> {
        self.0.of(cpu)
    }

    /// A CPU has gone from one thread to another; how many times it has by now.
    pub(super) fn switched(&mut self, cpu: Cpu, now: i64) -> u64 {
        let Some(records) = self.of(cpu) else { return 0 };
        (records.switches, records.last) = (records.switches + 1, now);
        records.switches
    }
}
