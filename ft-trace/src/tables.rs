//! The tables of a trace, one struct a row, and the list of them.
//!
//! A table is declared here once, and all else follows:
//!
//! - Its row is a struct, declared by `table!`. A field's name is the column's name, and its documentation the column's
//!   meaning; its type (see [`crate::ids`]) decides the column's type: `Nanos`, `i64`: int64; `Tid`, `Pid`, `Cpu`,
//!   `SiteId`, `i32`: int32; `Name` and [words](crate::words): dictionary of UTF-8; `f64`: double; `bool`; `Option`:
//!   nullable. A bare number says what it counts: `as Ns` (see [`Unit`]). Rows are sorted by their first column.
//! - A table of the kernel's says which records become its rows, and how (`KernelTable`).
//! - A table of events says what a listing shows of it ([`Listed`]).
//! - [`event_tables!`](crate::event_tables) lists the tables of events, in the order of events of equal time.
//!
//! Reader and writer, the merged stream, the conversion, the listing, the metadata of the Arrow fields,
//! `ft-agent tables` and the page `TABLES.md` are made of that.

/// Declares a row and makes it a [`Row`](crate::store::Row) of the named table.
macro_rules! table {
    (
        $table:literal,
        $(#[doc = $about:literal])*
        pub struct $row:ident {
            $($(#[doc = $meaning:literal])* pub $field:ident: $ty:ty $(as $unit:ident)?,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $row {
            $($(#[doc = $meaning])* pub $field: $ty,)*
        }

        #[cfg(feature = "store")]
        $crate::row!($table, concat!($($about, "\n"),*), $row {
            $($field: $ty => table!(@unit $($unit)?), concat!($($meaning, "\n"),*),)*
        });
    };
    (@unit) => { None };
    (@unit $unit:ident) => { Some($crate::tables::Unit::$unit) };
}

mod async_tasks;
mod blame;
mod breakdown;
mod chain;
mod contended;
mod cpu_counts;
mod decomposition;
mod doubts;
mod fault;
mod functions;
mod futex;
mod futex_waits;
mod histograms;
mod irq;
mod kernel_lock_waits;
mod kernel_sections;
#[cfg(feature = "store")]
pub(crate) mod listed;
mod loads;
mod lock;
mod loss;
mod npt;
mod probe;
#[cfg(feature = "store")]
pub(crate) mod record;
mod reference;
mod requests;
mod results;
mod sched;
mod scopes;
mod signal;
mod sleep;
mod stack;
mod syscall;
mod task;
mod throttle;
mod unit;
mod user;
mod what_ifs;

pub use async_tasks::{AsyncSwitch, AsyncTask, PollEnd, TaskEnd};
pub use blame::{Blame, Withheld};
pub use breakdown::{Breakdown, Place, WakePair, WakerKind};
pub use chain::{CallChain, ChainKind, LockChain, LockChainKind, Sample};
pub use contended::{
    LockOrder, LockPreemption, LockWait, PreemptionCause, UnfinishedWait, WaitEnd,
};
pub use cpu_counts::CpuCount;
pub use decomposition::{Counts, Decomposition, Part};
pub use doubts::{Doubt, DoubtCause, MissingRecords};
pub use fault::{Access, FaultCause, FaultKind, PageFault};
pub use functions::Function;
pub use futex::{FutexCall, FutexKind, FutexResult};
pub use futex_waits::{FutexEnd, FutexWait};
pub use histograms::{Bucket, Quantity};
pub use irq::{Irq, IrqKind, IrqPurpose};
pub use kernel_lock_waits::{KernelLockWait, KernelWaitEnd};
pub use kernel_sections::{KernelSections, SectionCount, SectionLock};
#[cfg(feature = "store")]
pub use listed::{Line, Listed};
pub use loads::{
    Deadline, LoadJob, LoadRun, LoadSwitch, LoadTimer, LoadWorker, Policy, RunEnd, SwitchKind,
    SwitchSeen, TimerLatency, Workload,
};
pub use lock::{Contention, ContentionEnd};
pub use loss::{LossOrigin, LossReason, LossRow, LostRecords};
pub use npt::{LoopBin, LoopPeak, PeakCause};
pub use probe::{ProbeHit, ProbeKind};
pub use reference::{ClockRow, HostClockRow, HostClockState, ThreadRow};
pub use requests::{PathKind, PathPiece, Request};
pub use results::{
    CriticalSection, DispatchLatency, Gap, GapCause, GapSeen, InferredCause, LockKind,
    SliceOutcome, ThreadTime,
};
pub use sched::{SchedMigrate, SchedSwitch, SchedWaking, TaskState};
pub use scopes::Scope;
pub use signal::{Signal, SignalKind, SignalResult};
pub use sleep::Sleep;
pub use stack::{BinaryRow, FrameRow, KERNEL_PID, StackRow, UNSEEN};
#[cfg(feature = "store")]
pub use syscall::syscall_name;
pub use syscall::{CallSeen, FileKind, Syscall};
pub use task::{TaskEvent, TaskKind};
pub use throttle::Throttle;
pub use unit::Unit;
pub use user::{NameKind, NameRow, SiteKind, SiteRow, SymbolKind, SymbolRow, UserEvent, arg_name};
pub use what_ifs::{GrantBar, WhatIf};

/// The tables of events, handed to the macro `$then`: in the order in which events of equal time come.
///
/// Each has a name for a field and one for a variant, its row, and what of it the analyses see (the row, or a lean one
/// of [`event`](crate::event)): a loss before what it may have hidden; a thread is born, woken, moved, enters the kernel,
/// is switched to, interrupted, and then runs. Those of `kernel_alone` are recorded and listed, and no analysis sees
/// them.
#[macro_export]
macro_rules! event_tables {
    ($then:ident) => {
        $then! {
            first {
                losses: Loss(LossRow as LossRow),
            }
            kernel {
                tasks: Task(TaskEvent as TaskEvent),
                wakings: Waking(SchedWaking as SchedWaking),
                migrations: Migrate(SchedMigrate as SchedMigrate),
                syscalls: Syscall(Syscall as LeanSyscall),
                futexes: Futex(FutexCall as LeanFutex),
                contentions: Contention(Contention as LeanContention),
                faults: Fault(PageFault as LeanFault),
                chains: Chain(CallChain as LeanChain),
                samples: Sample(Sample as LeanSample),
                sleeps: Sleep(Sleep as Sleep),
                throttles: Throttle(Throttle as Throttle),
                switches: Switch(SchedSwitch as SchedSwitch),
                irqs: Irq(Irq as Irq),
                probes: Probe(ProbeHit as LeanProbe),
            }
            kernel_alone {
                signals: Signal(Signal),
                sections: Section(KernelSections),
                cpu_counts: CpuCount(CpuCount),
            }
            last {
                users: User(UserEvent as LeanUserEvent),
            }
        }
    };
}

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
            what_ifs: WhatIf,
            lock_order: LockOrder,
            lock_chains: LockChain,
            scopes: Scope,
            functions: Function,
            requests: Request,
            critical_path: PathPiece,
            async_tasks: AsyncTask,
            async_switches: AsyncSwitch,
            futex_waits: FutexWait,
            kernel_lock_waits: KernelLockWait,
            breakdown: Breakdown,
            wake_pairs: WakePair,
            doubts: Doubt,
            blame: Blame,
            loop_histogram: LoopBin,
            loop_peaks: LoopPeak,
            workers: LoadWorker,
            runs: LoadRun,
            jobs: LoadJob,
            timer_latency: TimerLatency,
            switches: LoadSwitch,
            histograms: Bucket,
        }
    };
}
