//! `meta.json`: what a trace says of itself.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{Result, StoreError, io_error};
use super::file;
use super::part::Footer;
use super::parts::PartMeta;
use super::schema::SCHEMA_VERSION;
use crate::dir;
use crate::spool::frame::{End, Start};
use crate::tables::{HostClockRow, HostClockState};
use crate::warning::Warning;

/// Name of the file.
pub const META_FILE: &str = "meta.json";

/// Contents of `meta.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The recording ended as it should, and nothing of the spool was damaged.
    pub complete: bool,
    /// Facts of the machine and of the recording.
    pub start: Start,
    /// How the recording ended; null when it was killed.
    pub end: Option<End>,
    /// The clock.
    pub clock: ClockMeta,
    /// Tables that the conversion wrote.
    pub tables: BTreeMap<String, TableMeta>,
    /// Events and records lost, by origin (`ring`, `kernel`, …).
    pub lost: BTreeMap<String, u64>,
    /// Slots and kernel records that were not valid and were left out.
    pub rejected: u64,
    /// What a reader should know of the quality of the data.
    pub warnings: Vec<Warning>,
}

/// The clock model of the whole trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockMeta {
    /// TSC cycles per second, from the first to the last sample.
    pub tsc_hz: f64,
    /// Largest error of a converted time between samples, ns.
    pub bound_ns: i64,
    /// Smallest distance of two different times, ns.
    pub step_ns: i64,
    /// Samples used.
    pub samples: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the first sample, ns.
    pub realtime_offset_ns: i64,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC at the first sample, ns.
    pub boottime_offset_ns: i64,
    /// How far the time of day of the host can be off; missing where the kernel was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostClockMeta>,
    /// User events that were compared with the kernel's account of their thread.
    pub checked: u64,
    /// Of these, how many lie outside the running intervals of their thread by more than the bound.
    pub violations: u64,
    /// Largest distance of such an event from the nearest running interval, ns.
    pub worst_violation_ns: i64,
}

/// What the kernel said of its time of day, CLOCK_REALTIME, in the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClockMeta {
    /// The worst state of all samples, in the order of their declaration.
    pub state: HostClockState,
    /// Largest bound of all samples, ns; null unless each of them has one.
    pub bound_ns: Option<i64>,
    /// TAI minus UTC at the last sample, s; null where nobody has set it in the kernel.
    pub tai_s: Option<i32>,
    /// Samples.
    pub samples: u64,
}

impl HostClockMeta {
    /// Of a sample, with those before it.
    pub(crate) fn with(before: Option<HostClockMeta>, row: &HostClockRow) -> HostClockMeta {
        let one = HostClockMeta {
            state: row.state,
            bound_ns: row.bound_ns,
            tai_s: row.tai_s,
            samples: 1,
        };
        before.map_or(one, |before| before.and(one))
    }

    /// Both, of which `later` is the later one.
    pub(crate) fn and(self, later: HostClockMeta) -> HostClockMeta {
        HostClockMeta {
            state: self.state.max(later.state),
            bound_ns: self.bound_ns.zip(later.bound_ns).map(|(a, b)| a.max(b)),
            tai_s: later.tai_s,
            samples: self.samples.saturating_add(later.samples),
        }
    }
}

/// One table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableMeta {
    /// Rows.
    pub rows: u64,
    /// Parts that hold rows.
    pub parts: u32,
    /// All parts, in their order; none of a trace of an earlier version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PartMeta>,
    /// Rows older than the newest row of the parts before.
    pub late_rows: u64,
    /// By how much at most, ns.
    pub late_max_ns: i64,
}

impl Meta {
    /// Events and records lost in all.
    pub fn lost_total(&self) -> u64 {
        sum(self.lost.values())
    }

    /// Footer of tables made from the whole trace.
    pub fn footer(&self) -> Footer {
        Footer {
            host: self.start.host.clone(),
            boot_id: self.start.boot_id.clone(),
            tsc_hz: self.clock.tsc_hz,
            clock_bound_ns: self.clock.bound_ns,
            loss: self.lost_total(),
        }
    }

    /// Writes the file into the trace directory, whole or not at all.
    ///
    /// # Errors
    ///
    /// An I/O error.
    pub fn write(&self, trace: &Path) -> Result<()> {
        file::write_json(&file::open(trace)?, META_FILE, self)
    }

    /// Reads the file of a trace directory; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Version`] for another schema version, [`StoreError::Meta`] for what is not JSON
    /// of this shape, or an I/O error.
    pub fn read(trace: &Path) -> Result<Option<Meta>> {
        let path = trace.join(META_FILE);
        let text = match dir::read_regular(&path) {
            // A file has no file in it.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            text => text.map_err(io_error("read", &path))?,
        };
        let damaged =
            |e: serde_json::Error| StoreError::Meta { path: path.clone(), reason: e.to_string() };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
        match value.get("schema_version").and_then(serde_json::Value::as_u64) {
            Some(found) if found == u64::from(SCHEMA_VERSION) => {
                serde_json::from_value(value).map(Some).map_err(damaged)
            }
            found => Err(StoreError::Version { path: trace.to_owned(), found: found.unwrap_or(0) }),
        }
    }
}

/// Sum of counts that an application reported, at most what the type holds.
pub(crate) fn sum<'a>(counts: impl IntoIterator<Item = &'a u64>) -> u64 {
    counts.into_iter().fold(0, |sum, &count| sum.saturating_add(count))
}
