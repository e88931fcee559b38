//! What keeps a thread from the CPU that could run.

use super::Header;

/// A thread that could run was kept from every CPU, since the group that it is in had used up its quota. Written when it has a CPU
/// again; `header.tid` is the thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Common part.
    pub header: Header,
    /// When it left its CPU.
    pub left_ts: u64,
    /// Since when it was kept from it; with [`Throttle::SINCE_LEFT`] that is `left_ts`.
    pub since_ts: u64,
    /// For how long, ns.
    pub ns: u64,
    /// What the group may run in each period, ns; 0: not known.
    pub quota_ns: u64,
    /// The period, ns.
    pub period_ns: u64,
    /// Number of the cgroup whose quota it is; 0: not known.
    pub cgroup: u64,
    /// Process.
    pub tgid: u32,
    /// [`Throttle::SINCE_LEFT`] and the like.
    pub flags: u32,
    /// The last part of the cgroup's path, cut, with NULs at its end.
    pub name: [u8; Throttle::NAME_LEN],
}

impl Throttle {
    /// Bytes of `name`.
    pub const NAME_LEN: usize = 32;
    /// In `flags`: it left its CPU for that reason.
    pub const SINCE_LEFT: u32 = 1;
    /// In `flags`: the kernel has measured `ns`. Else it is all the time until the thread had a CPU again.
    pub const MEASURED: u32 = 2;
}
