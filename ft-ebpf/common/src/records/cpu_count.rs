//! Record of what counters counted.

use super::{COMM_LEN, Header};

/// A thread leaves a CPU: what the counters of that CPU counted since it came. `header.tid` is the thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCount {
    /// Common part; `ts` is that of the [`Switch`](super::Switch) with which it leaves.
    pub header: Header,
    /// That of the switch with which it came.
    pub from_ts: u64,
    /// What each counter counted, or [`CpuCount::UNKNOWN`].
    pub counted: [u64; 2],
    /// Its process.
    pub tgid: u32,
    /// Its kernel priority.
    pub prio: i32,
    /// Its name.
    pub comm: [u8; COMM_LEN],
}

impl CpuCount {
    /// There is no such counter, it could not be read, or did not count all the time.
    pub const UNKNOWN: u64 = u64::MAX;
}
