//! Types that must not be mixed up, shared by all stages after the spool.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

newtype! {
    /// CLOCK_MONOTONIC in nanoseconds.
    Nanos(i64)
}
newtype! {
    /// A reading of the time stamp counter, in its own cycles.
    Tsc(u64)
}
newtype! {
    /// Thread id in the agent's PID namespace; 0 is the idle task.
    Tid(i32)
}
newtype! {
    /// Process id (thread group id) in the agent's PID namespace.
    Pid(i32)
}
newtype! {
    /// CPU number; -1 when it is not known.
    Cpu(i32)
}
newtype! {
    /// Number of a row of the table `sites`; unique in a trace.
    SiteId(i32)
}

/// A thread of one process. A number alone means no thread: numbers are used again, and a program itself says
/// which of its threads has recorded an event, so it may name another process's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
}

impl Cpu {
    /// The CPU was not recorded.
    pub const UNKNOWN: Cpu = Cpu(-1);
}

/// Times come from files, too, which say what they like.
impl std::ops::Sub for Nanos {
    type Output = i64;
    fn sub(self, rhs: Nanos) -> i64 {
        self.0.saturating_sub(rhs.0)
    }
}

impl std::ops::Add<i64> for Nanos {
    type Output = Nanos;
    fn add(self, ns: i64) -> Nanos {
        Nanos(self.0.saturating_add(ns))
    }
}

/// A low-cardinality string: names of events, threads, locks, interrupts.
pub type Name = std::sync::Arc<str>;
