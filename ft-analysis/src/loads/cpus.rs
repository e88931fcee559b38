//! What of a CPU's records workers of loads are held against: its switches, and the interrupts that it is in.
//!
//! Kept while there are workers. Memory: a few words for each CPU.

use ft_trace::ids::{Cpu, Name};
use ft_trace::tables::Irq;

/// CPU numbers at or above this one come from damaged data (`NR_CPUS` of x86-64 is at most 8192, arch/x86/Kconfig).
const MAX_CPUS: usize = 8192;

/// Interrupts that nest on one CPU; more come from damaged data, and the outermost are forgotten.
const MAX_NESTED: usize = 16;

/// One CPU.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// How many switches there were.
    pub(super) switches: u64,
    /// When the last one was.
    pub(super) last: i64,
    /// Entry, exit and name, the innermost last.
    within: Vec<(i64, i64, Name)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Cpus(Vec<Records>);

impl Cpus {
    /// What is known of a CPU.
    pub(super) fn of(&mut self, cpu: Cpu) -> Option<&mut Records> {
        let i = usize::try_from(cpu.0).ok().filter(|&i| i < MAX_CPUS)?;
        if i >= self.0.len() {
            self.0.resize_with(i + 1, Records::default);
        }
        self.0.get_mut(i)
    }

    /// A CPU has gone from one thread to another; the how manieth time that was.
    pub(super) fn switched(&mut self, cpu: Cpu, now: i64) -> u64 {
        let Some(records) = self.of(cpu) else { return 0 };
        (records.switches, records.last) = (records.switches + 1, now);
        records.switches
    }

    /// An interrupt has begun.
    pub(super) fn interrupted(&mut self, irq: &Irq) {
        let Some(records) = self.of(irq.cpu) else { return };
        records.leave(irq.ts.0);
        if records.within.len() == MAX_NESTED {
            records.within.remove(0);
        }
        let exit = irq.ts.0.saturating_add(irq.dur.max(0));
        records.within.push((irq.ts.0, exit, irq.name.clone()));
    }

    /// The innermost interrupt that a CPU is in: since when, and which.
    pub(super) fn interrupt(&mut self, cpu: Cpu, now: i64) -> Option<(i64, Name)> {
        let records = self.of(cpu)?;
        records.leave(now);
        records.within.last().map(|(entry, _, name)| (*entry, name.clone()))
    }
}

impl Records {
    fn leave(&mut self, now: i64) {
        self.within.retain(|(_, exit, _)| *exit > now);
    }
}
