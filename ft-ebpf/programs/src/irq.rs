//! Group `irq`: hardware interrupts, softirqs and the kernel's own interrupt vectors.
//!
//! The entry program stores its time where the exit program finds it; the exit program writes one record
//! with both. One slot per CPU and kind is enough: handlers of one kind do not nest on a CPU. Recorded is
//! a handler that strikes an observed thread, which is decided once, at its entry; or in which one is woken,
//! whoever was struck: a wait ends there, and that it was an interrupt is known from nothing else. While an observed real-time
//! thread waits for the CPU, each of that CPU is recorded: what it waits for then may be these, whomever they strike.
//!
//! On a real-time kernel softirqs are run by threads as a part of what these do, and can be preempted ([`softirq`]).

use aya_ebpf::{
    helpers::bpf_get_smp_processor_id,
    macros::{btf_tracepoint, map, tracepoint},
    maps::{Array, HashMap, PerCpuArray},
    programs::{BtfTracePointContext, TracePointContext},
};
use aya_log_ebpf::warn;
use ft_ebpf::{Irq, kind, program, vector};

use crate::{
    config,
    filter::current,
    kernel::TaskStruct,
    lock::own,
    record::{header, lost, now, write},
};

/// Slots of [`Handlers`]; the vectors follow, from `vector::LOCAL_TIMER` = 1 on.
const HARDIRQ: usize = 0;
const VECTORS: usize = HARDIRQ;
const SOFTIRQ: usize = VECTORS + vector::IRQ_WORK as usize + 1;
const SLOTS: usize = SOFTIRQ + 1;

/// The handlers that one CPU is in.
#[derive(Clone, Copy)]
#[repr(C)]
struct Handlers {
    /// When each was entered; 0 when it does not run.
    entered: [u64; SLOTS],
    /// It strikes an observed thread.
    strikes: [bool; SLOTS],
    /// When an observed thread was woken here last.
    woke: u64,
}

#[map]
static HANDLERS: PerCpuArray<Handlers> = PerCpuArray::with_max_entries(1, 0);

/// CPUs that there can be (`NR_CPUS` of x86-64, arch/x86/Kconfig).
///
/// Limit: cannot be reached.
/// Shown by: not shown.
const MAX_CPUS: u32 = 8192;

/// Not 0: an observed real-time thread waits for this CPU.
#[map]
static AWAITED: Array<u32> = Array::with_max_entries(MAX_CPUS, 0);

/// An observed thread waits for a CPU, or does so no longer.
#[inline(always)]
pub(crate) fn awaits(thread: TaskStruct, cpu: u32, waits: bool) {
    if !thread.is_ordinary()
        && let Some(awaited) = AWAITED.get_ptr_mut(cpu)
    {
        // SAFETY: whole words are written; of two that wait at once, one may be forgotten.
        unsafe { awaited.write_volatile(u32::from(waits)) };
    }
}

/// Whether one waits for this CPU.
#[inline(always)]
fn is_awaited() -> bool {
    // SAFETY: the helper takes nothing and only returns a number.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    // SAFETY: as in `awaits`.
    AWAITED.get_ptr(cpu).is_some_and(|awaited| unsafe { awaited.read_volatile() } != 0)
}

/// An observed thread is woken on this CPU.
#[inline(always)]
pub(crate) fn wakes(ts: u64) {
    if let Some(handlers) = HANDLERS.get_ptr_mut(0) {
        // SAFETY: the memory is this CPU's, and an interrupt on top of this program stores a later time.
        unsafe { (*handlers).woke = ts };
    }
}

/// Whether this CPU is in an interrupt, as far as its programs are attached: what runs here is not what was struck.
#[inline(always)]
pub(crate) fn is_in() -> bool {
    let Some(handlers) = HANDLERS.get_ptr(0) else { return false };
    // SAFETY: the memory is this CPU's, and what interrupts this program has left it when this goes on.
    unsafe { (*handlers).entered.iter().any(|entered| *entered != 0) }
}

#[inline(always)]
fn enter(ctx: &BtfTracePointContext, slot: usize) -> i32 {
    let Some(handlers) = HANDLERS.get_ptr_mut(0) else { return 0 };
    // SAFETY: the slot is this CPU's; nothing of its kind interrupts this program.
    let (entered, strikes) =
        unsafe { (&mut (*handlers).entered[slot], &mut (*handlers).strikes[slot]) };
    if *entered != 0 {
        // The run before this one had no exit: it is forgotten, and said.
        warn!(ctx, "handler of slot {} entered twice; the first run is not recorded", slot);
    }
    *strikes = current().is_observed();
    *entered = now();
    0
}

