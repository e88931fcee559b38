//! Which kernels, and where Debian has them.

use anyhow::{Result, bail};

/// A kernel of Debian's archive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// What it is called here.
    pub(crate) name: &'static str,
    /// Suite of the archive in which the package of that name is this kernel.
    pub(super) suite: &'static str,
    /// The package that depends on the kernel proper.
    pub(super) package: &'static str,
}

/// Kernels for virtual machines are a third as large as the others.
const CLOUD: &str = "linux-image-cloud-amd64";
const RT: &str = "linux-image-rt-amd64";

impl Release {
    /// It has no tracepoints of the kernel's own locks, `contention_begin` and `contention_end`, which came with Linux 5.19.
    pub(super) fn lacks_lock(&self) -> bool {
        self.is_before((5, 19))
    }

    /// It does not say what cgroups a cgroup is in, by which `--cgroup` matches tasks, and which came with Linux 6.1.
    pub(super) fn lacks_cgroup(&self) -> bool {
        self.is_before((6, 1))
    }

    fn is_before(&self, version: (u32, u32)) -> bool {
        let mut numbers = self.name.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
        (next(), next()) < version
    }
}

const fn release(name: &'static str, suite: &'static str, package: &'static str) -> Release {
    Release { name, suite, package }
}

/// Each of which users may have, the oldest first.
pub(super) const ALL: [Release; 6] = [
    release("5.10", "bullseye", CLOUD),
    release("6.1", "bookworm", CLOUD),
    release("6.1-rt", "bookworm", RT),
    release("6.12", "bookworm-backports", CLOUD),
    release("7", "trixie-backports", CLOUD),
    release("7-rt", "trixie-backports", RT),
];

/// The oldest, and the newest with the most that is different.
pub(crate) const ENDS: [&Release; 2] = [&ALL[0], &ALL[4]];

/// Those of these names, or all.
///
/// # Errors
///
/// A name that is none.
pub(super) fn named(names: &[String]) -> Result<Vec<&'static Release>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    names
        .iter()
        .map(|name| match ALL.iter().find(|release| release.name == name) {
            Some(release) => Ok(release),
            None => {
                let all = ALL.map(|release| release.name).join(", ");
                bail!("there is no kernel `{name}`; give some of {all}, or none for all")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_known_by_its_version() {
        let lacks = |lack: fn(&Release) -> bool| ALL.iter().map(lack).collect::<Vec<_>>();
        let oldest = [true, false, false, false, false, false];
        assert_eq!(lacks(Release::lacks_lock), oldest);
        assert_eq!(lacks(Release::lacks_cgroup), oldest);
    }

    #[test]
    fn kernels_are_chosen_by_name() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            named(&names).map(|found| found.iter().map(|r| r.name).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[]).unwrap().len(), ALL.len());
        assert_eq!(chosen(&["7-rt", "5.10"]).unwrap(), ["7-rt", "5.10"]);
        let error = chosen(&["6"]).unwrap_err().to_string();
        assert!(error.contains("5.10, 6.1, 6.1-rt, 6.12, 7, 7-rt"), "{error}");
    }
}
