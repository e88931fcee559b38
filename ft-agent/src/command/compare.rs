//! `ft-agent compare`: what differs between two traces, or two sets of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ft_report::analyze;
use ft_report::compare::{Comparison, Condition, Run, Verdict, slices};
use ft_trace::store::{META_FILE, Trace};

use super::error::CommandError;
use super::watch::Watch;
use super::{Result, page, report};

/// Says what differs between two traces, or two sets of recordings, by more than chance.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A and B, each a trace or a directory of traces; with --against, traces of A.
    #[arg(value_name = "DIR", required = true)]
    traces: Vec<PathBuf>,
    /// Traces of B.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    against: Vec<PathBuf>,
    /// Fail if this is shown: CLASS [SUBJECT] QUANTITY > CHANGE%, or <; may be given several times.
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
    /// Print JSON: every row, with every digit.
    #[arg(long)]
    json: bool,
    /// Write a page for a browser into this file, instead of text.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Conditions: CLASS is hold, wait, dispatch, gap or scope (QUANTITY: median, p99, mean, sum, rate), \
time (running, preempted, dispatch, blocked, interrupts, unexplained) or run (length). SUBJECT is the \
name of a row, with * for anything: book, 'book at main.rs:93', 'book by teller', of one process \
'book in bank', of one kind of lock 'table (rwlock-read)'; without it, each lock, thread or scope as a \
whole. A change is of B against A, and must be shown by more than chance.

Record at least four of each, alternating. Fewer are cut into slices, which show how these recordings \
differ, not whether the programs do.

Exit status: 3 if a condition is met; 4 if none is, and one could not be judged (what it names is not \
on both sides, was touched by losses, or there is too little of it); else 0.

Examples:
  ft-agent compare before after       two traces, or two directories of traces
  ft-agent compare a1 a2 a3 a4 --against b1 b2 b3 b4
                                      two sets of recordings
  ft-agent compare before after --fail-if 'hold book p99 > +10%' --fail-if 'run length > 5%'
                                      for continuous integration";

/// A condition is met.
const MET: u8 = 3;

/// No condition is met, and one could not be judged.
const NOT_JUDGED: u8 = 4;

pub(crate) fn run(args: Args) -> Result {
    let [a, b] = sides(args.traces, args.against)?;
    let slices = slices(a.len(), b.len());
    let mut watch = Watch::begin("analysis");
    let mut read = |dirs: Vec<PathBuf>| -> Result<Vec<Run>> {
        let read = |dir: PathBuf| {
            let trace = Trace::open(&dir)?;
            let tally = analyze::ensure(&trace, &mut |progress| watch.look(progress))?;
            Ok(Run::read(&trace, &tally, slices)?)
        };
        dirs.into_iter().map(read).collect()
    };
    let (a, b) = (read(a)?, read(b)?);
    drop(watch);
    let comparison = Comparison::of(a, b, &args.fail_if);
    let document = comparison.document();
    match args.html {
        Some(file) => page::say(&mut std::io::stdout(), &file, page::write(&document, "", &file)?)?,
        None => report::print(&document, args.json)?,
    }
    let verdicts = || comparison.outcomes.iter().map(|outcome| outcome.verdict);
    Ok(match () {
        () if verdicts().any(|verdict| verdict == Verdict::Met) => ExitCode::from(MET),
        () if !verdicts().all(Verdict::is_judged) => ExitCode::from(NOT_JUDGED),
        () => ExitCode::SUCCESS,
    })
}

/// The traces of A and of B.
fn sides(mut traces: Vec<PathBuf>, mut against: Vec<PathBuf>) -> Result<[Vec<PathBuf>; 2]> {
    if against.is_empty() {
        let n = traces.len();
        let (2, Some(b)) = (n, traces.pop()) else { return Err(CommandError::NotTwoSides(n)) };
        against.push(b);
    }
    let sides = [set(traces)?, set(against)?];
    let mut known = HashSet::new();
    for dir in sides.iter().flatten() {
        // One that cannot be resolved is reported when it is opened.
        if !known.insert(dir.canonicalize().unwrap_or_else(|_| dir.clone())) {
            return Err(CommandError::GivenTwice(dir.clone()));
        }
    }
    Ok(sides)
}

/// The traces that are named, or are in the directories that are named, by name.
fn set(dirs: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let is_trace = |dir: &Path| dir.join(META_FILE).exists() || dir.join("spool").exists();
    let mut set = Vec::new();
    for dir in dirs {
        let inside = || -> std::io::Result<Vec<PathBuf>> {
            let entries = std::fs::read_dir(&dir)?.map(|entry| Ok(entry?.path()));
            let mut inside: Vec<PathBuf> = entries.collect::<std::io::Result<_>>()?;
            inside.retain(|path| is_trace(path));
            inside.sort();
            Ok(inside)
        };
        match inside() {
            Ok(inside) if !is_trace(&dir) && !inside.is_empty() => set.extend(inside),
            // What is wrong with it is reported when it is opened.
            _ => set.push(dir),
        }
    }
    Ok(set)
}
