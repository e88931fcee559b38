//! What of a process's program text lay where, so that addresses in its events can be given names.

use serde::{Deserialize, Serialize};

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
    /// Mappings of files that may be executed, by address.
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
    /// The file, as the process sees it.
    pub path: String,
    /// Build id of the file in hexadecimal digits; empty when it has none or could not be read.
    pub build_id: String,
}
