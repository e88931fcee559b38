//! `ft-agent report`, its short forms (`ft-agent SECTION`), and `analyze`.
//!
//! A report is made of sections ([`SECTIONS`]); every section is reached the same way, so that a new one needs
//! neither a subcommand nor a flag. One call opens the trace once, however many sections are asked for.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use serde::ser::{Serialize, SerializeMap, Serializer};

use ft_report::analyze;
use ft_report::report::{Head, ensure_analyzed};
use ft_trace::store::Trace;

use super::error::CommandError;
use super::section::{Contents, SECTIONS, Section};
use super::watch::Watch;
use super::width::columns;
use super::{Result, output};

/// Prints what the analyses have found: all of it, or some sections.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct Args {
    /// Directory of the trace.
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// Sections, printed in this order [default: all].
    #[arg(value_name = "SECTION", value_parser = SectionName, hide_possible_values = true)]
    sections: Vec<String>,
    /// Print JSON: every lock and thread, bins of 0.1 µs, times in ns.
    #[arg(long)]
    json: bool,
}

/// `ft-agent SECTION DIR`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShortArgs {
    /// Directory of the trace.
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// Print JSON: every lock and thread, bins of 0.1 µs, times in ns.
    #[arg(long)]
    json: bool,
}

/// Computes all results of a trace anew.
#[derive(Debug, clap::Args)]
#[command(after_help = ANALYZE_EXAMPLES)]
pub(crate) struct AnalyzeArgs {
    /// Directory of the trace.
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const ANALYZE_EXAMPLES: &str = "\
`record` and `report` analyse by themselves what has not been analysed by this version.

Examples:
  ft-agent analyze trace              its tables of results, for whoever reads them by other means";

fn after_help() -> String {
    let width = SECTIONS.iter().map(|section| section.name.len()).max().unwrap_or(0);
    let sections = SECTIONS.iter();
    let sections: String =
        sections.map(|s| format!("  {:width$}  {}\n", s.name, s.about)).collect();
    format!(
        "\
Sections:
{sections}
`ft-agent SECTION DIR` is short for `ft-agent report DIR SECTION`; its JSON has one level less.
Text is as wide as the terminal, or as COLUMNS says; 100 columns when it is piped.

Examples:
  ft-agent report trace               everything
  ft-agent report trace locks waits   who held which lock, and who waited for it
  ft-agent report trace gaps --json   for other programs"
    )
}

/// Any word, so that one that is no section gets a sentence of ours; shells are told which there are.
#[derive(Clone)]
struct SectionName;

impl TypedValueParser for SectionName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |section: &Section| PossibleValue::new(section.name).help(section.about);
        Some(Box::new(SECTIONS.iter().map(value)))
    }
}

/// What is asked of a trace.
pub(crate) struct Request {
    trace: PathBuf,
    sections: Vec<&'static Section>,
    json: bool,
    /// Its JSON is that of its only section.
    is_short: bool,
}

impl Args {
    /// # Errors
    ///
    /// When there is no such section.
    pub(crate) fn request(self) -> Result<Request> {
        let Args { trace, sections: names, json } = self;
        let mut sections: Vec<&Section> = Vec::new();
        for name in names {
            let named = SECTIONS.iter().find(|section| section.name == name);
            let section = named.ok_or(CommandError::UnknownSection(name))?;
            if !sections.iter().any(|known| known.name == section.name) {
                sections.push(section);
            }
        }
        if sections.is_empty() {
            sections.extend(SECTIONS);
        }
        Ok(Request { trace, sections, json, is_short: false })
    }
}

impl ShortArgs {
    pub(crate) fn request(self, section: &'static Section) -> Request {
        Request { trace: self.trace, sections: vec![section], json: self.json, is_short: true }
    }
}

/// The sections of one trace.
struct Answer {
    head: Head,
    sections: Vec<(&'static str, Contents)>,
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("trace", &self.head)?;
        for (name, section) in &self.sections {
            map.serialize_entry(name, section)?;
        }
        map.end()
    }
}

/// `--json` of a short form.
#[derive(serde::Serialize)]
struct ShortAnswer<'a> {
    trace: &'a Head,
    #[serde(flatten)]
    section: &'a Contents,
}

pub(crate) fn run(request: Request) -> Result {
    let trace = Trace::open(&request.trace)?;
    let mut watch = Watch::begin();
    let tally = ensure_analyzed(&trace, &mut |progress| watch.look(progress))?;
    drop(watch);
    let head = Head::new(&trace, &tally)?;
    let mut sections = Vec::new();
    for section in request.sections {
        sections.push((section.name, (section.make)(&trace, &tally)?));
    }
    let answer = Answer { head, sections };
    match &answer.sections[..] {
        [(_, section)] if request.json && request.is_short => {
            output::print_json(&ShortAnswer { trace: &answer.head, section })?;
        }
        _ if request.json => output::print_json(&answer)?,
        _ => answer.print()?,
    }
    let unbalanced = answer.sections.iter().map(|(_, section)| section.unbalanced()).sum();
    if unbalanced > 0 { Err(CommandError::Unbalanced(unbalanced)) } else { Ok(ExitCode::SUCCESS) }
}

impl Answer {
    fn print(&self) -> Result<()> {
        let (mut out, w) = (io::stdout().lock(), columns());
        write!(out, "{:w$}", self.head)?;
        for (_, section) in &self.sections {
            write!(out, "\n{section:w$}")?;
        }
        Ok(())
    }
}

#[derive(serde::Serialize)]
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

pub(crate) fn analyze(args: AnalyzeArgs) -> Result {
    let trace = Trace::open(&args.trace)?;
    let mut watch = Watch::begin();
    let tally = analyze::analyze_watched(&trace, &mut |progress| watch.look(progress))?;
    drop(watch);
    let analyzed = Analyzed {
        trace: args.trace,
        events: tally.events,
        critical_sections: tally.holds,
        wake_ups: tally.dispatches,
        gaps: tally.gaps,
    };
    output::print(args.json, &analyzed)?;
    Ok(ExitCode::SUCCESS)
}
