//! The tables of what threads did inside the kernel and outside, and who ended whose waits there.

use super::decomposition::Decomposition;
use super::fault::FaultKind;
use super::syscall::FileKind;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// Where a thread is.
    pub enum Place {
        /// In no system call: its own code, and what the kernel does on the way to it and from it.
        User = "user",
        /// In a system call.
        Call = "call",
        /// In a call or in none: no call of the thread was seen to begin or to return.
        Unknown = "unknown",
        _ => Unknown
    }
}

words! {
    /// Who wakes.
    pub enum WakerKind {
        /// A thread.
        Thread = "thread",
        /// An interrupt of a clock.
        Timer = "timer",
        /// Another interrupt: a device, or another CPU.
        Device = "device",
        /// Not known.
        Unknown = "unknown",
        _ => Unknown
    }
}

table! {
    "breakdown",
    /// `breakdown`: the time of one observed thread in one system call, or in none; of page faults there, in rows of their
    /// own. The parts of all rows of a thread sum to its `wall_ns`, to the nanosecond. Of traces with the kernel group
    /// `syscall`.
    pub struct Breakdown {
        /// First sight of the thread.
        pub ts: Nanos,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its newest name.
        pub comm: Name,
        /// Where it was.
        pub place: Place,
        /// Name of the system call; `(others)` behind the 254th of a thread. One that goes on after a signal without a
        /// handler (`restart_syscall`) has the name of what goes on.
        pub call: Option<Name>,
        /// What the call's descriptor is of, as in `syscalls`.
        pub file: Option<FileKind>,
        /// What it waits for when it is blocked: `file`, or what else follows from the call (`futex`, `timer`, `descriptors`, …);
        /// null where nothing does.
        pub waits_for: Option<Name>,
        /// Not null: in a page fault there, of this kind. A fault of which no end was seen is not distinguished.
        pub fault: Option<FaultKind>,
        /// Calls that were entered in the trace, or faults; 0 for time outside of calls.
        pub count: i64 as Count,
        /// Of those, calls that did not return in the trace: `exit`, or what the thread was in at its end.
        pub unfinished: i64 as Count,
        /// Calls that returned and whose entry was not seen: under way when the recording began, or what the thread began in.
        pub begun_before: i64 as Count,
        /// Where the time went; null without the kernel group `sched`.
        pub parts: Option<Decomposition>,
        /// From the first sight to the end of the thread or of the trace; the same in all rows of a thread.
        pub wall_ns: i64 as Ns,
        /// [`Mark`]. `exact`: from its birth to its end; `disturbed`: it waited for room in its ring; `censored`: it lived
        /// before or after what was recorded, and `wall_ns` is what of it lies inside; the kernel's records begin some ms before the
        /// trace does; `lower bound`: records were lost meanwhile, so
        /// that a call, or its end, may be missing.
        pub mark: Mark,
    }
}

table! {
    "wake_pairs",
    /// `wake_pairs`: all wake-ups by threads of one process in one system call (or by one interrupt) of threads of one
    /// process that were blocked in one system call. Of traces with the kernel group `syscall`.
    pub struct WakePair {
        /// The first of them.
        pub ts: Nanos,
        /// Who wakes.
        pub waker: WakerKind,
        /// Process of the waker; null of interrupts, and where it is not known.
        pub waker_pid: Option<i32> as Pid,
        /// Name of its first thread; or of the interrupt.
        pub waker_name: Name,
        /// In which system call the waker was; null in none, or where that is not known.
        pub waker_call: Option<Name>,
        /// What that call's descriptor is of.
        pub waker_file: Option<FileKind>,
        /// Process that is woken.
        pub pid: Pid,
        /// Name of its first thread.
        pub name: Name,
        /// In which system call the woken thread was blocked; null where that is not known.
        pub call: Option<Name>,
        /// What that call's descriptor is of.
        pub file: Option<FileKind>,
        /// Wake-ups.
        pub count: i64 as Count,
        /// How long the woken threads had been blocked, since they had left the CPU.
        pub blocked_ns: i64 as Ns,
        /// The longest of that.
        pub longest_ns: i64 as Ns,
        /// How long they then waited for a CPU.
        pub dispatch_ns: i64 as Ns,
        /// [`Mark`]: `exact`, or `lower bound` when records of switches or calls were lost since the first.
        pub mark: Mark,
    }
}
