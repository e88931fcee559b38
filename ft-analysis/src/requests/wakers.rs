//! Who wakes: the thread that has the waker's CPU, or an interrupt on top of it.
//!
//! `sched_waking` tells which thread was current. Whether an interrupt did it in its place, the interrupts of that CPU
//! tell, which are recorded with begin and end.
//!
//! **Situations.**
//! - *In no interrupt*: the thread.
//! - *In the timer's interrupt, or the softirqs `TIMER` and `HRTIMER`*: a timer.
//! - *In the softirq `NET_RX`, which follows no interrupt*: the thread, in a system call of its own. So Linux delivers what
//!   one process sends to another of the same machine (`__local_bh_enable_ip`, kernel/softirq.c, after `netif_rx`,
//!   net/core/dev.c). A softirq that an interrupt has raised follows it at once (`irq_exit_rcu`), or another softirq that does.
//!   Of a thread that is not observed, the interrupt before it may have no record: who is outside is a `lower bound` then.
//! - *In any other interrupt*: a device, or a CPU that sent one.
//! - *The idle task, in no interrupt*: one that is not recorded.

use super::history::Waker;
use ft_trace::ids::{Cpu, Name};
use ft_trace::tables::{Irq, IrqKind};

/// CPU numbers at or above this one come from damaged data (`NR_CPUS` of x86-64 is at most 8192, arch/x86/Kconfig).
const MAX_CPUS: usize = 8192;

/// Interrupts that nest on one CPU; more come from damaged data, and the outermost are forgotten.
const MAX_NESTED: usize = 16;

/// A softirq that begins so soon after an interrupt follows it, ns: what lies in between is the kernel's own way from
/// one to the other, and the recording of both.
const FOLLOWS_NS: i64 = 2_000;

#[derive(Clone, Debug)]
struct Within {
    exit: i64,
    kind: IrqKind,
    name: Name,
    /// The interrupted thread does it itself.
    own: bool,
}

/// One CPU.
#[derive(Debug)]
struct Records {
    within: Vec<Within>,
    /// When it was in an interrupt last, or in a softirq that follows one.
    interrupted: i64,
}

impl Records {
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
pub(super) struct Interrupts {
    cpus: Vec<Records>,
    /// There are such records.
    pub(super) recorded: bool,
}

impl Interrupts {
    fn of(&mut self, cpu: Cpu) -> Option<&mut Records> {
        let i = usize::try_from(cpu.0).ok().filter(|&i| i < MAX_CPUS)?;
        if i >= self.cpus.len() {
            let new = || Records { within: Vec::new(), interrupted: i64::MIN };
            self.cpus.resize_with(i + 1, new);
        }
        self.cpus.get_mut(i)
    }

    /// An interrupt has begun.
    pub(super) fn began(&mut self, irq: &Irq) {
        self.recorded = true;
        let Some(cpu) = self.of(irq.cpu) else { return };
        let now = irq.ts.0;
        cpu.leave(now);
        if cpu.within.len() == MAX_NESTED {
            cpu.within.remove(0);
        }
        let follows = now.saturating_sub(cpu.interrupted) <= FOLLOWS_NS;
        let alone = irq.kind == IrqKind::Soft && cpu.within.is_empty() && !follows;
        cpu.within.push(Within {
            exit: now.saturating_add(irq.dur.max(0)),
            kind: irq.kind,
            name: irq.name.clone(),
            own: alone && irq.tid.0 != 0 && &*irq.name == "NET_RX",
        });
    }

    /// The interrupt that wakes, where one does; and whether its thread does that in a softirq of its own. `idle`: the CPU
    /// has nothing to run.
    pub(super) fn waker(&mut self, cpu: Cpu, now: i64, idle: bool) -> (Option<Waker>, bool) {
        let innermost = self.of(cpu).and_then(|cpu| {
            cpu.leave(now);
            cpu.within.last()
        });
        let waker = match innermost {
            Some(irq) if irq.own => return (None, true),
            Some(irq) if is_timer(irq) => Some(Waker::Timer(irq.name.clone())),
            Some(irq) => Some(Waker::Device(irq.name.clone())),
            None => idle.then_some(Waker::Unknown("an interrupt without a record")),
        };
        (waker, false)
    }
}

/// The interrupt is that of a clock, by the names of vectors, of softirqs, and of the lines of x86.
fn is_timer(irq: &Within) -> bool {
    match irq.kind {
        IrqKind::Vector => &*irq.name == "local_timer",
        IrqKind::Soft => matches!(&*irq.name, "TIMER" | "HRTIMER"),
        IrqKind::Hard => matches!(&*irq.name, "timer" | "rtc0") || irq.name.starts_with("hpet"),
    }
}
