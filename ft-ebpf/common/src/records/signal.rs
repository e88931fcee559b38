//! Signals.

use super::Header;

/// A signal that is sent, or that the current thread takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// Common part; `tid` is the sender, or the thread that takes it.
    pub header: Header,
    /// Process of the sender; 0 when it is taken.
    pub sender_tgid: u32,
    /// Thread that it is sent to, or that takes it.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Number of the signal.
    pub number: u32,
    /// Not 0: it is sent to the process; 0 when it is taken.
    pub group: u32,
    /// `TRACE_SIGNAL_*` (linux/trace/events/signal.h); 0 when it is taken.
    pub result: u32,
}
