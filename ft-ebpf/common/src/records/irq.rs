//! Records of interrupts.

use super::Header;

/// Kinds of interrupt vectors (tracepoints of `irq_vectors`).
pub mod vector {
    /// `local_timer`.
    pub const LOCAL_TIMER: u32 = 1;
    /// `reschedule`.
    pub const RESCHEDULE: u32 = 2;
    /// `call_function`.
    pub const CALL_FUNCTION: u32 = 3;
    /// `call_function_single`.
    pub const CALL_FUNCTION_SINGLE: u32 = 4;
    /// `irq_work`.
    pub const IRQ_WORK: u32 = 5;
}

/// One handler run, written at its exit. `header.ts` is the exit, `entry_ts` the entry, `header.tid`
/// the interrupted thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Irq {
    /// Common part.
    pub header: Header,
    /// `bpf_ktime_get_ns` at the entry tracepoint.
    pub entry_ts: u64,
    /// Line, softirq number or [`vector`] kind.
    pub number: u32,
    /// Process of the interrupted thread.
    pub tgid: u32,
}
