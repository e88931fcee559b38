//! The collecting thread and the control plane go before others.
//!
//! On a machine with more to do than CPUs, a thread like others waits tens of milliseconds for its turn, in
//! which a busy thread fills its ring many times over. The highest priority of the ordinary scheduler gives
//! the collection as much of a CPU as it asks for; a short slice gives it at once (Linux 6.12 and later:
//! whoever asks for less at a time need not wait until another has used up its own). Real-time priority
//! would be safer still for the events and worse for the machine: a collection that writes to a disk
//! would keep the kernel's own threads from it.

use std::mem::size_of;

/// Highest priority of the ordinary scheduler (sched(7)).
const NICE: i32 = -20;

/// Time that the thread asks for at once: the shortest that the kernel gives, ns.
const SLICE_NS: u64 = 100_000;

/// `SCHED_FLAG_KEEP_POLICY` (linux/sched.h): what runs with real-time priority keeps it.
const KEEP_POLICY: u64 = 0x08;

/// A thread that is raised until this is dropped, by the same thread.
#[derive(Debug)]
pub(crate) struct Raised {
    /// Its priority before.
    own: i32,
}

/// Raises the calling thread. Without CAP_SYS_NICE it keeps its priority, and gets the slice alone.
pub(crate) fn raise() -> Raised {
    let own = rustix::process::getpriority_process(None).unwrap_or(0);
    if set(NICE, SLICE_NS).is_err() {
        let _ = set(own, SLICE_NS);
    }
    Raised { own }
}

impl Drop for Raised {
    fn drop(&mut self) {
        // 0 is the kernel's own slice. To be lowered is allowed to everybody.
        let _ = set(self.own, 0);
    }
}

fn set(nice: i32, slice_ns: u64) -> std::io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: KEEP_POLICY,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads as many bytes as `size` says; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_raised_for_a_time_if_it_may_be() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        let raised = raise();
        let after = priority();
        assert!(after == NICE || after == before, "{before} became {after}");
        drop(raised);
        assert_eq!(priority(), before);
    }
}
