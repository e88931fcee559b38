//! Group `sched`: who runs where, who wakes whom, who moves.
//!
//! Every switch is kept, whoever it concerns: what a thread waited for is known only from who ran instead.

use aya_ebpf::{
    helpers::bpf_get_smp_processor_id, macros::btf_tracepoint, programs::BtfTracePointContext,
};
use ft_ebpf::{Migrate, Switch, Waking, kind, program};

use crate::{
    config, counter,
    filter::{current, ended},
    irq::{self, softirq},
    kernel::TaskStruct,
    record::{header, now, write},
    sleep, throttle,
};

/// `(bool preempt, task_struct *prev, task_struct *next, unsigned int prev_state)`; the last one since 5.18.
#[btf_tracepoint(function = "sched_switch")]
fn sched_switch(ctx: BtfTracePointContext) -> i32 {
    if ended() {
        return 0;
    }
    let ts = now();
    let prev = TaskStruct::new(ctx.arg(1));
    let next = TaskStruct::new(ctx.arg(2));
    let was_preempted = ctx.arg::<u8>(0) != 0;
    let state = if config::switch_has_state() != 0 { ctx.arg(3) } else { prev.state() };
    let prev_is_observed = prev.is_observed();
    if prev_is_observed {
        if !was_preempted {
            sleep::leaves(ts, prev, state);
        }
        throttle::leaves(ts, prev, state);
    }
    throttle::comes(ts, next);
    // SAFETY: the helper takes nothing and only returns a number.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    if next.is_observed() {
        irq::awaits(next, cpu, false);
    }
    if state == 0 && prev_is_observed {
        irq::awaits(prev, cpu, true);
    }
    write(const { program::index("sched_switch") }, ts, || {
        let flag = match was_preempted {
            true => Switch::PREEMPTED,
            false if state != 0 && prev.is_being_woken() => Switch::BEING_WOKEN,
            false => 0,
        };
        Switch {
            header: header(ts, kind::SWITCH, prev.tid()),
            prev_tgid: prev.tgid(),
            prev_prio: prev.prio(),
            prev_state: state | flag,
            next_tid: next.tid(),
            next_tgid: next.tgid(),
            next_prio: next.prio(),
            prev_comm: prev.comm(),
            next_comm: next.comm(),
        }
    });
    if config::counters() != 0 {
        counter::switched(ts, prev, next);
    }
    if config::softirqs_preempted() != 0 {
        softirq::switched(ts, prev, next);
    }
    0
}

#[inline(always)]
fn waking(program: u32, kind: u16, ctx: &BtfTracePointContext) -> i32 {
    let woken = TaskStruct::new(ctx.arg(0));
    if woken.is_observed() {
        let ts = now();
        irq::wakes(ts);
        irq::awaits(woken, woken.cpu(), true);
        write(program, ts, || Waking {
            header: header(ts, kind, current().tid),
            tid: woken.tid(),
            tgid: woken.tgid(),
            prio: woken.prio(),
            target_cpu: woken.cpu(),
        });
    }
    0
}

/// `(task_struct *p)`.
#[btf_tracepoint(function = "sched_waking")]
fn sched_waking(ctx: BtfTracePointContext) -> i32 {
    waking(const { program::index("sched_waking") }, kind::WAKING, &ctx)
}

/// `(task_struct *p)`.
#[btf_tracepoint(function = "sched_wakeup_new")]
fn sched_wakeup_new(ctx: BtfTracePointContext) -> i32 {
    waking(const { program::index("sched_wakeup_new") }, kind::WAKEUP_NEW, &ctx)
}

/// `(task_struct *p, int dest_cpu)`.
#[btf_tracepoint(function = "sched_migrate_task")]
fn sched_migrate_task(ctx: BtfTracePointContext) -> i32 {
    let task = TaskStruct::new(ctx.arg(0));
    if task.is_observed() {
        let ts = now();
        irq::awaits(task, task.cpu(), false);
        irq::awaits(task, ctx.arg(1), true);
        write(const { program::index("sched_migrate_task") }, ts, || Migrate {
            header: header(ts, kind::MIGRATE, current().tid),
            tid: task.tid(),
            tgid: task.tgid(),
            from_cpu: task.cpu(),
            to_cpu: ctx.arg(1),
        });
    }
    0
}
