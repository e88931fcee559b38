//! Tables of the kernel groups that are recorded only when asked for: `lock`, `syscall`, `fault`.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What an access to memory is for.
    pub enum Access {
        /// Reading.
        Read = "read",
        /// Writing.
        Write = "write",
        /// Executing.
        Execute = "execute",
        _ => Read
    }
}

words! {
    /// Why an access to memory failed.
    pub enum FaultCause {
        /// There was no page.
        NotPresent = "not-present",
        /// The page forbids the access.
        Protection = "protection",
        _ => NotPresent
    }
}

table! {
    "contention",
    /// `contention`: one wait of a thread for a lock of the kernel.
    pub struct Contention {
        /// Begin of the wait.
        pub ts: Nanos,
        /// End minus begin.
        pub dur: i64,
        /// CPU on which the wait ended.
        pub cpu: Cpu,
        /// Waiter (0: idle).
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Address of the lock.
        pub lock: i64,
        /// What the flags say of the lock and the wait: `mutex`, `spinlock`, `rwlock-read`, `rwsem-write`, ….
        pub kind: Name,
        /// `LCB_F_*` flags (include/trace/events/lock.h).
        pub flags: i32,
    }
}

table! {
    "syscalls",
    /// `syscalls`: one system call.
    pub struct Syscall {
        /// Entry.
        pub ts: Nanos,
        /// Exit minus entry.
        pub dur: i64,
        /// CPU of the exit.
        pub cpu: Cpu,
        /// Caller.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Number.
        pub number: i32,
        /// Name of that number in the 64-bit ABI; a 32-bit program has other numbers.
        pub name: Name,
        /// What it returned; -4095..=-1 is the negated `errno`.
        pub ret: i64,
    }
}

table! {
    "page_faults",
    /// `page_faults`: one page fault in user space.
    pub struct PageFault {
        /// Time of the fault.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Address that was accessed.
        pub address: i64,
        /// What the access was for.
        pub access: Access,
        /// Why it failed.
        pub cause: FaultCause,
        /// Error code of the CPU (arch/x86/include/asm/trap_pf.h).
        pub error: i32,
    }
}
