//! What the agent sets before loading. The verifier takes each as a constant: a branch on one costs
//! nothing, and a load at `task + OFFSET` is checked against the kernel's own types.

use aya_ebpf::Global;

/// Declares the globals with a reader each.
macro_rules! globals {
    ($($(#[$doc:meta])* $name:ident $read:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        static $name: Global<$type> = Global::new(0);

        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $read() -> $type {
            $name.load()
        }
    )*};
}

globals! {
    /// Not 0: everything is recorded, whoever it concerns.
    SYSTEM_WIDE system_wide: u32;
    /// Not 0: what a process has started is not observed because that is.
    ALONE alone: u32;
    /// Not 0: a process that gains rights by what it executes is no longer observed.
    OWN_ONLY own_only: u32;
    /// The user who records, as the initial user namespace numbers it; this and the next two only with `OWN_ONLY`.
    OWNER owner: u32;
    /// `task_struct.cred`.
    TASK_CRED task_cred: u32;
    /// `cred.euid.val`.
    CRED_EUID cred_euid: u32;
    /// The observed cgroup; 0: none is.
    CGROUP_ID cgroup_id: u64;
    /// How deep it lies below the root.
    CGROUP_LEVEL cgroup_level: u32;
    /// The process that records.
    AGENT agent: u32;
    /// Bytes in a ring buffer at which the agent is woken; see [`crate::record`].
    RING_MARK ring_mark: u32;
    /// Not 0: the programs of the group `lock` or `section` are loaded.
    LOCKS locks: u32;
    /// Which tables by thread are in use, bits of `ft_ebpf::kept`.
    KEPT kept: u32;
    /// Not 0: where threads were is kept in `PLACES_MADE`.
    PLACES_ARE_MADE places_are_made: u32;
    /// Not 0: softirqs can be preempted, and the programs of the group `irq` are loaded.
    SOFTIRQS_PREEMPTED softirqs_preempted: u32;
    /// Counters of each CPU that are read at its switches.
    COUNTERS counters: u32;
    /// Not 0: those of the group `stack` are.
    STACKS stacks: u32;
    /// Chains of threads that were off the CPU for less are not recorded, ns.
    CHAIN_MIN_NS chain_min_ns: u64;
    /// Not 0: the fourth argument of `sched_switch` is the state of the task that leaves (Linux 5.18 on).
    SWITCH_HAS_STATE switch_has_state: u32;
    /// `task_struct.__state` (`state` before Linux 5.14).
    TASK_STATE task_state: u32;
    /// `task_struct.pi_lock.raw_lock.val.counter`; 0: not known.
    TASK_PI_LOCK task_pi_lock: u32;
    /// `task_struct.pid`.
    TASK_PID task_pid: u32;
    /// `task_struct.tgid`.
    TASK_TGID task_tgid: u32;
    /// `task_struct.prio`.
    TASK_PRIO task_prio: u32;
    /// `task_struct.comm`, a multiple of 8.
    TASK_COMM task_comm: u32;
    /// `task_struct.thread_info.cpu` (`task_struct.cpu` before Linux 5.16).
    TASK_CPU task_cpu: u32;
    /// `task_struct.stack`; only with the programs of the group `section`.
    TASK_STACK task_stack: u32;
    /// Sections that are followed at once, by CPU or thread; this and the next two of the group `section`.
    SECTION_OPEN section_open: u32;
    /// Entries of `SLEEPERS`: a power of two.
    SECTION_THREADS section_threads: u32;
    /// Rows of `SECTIONS` that are callers'.
    SECTION_CALLERS section_callers: u32;
    /// `task_struct.group_leader`.
    TASK_LEADER task_leader: u32;
    /// `task_struct.start_time`.
    TASK_START task_start: u32;
    /// `task_struct.signal`.
    TASK_SIGNAL task_signal: u32;
    /// `signal_struct.live.counter`.
    SIGNAL_LIVE signal_live: u32;
    /// `task_struct.thread_info.status`.
    THREAD_STATUS thread_status: u32;
    /// `task_struct.flags`.
    TASK_FLAGS task_flags: u32;
    /// `task_struct.pagefault_disabled`.
    TASK_FAULTS_OFF task_faults_off: u32;
    /// `task_struct.ptrace`.
    TASK_PTRACE task_ptrace: u32;
    /// `task_struct.seccomp.mode`; 0: this kernel has none.
    TASK_SECCOMP task_seccomp: u32;
    /// `task_struct.nsproxy`.
    TASK_NAMESPACES task_namespaces: u32;
    /// `nsproxy.time_ns`.
    NAMESPACES_TIME namespaces_time: u32;
    /// `time_namespace.offsets.monotonic`; 0: this kernel has none.
    TIME_MONOTONIC time_monotonic: u32;
    /// `pt_regs.di`, the first argument of a system call.
    REGS_DI regs_di: u32;
    /// `pt_regs.si`, the second.
    REGS_SI regs_si: u32;
    /// `pt_regs.dx`, the third.
    REGS_DX regs_dx: u32;
    /// `pt_regs.r10`, the fourth.
    REGS_R10 regs_r10: u32;
    /// `pt_regs.r8`, the fifth.
    REGS_R8 regs_r8: u32;
    /// `pt_regs.r9`, the sixth.
    REGS_R9 regs_r9: u32;
    /// `pt_regs.orig_ax`, the number of the system call.
    REGS_NUMBER regs_number: u32;
    /// `pt_regs.ip`; 0: the kernel cannot be asked for the registers of a task in user space (before Linux 5.15).
    REGS_IP regs_ip: u32;
    /// `pt_regs.sp`.
    REGS_SP regs_sp: u32;
    /// `pt_regs.bp`.
    REGS_BP regs_bp: u32;
    /// `task_struct.files`; 0: what leads from there to the kind of a descriptor is not known.
    TASK_FILES task_files: u32;
    /// `files_struct.fdt`.
    FILES_FDT files_fdt: u32;
    /// `fdtable.max_fds`.
    FDTABLE_MAX fdtable_max: u32;
    /// `fdtable.fd`.
    FDTABLE_FD fdtable_fd: u32;
    /// `file.f_inode`.
    FILE_INODE file_inode: u32;
    /// `file.f_path.dentry`.
    FILE_DENTRY file_dentry: u32;
    /// `inode.i_mode`.
    INODE_MODE inode_mode: u32;
    /// `inode.i_sb`.
    INODE_SB inode_sb: u32;
    /// `super_block.s_magic`.
    SUPER_MAGIC super_magic: u32;
    /// `dentry.d_name.name`.
    DENTRY_NAME dentry_name: u32;
    /// `task_struct.timer_slack_ns`; 0: not known.
    TASK_SLACK task_slack: u32;
    /// `task_struct.throttled`, since Linux 6.18; 0: this kernel has none.
    TASK_THROTTLED task_throttled: u32;
    /// `task_struct.se.cfs_rq`; 0: the kernel has no quotas. This and what follows up to `NODE_NAME` lead to those.
    TASK_QUEUE task_queue: u32;
    /// `task_struct.se.parent`.
    TASK_PARENT task_parent: u32;
    /// `sched_entity.cfs_rq`.
    ENTITY_QUEUE entity_queue: u32;
    /// `sched_entity.parent`.
    ENTITY_PARENT entity_parent: u32;
    /// `cfs_rq.throttled`; where that is a part of a byte, `throttled_clock`: since when it is.
    QUEUE_THROTTLED queue_throttled: u32;
    /// `cfs_rq.throttle_count`.
    QUEUE_THROTTLES queue_throttles: u32;
    /// `cfs_rq.runtime_enabled`.
    QUEUE_HAS_QUOTA queue_has_quota: u32;
    /// `cfs_rq.throttled_clock_self_time`, since Linux 6.6; 0: this kernel has none.
    QUEUE_THROTTLED_NS queue_throttled_ns: u32;
    /// `cfs_rq.tg`.
    QUEUE_GROUP queue_group: u32;
    /// `task_group.cfs_bandwidth.quota`.
    GROUP_QUOTA group_quota: u32;
    /// `task_group.cfs_bandwidth.period`.
    GROUP_PERIOD group_period: u32;
    /// `task_group.css.cgroup`.
    GROUP_CGROUP group_cgroup: u32;
    /// `kernfs_node.name`.
    NODE_NAME node_name: u32;
    /// `task_struct.cgroups`; this and what follows only with `CGROUP_ID`.
    TASK_CGROUPS task_cgroups: u32;
    /// `css_set.dfl_cgrp`, the cgroup of version 2.
    CSS_SET_CGROUP css_set_cgroup: u32;
    /// `cgroup.level`.
    CGROUP_DEPTH cgroup_depth: u32;
    /// `cgroup.ancestors`.
    CGROUP_ANCESTORS cgroup_ancestors: u32;
    /// `cgroup.kn`.
    CGROUP_NODE cgroup_node: u32;
    /// `kernfs_node.id`.
    NODE_ID node_id: u32;
}

/// The layout of the records, in the symbol's name: the agent sets it and fails where it does not exist.
#[unsafe(no_mangle)]
static RECORD_LAYOUT_2: Global<u32> = Global::new(ft_ebpf::VERSION);

const _: () = assert!(ft_ebpf::VERSION == 2, "RECORD_LAYOUT_n bears the version of the layout");
