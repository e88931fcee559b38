//! Call chains, and samples, which are nothing else.

use super::Header;

/// A call chain: this, and behind it [`Chain::user`] and then [`Chain::kernel`] addresses of 8 bytes, each the innermost
/// first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Common part; `tid` is the thread whose chain it is: of a wake-up the waker, else who was off the CPU or was
    /// sampled. `ts` is when it has a CPU again, the wake-up, or the sample.
    pub header: Header,
    /// When a thread that was off the CPU had left it, else 0.
    pub left_ts: u64,
    /// Process of the thread whose chain it is.
    pub tgid: u32,
    /// Thread that is woken, else 0.
    pub woken_tid: u32,
    /// Its process.
    pub woken_tgid: u32,
    /// Not 0: the thread could have run on when it left the CPU.
    pub preempted: u32,
    /// Addresses of user space, or minus the error number with which the kernel refused them (`-EFAULT`: the thread has
    /// no user space).
    pub user: i32,
    /// Addresses of the kernel, likewise.
    pub kernel: i32,
}

impl Chain {
    /// Addresses of user space in a chain, at most (`kernel.perf_event_max_stack`, unless that was changed).
    pub const MAX_USER: usize = 127;
    /// Addresses of the kernel, at most.
    pub const MAX_KERNEL: usize = 64;

    /// Bytes of the addresses that follow; `None` when there are more than a chain can have.
    pub fn address_bytes(&self) -> Option<usize> {
        address_bytes(self.user, self.kernel)
    }
}

/// Bytes of so many addresses of user space and of the kernel, or fewer than 0 for none.
pub(super) fn address_bytes(user: i32, kernel: i32) -> Option<usize> {
    let number = |n: i32, most: usize| Some(n.max(0) as usize).filter(|n| *n <= most);
    Some(8 * (number(user, Chain::MAX_USER)? + number(kernel, Chain::MAX_KERNEL)?))
}
