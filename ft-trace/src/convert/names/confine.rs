//! Gives up all rights: what an attacker who has taken over a worker could do is to compute, and to answer.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, setsid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// The user of a worker of root: nobody has this number, so that nobody can end it either.
pub(super) const OWN_USER: u32 = 4_000_000_000;

/// Who must do in a user namespace that does not have that number.
pub(super) const NOBODY: u32 = 65_534;

/// Memory of a worker, bytes: what is in a file, and what is made of it.
pub(super) const MEMORY_BYTES: u64 = 4 << 30;

/// CPU time of a worker, s: its agent ends it earlier ([`super::FILE_CPU`]), unless that is gone.
const CPU_S: u64 = 300;

/// Descriptors: the socket, and two files.
const DESCRIPTORS: u64 = 16;

/// Calls that a worker makes.
const CALLS: [i64; 21] = [
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_write,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that make memory, which must not be executable; which argument says so.
const OF_MEMORY: [(i64, u8); 2] = [(libc::SYS_mmap, 2), (libc::SYS_mprotect, 2)];

/// What may be asked of a descriptor. `F_SETOWN`, `F_SETSIG` and `O_ASYNC` would have the kernel send any signal.
const OF_DESCRIPTORS: [i32; 3] = [libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_GETFL];

/// Gives up all rights of this process, which has one thread.
///
/// # Errors
///
/// When the kernel refuses, so that some right is left.
pub(super) fn confine() -> io::Result<()> {
    // What a terminal sends to the agent is not for the worker. Who leads a session already is fine, too.
    let _ = setsid();
    // Of two that take too much memory, this one is the one to end. Where there is no /proc, the other limits must do.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    close_all_but_standard()?;
    become_nobody()?;
    // Which a change of user drops unless the machine is set up otherwise.
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    for (resource, most) in [
        (Resource::As, MEMORY_BYTES),
        (Resource::Cpu, CPU_S),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nofile, DESCRIPTORS),
    ] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    leave_no_path();
    let filter = filter().map_err(io::Error::other)?;
    seccompiler::apply_filter(&filter).map_err(io::Error::other)
}

/// A second line behind the filter, which has no call that takes a path or sends a signal: none leads to a file, where the kernel has
/// Landlock (5.13), and no signal to a process outside (6.12).
pub(super) fn leave_no_path() {
    // `struct landlock_ruleset_attr` (linux/landlock.h): each access that the first version knows, none of the network's, and
    // LANDLOCK_SCOPE_SIGNAL.
    let attributes: [u64; 3] = [(1 << 13) - 1, 0, 1 << 1];
    let (create, restrict) = (libc::SYS_landlock_create_ruleset, libc::SYS_landlock_restrict_self);
    // Kernels that do not know the last two words want the first alone.
    let ruleset = |bytes: usize| {
        // SAFETY: points to what is read, which has this size at least.
        unsafe { libc::syscall(create, attributes.as_ptr(), bytes, 0) }
    };
    let all = ruleset(size_of_val(&attributes));
    let none_allowed = if all >= 0 { all } else { ruleset(size_of::<u64>()) };
    if none_allowed >= 0 {
        // SAFETY: a descriptor that was opened here, and is closed here.
        unsafe { libc::syscall(restrict, none_allowed, 0) };
        // SAFETY: the same.
        unsafe { libc::close(none_allowed as i32) };
    }
}

pub(super) fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = CALLS.map(|call| (call, Vec::new())).into();
    for (call, argument) in OF_MEMORY {
        let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
        let none = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, executable, 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![none])?]);
    }
    let asked = |what: i32| {
        let is = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, what as u64)?;
        SeccompRule::new(vec![is])
    };
    let asked: Result<_, _> = OF_DESCRIPTORS.into_iter().map(asked).collect();
    rules.insert(libc::SYS_fcntl, asked?);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refused, SeccompAction::Allow, TargetArch::x86_64)?.try_into()
}

fn close_all_but_standard() -> io::Result<()> {
    // SAFETY: no number from 3 on belongs to anything in this process yet.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Becomes another user, of no group, if this one may do that.
fn become_nobody() -> io::Result<()> {
    // SAFETY: no pointer is read where there are no groups.
    if unsafe { libc::setgroups(0, std::ptr::null()) } != 0 {
        // Who may not has no more rights than its own user.
        return Ok(());
    }
    let become_user = |user: u32| {
        // SAFETY: these take numbers alone.
        let group = unsafe { libc::setresgid(user, user, user) };
        // SAFETY: the same.
        group == 0 && unsafe { libc::setresuid(user, user, user) } == 0
    };
    match become_user(OWN_USER) || become_user(NOBODY) {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}
