//! What of a process's program text lay where, so that addresses in its events can be given names.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::foreign_file::FileKey;
use crate::reach::Loading;

/// Mappings that are kept of one process number and user: some times as many as a large program has.
///
/// Limit: addresses in further ones have no names, and a warning names the user, the first process and the reason.
/// Shown by: `what_is_kept_of_a_process_and_of_a_user_is_bounded`, `what_is_not_kept_of_a_process_is_told`.
const MOST_OF_PROCESS: usize = 8192;

/// Bytes of these: of the longest list that is read, and once more.
///
/// Limit: as `MOST_OF_PROCESS`.
const MOST_PROCESS_BYTES: usize = 8 << 20;

/// Bytes of the mappings that are kept of all processes of one user: of some thousand processes.
///
/// Limit: as `MOST_OF_PROCESS`.
const MOST_USER_BYTES: usize = 128 << 20;

/// Why mappings are not kept.
pub const TOO_MANY: &str = "its user's processes have changed what they have mapped so often, or have mapped so much, that no more is kept of \
                            it; record again without it, or for a shorter time";

/// The program text of a process at some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mappings {
    /// Process id in the agent's namespace.
    pub pid: i32,
    /// When this was read, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Its user, whose files may speak for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// When it began, ticks since the boot, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<u64>,
    /// More is mounted than is read, so its files were not looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_too_many_mounts: bool,
    /// Of the program that it executed at `ts`, as far as that could be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loading: Option<Loading>,
    /// Mappings of files that may be executed, and of the vDSO, by address.
    pub mappings: Vec<Mapping>,
}

/// A part of a file in the memory of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Where in the file `start` lies.
    pub offset: u64,
    /// The file, as the process sees it, or saw it before it was deleted; or [`vdso::NAME`](crate::vdso::NAME).
    pub path: String,
    /// Build id of the file in hexadecimal digits; empty when it has none or could not be read.
    pub build_id: String,
    /// Address that the file itself gives to the byte at `start`; `None` where its headers could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Inode of the file, as the kernel lists it; 0 when that is not known.
    #[serde(skip)]
    pub inode: u64,
    /// Which file it is; `None` when it could not be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileKey>,
    /// The file was deleted or replaced before this was read: another one can have its path.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
}

impl Mapping {
    /// Which part of which file lies at which addresses, whatever has become of the file since.
    pub fn text(&self) -> impl Hash + PartialEq + '_ {
        (self.start, self.end, self.offset, self.path.as_str(), self.build_id.as_str())
    }

    /// What it takes of memory, and about what it takes of a spool, bytes.
    fn bytes(&self) -> usize {
        size_of::<Mapping>() + self.path.len() + self.build_id.len()
    }

    /// Whether a file of the same path can be known to be this one, or not: where nothing has taken its place, or
    /// by its build id.
    pub fn has_file(&self) -> bool {
        !self.is_gone || !self.build_id.is_empty()
    }

    /// What the file calls an address of the process, as it said when this was read.
    pub fn own_address(&self, address: u64) -> Option<u64> {
        Some(self.address?.wrapping_add(address.wrapping_sub(self.start)))
    }
}

/// How much is kept of the mappings of each process, and of each user's processes.
///
/// A process can map other text without end, so there is a limit for each process. It can execute others, and have children, so
/// there is one for each user. A number is counted for each user who has had it: nobody uses up what a later process of it needs.
#[derive(Debug, Default)]
pub struct Kept {
    processes: HashMap<(i32, Option<u32>), Amount>,
    users: HashMap<Option<u32>, usize>,
}

#[derive(Debug, Default)]
struct Amount {
    mappings: usize,
    bytes: usize,
}

impl Kept {
    /// Whether this mapping of a process can be kept, too; then it counts.
    pub fn add(&mut self, pid: i32, user: Option<u32>, mapping: &Mapping) -> bool {
        let bytes = mapping.bytes();
        let of_user = self.users.entry(user).or_default();
        let process = self.processes.entry((pid, user)).or_default();
        let is_kept = process.mappings < MOST_OF_PROCESS
            && process.bytes + bytes <= MOST_PROCESS_BYTES
            && *of_user + bytes <= MOST_USER_BYTES;
        if is_kept {
            process.mappings += 1;
            process.bytes += bytes;
            *of_user += bytes;
        }
        is_kept
    }

    /// What was kept of these processes is not kept any more.
    pub fn forget(&mut self, is_forgotten: impl Fn(i32) -> bool) {
        let Kept { processes, users } = self;
        processes.retain(|&(pid, user), amount| {
            let stays = !is_forgotten(pid);
            if let (false, Some(of_user)) = (stays, users.get_mut(&user)) {
                *of_user -= amount.bytes;
            }
            stays
        });
        users.retain(|_, bytes| *bytes > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_process_and_of_a_user_is_bounded() {
        let mapping = |path: usize| Mapping { path: "x".repeat(path), ..Mapping::default() };
        let mut kept = Kept::default();
        let mut most = |pid, user, mapping: &Mapping| {
            (0..).take_while(|_| kept.add(pid, user, mapping)).count()
        };
        assert_eq!(most(1, Some(1), &mapping(0)), MOST_OF_PROCESS);
        assert_eq!(most(1, Some(2), &mapping(0)), MOST_OF_PROCESS, "another user's, later");
        let long = mapping(4095);
        let fit = MOST_PROCESS_BYTES / long.bytes();
        assert_eq!(most(2, Some(1), &long), fit);
        let further: usize = (3..1000).map(|pid| most(pid, Some(1), &long)).sum();
        let before = MOST_OF_PROCESS * mapping(0).bytes() + fit * long.bytes();
        assert_eq!(further, (MOST_USER_BYTES - before) / long.bytes());
        assert_eq!(most(1001, Some(1), &long), 0);
        assert_eq!(most(1001, None, &long), fit, "others have theirs");
        kept.forget(|pid| pid == 2);
        let mut again = (0..).take_while(|_| kept.add(2, Some(1), &long));
        assert_eq!(again.by_ref().count(), fit);
        kept.forget(|_| true);
        assert!(kept.processes.is_empty() && kept.users.is_empty());
    }
}
