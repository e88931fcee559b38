//! What the analyses see: the rows of all event tables as one stream ordered by time.
//!
//! Tie rule: events of equal `ts` come in the order of [`Event::rank`], which is that of
//! [`event_tables!`](crate::event_tables), and events of equal `ts` and rank in the order in which they were recorded.

use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, ThreadKey, Tid};
#[cfg(feature = "store")]
use crate::row;
use crate::tables::*;

/// The columns of [`UserEvent`] that analyses need; reading the others would cost most of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeanUserEvent {
    /// Time.
    pub ts: Nanos,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU, or [`Cpu::UNKNOWN`].
    pub cpu: Cpu,
    /// Row of `sites`.
    pub site: SiteId,
    /// Columns `arg0` … `arg2`, 0 where null. Arguments of type TSC are CLOCK_MONOTONIC nanoseconds.
    pub arg: [i64; 3],
}

#[cfg(feature = "store")]
row!(
    "user_events",
    LeanUserEvent { ts: Nanos, pid: Pid, tid: Tid, cpu: Cpu, site: SiteId, arg: [i64; 3] }
);

impl From<&UserEvent> for LeanUserEvent {
    fn from(e: &UserEvent) -> Self {
        let arg = std::array::from_fn(|i| e.arg[i].unwrap_or(0));
        LeanUserEvent { ts: e.ts, pid: e.pid, tid: e.tid, cpu: e.cpu, site: e.site, arg }
    }
}

impl LeanUserEvent {
    /// Thread that recorded it.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey { pid: self.pid, tid: self.tid }
    }
}

/// The columns of a system call that analyses need.
#[derive(Clone, Debug, PartialEq)]
pub struct LeanSyscall {
    /// Entry.
    pub ts: Nanos,
    /// Exit minus entry.
    pub dur: i64,
    /// Caller.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Name.
    pub name: Name,
    /// What it returned.
    pub ret: i64,
    /// What its descriptor is of.
    pub file: Option<FileKind>,
    /// What of it was recorded.
    pub seen: CallSeen,
}

#[cfg(feature = "store")]
row!(
    "syscalls",
    LeanSyscall {
        ts: Nanos,
        dur: i64,
        tid: Tid,
        pid: Pid,
        name: Name,
        ret: i64,
        file: Option<FileKind>,
        seen: CallSeen,
    }
);

/// The columns of a wait for a lock of the kernel that analyses need.
#[derive(Clone, Debug, PartialEq)]
pub struct LeanContention {
    /// Begin of the wait.
    pub ts: Nanos,
    /// End minus begin.
    pub dur: i64,
    /// Waiter.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Address of the lock.
    pub lock: i64,
    /// The variable that it is.
    pub name: Option<Name>,
    /// Who wanted it.
    pub caller: Option<Name>,
    /// `mutex`, `rwsem-write`, …
    pub kind: Name,
    /// How it ended.
    pub end: ContentionEnd,
    /// Number in `stacks`.
    pub stack: Option<i64>,
}

#[cfg(feature = "store")]
row!(
    "contention",
    LeanContention {
        ts: Nanos,
        dur: i64,
        tid: Tid,
        pid: Pid,
        lock: i64,
        name: Option<Name>,
        caller: Option<Name>,
        kind: Name,
        end: ContentionEnd,
        stack: Option<i64>,
    }
);

/// The columns of a page fault that analyses need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeanFault {
    /// Time.
    pub ts: Nanos,
    /// Thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// The kernel touched the page, for a system call.
    pub in_kernel: bool,
    /// Until it was served.
    pub dur: Option<i64>,
    /// What that took.
    pub kind: Option<FaultKind>,
}

#[cfg(feature = "store")]
row!(
    "page_faults",
    LeanFault {
        ts: Nanos,
        tid: Tid,
        pid: Pid,
        in_kernel: bool,
        dur: Option<i64>,
        kind: Option<FaultKind>,
    }
);

/// The columns of a call chain that analyses need.
#[derive(Clone, Debug, PartialEq)]
pub struct LeanChain {
    /// Time.
    pub ts: Nanos,
    /// How long its thread was off the CPU.
    pub dur: i64,
    /// Thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Whose it is.
    pub kind: ChainKind,
    /// Thread that it woke.
    pub woken_tid: Option<i32>,
    /// Its process.
    pub woken_pid: Option<i32>,
    /// Number in `stacks`.
    pub stack: Option<i64>,
}

#[cfg(feature = "store")]
row!(
    "call_chains",
    LeanChain {
        ts: Nanos,
        dur: i64,
        tid: Tid,
        pid: Pid,
        kind: ChainKind,
        woken_tid: Option<i32>,
        woken_pid: Option<i32>,
        stack: Option<i64>,
    }
);

