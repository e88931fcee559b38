//! Tables of the kernel groups that are recorded only when asked for: `lock`, `syscall`, `fault`.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};

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
        /// `read`, `write` or `execute`.
        pub access: Name,
        /// `not-present` or `protection`: there was no page, or one that forbids the access.
        pub cause: Name,
        /// Error code of the CPU (arch/x86/include/asm/trap_pf.h).
        pub error: i32,
    }
}
