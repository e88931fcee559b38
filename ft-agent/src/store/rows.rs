//! The tables of a trace, one struct a row.
//!
//! A struct is declared here once; its schema, writer and reader follow from it (see [`super::schema`]).
//! A field's name is the column's name; its type (see [`crate::model`]) decides the column's type: `Nanos`,
//! `i64`: int64; `Tid`, `Pid`, `Cpu`, `SiteId`, `i32`: int32; `Name`: dictionary of UTF-8; `f64`: double;
//! `bool`; `Option`: nullable. Times are CLOCK_MONOTONIC nanoseconds, durations nanoseconds.
//! Rows are sorted by their first column.

mod contended;
mod kernel;
mod kernel_groups;
mod reference;
mod results;
mod user;

use super::schema::table;

pub use contended::{LockOrder, LockPreemption, LockWait, UnfinishedWait};
pub use kernel::{Irq, SchedMigrate, SchedSwitch, SchedWaking, TaskEvent};
pub use kernel_groups::{Contention, PageFault, Syscall};
pub use reference::{ClockRow, LossRow, ThreadRow};
pub use results::{CriticalSection, Decomposition, DispatchLatency, Gap, ThreadTime};
pub use user::{NameRow, SiteRow, SymbolRow, UserEvent, arg_name};
