//! Runs the analyses over a stored trace: one pass over its events, the tables of [`Rows`], `views.sql` with them, and
//! [`ANALYSIS_FILE`] out.
//!
//! Nothing is replaced before all of it is known: the tables appear when the last event was read and every
//! part is on disk. The file of before goes first and the new one comes last. So reports find either the
//! results of a whole run, or none, whenever the run is interrupted, killed, or finds the disk full.

use std::ops::ControlFlow;
use std::path::Path;

use ft_analysis::{Context, Histograms, Recorded, RequestKind, Rows, Run, Tally, VERSION};
use ft_trace::dir;
use ft_trace::event::Event;
use ft_trace::ids::Pid;
use ft_trace::result_tables;
use ft_trace::store::{
    self, Parts, Result, Results, Row, StoreError, Synced, TableWriter, Trace, Unsynced,
};
use ft_trace::stream;
use ft_trace::tables::{self, Irq, SchedSwitch, SiteRow, SymbolRow, ThreadRow};
use serde::Serialize;

pub use ft_trace::store::ANALYSIS_FILE;

/// Finished rows that are collected before they go to the writers.
const BATCH_ROWS: usize = 4096;

/// Declares a writer for each table of [`Rows`].
macro_rules! writers {
    ($($table:ident: $row:ident,)*) => {
        struct Writers {
            $($table: TableWriter<tables::$row>,)*
        }

        impl Writers {
            fn create(trace: &Trace) -> Result<Self> {
                let footer = trace.meta().footer();
                Ok(Writers { $($table: TableWriter::create(trace.dir(), footer.clone())?,)* })
            }

            fn push(&mut self, rows: Rows) -> Result<()> {
                $(rows.$table.into_iter().try_for_each(|row| self.$table.push(row))?;)*
                Ok(())
            }

            /// Writes all that is left; then only names are to be changed.
            fn seal(&mut self) -> Result<Synced> {
                let mut parts = Unsynced::default();
                $(self.$table.seal(&mut parts)?;)*
                parts.sync_all()
            }

            /// Puts the tables in their places; their parts are on disk.
            fn finish(self, _parts: Synced) -> Result<(Parts, Synced)> {
                let (mut names, mut parts) = (Unsynced::default(), Parts::new());
                $(
                    let table = <tables::$row as Row>::TABLE.to_owned();
                    parts.insert(table, self.$table.finish_unsynced(&mut names)?);
                )*
                Ok((parts, names.sync_all()?))
            }
        }

        /// The names of the tables of the analyses.
        pub const RESULT_TABLES: &[&str] = &[$(<tables::$row as Row>::TABLE),*];

        /// Whether the trace has all tables of the analyses.
        fn has_tables(trace: &Trace) -> bool {
            $(trace.has::<tables::$row>())&&*
        }
    };
}

result_tables!(writers);

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events that were analysed.
    pub events: u64,
    /// Events of the trace.
    pub of: u64,
}

/// Events between two calls of a [`Watch`].
const WATCH_EVENTS: u64 = 1 << 14;

/// Learns how far a run is, about a hundred times a second; `Break` ends the run with
/// [`StoreError::Interrupted`], and nothing is replaced.
pub type Watch<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Analyses a trace anew, as [`analyze_watched`], to its end.
///
/// # Errors
///
/// When the trace cannot be read, or the results cannot be written; earlier results then stay.
pub fn analyze(trace: &Trace) -> Result<Tally> {
    analyze_watched(trace, &mut |_| ControlFlow::Continue(()))
}

/// Analyses a trace anew. Memory does not grow with its length.
///
/// # Errors
///
/// As [`analyze`], and [`StoreError::Interrupted`] when `watch` says so.
pub fn analyze_watched(trace: &Trace, watch: Watch<'_>) -> Result<Tally> {
    let sites: Vec<SiteRow> = all(trace)?;
    let asked = asked_before(trace, &sites)?;
    analyze_asking(trace, &sites, asked, watch)
}

