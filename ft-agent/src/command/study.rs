//! `ft-agent study`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::FromArgMatches;
use ft_report::report::{self, Head, Study};
use ft_trace::store::Trace;

use super::record;
use super::watch::Watch;
use super::width::columns;

/// Prints how deep a program nests its locks and how long it holds them, beside the figures of the paper.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of a trace; without it, a command is recorded.
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    trace: Option<PathBuf>,

    /// Directory of the trace that is recorded; must not exist or be empty.
    #[arg(short, long, value_name = "DIR", default_value = "trace")]
    output: String,

    /// Stop after this time (500ms, 10s, 2m, 1h).
    #[arg(short, long, value_name = "TIME", requires = "command")]
    duration: Option<String>,

    /// Print JSON.
    #[arg(long, conflicts_with = "command")]
    json: bool,

    /// Command to record with the preload library and without the kernel, after `--`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent study -o packed -- pigz -kc -p4 /usr/bin/gdb
  ft-agent study -d 20s -- memcached -t 4 -p 7711
  ft-agent study packed               of a trace that is there; any trace with locks will do";

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (dir, code) = match args.trace {
        Some(dir) => (dir, ExitCode::SUCCESS),
        None => {
            // Rings in which a program fits that does nothing but take locks.
            let fixed = ["record", "--preload", "-k", "none", "--ring-size", "32M", "-o"];
            let mut words: Vec<&str> = [&fixed[..], &[&args.output]].concat();
            words.extend(args.duration.iter().flat_map(|time| ["-d", time]));
            words.push("--");
            words.extend(args.command.iter().map(String::as_str));
            let command = <record::Args as clap::Args>::augment_args(clap::Command::new("record"));
            let matches = command.try_get_matches_from(words)?;
            let code = record::run(record::Args::from_arg_matches(&matches)?)?;
            (args.output.into(), code)
        }
    };
    let trace = Trace::open(&dir)?;
    let mut watch = Watch::begin();
    let tally = report::ensure_analyzed(&trace, &mut |progress| watch.look(progress))?;
    drop(watch);
    let study = Study::of(&trace, &tally)?;
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &study)?;
        writeln!(out)?;
    } else {
        let (head, w) = (Head::new(&trace, &tally)?, columns());
        write!(out, "\n{head:w$}\n{study:w$}")?;
    }
    Ok(code)
}
