//! The kernel's events under the names that LTTng gives them (lttng-modules 2.13, `include/instrumentation/events/`).
//!
//! Fields that no record has are left out (`irq_handler_exit.ret`, addresses in system calls). `preempted` and `woken` of
//! `sched_switch` are ours: LTTng's `prev_state` is 0 for whoever leaves the CPU runnable, by force or not.

use ft_trace::tables::{SignalResult, TaskState};

use super::tsdl::{Channel, Metadata};

/// A value of a field.
pub(super) trait Field {
    /// Its type in TSDL.
    const TYPE: &'static str;
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($ty:ty: $name:literal,)*) => {
        $(impl Field for $ty {
            const TYPE: &'static str = $name;
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

numbers! {
    i32: "int32_t",
    i64: "int64_t",
    u64: "pointer_t",
    f64: "double_t",
}

impl Field for bool {
    const TYPE: &'static str = "enum boolean_t";
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }
}

impl Field for &str {
    const TYPE: &'static str = "text_t";
    fn put(&self, out: &mut Vec<u8>) {
        match self.bytes().any(|b| b == 0) {
            // NUL ends a text.
            true => out.extend_from_slice(self.replace('\0', "\u{2400}").as_bytes()),
            false => out.extend_from_slice(self.as_bytes()),
        }
        out.push(0);
    }
}

/// An event whose class is known beforehand.
pub(super) trait Payload {
    /// Number of the class.
    const ID: u32;
    /// Names and types of the fields.
    const FIELDS: &'static [(&'static str, &'static str)];
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! events {
    ($($name:literal $event:ident $(<$life:lifetime>)? { $($field:ident: $ty:ty,)* })*) => {
        enum Id { $($event,)* }

        $(
            pub(super) struct $event $(<$life>)? {
                $(pub(super) $field: $ty,)*
            }

            impl $(<$life>)? Payload for $event $(<$life>)? {
                const ID: u32 = Id::$event as u32;
                const FIELDS: &'static [(&'static str, &'static str)] =
                    &[$((stringify!($field), <$ty as Field>::TYPE),)*];
                fn put(&self, out: &mut Vec<u8>) {
                    $(self.$field.put(out);)*
                }
            }
        )*

        /// Declares them all, in the order of their numbers.
        pub(super) fn declare(metadata: &mut Metadata) {
            $(
                let id = metadata.event(Channel::Kernel, $name, $event::FIELDS.iter().copied());
                debug_assert_eq!(id, $event::ID);
            )*
        }
    };
}

events! {
    "lttng_statedump_process_state" ProcessState<'a> {
        tid: i32, pid: i32, ppid: i32, name: &'a str, status: i32,
    }
    "sched_switch" Switch<'a> {
        prev_comm: &'a str, prev_tid: i32, prev_prio: i32, prev_state: i64,
        next_comm: &'a str, next_tid: i32, next_prio: i32, preempted: bool, woken: bool,
    }
    "sched_waking" Waking<'a> { comm: &'a str, tid: i32, prio: i32, target_cpu: i32, }
    "sched_wakeup_new" WakeupNew<'a> { comm: &'a str, tid: i32, prio: i32, target_cpu: i32, }
    "sched_migrate_task" Migrate<'a> { comm: &'a str, tid: i32, orig_cpu: i32, dest_cpu: i32, }
    "sched_process_fork" Fork<'a> {
        parent_tid: i32, parent_pid: i32, child_comm: &'a str, child_tid: i32, child_pid: i32,
    }
    "sched_process_exec" Exec<'a> { filename: &'a str, tid: i32, }
    "sched_process_exit" Exit<'a> { comm: &'a str, tid: i32, }
    "task_rename" Rename<'a> { tid: i32, newcomm: &'a str, }
    "irq_handler_entry" IrqEntry<'a> { irq: i32, name: &'a str, }
    "irq_handler_exit" IrqExit { irq: i32, }
    "irq_softirq_entry" SoftirqEntry { vec: i32, }
    "irq_softirq_exit" SoftirqExit { vec: i32, }
    "contention_begin" ContentionBegin<'a> { lock_addr: u64, flags: i32, kind: &'a str, }
    "contention_end" ContentionEnd { lock_addr: u64, }
    "x86_exceptions_page_fault_user" PageFault { address: u64, error_code: i32, }
    "signal_generate" SignalGenerate<'a> {
        sig: i32, comm: &'a str, pid: i32, group: i32, result: i32,
    }
    "signal_deliver" SignalDeliver { sig: i32, }
}

/// `status` of a thread of which nothing is known yet (`LTTNG_UNNAMED`, lttng-statedump-impl.c).
pub(super) const UNKNOWN_STATUS: i32 = 0;

/// A process that is not known.
pub(super) const NO_PROCESS: i32 = -1;

/// Bits of `prev_state` (include/linux/sched.h).
pub(super) fn prev_state(state: TaskState) -> i64 {
    match state {
        TaskState::Runnable | TaskState::Preempted => 0,
        TaskState::Sleeping => 0x1,
        TaskState::Uninterruptible => 0x2,
        TaskState::Stopped => 0x4,
        TaskState::Traced => 0x8,
        TaskState::Dead => 0x10,
        TaskState::Zombie => 0x20,
        TaskState::Parked => 0x40,
        TaskState::Idle => 0x402,
    }
}

/// `TRACE_SIGNAL_*` (include/trace/events/signal.h).
pub(super) fn signal_result(result: Option<SignalResult>) -> i32 {
    match result {
        None | Some(SignalResult::Delivered) => 0,
        Some(SignalResult::Ignored) => 1,
        Some(SignalResult::Pending) => 2,
        Some(SignalResult::Overflow) => 3,
        Some(SignalResult::Truncated) => 4,
    }
}

/// Number of an interrupt vector by its name (arch/x86/include/asm/irq_vectors.h); ours where it is another.
pub(super) fn vector(name: &str, number: i32) -> i32 {
    match name {
        "local_timer" => 0xec,
        "reschedule" => 0xfd,
        "call_function" => 0xfc,
        "call_function_single" => 0xfb,
        "irq_work" => 0xf6,
        _ => number,
    }
}
