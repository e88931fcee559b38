//! A trace in the formats of other viewers.
//!
//! A format is one module and one line of [`FORMATS`]. It is given a [`Job`]: the trace, the window, and the items of it
//! ([`crate::tracks`]); and a file or an empty directory that it writes from front to back. Whether that appears, where,
//! and what the user sees meanwhile is not its affair.
//!
//! Memory does not grow with the trace. What an application wrote is hostile: a format says how it keeps names from being
//! anything else.

mod chained;
mod collapsed;
mod ctf;
mod firefox;
#[cfg(feature = "flamegraph")]
mod flamegraph;
mod paje;
mod perfetto;
mod pprof;
mod sorted;
mod text;

use std::io::{self, BufWriter, Write};
use std::ops::{ControlFlow, Range};
use std::path::Path;

use ft_trace::dir::Dir;
use ft_trace::store::{StoreError, Trace};
use ft_trace::stream;
use ft_trace::whole_dir::WholeDir;
use ft_trace::whole_file::WholeFile;

use crate::analyze::{Progress, Watch};
use crate::tracks::{Item, Walk};

/// All formats.
pub static FORMATS: &[Format] = &[
    Format {
        name: "perfetto",
        about: "https://ui.perfetto.dev and its trace processor",
        output: Output::File(perfetto::write),
    },
    Format {
        name: "ctf",
        about: "babeltrace2; with LTTng's names, for Trace Compass (not tried there)",
        output: Output::Directory(ctf::write),
    },
    Format {
        name: "firefox",
        about: "https://profiler.firefox.com, which reads it in the browser and sends it nowhere",
        output: Output::File(firefox::write),
    },
    Format { name: "paje", about: "ViTE and pajeng", output: Output::File(paje::write) },
    Format {
        name: "collapsed",
        about: "flamegraph.pl, inferno-flamegraph and https://www.speedscope.app, of groups stack and profile",
        output: Output::File(collapsed::write),
    },
    Format {
        name: "pprof",
        about: "`go tool pprof` and what else reads its profiles, of groups stack and profile",
        output: Output::File(pprof::write),
    },
    #[cfg(feature = "flamegraph")]
    Format {
        name: "flamegraph",
        about: "a browser: a flame graph of groups stack and profile, as SVG",
        output: Output::File(flamegraph::write),
    },
];

/// A format.
#[derive(Debug)]
pub struct Format {
    /// As it is asked for.
    pub name: &'static str,
    /// What opens it.
    pub about: &'static str,
    /// What it is made of.
    pub output: Output,
}

/// What a format is made of, and what writes it.
#[derive(Debug)]
pub enum Output {
    /// One file.
    File(fn(&mut Job<'_>, &mut dyn Write) -> Result<()>),
    /// A directory with several.
    Directory(fn(&mut Job<'_>, &Dir) -> Result<()>),
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace cannot be read, or the user has ended the export.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The format is of call chains.
    #[error("the trace has no call chains: record with `-k default,stack,profile`")]
    NoChains,
    /// They lie elsewhere.
    #[error("the trace has no call chains there: export more of it")]
    NoChainsThere,
}

/// Result of an export.
pub type Result<T> = std::result::Result<T, ExportError>;

/// The format of this name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Writes what of a trace lies in `window` (CLOCK_MONOTONIC ns) to `out`, whole or not at all; `watch` learns how far
/// that is, and can end it. A file of that name is replaced, a directory is not, unless it is empty.
///
/// # Errors
///
/// When the trace cannot be read, has nothing that the format could write, `out` cannot be written, or `watch` says so.
pub fn export(
    trace: &Trace,
    format: &Format,
    window: Range<i64>,
    out: &Path,
    watch: Watch<'_>,
) -> Result<()> {
    let job = &mut Job { trace, window, watch, of: stream::count(trace) };
    match format.output {
        Output::File(write) => {
            let mut file = BufWriter::with_capacity(1 << 18, WholeFile::create(out)?);
            write(job, &mut file)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?.keep()?;
        }
        Output::Directory(write) => {
            let whole = WholeDir::create(out)?;
            write(job, whole.dir())?;
            whole.keep()?;
        }
    }
    Ok(())
}

/// What a format is to write.
pub struct Job<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What of it (CLOCK_MONOTONIC ns).
    pub window: Range<i64>,
    watch: Watch<'a>,
    of: u64,
}

/// Events between two looks of whoever watches.
const WATCH_EVENTS: u64 = 1 << 14;

impl<'a> Job<'a> {
    /// Walks over the window.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read.
    pub fn items(&mut self) -> Result<Items<'a, '_>> {
        let walk = Walk::new(self.trace, self.window.clone())?;
        Ok(Items { walk, seen: 0, job: self })
    }

    /// Time 0 of formats that count from the begin (CLOCK_MONOTONIC ns): that of the window; without one, of the
    /// recording, or of its first event where that is older.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read.
    pub fn begin(&self) -> Result<i64> {
        if self.window.start > i64::MIN {
            return Ok(self.window.start);
        }
        let start = self.trace.meta().start.start_ns;
        let first = stream::events(self.trace).next().transpose()?;
        Ok(first.map_or(start, |event| event.ts().0.min(start)))
    }

    /// Tells whoever watches now and then how many events were read; to be called with the number of each event by formats that read
    /// the trace themselves.
    ///
    /// # Errors
    ///
    /// As [`Job::look`].
    fn seen(&mut self, number: u64) -> Result<()> {
        if number.is_multiple_of(WATCH_EVENTS) { self.look(number) } else { Ok(()) }
    }

    /// Tells whoever watches that so many events were read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Interrupted`] when they have seen enough.
    fn look(&mut self, events: u64) -> Result<()> {
        match (self.watch)(Progress { events, of: self.of }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                Err(StoreError::Interrupted(self.trace.dir().to_owned()).into())
            }
        }
    }
}

/// The items of a job: an iterator that ends when whoever watches has seen enough.
pub struct Items<'a, 'j> {
    walk: Walk,
    seen: u64,
    job: &'j mut Job<'a>,
}

impl Iterator for Items<'_, '_> {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Result<Item>> {
        let item = self.walk.next()?;
        let events = self.walk.events();
        if events - self.seen >= WATCH_EVENTS {
            self.seen = events;
            if let Err(error) = self.job.look(events) {
                return Some(Err(error));
            }
        }
        Some(item.map_err(ExportError::from))
    }
}
