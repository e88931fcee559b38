//! What the agent sets before loading. The verifier takes each as a constant: a branch on one costs
//! nothing, and a load at `task + OFFSET` is checked against the kernel's own types.

use aya_ebpf::Global;

/// Declares the globals with a reader each.
macro_rules! globals {
    ($($(#[$doc:meta])* $name:ident $read:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        static $name: Global<u32> = Global::new(0);

        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $read() -> u32 {
            $name.load()
        }
    )*};
}

globals! {
    /// Not 0: everything is recorded, whoever it concerns.
    SYSTEM_WIDE system_wide;
    /// Not 0: the programs of the group `lock` are loaded.
    LOCKS locks;
    /// Not 0: the fourth argument of `sched_switch` is the state of the task that leaves (Linux 5.18 on).
    SWITCH_HAS_STATE switch_has_state;
    /// `task_struct.__state` (`state` before Linux 5.14).
    TASK_STATE task_state;
    /// `task_struct.pid`.
    TASK_PID task_pid;
    /// `task_struct.tgid`.
    TASK_TGID task_tgid;
    /// `task_struct.prio`.
    TASK_PRIO task_prio;
    /// `task_struct.comm`, a multiple of 8.
    TASK_COMM task_comm;
    /// `task_struct.thread_info.cpu` (`task_struct.cpu` before Linux 5.16).
    TASK_CPU task_cpu;
    /// `task_struct.signal`.
    TASK_SIGNAL task_signal;
    /// `signal_struct.live.counter`.
    SIGNAL_LIVE signal_live;
}

/// The layout of the records, in the symbol's name: the agent sets it and fails where it does not exist.
#[unsafe(no_mangle)]
static RECORD_LAYOUT_1: Global<u32> = Global::new(ft_ebpf::VERSION);

const _: () = assert!(ft_ebpf::VERSION == 1, "RECORD_LAYOUT_n bears the version of the layout");
