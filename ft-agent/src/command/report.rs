//! `ft-agent analyze`, `report`, `locks`, `dispatch`, `gaps`, `agreement` and `time`.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use ft_analysis::Tally;
use ft_report::analyze;
use ft_report::report::{self, AgreementReport, Head};
use ft_trace::store::Trace;

use super::watch::Watch;
use super::width::columns;

/// A trace, and the form of what is printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Text is as wide as the terminal, or as COLUMNS says; 100 columns when it is piped."
)]
pub(crate) struct Args {
    /// Directory of the trace.
    trace: PathBuf,
    /// Print JSON: every lock and thread, bins of 0.1 µs, times in ns.
    #[arg(long)]
    json: bool,
}

/// A trace to analyse.
#[derive(Debug, clap::Args)]
pub(crate) struct AnalyzeArgs {
    /// Directory of the trace.
    trace: PathBuf,
}

/// What is asked of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    All,
    Locks,
    Waits,
    Preempted,
    Dispatch,
    Gaps,
    Time,
    Agreement,
}

#[derive(Serialize)]
struct Answer<T> {
    trace: Head,
    #[serde(flatten)]
    report: T,
}

pub(crate) fn analyze(args: AnalyzeArgs) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&args.trace)?;
    let mut watch = Watch::begin();
    let tally = analyze::analyze_watched(&trace, &mut |progress| watch.look(progress))?;
    drop(watch);
    writeln!(
        io::stdout(),
        "{}: {} events; {} critical sections, {} wake-ups, {} gaps",
        args.trace.display(),
        tally.events,
        tally.holds,
        tally.dispatches,
        tally.gaps
    )?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(args: Args, question: Question) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&args.trace)?;
    let mut watch = Watch::begin();
    let tally = report::ensure_analyzed(&trace, &mut |progress| watch.look(progress))?;
    drop(watch);
    match question {
        Question::Locks => print(&args, &trace, &tally, report::locks(&trace, &tally)?),
        Question::Waits => print(&args, &trace, &tally, report::waits(&trace, &tally)?),
        Question::Preempted => print(&args, &trace, &tally, report::preempted(&trace, &tally)?),
        Question::Dispatch => print(&args, &trace, &tally, report::dispatch(&trace, &tally)?),
        Question::Gaps => print(&args, &trace, &tally, report::gaps(&trace, &tally)?),
        Question::Agreement => print(&args, &trace, &tally, AgreementReport::new(&tally)),
        Question::Time => {
            let time = report::time(&trace, &tally)?;
            let wrong = time.unbalanced;
            print(&args, &trace, &tally, time)?;
            anyhow::ensure!(
                wrong == 0,
                "the parts of {wrong} threads do not sum to their wall time: a fault of ft-agent; report it \
                 with the trace"
            );
            Ok(ExitCode::SUCCESS)
        }
        Question::All => print(&args, &trace, &tally, report::all(&trace, &tally)?),
    }
}

fn print<T: Display + Serialize>(
    args: &Args,
    trace: &Trace,
    tally: &Tally,
    report: T,
) -> anyhow::Result<ExitCode> {
    let head = Head::new(trace, tally)?;
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &Answer { trace: head, report })?;
        writeln!(out)?;
    } else {
        let w = columns();
        write!(out, "{head:w$}\n{report:w$}")?;
    }
    Ok(ExitCode::SUCCESS)
}
