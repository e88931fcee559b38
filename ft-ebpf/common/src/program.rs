//! Programs that can lose something, as indices into the loss map.

/// Names, by index; equal to the tracepoints' names, but for those of call chains, samples and futexes, of calls that never
/// return, of the ends of faults, of probes, and of counters, sleeps and throttles, which are a part of `sched_switch`. Of a pair the exit writes the record; an entry is here where it needs room,
/// too, to be remembered.
pub const NAMES: [&str; 38] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup_new",
    "sched_migrate_task",
    "irq_handler_exit",
    "softirq_exit",
    "local_timer_exit",
    "reschedule_exit",
    "call_function_exit",
    "call_function_single_exit",
    "irq_work_exit",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "task_rename",
    "contention_end",
    "sys_exit",
    "page_fault_user",
    "contention_begin",
    "sys_enter",
    "signal_generate",
    "signal_deliver",
    "chain_switch",
    "chain_waking",
    "sample",
    "futex_enter",
    "futex_exit",
    "call_end",
    "page_fault_kernel",
    "fault_minor",
    "fault_major",
    "fault_end",
    "probe_begin",
    "probe_end",
    "probe_return",
    "cpu_count",
    "sleep",
    "throttle",
];

/// Index of a program.
///
/// # Panics
///
/// When the name is not in [`NAMES`]; meant for constants, where that is a compile-time error.
pub const fn index(name: &str) -> u32 {
    let mut i = 0;
    while i < NAMES.len() {
        if equal(NAMES[i].as_bytes(), name.as_bytes()) {
            return i as u32;
        }
        i += 1;
    }
    panic!("not the name of a program that can lose something");
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
