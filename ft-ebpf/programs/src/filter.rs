//! Who is observed.

use aya_ebpf::helpers::{bpf_get_current_ancestor_cgroup_id, bpf_get_current_pid_tgid};

use ft_ebpf::observed;

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

/// Whether the process itself is observed: all are, or the agent or its parent has entered it. One that is leaving is: its
/// threads work, wait and are interrupted up to their last switch.
#[inline(always)]
pub(crate) fn listed(tgid: u32) -> bool {
    config::system_wide() != 0 || state(tgid) != 0
}

/// What the map says of a process.
#[inline(always)]
pub(crate) fn state(tgid: u32) -> u8 {
    // SAFETY: the byte is in the map; other CPUs and the agent write whole bytes.
    byte(tgid).map_or(0, |byte| unsafe { byte.read_volatile() })
}

/// Whether the recording has ended. A program asks once: what it does to a table and what it writes are one.
#[inline(always)]
pub(crate) fn ended() -> bool {
    state(0) == observed::ENDED
}

/// Says it.
#[inline(always)]
pub(crate) fn set_state(tgid: u32, state: u8) {
    if let Some(byte) = byte(tgid) {
        // SAFETY: as in `state`.
        unsafe { byte.write_volatile(state) };
    }
}

/// What tells whether a process is observed.
#[inline(always)]
fn byte(tgid: u32) -> Option<*mut u8> {
    let chunk = OBSERVED.get_ptr_mut(tgid / observed::CHUNK as u32)?;
    // SAFETY: the index is within the chunk.
    Some(unsafe { chunk.cast::<u8>().add(tgid as usize % observed::CHUNK) })
}

impl Current {
    /// Whether what concerns it is recorded.
    #[inline(always)]
    pub(crate) fn is_observed(self) -> bool {
        let in_cgroup = || {
            in_cgroup(|level| {
                // SAFETY: the helper takes a number and returns one, 0 when there is no such ancestor.
                unsafe { bpf_get_current_ancestor_cgroup_id(level as i32) }
            })
        };
        !ended() && (listed(self.tgid) || in_cgroup())
    }
}

impl TaskStruct {
    /// Whether what concerns it is recorded.
    #[inline(always)]
    pub(crate) fn is_observed(self) -> bool {
        !ended() && (listed(self.tgid()) || in_cgroup(|level| self.ancestor_cgroup(level)))
    }
}

/// Whether a task is in the observed cgroup or below it, by the id of its cgroup's ancestor at a level.
#[inline(always)]
fn in_cgroup(ancestor: impl FnOnce(u32) -> u64) -> bool {
    config::cgroup_id() != 0 && ancestor(config::cgroup_level()) == config::cgroup_id()
}
