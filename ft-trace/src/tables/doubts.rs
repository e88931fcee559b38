//! The table of the times of which records are missing.

use crate::ids::{Name, Nanos};
use crate::words::words;

words! {
    /// How it is known that records are missing.
    pub enum DoubtCause {
        /// A row of `loss` says so.
        Loss = "loss",
        /// A thread left a CPU that had been given to another one: the switch between the two was not recorded.
        Switch = "switch",
        /// A thread recorded something while it was said to have no CPU: the switch to it was not recorded.
        Ran = "ran",
        /// A thread had a CPU, or was woken, of which an earlier wake-up or move was not recorded.
        Wakeup = "wakeup",
        _ => Loss
    }
}

words! {
    /// Which records may be missing.
    pub enum MissingRecords {
        /// Switches and wake-ups, and with them interrupts.
        Switches = "switches",
        /// Interrupts.
        Interrupts = "interrupts",
        /// System calls and page faults.
        Calls = "calls",
        /// Hits of probes.
        Probes = "probes",
        /// Events of an application.
        Events = "events",
        /// Any.
        All = "all",
        _ => All
    }
}

table! {
    "doubts",
    /// `doubts`: a time of which records are missing that results rest on. Results that overlap it, and that concern its threads or its
    /// CPU, have a `mark`. What began before anything was recorded of its thread or CPU has one, too, and no row here.
    pub struct Doubt {
        /// Since when they may be missing.
        pub ts: Nanos,
        /// Until when, minus `ts`.
        pub dur: i64 as Ns,
        /// How that is known.
        pub why: DoubtCause,
        /// Which records.
        pub missing: MissingRecords,
        /// On this CPU; null: on any.
        pub cpu: Option<i32> as Cpu,
        /// Of this process; null: of any.
        pub pid: Option<i32> as Pid,
        /// Of this thread; null: of any. Of a switch, the last thread that is known to have had the CPU.
        pub tid: Option<i32> as Tid,
        /// Of a loss, its `what`; of a switch, the name of the thread `tid`; else empty.
        pub what: Name,
    }
}
