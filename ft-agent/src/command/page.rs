//! A report as a page in a file.

use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use ft_analysis::Tally;
use ft_report::document::Document;
use ft_report::listing;
use ft_report::render::html::Page;
use ft_report::sections::{Asked, Report};
use ft_report::timeline::Timeline;
use ft_report::units;
use ft_trace::store::Trace;
use ft_trace::whole_file::WholeFile;

use super::Result;
use super::error::CommandError;

/// Times since the start of a recording, ns, from which and until which.
pub(super) type Window = (Option<i64>, Option<i64>);

/// Writes a page with these reports and a timeline, which has every detail in a window; whole or not at all. Returns what
/// is in it, and its size in bytes.
pub(super) fn of_trace(
    trace: &Trace,
    tally: &Tally,
    reports: impl IntoIterator<Item = &'static Report>,
    window: Option<Window>,
    asked: Asked,
    path: &Path,
) -> Result<(Document, u64)> {
    let document = Document::of(trace, tally, reports, asked)?;
    let window = window.map(|(from, to)| listing::window(trace, from, to)).transpose()?;
    let bytes = with_timeline(trace, tally, &document, window, path)?;
    Ok((document, bytes))
}

/// Writes a page with a timeline, which has every detail in a window (CLOCK_MONOTONIC ns); whole or not at all. Returns its
/// size in bytes.
pub(super) fn with_timeline(
    trace: &Trace,
    tally: &Tally,
    document: &Document,
    window: Option<Range<i64>>,
    path: &Path,
) -> Result<u64> {
    write(document, &Timeline::read(trace, tally, window)?.fragment(), path)
}

/// Writes a page, whole or not at all; `timeline` is empty where there is none. Returns its size in bytes.
pub(super) fn write(document: &Document, timeline: &str, path: &Path) -> Result<u64> {
    store(document, timeline, path).map_err(cannot(path))
}

/// Fails if a page could not be written there now: before something that takes long.
pub(super) fn check(path: &Path) -> Result<()> {
    WholeFile::create(path).map(drop).map_err(cannot(path))
}

/// Says where a page is.
pub(super) fn say(out: &mut dyn Write, path: &Path, bytes: u64) -> Result<()> {
    let (file, size) = (path.display(), units::short_bytes(bytes));
    Ok(writeln!(out, "page      {file} ({size}), for a browser")?)
}

fn cannot(path: &Path) -> impl FnOnce(io::Error) -> CommandError {
    |source| CommandError::File { path: path.to_owned(), source }
}

fn store(document: &Document, timeline: &str, path: &Path) -> io::Result<u64> {
    let mut file = BufWriter::new(WholeFile::create(path)?);
    write!(file, "{}", Page::of(document).with_timeline(timeline))?;
    file.into_inner()?.keep()
}
