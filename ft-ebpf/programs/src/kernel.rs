//! Typed access to the kernel's structures, by the offsets of [`config`].

use aya_ebpf::helpers::{bpf_get_current_task, bpf_probe_read_kernel};
use ft_ebpf::{COMM_LEN, FIRST_ORDINARY};

use crate::config;

/// In a state: the thread leaves for good (`TASK_DEAD`, include/linux/sched.h).
pub(crate) const DEAD: u32 = 0x80;

/// A `task_struct` that a tracepoint passed; it lives as long as the program runs.
#[derive(Clone, Copy)]
pub(crate) struct TaskStruct(*const u8);

impl TaskStruct {
    /// Takes the argument of a tracepoint that is a `struct task_struct *`.
    #[inline(always)]
    pub(crate) fn new(pointer: *const u8) -> Self {
        Self(pointer)
    }

    /// The current one.
    #[inline(always)]
    pub(crate) fn current() -> Self {
        // SAFETY: the helper takes nothing and returns the address of a task that lives.
        Self(unsafe { bpf_get_current_task() } as *const u8)
    }

    /// For helpers that take a task.
    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *const u8 {
        self.0
    }

    /// A member of the structure, or of another one to which a member leads, whose type the verifier knows, too.
    #[inline(always)]
    pub(crate) fn field<T: Copy>(self, offset: u32) -> T {
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

    /// Whether it is neither a real-time thread nor one of SCHED_DEADLINE.
    #[inline(always)]
    pub(crate) fn is_ordinary(self) -> bool {
        self.prio() >= FIRST_ORDINARY
    }

    /// State, for kernels whose `sched_switch` does not pass it. `long` before Linux 5.14: the low half
    /// has all reported states.
    #[inline(always)]
    pub(crate) fn state(self) -> u32 {
        self.field(config::task_state())
    }

    /// Whether somebody is about to wake it, or has just done so; see [`ft_ebpf::Switch::BEING_WOKEN`].
    #[inline(always)]
    pub(crate) fn is_being_woken(self) -> bool {
        // include/linux/sched.h
        const TASK_RUNNING: u32 = 0;
        const TASK_WAKING: u32 = 0x200;
        let state = self.state();
        state == TASK_RUNNING
            || state & TASK_WAKING != 0
            || config::task_pi_lock() != 0 && self.field::<u32>(config::task_pi_lock()) != 0
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

    /// Id of the cgroup (version 2) at `level` below the root that it is in; 0 when its own lies higher.
    #[inline(always)]
    pub(crate) fn ancestor_cgroup(self, level: u32) -> u64 {
        let css_set = Self(self.field(config::task_cgroups()));
        let cgroup = Self(css_set.field(config::css_set_cgroup()));
        if cgroup.field::<u32>(config::cgroup_depth()) < level {
            return 0;
        }
        // An array of open length, through which the verifier lets no typed load.
        cgroup
            .probe(config::cgroup_ancestors() + level * size_of::<*const u8>() as u32)
            .and_then(|ancestor| Self(ancestor).probe(config::cgroup_node()))
            .and_then(|node| Self(node).probe(config::node_id()))
            .unwrap_or(0)
    }

    /// As [`Self::field`], where the verifier does not know the type.
    #[inline(always)]
    pub(crate) fn probe<T: Copy>(self, offset: u32) -> Option<T> {
        // SAFETY: the helper checks the source.
        unsafe { bpf_probe_read_kernel(self.0.wrapping_add(offset as usize).cast::<T>()) }.ok()
    }

    /// Effective user, as the initial user namespace numbers it.
    #[inline(always)]
    pub(crate) fn euid(self) -> u32 {
        let cred = Self(self.field(config::task_cred()));
        cred.field(config::cred_euid())
    }

    /// The structure to which a pointer in this one leads; `None` where it leads nowhere.
    #[inline(always)]
    pub(crate) fn pointer(self, offset: u32) -> Option<Self> {
        self.probe::<*const u8>(offset).filter(|to| !to.is_null()).map(Self)
    }

    /// Whether it is a thread of the kernel's, which no program has.
    #[inline(always)]
    pub(crate) fn is_of_kernel(self) -> bool {
        // include/linux/sched.h
        const PF_KTHREAD: u32 = 0x20_0000;
        self.field::<u32>(config::task_flags()) & PF_KTHREAD != 0
    }

    /// Whether it has begun to exit.
    #[inline(always)]
    pub(crate) fn is_exiting(self) -> bool {
        // include/linux/sched.h
        const PF_EXITING: u32 = 4;
        self.probe::<u32>(config::task_flags()).is_some_and(|flags| flags & PF_EXITING != 0)
    }

    /// Whether no page is fetched for it, so that an access to one that is not there fails (`pagefault_disable`).
    #[inline(always)]
    pub(crate) fn takes_no_pages(self) -> bool {
        self.probe::<u32>(config::task_faults_off()).is_some_and(|off| off != 0)
    }

    /// Whether a filter (`seccomp`) or a tracer (`ptrace`) can keep its system calls from being entered.
    #[inline(always)]
    pub(crate) fn can_be_denied(self) -> bool {
        let word = |offset| offset != 0 && self.probe::<u32>(offset).unwrap_or(0) != 0;
        word(config::task_seccomp()) || word(config::task_ptrace())
    }

    /// What the clock of its time namespace is ahead of CLOCK_MONOTONIC (`struct timens_offsets`), s and ns.
    #[inline(always)]
    pub(crate) fn clock_offset(self) -> Option<[i64; 2]> {
        if config::time_monotonic() == 0 {
            return None;
        }
        let namespaces = self.pointer(config::task_namespaces())?;
        namespaces.pointer(config::namespaces_time())?.probe(config::time_monotonic())
    }

    /// Whether its process began less than a second before `ts`.
    #[inline(always)]
    pub(crate) fn is_young(self, ts: u64) -> bool {
        const YOUNG_NS: u64 = 1_000_000_000;
        let start = self
            .pointer(config::task_leader())
            .and_then(|leader| leader.probe::<u64>(config::task_start()));
        start.is_some_and(|start| ts.wrapping_sub(start) < YOUNG_NS)
    }

    /// By how much its timers may be late, ns: none of those of a real-time thread.
    #[inline(always)]
    pub(crate) fn timer_slack(self) -> u64 {
        let known = config::task_slack() != 0 && self.is_ordinary();
        if known { self.probe(config::task_slack()).unwrap_or(0) } else { 0 }
    }

    /// Whether it waits for its group to have time again (`throttle_cfs_rq_work`, kernel/sched/fair.c), if the kernel says that of
    /// threads.
    #[inline(always)]
    pub(crate) fn is_throttled(self) -> Option<bool> {
        (config::task_throttled() != 0).then(|| self.field::<u8>(config::task_throttled()) != 0)
    }

    /// The queue of the fair scheduler in which it is; none where the kernel has no quotas.
    #[inline(always)]
    pub(crate) fn queue(self) -> Option<Self> {
        (config::task_queue() != 0).then(|| Self(self.field(config::task_queue())))
    }

    /// Whether it was the last thread of its process that had not begun to exit.
    #[inline(always)]
    pub(crate) fn is_last_alive(self) -> bool {
        let signal: *const u8 = self.field(config::task_signal());
        Self(signal).field::<i32>(config::signal_live()) == 0
    }
}

/// The registers of a thread that has entered the kernel; they live as long as it is there.
#[derive(Clone, Copy)]
pub(crate) struct Registers(TaskStruct);

impl Registers {
    /// Takes the argument of a tracepoint that is a `struct pt_regs *`.
    #[inline(always)]
    pub(crate) fn new(pointer: *const u8) -> Self {
        Self(TaskStruct(pointer))
    }

    /// The arguments of a system call (arch/x86/entry/entry_64.S).
    #[inline(always)]
    pub(crate) fn arguments(self) -> [u64; 6] {
        [
            self.0.field(config::regs_di()),
            self.0.field(config::regs_si()),
            self.0.field(config::regs_dx()),
            self.0.field(config::regs_r10()),
            self.0.field(config::regs_r8()),
            self.0.field(config::regs_r9()),
        ]
    }

    /// Where the thread was in user space.
    #[inline(always)]
    pub(crate) fn ip(self) -> u64 {
        self.0.field(config::regs_ip())
    }

    /// Its stack pointer there.
    #[inline(always)]
    pub(crate) fn sp(self) -> u64 {
        self.0.field(config::regs_sp())
    }

    /// Its register `rbp`.
    #[inline(always)]
    pub(crate) fn bp(self) -> u64 {
        self.0.field(config::regs_bp())
    }

    /// The first argument of a system call.
    #[inline(always)]
    pub(crate) fn first(self) -> u64 {
        self.0.field(config::regs_di())
    }

    /// Number of the system call.
    #[inline(always)]
    pub(crate) fn call(self) -> u64 {
        self.0.field(config::regs_number())
    }
}

/// Whether the current thread is in a system call as programs of 32 bits make them, which have other numbers.
#[inline(always)]
pub(crate) fn is_in_compat_call() -> bool {
    // arch/x86/include/asm/thread_info.h
    const TS_COMPAT: u32 = 2;
    TaskStruct::current()
        .probe::<u32>(config::thread_status())
        .is_none_or(|status| status & TS_COMPAT != 0)
}
