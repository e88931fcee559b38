//! Calls of probed functions.

use super::Header;

/// A thread has come to a place in its program that is probed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Common part.
    pub header: Header,
    /// Stack pointer at the entry of the function, where its return address lies; of its return, too. Of a mark, as it is.
    pub stack_pointer: u64,
    /// Number that the agent gave to the probe.
    pub number: u32,
    /// Process.
    pub tgid: u32,
}
