//! Group `irq`: hardware interrupts, softirqs and the kernel's own interrupt vectors.
//!
//! The entry program stores its time where the exit program finds it; the exit program writes one record
//! with both. One slot per CPU and kind is enough: handlers of one kind do not nest on a CPU. Only a
//! handler that strikes an observed thread is timed, and that is decided once, at its entry.

use aya_ebpf::{
    macros::{btf_tracepoint, map},
    maps::PerCpuArray,
    programs::BtfTracePointContext,
};
use aya_log_ebpf::warn;
use ft_ebpf::{Irq, kind, program, vector};

use crate::{
    filter::current,
    record::{header, now, write},
};

/// Slots of [`ENTRY_TS`]; the vectors follow, from `vector::LOCAL_TIMER` = 1 on.
const HARDIRQ: u32 = 0;
const VECTORS: u32 = HARDIRQ;
const SOFTIRQ: u32 = VECTORS + vector::IRQ_WORK + 1;
const SLOTS: u32 = SOFTIRQ + 1;

/// When the handler that runs now was entered; 0 when none runs or none is timed.
#[map]
static ENTRY_TS: PerCpuArray<u64> = PerCpuArray::with_max_entries(SLOTS, 0);

#[inline(always)]
fn enter(ctx: &BtfTracePointContext, slot: u32) -> i32 {
    let Some(entry) = ENTRY_TS.get_ptr_mut(slot) else { return 0 };
    // SAFETY: the slot is this CPU's; nothing of its kind interrupts this program.
    let entry = unsafe { &mut *entry };
    if *entry != 0 {
        // The run before this one had no exit: it is forgotten, and said.
        warn!(ctx, "handler of slot {} entered twice; the first run is not recorded", slot);
    }
    *entry = if current().is_observed() { now() } else { 0 };
    0
}

#[inline(always)]
fn exit(program: u32, kind: u16, slot: u32, number: u32) -> i32 {
    let Some(entry) = ENTRY_TS.get_ptr_mut(slot) else { return 0 };
    // SAFETY: as in `enter`.
    let entry_ts = core::mem::take(unsafe { &mut *entry });
    if entry_ts != 0 {
        let ts = now();
        let struck = current();
        write(program, ts, || Irq {
            header: header(ts, kind, struck.tid),
            entry_ts,
            number,
            tgid: struck.tgid,
        });
    }
    0
}

/// `(int irq, irqaction *action)`.
#[btf_tracepoint(function = "irq_handler_entry")]
fn irq_handler_entry(ctx: BtfTracePointContext) -> i32 {
    enter(&ctx, HARDIRQ)
}

/// `(int irq, irqaction *action, int ret)`.
#[btf_tracepoint(function = "irq_handler_exit")]
fn irq_handler_exit(ctx: BtfTracePointContext) -> i32 {
    exit(const { program::index("irq_handler_exit") }, kind::HARDIRQ, HARDIRQ, ctx.arg(0))
}

/// `(unsigned int vec_nr)`.
#[btf_tracepoint(function = "softirq_entry")]
fn softirq_entry(ctx: BtfTracePointContext) -> i32 {
    enter(&ctx, SOFTIRQ)
}

/// `(unsigned int vec_nr)`.
#[btf_tracepoint(function = "softirq_exit")]
fn softirq_exit(ctx: BtfTracePointContext) -> i32 {
    exit(const { program::index("softirq_exit") }, kind::SOFTIRQ, SOFTIRQ, ctx.arg(0))
}

/// The pair of programs of one vector; both tracepoints pass `(int vector)`.
macro_rules! vector {
    ($number:expr, $entry:ident = $entry_name:literal, $exit:ident = $exit_name:literal) => {
        #[btf_tracepoint(function = $entry_name)]
        fn $entry(ctx: BtfTracePointContext) -> i32 {
            enter(&ctx, VECTORS + $number)
        }

        #[btf_tracepoint(function = $exit_name)]
        fn $exit(_ctx: BtfTracePointContext) -> i32 {
            exit(const { program::index($exit_name) }, kind::VECTOR, VECTORS + $number, $number)
        }
    };
}

vector!(
    vector::LOCAL_TIMER,
    local_timer_entry = "local_timer_entry",
    local_timer_exit = "local_timer_exit"
);
vector!(
    vector::RESCHEDULE,
    reschedule_entry = "reschedule_entry",
    reschedule_exit = "reschedule_exit"
);
vector!(
    vector::CALL_FUNCTION,
    call_function_entry = "call_function_entry",
    call_function_exit = "call_function_exit"
);
vector!(
    vector::CALL_FUNCTION_SINGLE,
    call_function_single_entry = "call_function_single_entry",
    call_function_single_exit = "call_function_single_exit"
);
vector!(vector::IRQ_WORK, irq_work_entry = "irq_work_entry", irq_work_exit = "irq_work_exit");
