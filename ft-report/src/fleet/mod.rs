//! Questions about the traces of many hosts, from their tables `histograms`: which locks are worst, which hosts differ, whether a build
//! is slower, and where.
//!
//! Traces are read one after the other, and of each only what may be added: buckets of lengths, by what they are of. Raw rows
//! stay where they are; each answer names the trace and the row that is worst. Rows that anybody may have written are
//! checked before they count ([`histogram::is_sound`]).

mod ask;
pub mod effects;
pub mod histogram;
mod line;
pub mod outliers;
mod section;
pub mod student;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ft_analysis::Mark;
use ft_trace::ids::Name;
use ft_trace::store::{Result, Trace};
use ft_trace::tables::{Bucket, Quantity};

use crate::analyze;
use crate::stats::OTHERS;
use histogram::{Histogram, is_sound};

pub use ask::{By, Sides};

/// What locks without a name are called: they are distinguished by the place where they are taken.
const UNNAMED: &str = "(unnamed)";

/// Subjects of a fleet that are distinguished.
///
/// Limit: one row `(others)`, which is in no comparison.
/// Shown by: `no_number_of_subjects_takes_more_than_is_kept`.
const MAX_SUBJECTS: usize = 4096;

/// Groups by which is asked.
///
/// Limit: as `MAX_SUBJECTS`.
const MAX_VALUES: usize = 1024;

/// Subjects of single traces that are kept for comparisons.
///
/// Limit: further ones are counted and in no comparison, which the head says.
/// Shown by: `subjects_for_which_is_no_room_are_in_no_comparison_and_told`.
const MAX_CELLS: usize = 1 << 21;

/// Rows of `histograms` of one trace: an analysis keeps half as many, and those of others.
///
/// Limit: the trace is in no figure, and named with the reason; an analysis writes fewer.
/// Shown by: `a_table_with_more_rows_than_an_analysis_writes_does_not_count`.
const MAX_ROWS: usize = 1 << 19;

/// What a catalogue says of a trace.
#[derive(Clone, Debug)]
pub struct Member {
    /// Where it lies, from the root of the catalogue on.
    pub path: String,
    /// Its host.
    pub host: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Start, CLOCK_REALTIME ns.
    pub start_ns: i64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Events and records that were lost.
    pub lost: u64,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Of which intervals.
    pub quantity: Quantity,
    /// By what they are grouped.
    pub by: Option<By>,
    /// Which traces are compared.
    pub sides: Option<Sides>,
}

/// What intervals are of: lock or scope, and place.
type Subject = (Name, Name);

/// What is known of a subject over all traces.
#[derive(Debug, Default)]
struct Known {
    lengths: Histogram,
    /// The longest, and in which trace.
    worst: Option<Worst>,
    hosts: std::collections::BTreeSet<usize>,
}

/// A row of a trace.
#[derive(Clone, Copy, Debug)]
struct Worst {
    member: usize,
    ts: i64,
    tid: i32,
    dur_ns: i64,
}

/// The longest interval of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Longest {
    /// The trace, from the root of the catalogue on.
    pub trace: String,
    /// Begin, CLOCK_MONOTONIC ns of its host.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
}

/// The page of a trace, for links to it.
#[derive(Clone, Debug)]
struct Page {
    /// Where it is, as seen from the fleet's page.
    href: String,
    /// What its timeline calls 0, CLOCK_MONOTONIC ns.
    begin_ns: i64,
}

/// Of one subject in one trace.
#[derive(Clone, Copy, Debug)]
struct Cell {
    mean_ns: f64,
    p99_ns: Option<i64>,
}

/// The traces of many hosts, read.
#[derive(Debug)]
pub struct Fleet {
    question: Question,
    members: Vec<Member>,
    /// Names of hosts; a member's by its number.
    hosts: Vec<String>,
    host_of: Vec<usize>,
    subjects: HashMap<Subject, Known>,
    /// All intervals, by what was asked.
    by: BTreeMap<String, Known>,
    all: Histogram,
    cells: HashMap<(Subject, usize), Cell>,
    /// Subjects of traces for which was no room.
    cells_left_out: u64,
    /// Intervals of names, places or threads that their trace's table had no room for.
    others: u64,
    /// Traces that are in no figure, and why.
    not_read: Vec<(String, String)>,
    /// Pages of traces, by their paths.
    pages: HashMap<String, Page>,
}

impl Fleet {
    /// Of no trace yet.
    pub fn new(question: Question) -> Fleet {
        Fleet {
            question,
            members: Vec::new(),
            hosts: Vec::new(),
            host_of: Vec::new(),
            subjects: HashMap::new(),
            by: BTreeMap::new(),
            all: Histogram::default(),
            cells: HashMap::new(),
            cells_left_out: 0,
            others: 0,
            not_read: Vec::new(),
            pages: HashMap::new(),
        }
    }

    /// The longest intervals of the subjects with the most time, so many of them, each in another trace.
    pub fn longest(&self, most: usize) -> Vec<Longest> {
        let mut found: Vec<Longest> = Vec::new();
        for line in self.lines() {
            let Some((trace, ts)) = line.worst_trace.zip(line.worst_ts) else { continue };
            if found.len() < most && found.iter().all(|longest| longest.trace != trace) {
                found.push(Longest { trace, ts, dur_ns: line.lengths.max_ns });
            }
        }
        found
    }

