//! What the kernel asks of who loads programs, and what we ask to understand their records.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::{
    process::{Resource, Rlimit, geteuid, getrlimit, setrlimit},
    thread::{CapabilitySet, capabilities},
};

use super::{Group, KernelError, KernelOptions, release, version};

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

/// Whether the capabilities are lent: the file of the program gives them to a user who has none (AT_SECURE in
/// getauxval(3)). Such a user sees no more of others than before.
pub(super) fn are_lent() -> bool {
    // SAFETY: getauxval has no precondition.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    secure && !geteuid().is_root()
}

/// Groups with chains of the kernel, its locks and who takes them: addresses that it hides from users (kptr_restrict).
const HIDDEN: [Group; 4] = [Group::Lock, Group::Stack, Group::Profile, Group::Section];

/// The groups that a recording has unless told otherwise: [`Group::DEFAULT`], without those that a user may not see who was lent the
/// capabilities.
pub fn usual_groups() -> Vec<Group> {
    let is_lent = are_lent();
    Group::DEFAULT.into_iter().filter(|group| !is_lent || !HIDDEN.contains(group)).collect()
}

/// Checks that no more is asked for than a user may see who was lent the capabilities.
pub(super) fn check_lent(options: &KernelOptions) -> Result<(), KernelError> {
    let hidden = HIDDEN.iter().filter(|group| options.groups.contains(group));
    let hidden: Vec<&str> = hidden.map(|group| group.name()).collect();
    let what = match () {
        () if options.system_wide => "-a records processes of others".to_owned(),
        () if options.cgroup.is_some() => "--cgroup may record processes of others".to_owned(),
        () if !options.probes.is_empty() => {
            "--probe sets breakpoints in the programs of others, too".to_owned()
        }
        () if !hidden.is_empty() => {
            format!("-k {} records addresses of the kernel", hidden.join(","))
        }
        () => return Ok(()),
    };
    Err(KernelError::Lent(what))
}

/// Whether a process is this user's own, and would let itself be traced by it: of those that do not, `/proc` is root's.
pub(super) fn is_own(pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() == geteuid().as_raw())
}

/// While it lives, this process may lock any amount of memory: kernels before 5.11 count maps as such.
/// Commands that are started later get the old limit.
pub(super) struct Memlock(Option<Rlimit>);

impl Memlock {
    /// Raises the limit where the kernel is so old that it matters.
    pub(super) fn raise() -> Self {
        if !counts_maps(&release()) {
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
    version(release).is_some_and(|version| version < (5, 11))
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
    fn who_was_lent_the_capabilities_sees_no_more_of_others_than_before() {
        let check = |change: fn(&mut KernelOptions), expected: Option<&str>| {
            let groups = vec![Group::Sched, Group::Irq, Group::Task];
            let mut options = KernelOptions { groups, ..KernelOptions::default() };
            change(&mut options);
            let said = check_lent(&options).err().map(|error| error.to_string());
            let expected = expected.map(|what| format!("{what}, which this program may not for a user who only has its rights; leave it out, or run with sudo"));
            assert_eq!(said, expected);
        };
        check(|_| (), None);
        check(|options| options.system_wide = true, Some("-a records processes of others"));
        let probe = |options: &mut KernelOptions| {
            let wish =
                format!("{}:*rights::check_lent", std::env::current_exe().unwrap().display());
            options.probes = crate::collect::probe::find(&[wish], None, &[]).unwrap();
        };
        check(probe, Some("--probe sets breakpoints in the programs of others, too"));
        check(
            |options| options.groups.extend([Group::Futex, Group::Stack, Group::Lock]),
            Some("-k lock,stack records addresses of the kernel"),
        );
        check(
            |options| options.groups.push(Group::Section),
            Some("-k section records addresses of the kernel"),
        );
    }

    #[test]
    fn a_process_is_its_users_own() {
        assert!(is_own(std::process::id()));
        assert!(!is_own(u32::MAX), "there is none");
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