/// The columns of a sample that analyses need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeanSample {
    /// Time.
    pub ts: Nanos,
    /// CPU.
    pub cpu: Cpu,
    /// Thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Number in `stacks`.
    pub stack: Option<i64>,
}

#[cfg(feature = "store")]
row!("samples", LeanSample { ts: Nanos, cpu: Cpu, tid: Tid, pid: Pid, stack: Option<i64> });

/// The columns of a call about a futex that analyses need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeanFutex {
    /// Entry.
    pub ts: Nanos,
    /// Exit minus entry.
    pub dur: i64,
    /// Caller.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// What it does.
    pub kind: FutexKind,
    /// Address, or semaphore.
    pub address: i64,
    /// What stood there.
    pub word: Option<i32>,
    /// Timeout from the entry on.
    pub timeout_ns: Option<i64>,
    /// How it returned.
    pub result: FutexResult,
}

#[cfg(feature = "store")]
row!(
    "futex_calls",
    LeanFutex {
        ts: Nanos,
        dur: i64,
        tid: Tid,
        pid: Pid,
        kind: FutexKind,
        address: i64,
        word: Option<i32>,
        timeout_ns: Option<i64>,
        result: FutexResult,
    }
);

/// The columns of a hit of a probe that analyses need.
#[derive(Clone, Debug, PartialEq)]
pub struct LeanProbe {
    /// Time.
    pub ts: Nanos,
    /// Thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Which end it is.
    pub kind: ProbeKind,
    /// What is probed.
    pub probe: Name,
    /// Of a function, where its return address lies.
    pub stack_pointer: Option<i64>,
}

#[cfg(feature = "store")]
row!(
    "probe_hits",
    LeanProbe {
        ts: Nanos,
        tid: Tid,
        pid: Pid,
        kind: ProbeKind,
        probe: Name,
        stack_pointer: Option<i64>,
    }
);

/// A projection can be made of a row, too, where nobody has stored it.
macro_rules! lean {
    ($($row:ident => $lean:ident { $($field:ident),* })*) => {
        $(impl From<$row> for $lean {
            fn from(row: $row) -> $lean {
                $lean { $($field: row.$field),* }
            }
        })*
    };
}

lean! {
    Syscall => LeanSyscall { ts, dur, tid, pid, name, ret, file, seen }
    Contention => LeanContention { ts, dur, tid, pid, lock, name, caller, kind, end, stack }
    PageFault => LeanFault { ts, tid, pid, in_kernel, dur, kind }
    CallChain => LeanChain { ts, dur, tid, pid, kind, woken_tid, woken_pid, stack }
    FutexCall => LeanFutex { ts, dur, tid, pid, kind, address, word, timeout_ns, result }
    Sample => LeanSample { ts, cpu, tid, pid, stack }
    ProbeHit => LeanProbe { ts, tid, pid, kind, probe, stack_pointer }
}

/// Declares [`Event`].
macro_rules! events {
    (
        first { $($first:ident: $first_variant:ident($first_row:ident as $first_lean:ident),)* }
        kernel { $($field:ident: $variant:ident($row:ident as $lean:ident),)* }
        kernel_alone { $($alone:tt)* }
        last { $($last:ident: $last_variant:ident($last_row:ident as $last_lean:ident),)* }
    ) => {
        events! {
            $($first_variant($first_lean),)* $($variant($lean),)* $($last_variant($last_lean),)*
        }
    };
    ($($variant:ident($row:ident),)*) => {
        /// One event of the merged stream. Of what took time, `ts` is the begin, and `dur` is known already.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $(
                #[doc = concat!("A [`", stringify!($row), "`].")]
                $variant($row),
            )*
        }

        enum Rank { $($variant,)* }

        impl Event {
            /// Time by which the stream is ordered.
            #[inline]
            pub fn ts(&self) -> Nanos {
                match self {
                    $(Event::$variant(e) => e.ts,)*
                }
            }

            /// Order among events of equal time.
            pub fn rank(&self) -> u8 {
                match self {
                    $(Event::$variant(_) => Rank::$variant as u8,)*
                }
            }

            /// The tables that they come from, in the order of their ranks.
            #[cfg(feature = "store")]
            pub const TABLES: &'static [&'static str] =
                &[$(<$row as crate::store::Row>::TABLE),*];

            /// The events of a trace whose time lies in `window`.
            #[cfg(feature = "store")]
            pub(crate) fn merged(
                trace: &crate::store::Trace,
                window: &std::ops::Range<i64>,
            ) -> crate::stream::Merged<Event> {
                crate::stream::Merged::default()
                    $(.with_any(trace, window, Event::$variant))*
            }
        }
    };
}

crate::event_tables!(events);
