//! `ft-agent analyze`: of a trace here, anew; of traces of a catalogue, those that are not analysed yet.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ft_analysis::Tally;
use ft_catalogue::{CatalogueError, Key, Tasks, list, trace_of};
use ft_report::analyze::{self, RESULT_TABLES};
use ft_trace::number::count;
use ft_trace::store::{META_FILE, Results, StoreError, Trace, views};
use ft_trace::tables::SiteRow;
use serde::Serialize;

use super::error::CommandError;
use super::trace_arg::Rest;
use super::watch::Watch;
use super::{Result, output};

/// Recomputes all results of a trace, or those that traces of a catalogue lack.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of a trace; or a catalogue, or one trace of it, as `ft-agent catalogue` names them: a directory or
    /// s3://BUCKET/PREFIX[/host=…/date=…/trace=…].
    #[arg(value_name = "DIR|URL")]
    trace: String,
    /// Of a catalogue: these tables of results alone (`ft-agent tables` lists them).
    #[arg(long, value_name = "TABLE", num_args = 1.., value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    rest: Rest,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
`record` and `report` analyse by themselves what has not been analysed by this version. A trace of a catalogue is copied to
TMPDIR without its results, analysed there, and its results are stored beside it; so many bytes must be free there.

Examples:
  ft-agent analyze trace              its tables of results, for other programs that read them
  ft-agent analyze s3://fleet/traces  those of every trace that lacks them; one that fails does not keep the others
  ft-agent analyze s3://fleet/traces/host=a/date=2026-11-21/trace=20261121T104500Z-c7c061a6b51c7ba7 --only critical_sections
                                      one trace, as a task of a larger program, and one table";

#[derive(Serialize)]
struct Analyzed {
    trace: PathBuf,
    events: u64,
    critical_sections: u64,
    wake_ups: u64,
    gaps: u64,
}

impl fmt::Display for Analyzed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Analyzed { trace, events, critical_sections, wake_ups, gaps } = self;
        let trace = trace.display();
        writeln!(
            f,
            "{trace}: {events} events; {critical_sections} critical sections, {wake_ups} wake-ups, {gaps} gaps"
        )
    }
}

/// What has become of the traces of a catalogue.
#[derive(Serialize)]
struct Outcomes {
    url: String,
    traces: Vec<Done>,
}