/// The requests that the last analysis was asked for, by whatever version, as far as the trace can have them.
fn asked_before(trace: &Trace, sites: &[SiteRow]) -> Result<Vec<RequestKind>> {
    let text = text(trace.dir())?.unwrap_or_default();
    let tally: Tally = serde_json::from_slice(&text).unwrap_or_default();
    let mut asked = tally.requests.asked;
    let recorded = match asked.iter().any(RequestKind::needs_kernel) {
        true => recorded(trace)?,
        false => Recorded::default(),
    };
    asked.retain(|kind| kind.check(sites, &recorded).is_ok());
    Ok(asked)
}

/// The same, with these requests beside the outermost scopes; otherwise those count that were asked for last.
fn analyze_asking(
    trace: &Trace,
    sites: &[SiteRow],
    asked: Vec<RequestKind>,
    watch: Watch<'_>,
) -> Result<Tally> {
    let mut run = Run::new(context(trace, sites)?.with_requests(asked, sites));
    let mut writers = Writers::create(trace)?;
    let mut histograms = Histograms::default();
    let mut progress = Progress { events: 0, of: stream::count(trace) };
    for event in stream::events(trace) {
        let event: Event = event?;
        run.push(&event);
        if run.pending() >= BATCH_ROWS {
            let rows = run.take_rows();
            histograms.add(&rows, run.world());
            writers.push(rows)?;
        }
        progress.events += 1;
        if progress.events.is_multiple_of(WATCH_EVENTS) {
            go_on(trace, watch(progress))?;
        }
    }
    let mut tally = run.end(i64::MIN);
    if !tally.counting.is_none() {
        tally.counting.names.clone_from(&trace.meta().start.counters);
    }
    let mut rows = run.take_rows();
    histograms.add(&rows, run.world());
    rows.histograms = histograms.into_rows();
    writers.push(rows)?;
    let parts = writers.seal()?;
    go_on(trace, watch(progress))?;
    let dir = store::file::open(trace.dir())?;
    store::file::remove(&dir, ANALYSIS_FILE)?;
    let (tables, synced) = writers.finish(parts)?;
    let results = Results { tables, left_out: trace.left_out().clone() };
    store::views::write(trace.dir(), trace.meta(), &results, sites)?;
    conclude(&dir, &tally, &results, synced)?;
    Ok(tally)
}

/// Writes the file that says that the tables, which are on disk, are those of one run.
fn conclude(trace: &dir::Dir, tally: &Tally, results: &Results, _tables: Synced) -> Result<()> {
    store::file::write_json(trace, ANALYSIS_FILE, &Concluded { tally, results })
}

/// What stands in [`ANALYSIS_FILE`].
#[derive(Serialize)]
struct Concluded<'a> {
    #[serde(flatten)]
    tally: &'a Tally,
    #[serde(flatten)]
    results: &'a Results,
}

/// Has [`ANALYSIS_FILE`] of a copy name the parts of these tables alone, and those that lie where the results are brought and
/// stay there.
///
/// # Errors
///
/// When the file cannot be read or written.
pub fn keep_results(copy: &Path, tables: &[&str], stay: &Parts) -> Result<()> {
    let Some(tally) = tally(copy)? else { return Ok(()) };
    let mut results = Results::of(copy);
    results.tables.retain(|table, _| tables.contains(&table.as_str()));
    for (table, parts) in stay {
        results.tables.entry(table.clone()).or_insert_with(|| parts.clone());
    }
    let results = &results;
    store::file::write_json(
        &store::file::open(copy)?,
        ANALYSIS_FILE,
        &Concluded { tally: &tally, results },
    )
}

fn go_on(trace: &Trace, verdict: ControlFlow<()>) -> Result<()> {
    match verdict {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(StoreError::Interrupted(trace.dir().to_owned())),
    }
}

fn all<R: Row>(trace: &Trace) -> Result<Vec<R>> {
    trace.rows::<R>().collect()
}

