//! Records of the lives of tasks.

use super::{COMM_LEN, Header};

/// Life of a task: fork, exec, exit, rename.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Common part.
    pub header: Header,
    /// The task concerned: the child of a fork, else the current one.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Process of the parent (fork only), else 0.
    pub parent_tgid: u32,
    /// Zero.
    pub reserved: u32,
    /// Its name (the new one for a rename).
    pub comm: [u8; COMM_LEN],
}
