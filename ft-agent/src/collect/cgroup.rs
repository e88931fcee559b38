//! A control group (version 2), as the choice of what is recorded: whoever is in it or below it.
//!
//! The kernel's programs ask for the ancestor of a task's cgroup at the level of this one, and compare its
//! id; so a cgroup that is made later below it counts as well. Levels and ids are those of the machine:
//! an agent in a cgroup namespace of its own cannot know them, and is refused.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Inode of the first cgroup namespace (`include/linux/proc_ns.h`, `PROC_CGROUP_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFB;

/// A cgroup that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    dir: PathBuf,
    /// Path below the root of the hierarchy, as `/proc/PID/cgroup` tells it.
    name: PathBuf,
    /// Its id for the kernel: the inode of its directory.
    pub id: u64,
    /// How deep it lies below the root, which has level 0.
    pub level: u32,
}

/// Why a path is no cgroup.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// No cgroup2 file system is mounted.
    #[error("this machine has no cgroups of version 2; choose processes with -p instead")]
    NotMounted,
    /// There is no such cgroup.
    #[error(
        "there is no cgroup {path} ({source}); give one of those below {root}, for example as \
         `systemd-cgls` and /proc/PID/cgroup name them"
    )]
    NotFound {
        /// As given.
        path: String,
        /// Where cgroups are.
        root: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The agent does not see the whole hierarchy.
    #[error(
        "in a cgroup namespace the kernel's numbers of cgroups are not known; run outside of it"
    )]
    Namespace,
}

impl Cgroup {
    /// The cgroup at `path`: its directory, or its name below the root of the hierarchy.
    ///
    /// # Errors
    ///
    /// A [`CgroupError`].
    pub fn open(path: &Path) -> Result<Cgroup, CgroupError> {
        if fs::metadata("/proc/self/ns/cgroup").is_ok_and(|ns| ns.ino() != FIRST_NAMESPACE) {
            return Err(CgroupError::Namespace);
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let root = mount_point(&mounts).ok_or(CgroupError::NotMounted)?;
        let not_found = |source| CgroupError::NotFound {
            path: path.display().to_string(),
            root: root.display().to_string(),
            source,
        };
        let given = fs::canonicalize(path).ok().filter(|given| given.starts_with(&root));
        let below = path.strip_prefix("/").unwrap_or(path);
        let dir = given.map_or_else(|| fs::canonicalize(root.join(below)), Ok);
        let dir = dir.map_err(not_found)?;
        let metadata = fs::metadata(&dir).map_err(not_found)?;
        let name = dir.strip_prefix(&root).ok().filter(|_| metadata.is_dir());
        let name = name.ok_or_else(|| not_found(io::ErrorKind::NotADirectory.into()))?;
        Ok(Cgroup {
            name: Path::new("/").join(name),
            id: metadata.ino(),
            level: name.components().count() as u32,
            dir,
        })
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// Whether the process is in it or below it.
    pub fn contains(&self, pid: i32) -> bool {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        groups
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .is_some_and(|name| Path::new(name).starts_with(&self.name))
    }

    /// The processes that are in it or below it now.
    pub fn processes(&self) -> Vec<i32> {
        let mut processes = Vec::new();
        let mut dirs = vec![self.dir.clone()];
        while let Some(dir) = dirs.pop() {
            // A cgroup can go at any time.
            let members = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
            processes.extend(members.lines().flat_map(str::parse::<i32>));
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            dirs.extend(below.map(|entry| entry.path()));
        }
        // 0 is a process that our PID namespace has no number for.
        processes.retain(|&pid| pid > 0);
        processes
    }
}

/// Where the whole hierarchy is mounted, by `/proc/self/mountinfo` (proc(5)): root, mount point, and behind
/// a hyphen the kind of file system.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (root == "/" && kind.starts_with("cgroup2 ")).then(|| point.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_where_it_is_mounted() {
        let mounts = "24 1 0:21 / /sys rw shared:7 - sysfs sysfs rw\n\
                      30 24 0:26 /user /mnt/part rw - cgroup2 none rw\n\
                      31 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount_point("24 1 0:21 / /sys rw - sysfs sysfs rw"), None);
        assert_eq!(mount_point("rubbish"), None);
    }

    #[test]
    fn what_is_no_cgroup_is_refused() {
        for path in ["/no/such/group", "/etc", "cgroup.procs", "../../../etc"] {
            let error = Cgroup::open(Path::new(path)).unwrap_err();
            let expected = matches!(error, CgroupError::NotFound { .. } | CgroupError::NotMounted);
            assert!(expected || matches!(error, CgroupError::Namespace), "{path}: {error}");
        }
    }

    #[test]
    fn a_process_is_in_its_cgroup_and_in_those_above() {
        let me = std::process::id() as i32;
        let of = |name: &str| Cgroup { dir: "/".into(), name: name.into(), id: 1, level: 0 };
        assert!(of("/").contains(me));
        assert!(!of("/no-such-group").contains(me));
        assert!(!of("/").contains(-1));
    }
}