#[inline(always)]
fn exit(program: u32, kind: u16, slot: usize, number: u32) -> i32 {
    let Some(handlers) = HANDLERS.get_ptr_mut(0) else { return 0 };
    // SAFETY: as in `enter`.
    let (entry_ts, strikes, woke) = unsafe {
        let handlers = &mut *handlers;
        (core::mem::take(&mut handlers.entered[slot]), handlers.strikes[slot], handlers.woke)
    };
    if entry_ts != 0 && (strikes || woke >= entry_ts || is_awaited()) {
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
    match config::softirqs_preempted() != 0 {
        true => softirq::enter(ctx.arg(0)),
        false => enter(&ctx, SOFTIRQ),
    }
}

/// `(unsigned int vec_nr)`.
#[btf_tracepoint(function = "softirq_exit")]
fn softirq_exit(ctx: BtfTracePointContext) -> i32 {
    match config::softirqs_preempted() != 0 {
        true => softirq::exit(),
        false => exit(const { program::index("softirq_exit") }, kind::SOFTIRQ, SOFTIRQ, ctx.arg(0)),
    }
}

/// `irq:softirq_entry`, an event of perf, which is not preempted; see [`crate::syscall`]. On a real-time kernel the
/// tracepoint can be: a thread that lost the CPU between reading the clock and saying so would have it from before.
#[tracepoint]
fn softirq_entry_event(ctx: TracePointContext) -> i32 {
    softirq::enter(softirq::number(&ctx))
}

/// `irq:softirq_exit`.
#[tracepoint]
fn softirq_exit_event(_: TracePointContext) -> i32 {
    softirq::exit()
}

/// Softirqs that can be preempted: each stretch of one in which its thread has a CPU is a record.
pub(crate) mod softirq {
    use aya_ebpf::EbpfContext;

    use super::*;

    /// The field of the events (include/trace/events/irq.h), behind the 8 bytes that all have in common.
    #[inline(always)]
    pub(super) fn number(ctx: &TracePointContext) -> u32 {
        // SAFETY: the verifier lets a program read the fields of its event, and nothing else.
        unsafe { ctx.as_ptr().cast::<u32>().add(2).read_volatile() }
    }

    /// One that goes on.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Run {
        /// Since when its thread has the CPU; 0 while it has none.
        since: u64,
        number: u32,
        /// It strikes an observed thread.
        strikes: u32,
    }

    /// By thread, which is in one at a time.
    ///
    /// Limit: a further one is a loss of `softirq_exit`, counted.
    /// Shown by: `what_is_under_way_beyond_its_table_is_counted`, with a table of one entry on any kernel, where there
    /// are two CPUs and a loopback device; that preempted softirqs fill one of 4096 on a real-time kernel is *not
    /// shown*.
    #[map]
    static SOFTIRQS: HashMap<u32, Run> = HashMap::with_max_entries(4096, 0);

    #[inline(always)]
    pub(super) fn enter(number: u32) -> i32 {
        let struck = current();
        let run = Run { since: now(), number, strikes: u32::from(struck.is_observed()) };
        if own(|| SOFTIRQS.insert(struck.tid, run, 0)).is_err() {
            lost(const { program::index("softirq_exit") }, run.since);
        }
        0
    }

    #[inline(always)]
    pub(super) fn exit() -> i32 {
        let struck = current();
        stop(now(), struck.tid, struck.tgid);
        let _ = own(|| SOFTIRQS.remove(struck.tid));
        0
    }

    /// A CPU is given to another thread.
    #[inline(always)]
    pub(crate) fn switched(ts: u64, prev: TaskStruct, next: TaskStruct) {
        stop(ts, prev.tid(), prev.tgid());
        if let Some(run) = SOFTIRQS.get_ptr_mut(next.tid()) {
            // SAFETY: only the CPU that a thread leaves, comes to or has looks at its entry.
            unsafe { (*run).since = ts };
        }
    }

    /// The thread stops to run its softirq, if it is in one.
    #[inline(always)]
    fn stop(ts: u64, tid: u32, tgid: u32) {
        let Some(run) = SOFTIRQS.get_ptr_mut(tid) else { return };
        // SAFETY: as in `switched`.
        let run = unsafe { &mut *run };
        let entry_ts = core::mem::take(&mut run.since);
        // SAFETY: as in `wakes`.
        let woke = HANDLERS.get_ptr(0).map_or(0, |handlers| unsafe { (*handlers).woke });
        if entry_ts == 0 || run.strikes == 0 && woke < entry_ts && !is_awaited() {
            return;
        }
        let number = run.number;
        write(const { program::index("softirq_exit") }, ts, || Irq {
            header: header(ts, kind::SOFTIRQ, tid),
            entry_ts,
            number,
            tgid,
        });
    }
}

/// The pair of programs of one vector; both tracepoints pass `(int vector)`.
macro_rules! vector {
    ($number:expr, $entry:ident = $entry_name:literal, $exit:ident = $exit_name:literal) => {
        #[btf_tracepoint(function = $entry_name)]
        fn $entry(ctx: BtfTracePointContext) -> i32 {
            enter(&ctx, VECTORS + $number as usize)
        }

        #[btf_tracepoint(function = $exit_name)]
        fn $exit(_ctx: BtfTracePointContext) -> i32 {
            exit(
                const { program::index($exit_name) },
                kind::VECTOR,
                VECTORS + $number as usize,
                $number,
            )
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
