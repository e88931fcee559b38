//! What the kernel asks of who loads programs, and what we ask to understand their records.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CapabilitySet, capabilities},
};

use super::KernelError;

/// Inode of the first PID namespace (`include/linux/proc_ns.h`, `PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Checks that processes have the same numbers here as in the kernel's records.
pub(super) fn check_namespace() -> Result<(), KernelError> {
    match fs::metadata("/proc/self/ns/pid") {
        Ok(namespace) if namespace.ino() != FIRST_NAMESPACE => Err(KernelError::PidNamespace),
        _ => Ok(()),
    }
}

/// Checks the effective capabilities: CAP_BPF to load programs, CAP_PERFMON to let them read the kernel's
/// memory (capabilities(7)). CAP_SYS_ADMIN contains both.
pub(super) fn check() -> Result<(), KernelError> {
    // A kernel that does not answer will refuse by itself, with its own reason.
    let Ok(sets) = capabilities(None) else { return Ok(()) };
    match missing(sets.effective) {
        None => Ok(()),
        Some(missing) => {
            let program = std::env::current_exe().map(|path| path.display().to_string());
            let program = program.unwrap_or_else(|_| "ft-agent".to_owned());
            Err(KernelError::MissingCapability { missing, program })
        }
    }
}

/// Names of what is missing.
fn missing(effective: CapabilitySet) -> Option<String> {
    if effective.contains(CapabilitySet::SYS_ADMIN) {
        return None;
    }
    let needed = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];
    let names: Vec<&str> = needed
        .into_iter()
        .filter(|(capability, _)| !effective.contains(*capability))
        .map(|(_, name)| name)
        .collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// While it lives, this process may lock any amount of memory: kernels before 5.11 count maps as such.
/// Commands that are started later get the old limit.
pub(super) struct Memlock(Option<Rlimit>);

impl Memlock {
    /// Raises the limit where the kernel is so old that it matters.
    pub(super) fn raise() -> Self {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        if !counts_maps(&release) {
            return Self(None);
        }
        let old = getrlimit(Resource::Memlock);
        let unlimited = Rlimit { current: None, maximum: None };
        // Refused: then loading says that there is too little memory.
        Self(setrlimit(Resource::Memlock, unlimited).is_ok().then_some(old))
    }
}

impl Drop for Memlock {
    fn drop(&mut self) {
        if let Some(old) = self.0.take() {
            // Lowering is always allowed.
            let _ = setrlimit(Resource::Memlock, old);
        }
    }
}

/// Whether the kernel of this release counts maps against RLIMIT_MEMLOCK.
fn counts_maps(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < (5, 11),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let check = |set, expected: Option<&str>| assert_eq!(missing(set).as_deref(), expected);
        check(CapabilitySet::empty(), Some("CAP_BPF and CAP_PERFMON"));
        check(CapabilitySet::BPF, Some("CAP_PERFMON"));
        check(CapabilitySet::PERFMON, Some("CAP_BPF"));
        check(CapabilitySet::BPF | CapabilitySet::PERFMON, None);
        check(CapabilitySet::SYS_ADMIN, None);
    }

    #[test]
    fn old_kernels_count_maps() {
        let check = |release, expected| assert_eq!(counts_maps(release), expected, "{release}");
        check("5.10.0-28-amd64", true);
        check("5.11.0", false);
        check("6.18.44-fc", false);
        check("4.19", true);
        check("unknown", false);
    }
}
