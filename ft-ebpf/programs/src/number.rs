//! What becomes of a thread's number, by which the programs keep what is under way: it begins with a fork, ends with its thread,
//! and changes with an `execve` by a thread that is not the first of its process.
//!
//! An end can be missed, as any tracepoint can. So whatever was kept of a number goes when that begins again.

use ft_ebpf::kept;

use crate::{chain, config, fault, futex, syscall};

#[inline(always)]
fn is_kept(table: u32) -> bool {
    config::kept() & table != 0
}

/// A number is given to a new thread, or what was kept of it is no longer to be recorded.
#[inline(always)]
pub(crate) fn begins(tid: u32) {
    if is_kept(kept::CALLS) {
        syscall::forget(tid);
    }
    others(tid);
    if is_kept(kept::FAULTS) {
        fault::forget(tid);
    }
}

/// The current thread had the number `from` until now. Of what is kept only its call goes on.
#[inline(always)]
pub(crate) fn changes(from: u32, to: u32) {
    if is_kept(kept::CALLS) {
        syscall::renumbered(from, to);
    }
    others(from);
    if is_kept(kept::FAULTS) {
        fault::ends(from);
    }
}

/// The current thread ends. Its place it keeps until it leaves the CPU for good.
#[inline(always)]
pub(crate) fn ends(tid: u32) {
    if is_kept(kept::CALLS) {
        syscall::ends(tid);
    }
    if is_kept(kept::FUTEX_CALLS) {
        futex::forget(tid);
    }
    if is_kept(kept::FAULTS) {
        fault::ends(tid);
    }
}

#[inline(always)]
fn others(tid: u32) {
    if is_kept(kept::FUTEX_CALLS) {
        futex::forget(tid);
    }
    if is_kept(kept::PLACES) {
        chain::forget(tid);
    }
}
