//! System calls.

use super::Header;

/// What the descriptor is of that a system call takes first: values of [`Syscall::file`].
pub mod file {
    /// It takes none, or there is none of this number.
    pub const NONE: u16 = 0;
    /// A file.
    pub const REGULAR: u16 = 1;
    /// A directory.
    pub const DIRECTORY: u16 = 2;
    /// A character device: a terminal, `/dev/null`, …
    pub const CHARACTER: u16 = 3;
    /// A block device.
    pub const BLOCK: u16 = 4;
    /// A pipe, with or without a name.
    pub const PIPE: u16 = 5;
    /// A socket.
    pub const SOCKET: u16 = 6;
    /// Of `eventfd`.
    pub const EVENTFD: u16 = 7;
    /// Of `timerfd_create`.
    pub const TIMERFD: u16 = 8;
    /// Of `epoll_create`.
    pub const EPOLL: u16 = 9;
    /// Of `signalfd`.
    pub const SIGNALFD: u16 = 10;
    /// Of `inotify_init`.
    pub const INOTIFY: u16 = 11;
    /// Anything else.
    pub const OTHER: u16 = 12;
}

/// In [`Syscall::file`], instead of a kind: the call is one of 32 bits (`int $0x80`), and its number one of that ABI.
pub const COMPAT: u16 = 1 << 15;

/// One system call, written at `sys_exit`, or when it is known that it never comes there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syscall {
    /// Common part; `ts` is the exit.
    pub header: Header,
    /// When it was entered.
    pub entry_ts: u64,
    /// Return value.
    pub ret: i64,
    /// Number of the system call; 65,535 stands for itself and all beyond.
    pub number: u16,
    /// One of [`mod@file`], or [`COMPAT`].
    pub file: u16,
    /// Process.
    pub tgid: u32,
}
