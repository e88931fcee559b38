//! `ft-agent catalogue`.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use ft_catalogue::{Catalogue, Entry, Labels, list};
use ft_report::units;
use ft_trace::calendar;
use serde::Serialize;

use super::{Result, output};

/// Lists the traces of a catalogue, and removes old ones.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The catalogue: a directory, as a path or file:///PATH, or an object store, s3://BUCKET/PREFIX.
    #[arg(value_name = "URL")]
    url: String,
    /// Only traces of this host.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only traces that began longer ago than this (12h, 720h).
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    older_than: Option<Duration>,
    /// Remove the traces that are listed, which without this are only listed, and what was left unfinished for more than a day.
    #[arg(long, requires = "older_than")]
    delete: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Traces are brought by `record`, `convert` and `snapshot` with --to.

Examples:
  ft-agent catalogue /srv/traces      every trace: when, host, how long, what, its clock's bound, losses
  ft-agent catalogue /srv/traces --older-than 720h
                                      what --delete would remove
  ft-agent catalogue /srv/traces --older-than 720h --delete
  ft-agent catalogue s3://fleet/traces --json
                                      one in an object store; AWS_ACCESS_KEY_ID and the like are in the environment
  duckdb -c \"SELECT host, program, clock_bound_ns FROM '/srv/traces/traces/*.parquet'\"";

/// What is printed.
#[derive(Serialize)]
struct Answer {
    url: String,
    traces: Vec<Line>,
    /// Files that are no rows.
    wrong: Vec<String>,
    /// The traces were removed.
    removed: bool,
    #[serde(skip)]
    asks_what: bool,
}

/// A trace.
#[derive(Serialize)]
struct Line {
    path: String,
    start_utc: String,
    host: String,
    command: String,
    program: String,
    build_id: String,
    labels: Labels,
    duration_ns: Option<i64>,
    complete: bool,
    clock: &'static str,
    clock_bound_ns: Option<i64>,
    events: i64,
    lost: i64,
    agent_cpu_ns: Option<i64>,
    bytes: i64,
    kernel: String,
    cpu_model: String,
    schema_version: i32,
}

impl Line {
    fn of(entry: &Entry) -> Line {
        let mut start_utc = String::new();
        let _ = calendar::write_utc(entry.start_ns, &mut start_utc);
        Line {
            path: entry.path.to_string(),
            start_utc,
            host: entry.host.to_string(),
            command: entry.command.to_string(),
            program: entry.program.to_string(),
            build_id: entry.build_id.to_string(),
            labels: entry.labels(),
            duration_ns: entry.duration_ns,
            complete: entry.complete,
            clock: entry.clock.word(),
            clock_bound_ns: entry.clock_bound_ns,
            events: entry.events,
            lost: entry.lost,
            agent_cpu_ns: entry.agent_cpu_ns,
            bytes: entry.bytes,
            kernel: entry.kernel.to_string(),
            cpu_model: entry.cpu_model.to_string(),
            schema_version: entry.schema_version,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self
            .traces
            .iter()
            .map(|line| line.bytes.max(0).unsigned_abs())
            .fold(0, u64::saturating_add);
        let what = match (self.removed, self.asks_what) {
            (true, _) => "removed",
            (false, true) => "would be removed by --delete",
            (false, false) => "in all",
        };
        for line in &self.traces {
            // Whoever has written the catalogue chose the words.
            let word = |text: &str| text.escape_debug().to_string();
            let mut more = String::new();
            for (name, value) in &line.labels {
                write!(more, "  {}={}", word(name), word(value))?;
            }
            let clock = match line.clock_bound_ns {
                Some(ns) => format!("UTC within {}", units::short_ns(ns as f64)),
                None => format!("UTC {}", line.clock),
            };
            let long = match line.duration_ns {
                Some(ns) => units::short_ns(ns as f64),
                None => "killed".into(),
            };
            let command =
                if line.command.is_empty() { "(attached)".into() } else { word(&line.command) };
            writeln!(
                f,
                "{}  {}  {long}  {}  {clock}  {} lost{}{more}\n    {}",
                line.start_utc.get(..19).unwrap_or(&line.start_utc),
                word(&line.host),
                command,
                line.lost,
                if line.complete { "" } else { "  incomplete" },
                word(&line.path),
            )?;
        }
        let plural = if self.traces.len() == 1 { "" } else { "s" };
        writeln!(f, "{} trace{plural}, {}, {what}", self.traces.len(), units::short_bytes(bytes))
    }
}

pub(crate) fn run(args: Args) -> Result {
    let listing = list(&args.url)?;
    let wrong: Vec<String> = listing
        .wrong
        .iter()
        .map(|(path, why)| format!("{path}: {why}").escape_debug().to_string())
        .collect();
    for wrong in &wrong {
        let _ = writeln!(io::stderr(), "ft-agent: warning: no row of a trace, left out: {wrong}");
    }
    if listing.is_cut {
        let _ = writeln!(
            io::stderr(),
            "ft-agent: warning: there are more traces than are read; use DuckDB"
        );
    }
    let mut entries = listing.entries;
    if let Some(host) = &args.host {
        entries.retain(|entry| *entry.host == **host);
    }
    if let Some(age) = args.older_than {
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos());
        let before = i64::try_from(now.saturating_sub(age.as_nanos())).unwrap_or(i64::MAX);
        entries.retain(|entry| entry.start_ns < before);
    }
    if args.delete {
        let catalogue = Catalogue::open(&args.url)?;
        for entry in &entries {
            catalogue.remove(entry)?;
        }
        let swept = catalogue.sweep()?;
        if swept > 0 {
            let _ = writeln!(
                io::stderr(),
                "ft-agent: removed {swept} that were begun a day ago and not finished"
            );
        }
    }
    let traces = entries.iter().map(Line::of).collect();
    let asks_what = args.older_than.is_some();
    let answer = Answer { url: args.url, traces, wrong, removed: args.delete, asks_what };
    output::print(args.json, &answer)?;
    Ok(ExitCode::SUCCESS)
}
