//! A report as a page in a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use ft_report::document::Document;
use ft_report::render::html::Page;
use ft_report::units;
use ft_trace::whole_file::WholeFile;

use super::Result;
use super::error::CommandError;

/// Writes the page, whole or not at all, and prints where it is. `timeline` is that of its trace, or empty.
pub(super) fn write(document: &Document, timeline: &str, path: &Path) -> Result<()> {
    let bytes = store(document, timeline, path)
        .map_err(|source| CommandError::File { path: path.to_owned(), source })?;
    let (file, size) = (path.display(), units::short_bytes(bytes));
    Ok(writeln!(io::stdout(), "page      {file} ({size}), for a browser")?)
}

/// Returns its size.
fn store(document: &Document, timeline: &str, path: &Path) -> io::Result<u64> {
    let mut file = BufWriter::new(WholeFile::create(path)?);
    write!(file, "{}", Page::of(document).with_timeline(timeline))?;
    file.into_inner()?.keep()
}