    /// Remembers a trace's page, so that what is in that trace links to its timeline: where it is, as seen from the page of the
    /// fleet, and what it calls 0.
    pub fn link(&mut self, trace: &str, href: String, begin_ns: i64) {
        self.pages.insert(trace.to_owned(), Page { href, begin_ns });
    }

    /// Adds a trace, which lies in `dir`. One that cannot be read is reported, and does not end the others.
    pub fn add(&mut self, member: Member, dir: &Path) {
        match rows(dir, self.question.quantity) {
            Ok(rows) => self.count(member, &rows),
            Err(why) => self.add_unread(member, why),
        }
    }

    /// Adds a trace that cannot be read, with the reason: it is in no figure, and reported.
    pub fn add_unread(&mut self, member: Member, why: String) {
        self.not_read.push((member.path, why));
    }

    /// A trace whose rows are sound.
    fn count(&mut self, member: Member, rows: &[Bucket]) {
        let at = self.members.len();
        let host = self.hosts.iter().position(|host| *host == member.host);
        let host = host.unwrap_or_else(|| {
            self.hosts.push(member.host.clone());
            self.hosts.len() - 1
        });
        let mut own: HashMap<Subject, Histogram> = HashMap::new();
        for row in rows {
            let subject = self.subject(row);
            self.others += if *row.name == *OTHERS { row.count.unsigned_abs() } else { 0 };
            self.all.add(row);
            self.subjects.entry(subject.clone()).or_default().add(row, at, host);
            own.entry(subject).or_default().add(row);
            if let Some(by) = &self.question.by {
                let value = by.value(&member, row);
                let is_full = self.by.len() >= MAX_VALUES && !self.by.contains_key(&value);
                let value = if is_full { OTHERS.to_owned() } else { value };
                self.by.entry(value).or_default().add(row, at, host);
            }
        }
        for (subject, lengths) in own {
            let Some(mean_ns) = lengths.mean_ns() else { continue };
            if *subject.0 == *OTHERS {
                continue;
            }
            if self.cells.len() >= MAX_CELLS {
                self.cells_left_out += 1;
                continue;
            }
            let p99_ns = lengths.percentile(990);
            self.cells.insert((subject, at), Cell { mean_ns, p99_ns });
        }
        self.members.push(member);
        self.host_of.push(host);
    }

    fn is_of_locks(&self) -> bool {
        matches!(self.question.quantity, Quantity::Hold | Quantity::Wait)
    }

    /// What a row is about, or the others.
    fn subject(&self, row: &Bucket) -> Subject {
        let subject = match &*row.name {
            // Wake-ups are threads'.
            "" => (row.comm.clone(), "".into()),
            name if self.is_of_locks() && is_address(name) => (UNNAMED.into(), row.place.clone()),
            _ => (row.name.clone(), row.place.clone()),
        };
        let is_known = self.subjects.len() < MAX_SUBJECTS || self.subjects.contains_key(&subject);
        if is_known { subject } else { (OTHERS.into(), "".into()) }
    }
}

impl Known {
    fn add(&mut self, row: &Bucket, member: usize, host: usize) {
        self.lengths.add(row);
        self.hosts.insert(host);
        let is_longer = self.worst.is_none_or(|worst| worst.dur_ns < row.max_ns);
        if is_longer && row.mark != Mark::Censored {
            let (ts, tid) = (row.ts.0, row.tid.0);
            self.worst = Some(Worst { member, ts, tid, dur_ns: row.max_ns });
        }
    }
}

/// Whether a lock has no name: its address stands for it, which is another one in each process.
fn is_address(name: &str) -> bool {
    let digits = name.strip_prefix("0x").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The rows of a trace that are about a quantity, all of which are sound; otherwise why none counts.
fn rows(dir: &Path, quantity: Quantity) -> std::result::Result<Vec<Bucket>, String> {
    let read = || -> Result<std::result::Result<Vec<Bucket>, String>> {
        if analyze::tally(dir)?.is_none() {
            let why = "it was not analysed by this version; run `ft-agent analyze` on it";
            return Ok(Err(why.into()));
        }
        let trace = Trace::open_table::<Bucket>(dir)?;
        sound(trace.rows(), quantity)
    };
    read().unwrap_or_else(|error| Err(error.to_string()))
}

/// Of the rows of a table those that are about a quantity, if all rows are sound and no more than an analysis writes.
fn sound(
    table: impl Iterator<Item = Result<Bucket>>,
    quantity: Quantity,
) -> Result<std::result::Result<Vec<Bucket>, String>> {
    let mut rows = Vec::new();
    for (i, row) in table.enumerate() {
        let row = row?;
        if i >= MAX_ROWS || !is_sound(&row) {
            let why = "its table histograms is none that an analysis writes; run `ft-agent analyze` on it";
            return Ok(Err(why.into()));
        }
        if row.quantity == quantity {
            rows.push(row);
        }
    }
    Ok(Ok(rows))
}

#[cfg(test)]
mod tests;
