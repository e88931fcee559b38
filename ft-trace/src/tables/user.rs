//! Tables of what applications record, and of what their numbers and addresses mean.

use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};

table! {
    "user_events",
    /// `user_events`: one event of an application.
    pub struct UserEvent {
        /// Time.
        pub ts: Nanos,
        /// The TSC as recorded.
        pub tsc: i64,
        /// Process.
        pub pid: Pid,
        /// Thread; minus its number in its own PID namespace where that in the agent's could not be known.
        pub tid: Tid,
        /// CPU on which the event was recorded.
        pub cpu: Cpu,
        /// Row of `sites`.
        pub site: SiteId,
        /// Name of the event, `category.name`.
        pub event: Name,
        /// Category.
        pub category: Name,
        /// What the event says, `sites.kind`: `event`, `scope_begin`, `scope_end`, `lock_acquire`, …
        pub kind: Name,
        /// Columns `arg0` … `arg5`: integers, booleans, pointers. An unsigned one of 2^63 or more has the bits of
        /// a `u64`, so it reads as 2^64 less; `sites.args` says which arguments are `unsigned`. One that the program
        /// says is absent is null, in all columns.
        pub arg: [Option<i64>; 6],
        /// Columns `argf0` … `argf5`: floating-point arguments.
        pub argf: [Option<f64>; 6],
        /// Columns `argt0` … `argt5`: text arguments.
        pub argt: [Option<Name>; 6],
    }
}

table! {
    "sites",
    /// `sites`: metadata of the sites of each process.
    pub struct SiteRow {
        /// Number in this trace.
        pub site: SiteId,
        /// Process.
        pub pid: Pid,
        /// `category.name`.
        pub event: Name,
        /// Category.
        pub category: Name,
        /// [`ft_user::layout::SiteKind`] as text: `event`, `lock_acquire`, …
        pub kind: Name,
        /// Source file.
        pub file: Name,
        /// Source line.
        pub line: i32,
        /// Arguments: `name:type, …`; names as [`arg_name`] makes them.
        pub args: Name,
        /// Format string.
        pub format: Name,
        /// Triggers in the text that refer to it.
        pub triggers: i32,
    }
}

/// The name of an argument without a comma and a blank in a row, which separates arguments: in C an
/// argument's name is its expression, which may be a call.
pub fn arg_name(name: &str) -> String {
    let mut parts = name.split(',');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + "," + part.trim_start_matches(' '))
}

table! {
    "symbols",
    /// `symbols`: what the addresses in lock events are, of programs that are traced unmodified.
    pub struct SymbolRow {
        /// Process.
        pub pid: Pid,
        /// `arg1` of the event, where the call returns to, or `arg0`, the lock.
        pub address: i64,
        /// `call` or `lock`.
        pub kind: Name,
        /// Function that made the call, or variable that the lock is or lies in, demangled; empty when
        /// not known.
        pub symbol: Name,
        /// Source file; empty when not known.
        pub file: Name,
        /// Line of the call; 0 when not known.
        pub line: i32,
        /// Program or library.
        pub object: Name,
        /// The address in the object's own address space, as `objdump` shows it.
        pub offset: i64,
    }
}

table! {
    "names",
    /// `names`: names of locks and source places, by the numbers that lock events carry.
    pub struct NameRow {
        /// Process.
        pub pid: Pid,
        /// Number within the process.
        pub id: i32,
        /// `name` or `place`.
        pub kind: Name,
        /// Name, or source file.
        pub text: Name,
        /// Line (0 for a name).
        pub line: i32,
        /// Column (0 for a name).
        pub column: i32,
    }
}
