//! Typed access to the kernel's structures, by the offsets of [`config`].

use ft_ebpf::COMM_LEN;

use crate::config;

/// A `task_struct` that a tracepoint passed; it lives as long as the program runs.
#[derive(Clone, Copy)]
pub(crate) struct TaskStruct(*const u8);

impl TaskStruct {
    /// Takes the argument of a tracepoint that is a `struct task_struct *`.
    #[inline(always)]
    pub(crate) fn new(pointer: *const u8) -> Self {
        Self(pointer)
    }

    #[inline(always)]
    fn field<T: Copy>(self, offset: u32) -> T {
        // SAFETY: the verifier accepts the load only where the kernel's BTF has a member that covers
        // it; a page that is gone reads as zero.
        unsafe { self.0.add(offset as usize).cast::<T>().read_volatile() }
    }

    /// Thread id.
    #[inline(always)]
    pub(crate) fn tid(self) -> u32 {
        self.field(config::task_pid())
    }

    /// Process id.
    #[inline(always)]
    pub(crate) fn tgid(self) -> u32 {
        self.field(config::task_tgid())
    }

    /// Kernel priority.
    #[inline(always)]
    pub(crate) fn prio(self) -> i32 {
        self.field(config::task_prio())
    }

    /// State, for kernels whose `sched_switch` does not pass it. `long` before Linux 5.14: the low half
    /// has all reported states.
    #[inline(always)]
    pub(crate) fn state(self) -> u32 {
        self.field(config::task_state())
    }

    /// CPU on which it last ran or runs.
    #[inline(always)]
    pub(crate) fn cpu(self) -> u32 {
        self.field(config::task_cpu())
    }

    /// Name, in two loads: it is 16 bytes, aligned to 8.
    #[inline(always)]
    pub(crate) fn comm(self) -> [u8; COMM_LEN] {
        let half = COMM_LEN as u32 / 2;
        let low: u64 = self.field(config::task_comm());
        let high: u64 = self.field(config::task_comm() + half);
        // SAFETY: two words are sixteen bytes, and bytes have no invalid values.
        unsafe { core::mem::transmute::<[u64; 2], [u8; COMM_LEN]>([low, high]) }
    }

    /// Whether it was the last thread of its process that had not begun to exit.
    #[inline(always)]
    pub(crate) fn is_last_alive(self) -> bool {
        let signal: *const u8 = self.field(config::task_signal());
        Self(signal).field::<i32>(config::signal_live()) == 0
    }
}
