//! What is known of a segment once it is converted.
//!
//! `DIR/spool/segment-NNNNNN.json`, written when all parts of the segment are in place and before the
//! segment itself goes. So the totals survive a crash, and [`Ledger::read_all`] is all that the end of
//! a conversion needs.

use std::collections::BTreeMap;
use std::io::BufReader;

use serde::{Deserialize, Serialize};

use super::enough::Burst;
use super::symbols::Addresses;
use super::threads::Sighting;
use super::untraced::Execution;
use crate::clock::ClockSample;
use crate::dir::{self, Dir};
use crate::spool::Spool;
use crate::store::error::io_error;
use crate::store::{HostClockMeta, PartMeta, Result, StoreError, Synced, file};
use crate::warning::Warning;

/// What became of one segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ledger {
    pub(super) segment: u32,
    /// Rows by table.
    pub(super) tables: BTreeMap<String, PartLedger>,
    /// Lost events and records by origin.
    pub(super) lost: BTreeMap<String, u64>,
    /// Of these, events that were begun and never finished.
    #[serde(default)]
    pub(super) unfinished: BTreeMap<String, u64>,
    /// What rings lost, of which the advice for their size follows.
    #[serde(default)]
    pub(super) bursts: Vec<Burst>,
    pub(super) rejected: u64,
    /// Events outside the clock samples: how many, how far, and the largest bound of them.
    pub(super) beyond: (u64, i64, i64),
    pub(super) checked: u64,
    pub(super) violations: u64,
    pub(super) worst_violation_ns: i64,
    pub(super) bound_ns: i64,
    pub(super) step_ns: i64,
    /// The newest clock samples: the next segment begins with them.
    pub(super) samples: Vec<ClockSample>,
    pub(super) first_sample: Option<ClockSample>,
    pub(super) sample_count: u64,
    /// What the kernel said of its time of day.
    #[serde(default)]
    pub(super) host_clock: Option<HostClockMeta>,
    pub(super) threads: Vec<Sighting>,
    /// Processes and return addresses of lock events that have one.
    #[serde(default)]
    pub(super) calls: Addresses,
    /// Processes and locks of these events.
    #[serde(default)]
    pub(super) locks: Addresses,
    /// Processes and addresses of functions in events about them.
    #[serde(default)]
    pub(super) functions: Addresses,
    /// Processes and addresses of call chains.
    #[serde(default)]
    pub(super) frames: Addresses,
    /// Executions and ends of processes, where they are asked for.
    #[serde(default)]
    pub(super) executions: Vec<Execution>,
    pub(super) warnings: Vec<Warning>,
    /// A part of the segment could not be read.
    pub(super) damaged: bool,
}

/// One part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PartLedger {
    pub(super) rows: u64,
    /// Newest row of this part and those before.
    pub(super) newest: i64,
    pub(super) late_rows: u64,
    pub(super) late_max_ns: i64,
    /// Its file; without bytes in a ledger of an earlier version.
    #[serde(default)]
    pub(super) file: PartMeta,
}

impl Ledger {
    /// The name of the ledger of a segment.
    pub(super) fn name(segment: u32) -> String {
        format!("segment-{segment:06}.json")
    }

    /// Writes the ledger into the directory of its spool, whole or not at all; the parts that it names are on disk.
    pub(super) fn write(&self, spool: &Dir, _parts: Synced) -> Result<()> {
        file::write_json(spool, &Ledger::name(self.segment), self)
    }

    /// The ledgers of a spool by segment.
    pub(super) fn read_all(spool: &Spool) -> Result<BTreeMap<u32, Ledger>> {
        let mut ledgers = BTreeMap::new();
        let dir = spool.dir();
        let entries = std::fs::read_dir(dir).map_err(io_error("read", dir))?;
        for entry in entries {
            let path = entry.map_err(io_error("read", dir))?.path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            // It is our own, and as large as what it has to say of a segment.
            let file = dir::open_regular(&path).map_err(io_error("read", &path))?;
            let ledger: Ledger = serde_json::from_reader(BufReader::new(file))
                .map_err(|e| StoreError::Meta { path, reason: e.to_string() })?;
            ledgers.insert(ledger.segment, ledger);
        }
        Ok(ledgers)
    }
}