/// What the analyses must know of a trace with these sites before its first event.
///
/// # Errors
///
/// When it cannot be read.
pub(crate) fn context(trace: &Trace, sites: &[SiteRow]) -> Result<Context> {
    // What was recorded counts, not what was asked for.
    let kernel = trace.meta().tables.get(SchedSwitch::TABLE).is_some_and(|t| t.rows > 0);
    let bound_ns = trace.meta().clock.bound_ns;
    let context = Context::new(kernel, bound_ns, &all(trace)?, sites, &all(trace)?)
        .with_agent(trace.meta().start.agent_pid.map(Pid))
        .with_samples(trace.meta().start.sample_hz);
    // Traces of earlier versions have no such table.
    if !trace.meta().tables.contains_key(SymbolRow::TABLE) {
        return Ok(context);
    }
    Ok(context.with_symbols(&all(trace)?))
}

/// What the kernel's records of a trace name.
///
/// # Errors
///
/// When a table cannot be read.
pub fn recorded(trace: &Trace) -> Result<Recorded> {
    let groups = &trace.meta().start.kernel_groups;
    let has = |group: &str| groups.iter().any(|recorded| recorded == group);
    let mut recorded = Recorded::default();
    if has("irq") {
        let names = trace.rows::<Irq>().map(|row| row.map(|irq| irq.name));
        recorded.interrupts = Some(names.collect::<Result<_>>()?);
    }
    if has("sched") {
        let threads = trace.rows::<ThreadRow>().filter(|row| !matches!(row, Ok(t) if !t.observed));
        recorded.threads = Some(threads.map(|row| row.map(|t| t.name)).collect::<Result<_>>()?);
    }
    Ok(recorded)
}

/// The counts of the trace's last analysis; analyses it when it was not, or by another version, and says
/// `watch` how far that is.
///
/// # Errors
///
/// When the trace cannot be read, or what is missing cannot be written, or `watch` ends it.
pub fn ensure(trace: &Trace, watch: Watch<'_>) -> Result<Tally> {
    match tally(trace.dir())? {
        Some(tally) if is_of(trace) => Ok(tally),
        _ => analyze_watched(trace, watch),
    }
}

/// Whether the results are all there, and made of no less than the trace has now.
fn is_of(trace: &Trace) -> bool {
    has_tables(trace) && Results::of(trace.dir()).left_out.is_subset(trace.left_out())
}

/// As [`ensure`], of a trace with these sites in which somebody asks for these requests, which it can have
/// ([`RequestKind::check`]); analyses it when others were asked for.
///
/// # Errors
///
/// As [`ensure`].
pub fn ensure_asking(
    trace: &Trace,
    sites: &[SiteRow],
    asked: Vec<RequestKind>,
    watch: Watch<'_>,
) -> Result<Tally> {
    match tally(trace.dir())? {
        Some(tally) if is_of(trace) && tally.requests.asked == asked => Ok(tally),
        _ => analyze_asking(trace, sites, asked, watch),
    }
}

/// Reads the counts of the last run; `None` when the trace was not analysed, or by another version, or when
/// the file is damaged: it can be made again.
///
/// # Errors
///
/// When the file is there and cannot be read.
pub fn tally(dir: &Path) -> Result<Option<Tally>> {
    Ok(text(dir)?.and_then(|text| tally_of(&text)))
}

/// The file of the last run, if there was one.
fn text(dir: &Path) -> Result<Option<Vec<u8>>> {
    let path = dir.join(ANALYSIS_FILE);
    match dir::read_regular(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some).map_err(|source| StoreError::Io { action: "read", path, source }),
    }
}

/// The counts in the text of such a file; `None` where another version wrote it, or it is damaged.
pub fn tally_of(text: &[u8]) -> Option<Tally> {
    let tally: Option<Tally> = serde_json::from_slice(text).ok();
    tally.filter(|t| t.version == VERSION)
}

#[cfg(test)]
pub(crate) mod tests;
