//! Tables of what applications record, and of what their numbers and addresses mean.

use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use crate::words::words;

words! {
    /// What the events of a site say; their arguments are described by `ft_user::layout::SiteKind`.
    pub enum SiteKind {
        /// Whatever the application means by it.
        Event = "event",
        /// A scope begins.
        ScopeBegin = "scope_begin",
        /// A scope ends.
        ScopeEnd = "scope_end",
        /// The thread begins to wait for a lock that is taken.
        LockWait = "lock_wait",
        /// It has got the lock.
        LockAcquire = "lock_acquire",
        /// It releases the lock.
        LockRelease = "lock_release",
        /// It gives up waiting for the lock.
        LockAbandon = "lock_abandon",
        /// It releases a lock and waits for a condition.
        CondWait = "cond_wait",
        /// It has waited for a condition and has its lock again.
        CondWake = "cond_wake",
        /// It begins to wait for something that is not a lock.
        WaitBegin = "wait_begin",
        /// Such a wait has ended.
        WaitEnd = "wait_end",
        /// It waits for room in its ring from here on.
        RingWait = "ring_wait",
        /// It begins to poll the clock.
        PollBegin = "poll_begin",
        /// Between two polls lay more time than expected.
        PollGap = "poll_gap",
        /// It ends polling.
        PollEnd = "poll_end",
        /// An async task was made.
        TaskNew = "task_new",
        /// The thread begins to poll a task.
        TaskPoll = "task_poll",
        /// Such a poll is over.
        TaskPolled = "task_polled",
        /// The thread wakes a task.
        TaskWake = "task_wake",
        /// A task was dropped before it was ready.
        TaskDrop = "task_drop",
        /// A function begins.
        FunctionEnter = "function_enter",
        /// A function ends.
        FunctionExit = "function_exit",
        /// A function is called, and its end is not recorded.
        FunctionCalled = "function_called",
        /// The thread runs another task, a fiber, or none.
        TaskSwitch = "task_switch",
        /// What counters of the thread show at its event of the same time.
        Counters = "counters",
        _ => Event
    }
}

impl SiteKind {
    /// Its events are the begin or the end of a function.
    pub fn is_function(self) -> bool {
        use SiteKind::*;
        matches!(self, FunctionEnter | FunctionExit | FunctionCalled)
    }

    /// Its events begin with a lock, or something else to wait for, and a place.
    pub fn has_lock(self) -> bool {
        use SiteKind::*;
        matches!(
            self,
            LockWait
                | LockAcquire
                | LockRelease
                | LockAbandon
                | CondWait
                | CondWake
                | WaitBegin
                | WaitEnd
        )
    }

    /// Its events begin with a task and a place. Of fibers of C there is no place but that of the site.
    pub fn has_task(self) -> bool {
        matches!(self, SiteKind::TaskNew | SiteKind::TaskPoll)
    }

    /// Its events begin with a task.
    pub fn is_of_task(self) -> bool {
        use SiteKind::*;
        matches!(self, TaskNew | TaskPoll | TaskPolled | TaskWake | TaskDrop | TaskSwitch)
    }
}

#[cfg(feature = "store")]
impl From<ft_user::layout::SiteKind> for SiteKind {
    fn from(kind: ft_user::layout::SiteKind) -> SiteKind {
        use ft_user::layout::SiteKind as Recorded;
        match kind {
            Recorded::Event => SiteKind::Event,
            Recorded::ScopeBegin => SiteKind::ScopeBegin,
            Recorded::ScopeEnd => SiteKind::ScopeEnd,
            Recorded::LockWait => SiteKind::LockWait,
            Recorded::LockAcquire => SiteKind::LockAcquire,
            Recorded::LockRelease => SiteKind::LockRelease,
            Recorded::LockAbandon => SiteKind::LockAbandon,
            Recorded::CondWait => SiteKind::CondWait,
            Recorded::CondWake => SiteKind::CondWake,
            Recorded::WaitBegin => SiteKind::WaitBegin,
            Recorded::WaitEnd => SiteKind::WaitEnd,
            Recorded::RingWait => SiteKind::RingWait,
            Recorded::PollBegin => SiteKind::PollBegin,
            Recorded::PollGap => SiteKind::PollGap,
            Recorded::PollEnd => SiteKind::PollEnd,
            Recorded::TaskNew => SiteKind::TaskNew,
            Recorded::TaskPoll => SiteKind::TaskPoll,
            Recorded::TaskPolled => SiteKind::TaskPolled,
            Recorded::TaskWake => SiteKind::TaskWake,
            Recorded::TaskDrop => SiteKind::TaskDrop,
            Recorded::FunctionEnter => SiteKind::FunctionEnter,
            Recorded::FunctionExit => SiteKind::FunctionExit,
            Recorded::FunctionCalled => SiteKind::FunctionCalled,
            Recorded::TaskSwitch => SiteKind::TaskSwitch,
            Recorded::Counters => SiteKind::Counters,
        }
    }
}

