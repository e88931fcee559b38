//! Tables that every other refers to: who ran, how right the clock is.

use serde::{Deserialize, Deserializer};

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// How far the kernel knows the time of day of its host.
    pub enum HostClockState {
        /// It is synchronised, and whoever does that has given the kernel a bound of its error.
        Synchronised = "synchronised",
        /// It is synchronised, and whoever does that has given the kernel an error of 0, as `systemd-timesyncd` and
        /// `phc2sys` do: nothing is known of the distance from their source.
        Unbounded = "unbounded",
        /// It is not synchronised, or not any more.
        Unsynchronised = "unsynchronised",
        /// The kernel did not say: the call was refused.
        Unknown = "unknown",
        _ => Unknown
    }
}

impl<'de> Deserialize<'de> for HostClockState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(HostClockState::of(&String::deserialize(deserializer)?))
    }
}

table! {
    "threads",
    /// `threads`: one thread that was seen.
    pub struct ThreadRow {
        /// First time that it was seen.
        pub ts: Nanos,
        /// Thread.
        pub tid: Tid,
        /// Process.
        pub pid: Pid,
        /// Newest name.
        pub name: Name,
        /// Name of the process.
        pub process: Name,
        /// Newest kernel priority that was seen.
        pub prio: Option<i32> as Priority,
        /// It belongs to a process that is recorded.
        pub observed: bool,
    }
}

table! {
    "clock",
    /// `clock`: samples of the clock model.
    pub struct ClockRow {
        /// CLOCK_MONOTONIC of the sample.
        pub ts: Nanos,
        /// TSC of the sample.
        pub tsc: i64 as Cycles,
        /// Width of the bracket, ns.
        pub bracket_ns: i64 as Ns,
        /// Distance of the sample from the line between its neighbours, ns.
        pub residual_ns: i64 as Ns,
        /// Bound of the error from this sample to the next, ns.
        pub bound_ns: i64 as Ns,
        /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
        pub realtime_offset_ns: i64 as Ns,
        /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, ns.
        pub boottime_offset_ns: i64 as Ns,
        /// CPU of the sample.
        pub cpu: Cpu,
    }
}

table! {
    "host_clock",
    /// `host_clock`: what the kernel says of its time of day, CLOCK_REALTIME (adjtimex(2)); each row is of a sample of
    /// `clock` with the same `ts`, at the start, every second, and at the end.
    pub struct HostClockRow {
        /// CLOCK_MONOTONIC of the sample.
        pub ts: Nanos,
        /// How far the kernel knows the time of day.
        pub state: HostClockState,
        /// How far CLOCK_REALTIME can be off by the kernel's own account: its maximum error, to which it adds 500 µs each
        /// second until it is given another one, and the correction that is still to be made. Null unless `synchronised`.
        pub bound_ns: Option<i64> as Ns,
        /// The error that whoever synchronises it estimates. Null unless `synchronised`.
        pub estimate_ns: Option<i64> as Ns,
        /// Correction that the kernel is still making, little by little; null where it did not say.
        pub correction_ns: Option<i64> as Ns,
        /// Correction of the clock's rate, parts per million; null where the kernel did not say.
        pub frequency_ppm: Option<f64> as Number,
        /// TAI minus UTC, s; null where nobody has set it in the kernel.
        pub tai_s: Option<i32> as Number,
        /// Flags of the kernel (`STA_…` of adjtimex(2)); null where it did not say.
        pub status: Option<i32> as Number,
    }
}
