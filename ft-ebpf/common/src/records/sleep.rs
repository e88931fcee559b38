//! What a thread sleeps in.

use super::Header;

/// Where in the kernel a thread was when it left its CPU to wait, written before its [`Switch`](super::Switch), of the same
/// time. It is what the registers say with which the thread entered the kernel: no tracepoint of a call is needed for it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sleep {
    /// Common part; `tid` is the thread.
    pub header: Header,
    /// The first arguments of the system call, as the program passed them.
    pub arguments: [u64; 4],
    /// Until when it sleeps at the latest, CLOCK_MONOTONIC ns, if the call says it and is one that only sleeps: with the slack that its
    /// timers may have. 0: not known.
    pub until: u64,
    /// Process.
    pub tgid: u32,
    /// Number of the system call as in [`Syscall`](super::Syscall); says nothing with [`Sleep::NO_CALL`].
    pub number: u16,
    /// What the first argument is a descriptor of, as in [`Syscall`](super::Syscall).
    pub file: u16,
    /// What stands at the address of a futex.
    pub word: u32,
    /// What stands eight bytes behind it: where glibc's mutexes have the thread that holds them.
    pub owner: u32,
    /// [`Sleep::NO_CALL`] and the like.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

impl Sleep {
    /// In `flags`: the thread is in no system call; it has touched a page that is not there, or is on the way to its own code.
    pub const NO_CALL: u32 = 1;
    /// In `flags`: `word` could be read.
    pub const WORD: u32 = 2;
    /// In `flags`: `owner` could be read.
    pub const OWNER: u32 = 4;
}
