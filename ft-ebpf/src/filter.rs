//! Who is observed.

use aya_ebpf::helpers::{bpf_get_current_ancestor_cgroup_id, bpf_get_current_pid_tgid};

use ft_ebpf::observed::CHUNK;

use crate::{config, kernel::TaskStruct, maps::OBSERVED};

/// Thread and process id of the current task, as the initial PID namespace numbers them.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    pub(crate) tid: u32,
    pub(crate) tgid: u32,
}

/// The current task; in an interrupt, the one that it struck.
#[inline(always)]
pub(crate) fn current() -> Current {
    let both = bpf_get_current_pid_tgid();
    Current { tid: both as u32, tgid: (both >> 32) as u32 }
}

/// Whether the process itself is observed: all are, or the agent or its parent has entered it.
#[inline(always)]
pub(crate) fn listed(tgid: u32) -> bool {
    // SAFETY: the byte is in the map; other CPUs and the agent write whole bytes.
    config::system_wide() != 0
        || byte(tgid).is_some_and(|byte| unsafe { byte.read_volatile() } != 0)
}

/// Takes a process in or out of the observed ones.
#[inline(always)]
pub(crate) fn set_listed(tgid: u32, observed: bool) {
    if let Some(byte) = byte(tgid) {
        // SAFETY: as in `listed`.
        unsafe { byte.write_volatile(observed as u8) };
    }
}

/// What tells whether a process is observed.
#[inline(always)]
fn byte(tgid: u32) -> Option<*mut u8> {
    let chunk = OBSERVED.get_ptr_mut(tgid / CHUNK as u32)?;
    // SAFETY: the index is within the chunk.
    Some(unsafe { chunk.cast::<u8>().add(tgid as usize % CHUNK) })
}

impl Current {
    /// Whether what concerns it is recorded.
    #[inline(always)]
    pub(crate) fn is_observed(self) -> bool {
        listed(self.tgid)
            || in_cgroup(|level| {
                // SAFETY: the helper takes a number and returns one, 0 when there is no such ancestor.
                unsafe { bpf_get_current_ancestor_cgroup_id(level as i32) }
            })
    }
}

impl TaskStruct {
    /// Whether what concerns it is recorded.
    #[inline(always)]
    pub(crate) fn is_observed(self) -> bool {
        listed(self.tgid()) || in_cgroup(|level| self.ancestor_cgroup(level))
    }
}

/// Whether a task is in the observed cgroup or below it, by the id of its cgroup's ancestor at a level.
#[inline(always)]
fn in_cgroup(ancestor: impl FnOnce(u32) -> u64) -> bool {
    config::cgroup_id() != 0 && ancestor(config::cgroup_level()) == config::cgroup_id()
}
