//! Waits for locks of the kernel.

use super::Header;
use super::chain::address_bytes;

/// One wait for a kernel lock, written at `contention_end`: this, and behind it [`Contention::user`] and then
/// [`Contention::kernel`] addresses of 8 bytes, each the innermost first: the call chain at `contention_begin`. One that
/// never ends is written when the recording does.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Common part; `ts` is the end.
    pub header: Header,
    /// When the wait began; the end where that is not known.
    pub entry_ts: u64,
    /// Address of the lock.
    pub lock: u64,
    /// `LCB_F_*` flags (include/trace/events/lock.h), and how it ended: [`Contention::FAILED`] and the like.
    pub flags: u16,
    /// Addresses of user space; 0 unless the group `stack` is recorded.
    pub user: u8,
    /// Addresses of the kernel.
    pub kernel: u8,
    /// Process of the waiter.
    pub tgid: u32,
}

impl Contention {
    /// In `flags`: the thread has given up, for a signal or a time-out.
    pub const FAILED: u16 = 1 << 13;
    /// In `flags`: it had not ended; `header.ts` is until when that is known.
    pub const UNFINISHED: u16 = 1 << 14;
    /// In `flags`: its begin was not recorded, and no other flag is known.
    pub const NO_BEGIN: u16 = 1 << 15;
    /// In `flags`, those of the kernel.
    pub const OF_KERNEL: u16 = Self::FAILED - 1;

    /// Addresses of the kernel without the group `stack`: as many as lead to who wanted the lock, beyond the program, the
    /// tracepoint's function and those of the lock.
    ///
    /// Limit: a caller farther up is not known: `caller` is null.
    /// Shown by: `who_wanted_a_lock_has_called_its_primitives`.
    pub const NEAREST: usize = 10;

    /// Bytes of the addresses that follow; `None` when there are more than a chain can have.
    pub fn address_bytes(&self) -> Option<usize> {
        address_bytes(self.user.into(), self.kernel.into())
    }
}
