//! Group `task`: the life of processes and threads, and with it the set of observed processes.

use aya_ebpf::{
    helpers::{bpf_probe_read_kernel_str_bytes, generated::bpf_get_current_task_btf},
    macros::{btf_tracepoint, tracepoint},
    programs::{BtfTracePointContext, TracePointContext},
};
use aya_log_ebpf::warn;
use ft_ebpf::{
    COMM_LEN, Task, kind,
    observed::{LEAVING, OBSERVED},
    program,
};

use crate::{
    config,
    filter::{current, ended, listed, set_state, state},
    kernel::TaskStruct,
    number,
    record::{header, now, write},
};

/// `(task_struct *parent, task_struct *child)`; also for a new thread. Runs before the child does.
#[btf_tracepoint(function = "sched_process_fork")]
fn sched_process_fork(ctx: BtfTracePointContext) -> i32 {
    let parent = TaskStruct::new(ctx.arg(0));
    let child = TaskStruct::new(ctx.arg(1));
    let (parent_tgid, tgid) = (parent.tgid(), child.tgid());
    if config::system_wide() == 0 && tgid != parent_tgid {
        // Whatever had its number before.
        let follows = config::alone() == 0 && listed(parent_tgid);
        set_state(tgid, if follows { OBSERVED } else { 0 });
    }
    if !parent.is_observed() {
        return 0;
    }
    number::begins(child.tid());
    let ts = now();
    write(const { program::index("sched_process_fork") }, ts, || Task {
        header: header(ts, kind::FORK, parent.tid()),
        tid: child.tid(),
        tgid,
        parent_tgid,
        reserved: 0,
        comm: child.comm(),
    });
    0
}

/// `(task_struct *p, pid_t old_pid, linux_binprm *bprm)`. A thread that is not the first of its process gets the number of that
/// one, which has ended (`de_thread`, fs/exec.c): its own number ends here.
#[btf_tracepoint(function = "sched_process_exec")]
fn sched_process_exec(ctx: BtfTracePointContext) -> i32 {
    let task = TaskStruct::new(ctx.arg(0));
    let before: u32 = ctx.arg(1);
    if task.is_observed() {
        let program = const { program::index("sched_process_exec") };
        if before != task.tid() {
            number::changes(before, task.tid());
            record(program, kind::EXIT, task, before);
        }
        record(program, kind::EXEC, task, task.tid());
    }
    if config::own_only() != 0 && task.euid() != config::owner() {
        set_state(task.tgid(), 0);
        if !ended() {
            number::begins(task.tid());
        }
    }
    0
}

/// `(task_struct *p)`, the current one, and `bool group_dead` since Linux 6.16.
#[btf_tracepoint(function = "sched_process_exit")]
fn sched_process_exit(ctx: BtfTracePointContext) -> i32 {
    exits(TaskStruct::new(ctx.arg(0)))
}

/// `sched:sched_process_exit`, an event of perf, which is not preempted; see [`crate::syscall`].
#[tracepoint]
fn sched_process_exit_event(_: TracePointContext) -> i32 {
    // SAFETY: the helper takes nothing and returns the task that runs, of which the verifier knows the type.
    exits(TaskStruct::new(unsafe { bpf_get_current_task_btf() }.cast::<u8>().cast_const()))
}

#[inline(always)]
fn exits(task: TaskStruct) -> i32 {
    if ended() {
        return 0;
    }
    if task.is_observed() {
        record(const { program::index("sched_process_exit") }, kind::EXIT, task, task.tid());
    }
    number::ends(task.tid());
    if state(task.tgid()) == OBSERVED && task.is_last_alive() {
        set_state(task.tgid(), LEAVING);
    }
    0
}

/// Writes a record of the current task, of which `tid` is or was the number.
#[inline(always)]
fn record(program: u32, kind: u16, task: TaskStruct, tid: u32) {
    let ts = now();
    write(program, ts, || Task {
        header: header(ts, kind, tid),
        tid,
        tgid: task.tgid(),
        parent_tgid: 0,
        reserved: 0,
        comm: task.comm(),
    });
}

/// `(task_struct *task, const char *comm)`: the new name, before it is set. One thread can rename another.
#[btf_tracepoint(function = "task_rename")]
fn task_rename(ctx: BtfTracePointContext) -> i32 {
    let task = TaskStruct::new(ctx.arg(0));
    if !task.is_observed() {
        return 0;
    }
    let mut comm = [0; COMM_LEN];
    // SAFETY: the helper checks the source and writes no more than `comm` holds.
    if unsafe { bpf_probe_read_kernel_str_bytes(ctx.arg(1), &mut comm) }.is_err() {
        warn!(&ctx, "the new name of thread {} could not be read", task.tid());
        return 0;
    }
    let ts = now();
    write(const { program::index("task_rename") }, ts, || Task {
        header: header(ts, kind::RENAME, current().tid),
        tid: task.tid(),
        tgid: task.tgid(),
        parent_tgid: 0,
        reserved: 0,
        comm,
    });
    0
}
