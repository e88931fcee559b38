//! The interrupts that CPUs are in. Their records come at the entry, and tell the exit.
//!
//! Memory: a few words for each CPU.

use super::per_cpu::PerCpu;
use ft_trace::ids::{Cpu, Name};
use ft_trace::tables::{Irq, IrqKind, IrqPurpose};

/// Interrupts that nest on one CPU; more come from damaged data, and the outermost are forgotten.
///
/// Limit: as `MAX_NESTED` of `account.rs`.
const MAX_NESTED: usize = 16;

/// A softirq that begins so soon after an interrupt follows it, ns: what lies in between is the kernel's own way from
/// one to the other, and the recording of both.
///
/// Limit: part of the definition: for a packet that comes later, the interrupted thread counts as the sender.
/// Shown by: `a_packet_that_a_thread_delivers_itself_is_that_threads_doing`.
const FOLLOWS_NS: i64 = 2_000;

/// An interrupt that a CPU is in.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    /// Since when, CLOCK_MONOTONIC ns.
    pub(crate) entry: i64,
    exit: i64,
    pub(crate) kind: IrqKind,
    pub(crate) name: Name,
    /// It is the softirq `NET_RX`, and nothing but the thread that it strikes has raised it.
    pub(crate) own: bool,
}

/// Those of one CPU.
#[derive(Debug)]
struct Nest {
    /// The innermost last.
    within: Vec<Interrupt>,
    /// When it was in an interrupt last, or in a softirq that follows one.
    interrupted: i64,
}

impl Default for Nest {
    fn default() -> Nest {
        Nest { within: Vec::new(), interrupted: i64::MIN }
    }
}

impl Nest {
    fn leave(&mut self, now: i64) {
        let last = &mut self.interrupted;
        self.within.retain(|irq| {
            if irq.exit <= now && !irq.own {
                *last = irq.exit.max(*last);
            }
            irq.exit > now
        });
    }
}

/// The interrupts that CPUs are in.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    cpus: PerCpu<Nest>,
    /// There are such records.
    pub(crate) recorded: bool,
}

impl Interrupts {
    /// One has begun.
    pub(super) fn began(&mut self, irq: &Irq) {
        self.recorded = true;
        let Some(cpu) = self.cpus.of(irq.cpu) else { return };
        let now = irq.ts.0;
        cpu.leave(now);
        if cpu.within.len() == MAX_NESTED {
            cpu.within.remove(0);
        }
        let follows = now.saturating_sub(cpu.interrupted) <= FOLLOWS_NS;
        let alone = irq.kind == IrqKind::Soft && cpu.within.is_empty() && !follows;
        cpu.within.push(Interrupt {
            entry: now,
            exit: now.saturating_add(irq.dur.max(0)),
            kind: irq.kind,
            name: irq.name.clone(),
            own: alone
                && irq.tid.0 != 0
                && IrqPurpose::of(irq.kind, &irq.name) == IrqPurpose::Packets,
        });
    }

    /// The innermost one that a CPU is in.
    pub(crate) fn innermost(&self, cpu: Cpu, now: i64) -> Option<&Interrupt> {
        self.cpus.get(cpu)?.within.iter().rfind(|irq| irq.exit > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Nanos, Pid, Tid};

    #[test]
    fn the_innermost_interrupt_of_the_wakers_cpu_has_woken() {
        let irq = |ts, dur, name: &str| Irq {
            ts: Nanos(ts),
            dur,
            cpu: Cpu(3),
            kind: IrqKind::Vector,
            number: 0,
            name: name.into(),
            tid: Tid(0),
            pid: Pid(0),
        };
        let mut interrupts = Interrupts::default();
        interrupts.began(&irq(10, 50, "softirq"));
        interrupts.began(&irq(20, 10, "timer"));
        let found = |interrupts: &Interrupts, cpu, now| {
            interrupts.innermost(Cpu(cpu), now).map(|irq| (irq.entry, irq.name.to_string()))
        };
        assert_eq!(found(&interrupts, 3, 25), Some((20, "timer".into())));
        assert_eq!(found(&interrupts, 3, 30), Some((10, "softirq".into())));
        assert_eq!(found(&interrupts, 3, 60), None);
        assert_eq!((found(&interrupts, 2, 25), found(&interrupts, -1, 25)), (None, None));
        (0..1000).for_each(|i| interrupts.began(&irq(100 + i, 5000, "damaged")));
        assert_eq!(found(&interrupts, 3, 1100), Some((1099, "damaged".into())));
    }
}
