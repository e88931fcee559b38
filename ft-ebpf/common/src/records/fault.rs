//! Page faults.

use super::Header;

/// One page fault, in user space or on behalf of a system call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFault {
    /// Common part.
    pub header: Header,
    /// Faulting address.
    pub address: u64,
    /// Error code of the CPU.
    pub error: u32,
    /// Process.
    pub tgid: u32,
}

impl PageFault {
    /// In `error`: it was in user space (`X86_PF_USER`, arch/x86/include/asm/trap_pf.h).
    pub const USER: u32 = 1 << 2;
}

/// A page fault that was served.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedFault {
    /// It; `header.ts` is its end.
    pub fault: PageFault,
    /// Its begin.
    pub entry_ts: u64,
}
