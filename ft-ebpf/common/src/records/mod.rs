//! What a record is, and all of them.

mod chain;
mod cpu_count;
mod fault;
mod futex;
mod irq;
mod lock;
mod probe;
mod sched;
mod sections;
mod signal;
mod sleep;
mod syscall;
mod task;
mod throttle;

pub use chain::Chain;
pub use cpu_count::CpuCount;
pub use fault::{PageFault, ServedFault};
pub use futex::Futex;
pub use irq::{Irq, vector};
pub use lock::Contention;
pub use probe::Probe;
pub use sched::{Migrate, Switch, Waking};
pub use sections::{Section, SectionBin, Sections, section};
pub use signal::Signal;
pub use sleep::Sleep;
pub use syscall::{COMPAT, Syscall, file};
pub use task::Task;
pub use throttle::Throttle;

/// Kernel priorities below are those of real-time threads, and below 0 of SCHED_DEADLINE (`MAX_RT_PRIO`, include/linux/sched/prio.h).
pub const FIRST_ORDINARY: i32 = 100;

/// Bytes that a record of so many takes in a ring buffer (`BPF_RINGBUF_HDR_SZ`, include/uapi/linux/bpf.h).
pub const fn ring_bytes(record: usize) -> usize {
    const HEADER: usize = 8;
    HEADER + record.next_multiple_of(8)
}

/// Bytes of a task's name with its NUL (`TASK_COMM_LEN`, linux/sched.h).
pub const COMM_LEN: usize = 16;

/// First 16 bytes of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// `bpf_ktime_get_ns` (CLOCK_MONOTONIC) at the tracepoint.
    pub ts: u64,
    /// One of [`kind`].
    pub kind: u16,
    /// CPU on which the program ran.
    pub cpu: u16,
    /// Kernel `pid` (thread id, initial PID namespace) of the current task; 0 is the idle task.
    pub tid: u32,
}

/// Values of [`Header::kind`].
pub mod kind {
    /// [`super::Switch`].
    pub const SWITCH: u16 = 1;
    /// [`super::Waking`], from `sched_waking`.
    pub const WAKING: u16 = 2;
    /// [`super::Waking`], from `sched_wakeup_new`.
    pub const WAKEUP_NEW: u16 = 3;
    /// [`super::Migrate`].
    pub const MIGRATE: u16 = 4;
    /// [`super::Irq`], a hardware interrupt handler; `number` is the line.
    pub const HARDIRQ: u16 = 5;
    /// [`super::Irq`], a softirq; `number` is the vector (`enum` in linux/interrupt.h).
    pub const SOFTIRQ: u16 = 6;
    /// [`super::Irq`], an interrupt vector; `number` is one of [`super::vector`].
    pub const VECTOR: u16 = 7;
    /// [`super::Task`], from `sched_process_fork`.
    pub const FORK: u16 = 8;
    /// [`super::Task`], from `sched_process_exec`.
    pub const EXEC: u16 = 9;
    /// [`super::Task`], from `sched_process_exit`.
    pub const EXIT: u16 = 10;
    /// [`super::Task`], from `task_rename`.
    pub const RENAME: u16 = 11;
    /// [`super::Contention`].
    pub const CONTENTION: u16 = 12;
    /// [`super::Syscall`] that was entered and has returned.
    pub const SYSCALL: u16 = 13;
    /// [`super::PageFault`] of which it is not known whether and when it was served; `ts` is its begin.
    pub const PAGE_FAULT: u16 = 14;
    /// [`super::Signal`], from `signal_generate`.
    pub const SIGNAL_GENERATE: u16 = 15;
    /// [`super::Signal`], from `signal_deliver`.
    pub const SIGNAL_DELIVER: u16 = 16;
    /// [`super::Chain`] of a thread that was off the CPU, written when it has one again.
    pub const CHAIN_OFF_CPU: u16 = 17;
    /// [`super::Chain`] of who wakes a thread.
    pub const CHAIN_WAKE: u16 = 18;
    /// [`super::Chain`] of a thread that ran when the clock of its CPU struck.
    pub const SAMPLE: u16 = 19;
    /// [`super::Futex`].
    pub const FUTEX: u16 = 20;
    /// [`super::Syscall`] that had not returned at `ts`, when its thread or the recording ended; `ret` says nothing.
    pub const SYSCALL_BEGUN: u16 = 24;
    /// [`super::Syscall`] that nobody saw entered; `entry_ts` is its exit, too.
    pub const SYSCALL_ENDED: u16 = 25;
    /// [`super::ServedFault`] for which nothing had to be read.
    pub const FAULT_MINOR: u16 = 26;
    /// [`super::ServedFault`] for which something had to be read.
    pub const FAULT_MAJOR: u16 = 27;
    /// [`super::Probe`]: a probed function is called, or the first mark of a pair is passed.
    pub const PROBE_BEGIN: u16 = 28;
    /// [`super::Probe`]: a probed function returns, or the second mark is passed.
    pub const PROBE_END: u16 = 29;
    /// [`super::Section`].
    pub const SECTION: u16 = 30;
    /// [`super::CpuCount`].
    pub const CPU_COUNT: u16 = 31;
    /// [`super::Sleep`].
    pub const SLEEP: u16 = 32;
    /// [`super::Throttle`].
    pub const THROTTLE: u16 = 33;
}

/// A record, or its beginning: any bytes are one.
///
/// # Safety
///
/// The type consists of integers and arrays of them, without padding.
pub unsafe trait Record: Copy {}

/// The record at the start of `bytes`; `None` when it is cut short.
pub fn read<T: Record>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: the slice is as long as `T`, which is valid for any bytes (`Record`).
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The records, and their sizes: a layout that has changed by mistake does not compile.
macro_rules! records {
    ($($record:ident: $bytes:literal,)*) => {
        $(
            const _: () = assert!(size_of::<$record>() == $bytes);
            // SAFETY: its fields are integers and arrays of them, which fill the size stated above.
            unsafe impl Record for $record {}
        )*
    };
}

records! {
    Header: 16,
    Switch: 72,
    Waking: 32,
    Migrate: 32,
    Irq: 32,
    Task: 48,
    Contention: 40,
    Syscall: 40,
    PageFault: 32,
    ServedFault: 40,
    Signal: 40,
    Chain: 144,
    Futex: 88,
    Probe: 32,
    Section: 64,
    SectionBin: 24,
    Sections: 1800,
    CpuCount: 64,
    Sleep: 80,
    Throttle: 104,
}
