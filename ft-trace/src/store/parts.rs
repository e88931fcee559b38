//! Which parts a table has, so that it is read whole or refused.
//!
//! A part that a copy has left out, or that a tool has cut, would only make answers smaller. So each part stands in a list with
//! its rows, its size and a checksum of its footer: those that were recorded in `meta.json`, those of results in
//! `analysis.json`. Both files are written when the parts are on disk. A table without a list, as earlier versions wrote
//! them, is taken as it is. Only footers are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::part::part_name;
use crate::dir;
use crate::number::count;

/// Name of the file with the counts of the analyses and the parts of their tables.
pub const ANALYSIS_FILE: &str = "analysis.json";

/// Most bytes of a footer: of those that we write the largest have some 100 KB.
///
/// Limit: as `MAX_WHOLE_BYTES` of `dir.rs`.
pub(super) const MAX_FOOTER_BYTES: u32 = 16 << 20;

/// What follows a footer: its length and four letters (parquet.apache.org, File Format).
const TAIL_BYTES: u64 = 8;

/// A part, as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartMeta {
    /// Its number.
    pub part: u32,
    /// Rows.
    pub rows: u64,
    /// Size of its file.
    pub bytes: u64,
    /// CRC-32 (that of zlib) of its footer, without the eight bytes behind it.
    pub footer_crc32: u32,
}

impl PartMeta {
    /// Its file within a trace.
    pub fn file(&self, table: &str) -> String {
        format!("{table}/{}", part_name(self.part))
    }
}

/// The parts of tables by their names.
pub type Parts = BTreeMap<String, Vec<PartMeta>>;

/// The tables of an analysis, in `analysis.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// Their parts.
    pub tables: Parts,
    /// Recorded parts without which they were made, as [`Fault::file`] names them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub left_out: BTreeSet<String>,
}

impl Results {
    /// Those of a trace; none where it is not analysed, by an earlier version, or the file is damaged: it can be made again.
    pub fn of(trace: &Path) -> Results {
        Results::in_text(&dir::read_regular(&trace.join(ANALYSIS_FILE)).unwrap_or_default())
    }

    /// Those in the text of such a file, as [`Results::of`].
    pub fn in_text(text: &[u8]) -> Results {
        serde_json::from_slice(text).unwrap_or_default()
    }
}

/// A part that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its file, as `TABLE/part-00000.parquet`.
    pub file: String,
    /// Rows that it had; 0 of one that was none.
    pub rows: u64,
    wrong: Wrong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Missing,
    Bytes { found: u64, written: u64 },
    Footer,
    Added,
    NotRead(ErrorKind),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { file, rows, wrong } = self;
        match wrong {
            Wrong::Missing => write!(f, "{file} is missing ({} rows)", count(*rows)),
            Wrong::Bytes { found, written } => {
                write!(
                    f,
                    "{file} has {} bytes and was written with {}",
                    count(*found),
                    count(*written)
                )
            }
            Wrong::Footer => write!(f, "{file} is another file than was written"),
            Wrong::Added => write!(f, "{file} was not written with the others of its table"),
            Wrong::NotRead(why) => write!(f, "{file} cannot be read ({why})"),
        }
    }
}

/// The first fault, and how many more there are.
pub(crate) fn told(faults: &[Fault]) -> String {
    let first = faults.first().map(ToString::to_string).unwrap_or_default();
    match faults.len() {
        0 | 1 => first,
        n => format!("{first}, and {} more", count(n as u64 - 1)),
    }
}

/// What is wrong with the parts of a table, by their numbers.
pub fn faults(trace: &Path, table: &str, parts: &[PartMeta]) -> Vec<Fault> {
    if parts.is_empty() {
        return Vec::new();
    }
    let dir = trace.join(table);
    let fault = |name: &str, rows, wrong| Fault { file: format!("{table}/{name}"), rows, wrong };
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    for part in parts {
        let name = part_name(part.part);
        faults.extend(wrong(&dir.join(&name), part).map(|wrong| fault(&name, part.rows, wrong)));
        names.insert(name);
    }
    let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut added: Vec<String> =
        files.filter(|name| name.ends_with(".parquet") && !names.contains(name)).collect();
    added.sort();
    faults.extend(added.iter().map(|name| fault(name, 0, Wrong::Added)));
    faults
}

fn wrong(path: &Path, part: &PartMeta) -> Option<Wrong> {
    let read = || {
        let file = dir::open_regular(path)?;
        let found = file.metadata()?.len();
        if found != part.bytes {
            return Ok(Some(Wrong::Bytes { found, written: part.bytes }));
        }
        Ok((footer_crc32(&file)? != Some(part.footer_crc32)).then_some(Wrong::Footer))
    };
    read().unwrap_or_else(|error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Some(Wrong::Missing),
        kind => Some(Wrong::NotRead(kind)),
    })
}

/// How long a file says that its footer is.
pub(super) fn footer_bytes(file: &File) -> Option<u32> {
    let at = file.metadata().ok()?.len().checked_sub(TAIL_BYTES)?;
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(u32::from_le_bytes(bytes))
}

/// The checksum of a file's footer; `None` where it has none that we write.
pub(super) fn footer_crc32(file: &File) -> std::io::Result<Option<u32>> {
    let Some(bytes) = footer_bytes(file).filter(|bytes| *bytes <= MAX_FOOTER_BYTES) else {
        return Ok(None);
    };
    let end = file.metadata()?.len() - TAIL_BYTES;
    let Some(at) = end.checked_sub(bytes.into()) else { return Ok(None) };
    let mut footer = vec![0; bytes as usize];
    file.read_exact_at(&mut footer, at)?;
    Ok(Some(crc32fast::hash(&footer)))
}

#[cfg(test)]
mod tests;
