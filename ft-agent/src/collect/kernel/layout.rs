//! What the programs need to know of the running kernel: the globals of `ft-ebpf/programs/src/config.rs`.

use super::{KernelError, btf::Btf};

/// Where a member lies that every kernel has.
fn member(btf: &Btf<'_>, structure: &str, path: &str) -> Result<u32, KernelError> {
    let offset = btf.member_offset(structure, path);
    offset.ok_or_else(|| KernelError::UnknownMember(format!("{structure}.{path}")))
}

/// The globals that come from the kernel's BTF, by name.
pub(super) fn globals(btf: &Btf<'_>) -> Result<Vec<(&'static str, u32)>, KernelError> {
    let member = |structure, path| member(btf, structure, path);
    let task = |path| member("task_struct", path);
    let comm = task("comm")?;
    if comm % 8 != 0 {
        // The programs read it in two 8-byte loads.
        return Err(KernelError::UnknownMember("task_struct.comm".to_owned()));
    }
    let mut globals = vec![
        // Renamed in Linux 5.14.
        ("TASK_STATE", task("__state").or_else(|_| task("state"))?),
        // A kernel for one CPU has no lock there, and one with other locks than queued ones no such member.
        ("TASK_PI_LOCK", task("pi_lock.raw_lock.val.counter").unwrap_or(0)),
        ("TASK_PID", task("pid")?),
        ("TASK_TGID", task("tgid")?),
        ("TASK_PRIO", task("prio")?),
        ("TASK_COMM", comm),
        // Moved in Linux 5.16.
        ("TASK_CPU", task("thread_info.cpu").or_else(|_| task("cpu"))?),
        ("TASK_STACK", task("stack")?),
        ("TASK_LEADER", task("group_leader")?),
        ("TASK_START", task("start_time")?),
        ("TASK_SIGNAL", task("signal")?),
        ("SIGNAL_LIVE", member("signal_struct", "live.counter")?),
        ("THREAD_STATUS", task("thread_info.status")?),
        ("TASK_FLAGS", task("flags")?),
        ("TASK_FAULTS_OFF", task("pagefault_disabled")?),
        ("TASK_PTRACE", task("ptrace")?),
        // A kernel can be built without filters, and without time namespaces.
        ("TASK_SECCOMP", task("seccomp.mode").unwrap_or(0)),
        ("TASK_NAMESPACES", task("nsproxy")?),
        ("NAMESPACES_TIME", member("nsproxy", "time_ns")?),
        ("TIME_MONOTONIC", member("time_namespace", "offsets.monotonic").unwrap_or(0)),
        ("REGS_DI", member("pt_regs", "di")?),
        ("REGS_SI", member("pt_regs", "si")?),
        ("REGS_DX", member("pt_regs", "dx")?),
        ("REGS_R10", member("pt_regs", "r10")?),
        ("REGS_R8", member("pt_regs", "r8")?),
        ("REGS_R9", member("pt_regs", "r9")?),
        ("REGS_NUMBER", member("pt_regs", "orig_ax")?),
        ("SWITCH_HAS_STATE", u32::from(switch_has_state(btf)?)),
    ];
    // `bpf_task_pt_regs`.
    if version(&release()).is_some_and(|version| version >= (5, 15)) {
        globals.push(("REGS_IP", member("pt_regs", "ip")?));
        globals.push(("REGS_SP", member("pt_regs", "sp")?));
        globals.push(("REGS_BP", member("pt_regs", "bp")?));
    }
    globals.push(("TASK_SLACK", task("timer_slack_ns").unwrap_or(0)));
    globals.extend(descriptor_globals(btf).into_iter().flatten());
    globals.extend(quota_globals(btf).into_iter().flatten());
    Ok(globals)
}

/// The globals by which the kind of a descriptor is found; without one of them, none is.
fn descriptor_globals(btf: &Btf<'_>) -> Option<[(&'static str, u32); 10]> {
    let member = |structure, path| btf.member_offset(structure, path);
    Some([
        ("TASK_FILES", member("task_struct", "files")?),
        ("FILES_FDT", member("files_struct", "fdt")?),
        ("FDTABLE_MAX", member("fdtable", "max_fds")?),
        ("FDTABLE_FD", member("fdtable", "fd")?),
        ("FILE_INODE", member("file", "f_inode")?),
        // It has another name where only some may write it.
        (
            "FILE_DENTRY",
            member("file", "f_path.dentry").or_else(|| member("file", "__f_path.dentry"))?,
        ),
        ("INODE_MODE", member("inode", "i_mode")?),
        ("INODE_SB", member("inode", "i_sb")?),
        ("SUPER_MAGIC", member("super_block", "s_magic")?),
        (
            "DENTRY_NAME",
            member("dentry", "d_name.name").or_else(|| member("dentry", "__d_name.name"))?,
        ),
    ])
}

