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

use super::history::Wake;
pub(crate) use super::history::Waker;
use crate::world::{self, Unknown, World};
use ft_trace::Mark;
use ft_trace::ids::{Cpu, ThreadKey};
use ft_trace::tables::IrqPurpose;

/// The interrupt that wakes on this CPU now, where one does; and whether its thread does that in a softirq of its own.
/// `idle`: the CPU has nothing to run.
pub(crate) fn interrupt_that_wakes(world: &World, cpu: Cpu, idle: bool) -> (Option<Waker>, bool) {
    let waker = match world.interrupts().innermost(cpu, world.now()) {
        Some(irq) if irq.own => return (None, true),
        Some(irq) if IrqPurpose::of(irq.kind, &irq.name).is_timer() => {
            Some(Waker::Timer(irq.name.clone()))
        }
        Some(irq) => Some(Waker::Device(irq.name.clone())),
        None => idle.then_some(Waker::Unknown(Unknown::UnrecordedInterrupt)),
    };
    (waker, false)
}

/// Who wakes a thread now: by its wake-up, the CPU on which it is woken, the thread that has that CPU, and whether it is its birth.
pub(crate) fn who_wakes(
    (wake, cpu, waker, birth): (&world::Wake, Cpu, Option<ThreadKey>, bool),
    world: &World,
) -> Wake {
    let idle = waker.is_some_and(|waker| waker.tid.0 == 0);
    let (interrupt, delivered) = interrupt_that_wakes(world, cpu, idle);
    let waker = interrupt.unwrap_or_else(|| thread_that_wakes(wake, waker, world));
    // Without its record, it may have been an interrupt.
    let hidden = delivered && matches!(waker, Waker::Outside(..));
    let mark = Mark::lower_bound_if(!world.interrupts().recorded || hidden);
    Wake { ts: world.now(), waker, birth, mark }
}

/// The thread that has the CPU on which another one is woken, if it is known.
fn thread_that_wakes(wake: &world::Wake, waker: Option<ThreadKey>, world: &World) -> Waker {
    match waker {
        Some(waker) if world.thread(waker.pid, waker.tid).is_some() => Waker::Thread(waker),
        Some(waker) => Waker::Outside(wake.waker_comm.clone(), waker.tid),
        None => Waker::Unknown(Unknown::Waker),
    }
}
