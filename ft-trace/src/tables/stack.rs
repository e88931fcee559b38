//! What the numbers of call chains mean: their addresses, and what is there.

use crate::ids::{Name, Pid};

/// The process of an address of the kernel, which is the same in all.
pub const KERNEL_PID: Pid = Pid(-1);

/// Stands for the program or library at an address of a process whose mappings nobody could read.
pub const UNSEEN: &str = "unseen";

table! {
    "stacks",
    /// `stacks`: the call chains that other tables have numbers of, an address a row.
    pub struct StackRow {
        /// Number of the chain, in this trace.
        pub stack: i64 as Number,
        /// From 0, the innermost: those of the kernel first, then those of user space.
        pub position: i32 as Number,
        /// Process; -1: the address is the kernel's.
        pub pid: Pid,
        /// Where the thread was; for callers, the last byte of the call.
        pub address: i64 as Address,
    }
}

table! {
    "frames",
    /// `frames`: what is at the addresses of `stacks`. One has several rows where functions are inlined into each other.
    pub struct FrameRow {
        /// Process; -1: the kernel.
        pub pid: Pid,
        /// The address.
        pub address: i64 as Address,
        /// 0: the function whose machine code it is. 1: the function that is inlined into that one there, and so on.
        pub inlined: i32 as Number,
        /// Function, demangled; empty when not known.
        pub function: Name,
        /// Source file; empty when not known.
        pub file: Name,
        /// Line; 0 when not known.
        pub line: i32 as Number,
        /// Program or library, `kernel`, a module of it in brackets, `JIT`; `unseen`: what the process had mapped was not
        /// read before it ended; empty when not known.
        pub object: Name,
        /// Build id of the program or library in hexadecimal digits; empty when it has none.
        pub build_id: Name,
        /// The address in the object's own address space, as `objdump` shows it; where its headers could not be read, in
        /// the file; the address itself where there is no file.
        pub offset: i64 as Address,
    }
}

table! {
    "binaries",
    /// `binaries`: the programs and libraries of `frames`, and whether a call chain can go on from their functions.
    pub struct BinaryRow {
        /// Functions that were looked at; 0: it could not be read, or names none.
        pub functions: i32 as Count,
        /// Those of them whose caller is found: the unwinding tables have an entry for them, or they keep a frame pointer (they begin
        /// with `push %rbp; mov %rsp,%rbp`).
        pub framed: i32 as Count,
        /// Program or library.
        pub object: Name,
        /// Build id in hexadecimal digits; empty when it has none.
        pub build_id: Name,
    }
}
