//! The tables of a trace, one struct a row.
//!
//! A struct is declared here once; its schema, writer and reader follow from it (see `store::schema`).
//! A field's name is the column's name; its type (see [`crate::ids`]) decides the column's type: `Nanos`,
//! `i64`: int64; `Tid`, `Pid`, `Cpu`, `SiteId`, `i32`: int32; `Name` and words (enums): dictionary of UTF-8; `f64`: double;
//! `bool`; `Option`: nullable. Times are CLOCK_MONOTONIC nanoseconds, durations nanoseconds.
//! Rows are sorted by their first column.

/// Declares a row and makes it a [`Row`] of the named table.
macro_rules! table {
    (
        $table:literal,
        $(#[$doc:meta])*
        pub struct $row:ident {
            $($(#[$field_doc:meta])* pub $field:ident: $ty:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $row {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        #[cfg(feature = "store")]
        $crate::row!($table, $row { $($field: $ty),* });
    };
}

mod contended;
mod kernel;
mod kernel_groups;
mod reference;
mod results;
mod user;

pub use contended::{
    LockOrder, LockPreemption, LockWait, PreemptionCause, UnfinishedWait, WaitEnd,
};
pub use kernel::{
    Irq, IrqKind, SchedMigrate, SchedSwitch, SchedWaking, TaskEvent, TaskKind, TaskState,
};
pub use kernel_groups::{Access, Contention, FaultCause, PageFault, Syscall};
pub use reference::{ClockRow, LossOrigin, LossRow, ThreadRow};
pub use results::{
    CriticalSection, Decomposition, DispatchLatency, Gap, GapCause, InferredCause, Part, ThreadTime,
};
pub use user::{NameKind, NameRow, SiteKind, SiteRow, SymbolKind, SymbolRow, UserEvent, arg_name};

/// Calls a macro with the name and the row of each table that the analyses write, `table: Row,` …: whoever has something
/// for each of them (the rows that wait, their writers) declares it by this list. A row here and its declaration in
/// `tables/` are all that a new table of results takes.
#[macro_export]
macro_rules! result_tables {
    ($with:ident) => {
        $with! {
            critical_sections: CriticalSection,
            dispatch_latency: DispatchLatency,
            gaps: Gap,
            thread_time: ThreadTime,
            lock_waits: LockWait,
            unfinished_waits: UnfinishedWait,
            lock_preemptions: LockPreemption,
            lock_order: LockOrder,
        }
    };
}
