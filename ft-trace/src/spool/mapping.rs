//! What of a process's program text lay where, so that addresses in its events can be given names.

use serde::{Deserialize, Serialize};

use crate::foreign_file::FileKey;

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
    /// Whether both are the same part of the same file at the same addresses, whatever has become of the file since.
    pub fn is_same_text(&self, other: &Mapping) -> bool {
        let key = |m: &Mapping| (m.start, m.end, m.offset);
        key(self) == key(other) && self.path == other.path && self.build_id == other.build_id
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
