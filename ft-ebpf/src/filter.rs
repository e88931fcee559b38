//! Who is observed.

use aya_ebpf::helpers::bpf_get_current_pid_tgid;

use crate::{config, maps::OBSERVED};

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

/// Whether what concerns this process is recorded.
#[inline(always)]
pub(crate) fn observed(tgid: u32) -> bool {
    config::system_wide() != 0 || OBSERVED.get_ptr(tgid).is_some()
}