/// The globals by which a quota of a cgroup is seen; a kernel can be built without them.
fn quota_globals(btf: &Btf<'_>) -> Option<[(&'static str, u32); 16]> {
    let member = |structure, path| btf.member_offset(structure, path);
    Some([
        ("TASK_QUEUE", member("task_struct", "se.cfs_rq")?),
        ("TASK_PARENT", member("task_struct", "se.parent")?),
        ("ENTITY_QUEUE", member("sched_entity", "cfs_rq")?),
        ("ENTITY_PARENT", member("sched_entity", "parent")?),
        // A part of a byte since Linux 6.18.
        (
            "QUEUE_THROTTLED",
            member("cfs_rq", "throttled").or_else(|| member("cfs_rq", "throttled_clock"))?,
        ),
        ("QUEUE_THROTTLES", member("cfs_rq", "throttle_count")?),
        ("QUEUE_HAS_QUOTA", member("cfs_rq", "runtime_enabled")?),
        ("QUEUE_GROUP", member("cfs_rq", "tg")?),
        ("GROUP_QUOTA", member("task_group", "cfs_bandwidth.quota")?),
        ("GROUP_PERIOD", member("task_group", "cfs_bandwidth.period")?),
        ("GROUP_CGROUP", member("task_group", "css.cgroup")?),
        ("CGROUP_NODE", member("cgroup", "kn")?),
        ("NODE_ID", member("kernfs_node", "id")?),
        ("NODE_NAME", member("kernfs_node", "name")?),
        // Since Linux 6.6, and 6.18.
        ("QUEUE_THROTTLED_NS", member("cfs_rq", "throttled_clock_self_time").unwrap_or(0)),
        ("TASK_THROTTLED", member("task_struct", "throttled").unwrap_or(0)),
    ])
}

/// The globals by which a process is let go that has another user's rights.
pub(super) fn owner_globals(
    btf: &Btf<'_>,
    owner: u32,
) -> Result<[(&'static str, u32); 4], KernelError> {
    Ok([
        ("OWN_ONLY", 1),
        ("OWNER", owner),
        ("TASK_CRED", member(btf, "task_struct", "cred")?),
        ("CRED_EUID", member(btf, "cred", "euid.val")?),
    ])
}

/// The globals by which a task's cgroup is found.
pub(super) fn cgroup_globals(btf: &Btf<'_>) -> Result<[(&'static str, u32); 6], KernelError> {
    let member = |structure, path| {
        btf.member_offset(structure, path).ok_or(KernelError::NoCgroups { structure, path })
    };
    Ok([
        ("TASK_CGROUPS", member("task_struct", "cgroups")?),
        ("CSS_SET_CGROUP", member("css_set", "dfl_cgrp")?),
        ("CGROUP_DEPTH", member("cgroup", "level")?),
        // Since Linux 6.1.
        ("CGROUP_ANCESTORS", member("cgroup", "ancestors")?),
        ("CGROUP_NODE", member("cgroup", "kn")?),
        ("NODE_ID", member("kernfs_node", "id")?),
    ])
}

/// The release of the kernel that runs.
pub(crate) fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The first two numbers of a kernel's release.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    numbers.next().zip(numbers.next())
}

/// Whether threads run softirqs, and can be preempted in them (`CONFIG_PREEMPT_RT`, which the kernel's version names:
/// init/Makefile).
pub(super) fn is_real_time() -> bool {
    rustix::system::uname().version().to_bytes().windows(10).any(|word| word == b"PREEMPT_RT")
}

/// Whether `sched_switch` passes the state behind both tasks: `(preempt, prev, next, prev_state)`.
fn switch_has_state(btf: &Btf<'_>) -> Result<bool, KernelError> {
    const NAME: &str = "sched_switch";
    match btf.tracepoint_arguments(NAME).ok_or(KernelError::NoTracepoint(NAME))?[..] {
        [false, true, true] => Ok(false),
        [false, true, true, false] => Ok(true),
        _ => Err(KernelError::UnknownMember("tracepoint sched_switch".to_owned())),
    }
}