#[derive(Serialize)]
struct Done {
    path: String,
    outcome: &'static str,
    /// Of one that was analysed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<u64>,
    /// Of one that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Done { path, outcome, events, why } in &self.traces {
            write!(f, "{}: {outcome}", path.escape_debug())?;
            if let Some(events) = events {
                write!(f, ", {} events", count(*events))?;
            }
            match why {
                Some(why) => writeln!(f, ": {why}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

const ANALYSED: &str = "analysed";
const SKIPPED: &str = "was analysed already";
const FAILED: &str = "failed";

pub(crate) fn run(args: Args) -> Result {
    if let Some((url, key)) = trace_of(&args.trace) {
        let only = only(&args.only)?;
        let mut store = Store::default();
        let done = vec![done(&Tasks::of(&url)?, &mut store, Some(key), String::new(), &only)?];
        return told(url, done, args.json);
    }
    let path = Path::new(&args.trace);
    // What is no trace may be a catalogue; what is neither is reported as the former.
    let is_catalogue = args.trace.contains("://")
        || (!path.join(META_FILE).exists() && path.join("traces").is_dir());
    if is_catalogue {
        let only = only(&args.only)?;
        let listing = list(&args.trace)?;
        let tasks = Tasks::of(&args.trace)?;
        let (mut all, mut store) = (Vec::new(), Store::default());
        for entry in &listing.entries {
            all.push(done(&tasks, &mut store, entry.key(), entry.path.to_string(), &only)?);
        }
        let wrong = listing.wrong.into_iter();
        all.extend(wrong.map(|(path, why)| Done {
            path,
            outcome: FAILED,
            events: None,
            why: Some(why),
        }));
        return told(args.trace, all, args.json);
    }
    if !args.only.is_empty() {
        return Err(CommandError::OnlyOfCatalogue);
    }
    here(path, args.rest, args.json)
}

/// A trace that belongs to nobody else.
fn here(path: &Path, rest: Rest, json: bool) -> Result {
    let tally = analysed(&rest.of(path, Trace::open_recorded)?)?;
    let analyzed = Analyzed {
        trace: path.to_owned(),
        events: tally.events,
        critical_sections: tally.holds,
        wake_ups: tally.dispatches,
        gaps: tally.gaps,
    };
    output::print(json, &analyzed)?;
    Ok(ExitCode::SUCCESS)
}

/// The tables that are asked for, by their names here.
fn only(names: &[String]) -> Result<Vec<&'static str>> {
    if names.is_empty() {
        return Ok(RESULT_TABLES.to_vec());
    }
    let known = |name: &String| {
        let found = RESULT_TABLES.iter().find(|table| *table == name);
        found.copied().ok_or_else(|| CommandError::NoResult(name.clone()))
    };
    names.iter().map(known).collect()
}

/// Whether the store of a catalogue answers: one that fell silent is not waited for at each trace.
#[derive(Debug, Default)]
enum Store {
    #[default]
    Answers,
    /// It did not, of the last trace: that alone may be what it cannot read.
    Doubtful,
    Away(String),
}

impl Store {
    /// Why it is away, if it is.
    fn away(&mut self, tasks: &Tasks) -> Option<&str> {
        if let Store::Doubtful = self {
            *self = match tasks.ask() {
                Err(error @ CatalogueError::Away { .. }) => Store::Away(error.to_string()),
                _ => Store::Answers,
            };
        }
        match self {
            Store::Away(why) => Some(why),
            _ => None,
        }
    }
}

/// Does one task. Only what its user asks for ends all of them.
fn done(
    tasks: &Tasks,
    store: &mut Store,
    key: Option<Key>,
    path: String,
    only: &[&'static str],
) -> Result<Done> {
    let failed = |path, why: &str| {
        let why = Some(why.escape_debug().to_string());
        Ok(Done { path, outcome: FAILED, events: None, why })
    };
    let Some(key) = key else { return failed(path, "its row names no place") };
    let path = key.path();
    if let Some(why) = store.away(tasks) {
        return failed(path, why);
    }
    match task(tasks, &key, only) {
        Ok(Some(events)) => Ok(Done { path, outcome: ANALYSED, events: Some(events), why: None }),
        Ok(None) => Ok(Done { path, outcome: SKIPPED, events: None, why: None }),
        Err(error @ CommandError::Store(StoreError::Interrupted(_))) => Err(error),
        Err(error) => {
            if let CommandError::Catalogue(CatalogueError::Away { .. }) = error {
                *store = Store::Doubtful;
            }
            failed(path, &error.to_string())
        }
    }
}

/// Analyses a trace if it lacks these tables; its events.
fn task(tasks: &Tasks, key: &Key, only: &[&'static str]) -> Result<Option<u64>> {
    let task = tasks.task(key);
    // Of this version.
    let marker = task.marker()?.filter(|marker| analyze::tally_of(marker).is_some());
    let stored = marker.as_deref().map(Results::in_text).unwrap_or_default().tables;
    let stays = task.whole(&stored)?;
    if marker.is_some() && only.iter().all(|table| stays.contains_key(*table)) {
        task.local().map_or(Ok(()), |dir| write_views(&dir))?;
        return Ok(None);
    }
    let copy = task.fetch(|table| !RESULT_TABLES.contains(&table))?;
    let trace = Trace::open_recorded(copy.dir()).map_err(CommandError::Store);
    let tally = trace.and_then(|trace| analysed(&trace));
    let tally = tally.map_err(|error| of_trace(error, copy.dir(), tasks.url(), key))?;
    analyze::keep_results(copy.dir(), only, &stays)?;
    task.store(&copy, only, RESULT_TABLES, &stays)?;
    task.local().map_or(Ok(()), |dir| write_views(&dir))?;
    Ok(Some(tally.events))
}

fn analysed(trace: &Trace) -> Result<Tally> {
    let mut watch = Watch::begin("analysis");
    Ok(analyze::analyze_watched(trace, &mut |progress| watch.look(progress))?)
}

/// Names the trace where the error names its copy, of which nothing will be left.
fn of_trace(error: CommandError, copy: &Path, url: &str, key: &Key) -> CommandError {
    if let CommandError::Store(StoreError::Interrupted(_)) = error {
        return error;
    }
    let trace = format!("{}/{}", url.trim_end_matches('/'), key.path());
    CommandError::OfCopy(error.to_string().replace(&*copy.to_string_lossy(), &trace))
}

/// Writes the script for DuckDB anew: it names the tables that are there, and who brought the trace may have written any.
fn write_views(dir: &Path) -> Result<()> {
    let trace = Trace::open_recorded(dir)?;
    let sites: Vec<SiteRow> = trace.rows().collect::<std::result::Result<_, _>>()?;
    Ok(views::write(dir, trace.meta(), &Results::of(dir), &sites)?)
}

fn told(url: String, traces: Vec<Done>, json: bool) -> Result {
    let failed = traces.iter().filter(|done| done.outcome == FAILED).count();
    let of = traces.len();
    output::print(json, &Outcomes { url, traces })?;
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(CommandError::Some { failed, of }),
    }
}