words! {
    /// What an address in an event is.
    pub enum SymbolKind {
        /// Where a call returns to: `arg1` of the event.
        Call = "call",
        /// A lock: `arg0` of the event; or a futex that a thread called about, or slept at.
        Lock = "lock",
        /// Where a function begins: `arg0` of the event.
        Function = "function",
        _ => Call
    }
}

words! {
    /// What a number in a lock event means.
    pub enum NameKind {
        /// Name of a lock.
        Name = "name",
        /// A place in the source.
        Place = "place",
        _ => Place
    }
}

table! {
    "user_events",
    /// `user_events`: one event of an application.
    pub struct UserEvent {
        /// Time.
        pub ts: Nanos,
        /// The TSC as recorded.
        pub tsc: i64 as Cycles,
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
        /// What the event says.
        pub kind: SiteKind,
        /// Columns `arg0` … `arg5`: integers, booleans, pointers. An unsigned one of 2^63 or more has the bits of
        /// a `u64`, so it reads as 2^64 less; `sites.args` says which arguments are `unsigned`. One that the program
        /// says is absent is null, in all columns.
        pub arg: [Option<i64>; 6] as Number,
        /// Columns `argf0` … `argf5`: floating-point arguments.
        pub argf: [Option<f64>; 6] as Number,
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
        /// What its events say.
        pub kind: SiteKind,
        /// Source file.
        pub file: Name,
        /// Source line.
        pub line: i32 as Number,
        /// Arguments: `name:type, …`; names as [`arg_name`] makes them.
        pub args: Name,
        /// Format string.
        pub format: Name,
        /// Triggers in the text that refer to it.
        pub triggers: i32 as Count,
        /// Which registration of the process with the agent: a program that it executes has another one, and so has each copy
        /// of the tracer in it. Numbers of names and places are one registration's.
        pub source: i32 as Number,
        /// When the process began: clock ticks since the boot (field 22 of proc_pid_stat(5)); 0 when not known. One that
        /// has the same number and began later is another process.
        pub started: i64 as Number,
        /// How many programs the process had executed before the one of this registration, as far as the recording has seen
        /// them. What an earlier one held and waited for ended with it.
        pub program: i32 as Count,
        /// Since when it is on, CLOCK_MONOTONIC ns: 0 since the program began to trace; null when that is not known, and so not
        /// what its events would have begun before.
        pub on_ns: Option<i64> as Ns,
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
    /// `symbols`: what the addresses in the events of unmodified programs are: of locks, of their callers, of functions.
    pub struct SymbolRow {
        /// Process.
        pub pid: Pid,
        /// `arg1` of an event about a lock, where a call returns to; `arg0`, the lock, or the begin of a function.
        pub address: i64 as Address,
        /// What is at the address.
        pub kind: SymbolKind,
        /// Function that made the call, or begins there, or variable that the lock is or lies in, demangled; empty when
        /// not known.
        pub symbol: Name,
        /// Source file; empty when not known.
        pub file: Name,
        /// Line of the call, or of the function's begin; 0 when not known.
        pub line: i32 as Number,
        /// Program or library.
        pub object: Name,
        /// The address in the object's own address space, as `objdump` shows it.
        pub offset: i64 as Address,
    }
}

table! {
    "names",
    /// `names`: names of locks and source places, by the numbers that lock events carry.
    pub struct NameRow {
        /// Process.
        pub pid: Pid,
        /// Which registration of the process gave the number: that of the event's row in `sites`.
        pub source: i32 as Number,
        /// Number within the registration.
        pub id: i32 as Number,
        /// What the number means.
        pub kind: NameKind,
        /// Name, or source file.
        pub text: Name,
        /// Line (0 for a name).
        pub line: i32 as Number,
        /// Column (0 for a name).
        pub column: i32 as Number,
    }
}

#[cfg(feature = "store")]
mod store {
    //! What a listing says of it.

    use std::borrow::Cow;
    use std::fmt;

    use serde_json::{Map, Value};

    use crate::tables::listed::{Line, Listed};

    use super::*;

    impl Listed for UserEvent {
        fn name(&self) -> Cow<'_, str> {
            (&*self.event).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, _: &mut dyn Line) -> fmt::Result {
            Ok(())
        }

        fn fields(&self) -> Map<String, Value> {
            Map::new()
        }
    }
}
