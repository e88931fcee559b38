//! `ft-agent report`, and its short forms (`ft-agent SECTION`).
//!
//! A report is made of sections ([`sections::all`]); every section is reached the same way, so that a new one needs
//! neither a subcommand nor a flag. One call opens the trace once, however many sections are asked for.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};

use ft_analysis::{Deadline, Recorded, RequestKind, Tally};
use ft_report::analyze;
use ft_report::document::Document;
use ft_report::sections::profile::By;
use ft_report::sections::{self, Asked, Report};
use ft_report::{listing, units};
use ft_trace::store::Trace;
use ft_trace::tables::SiteRow;

use super::error::CommandError;
use super::trace_arg::{Rest, TraceArg};
use super::watch::Watch;
use super::width::columns;
use super::{Result, numbered, output, page};

/// Prints what the analyses have found: all of it, or some sections.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct Args {
    /// Directory of the trace [default: the newest of trace, trace-2, …].
    #[arg(value_name = "DIR")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    rest: Rest,
    /// Sections, printed in this order [default: those from locks to functions; futexes, stacks, tasks and others
    /// only if they were recorded].
    #[arg(value_name = "SECTION", value_parser = SectionName, hide_possible_values = true)]
    sections: Vec<String>,
    /// Print JSON: every lock and thread, bins of 0.1 µs, times in ns.
    #[arg(long)]
    json: bool,
    /// Write it as one self-contained HTML page; without sections, with all of them.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// The begin of a reaction: irq:NAME, timer:THREAD, packet:THREAD, wake:THREAD or event:NAME, with * for anything (see
    /// reactivity). It is stored in the trace, and later reports use it too.
    ///
    /// With --html it can be a time after the start (1.5s, 200ms) instead: the page's timeline keeps every detail from there on.
    #[arg(long, value_name = "CAUSE|TIME", value_parser = End::parse)]
    from: Option<End>,
    /// The event (event:NAME) that answers it. With --html also a time: keep every detail of the timeline up to there.
    #[arg(long, value_name = "EVENT|TIME", value_parser = End::parse)]
    to: Option<End>,
    /// A kind of request: from one event to another, or a scope, wherever it is nested. It is stored in the trace, and later reports
    /// use it too.
    #[arg(long, value_name = "BEGIN,END|SCOPE")]
    request: Vec<String>,
    /// The argument of both events by which the end of a request, or an answer, finds its begin on any thread; one for all
    /// --request and --from, or one for each.
    #[arg(long, value_name = "ARGUMENT")]
    key: Vec<String>,
    /// The deadline of each cycle of the periodic threads of this name (rt-loop=1ms). It is stored in the trace, and later reports
    /// use it too. The exit status is 3 if a cycle was longer.
    #[arg(long, value_name = "THREAD=TIME", value_parser = deadline)]
    deadline: Vec<RequestKind>,
    /// Show this request, by its number in the section requests, with its critical path.
    #[arg(long, value_name = "NUMBER")]
    of: Option<i64>,
    #[command(flatten)]
    asked: AskedArgs,
}

/// An end of a window, or of reactions.
#[derive(Clone, Debug)]
enum End {
    /// Of the page's timeline, ns after the start.
    Time(i64),
    /// A cause or an answer.
    Named(String),
}

impl End {
    /// A name has a colon, and a time has none.
    fn parse(text: &str) -> std::result::Result<End, String> {
        if text.contains(':') {
            return Ok(End::Named(text.to_owned()));
        }
        let is_time = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        units::offset_ns(text).map(End::Time).map_err(|why| match is_time {
            true => why,
            false => format!(
                "'{text}' has no kind; write one before the name, as in irq:eth0 or event:msg.received, or a time, as 1.5s"
            ),
        })
    }

    /// Both ends: of a window, and of reactions.
    ///
    /// # Errors
    ///
    /// When one is of a window and the other of reactions, or a reaction has one alone.
    fn both(
        from: Option<End>,
        to: Option<End>,
    ) -> Result<(Option<page::Window>, Option<[String; 2]>)> {
        match (from, to) {
            (None, None) => Ok((None, None)),
            (Some(End::Named(from)), Some(End::Named(to))) => Ok((None, Some([from, to]))),
            (Some(End::Named(_)), _) | (_, Some(End::Named(_))) => Err(CommandError::HalfReaction),
            (from, to) => {
                let time = |end: Option<End>| match end {
                    Some(End::Time(ns)) => Some(ns),
                    _ => None,
                };
                Ok((Some((time(from), time(to))), None))
            }
        }
    }
}

/// What can be asked of reports beyond their name.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
struct AskedArgs {
    /// Group the samples of `profile` by this alone, and show more of it.
    #[arg(long, value_name = "WHAT", value_parser = by())]
    by: Option<By>,
}

/// The groupings of a profile.
fn by() -> impl TypedValueParser<Value = By> {
    PossibleValuesParser::new(By::ALL.map(By::name)).map(|name| {
        let by = By::ALL.into_iter().find(|by| by.name() == name);
        by.expect("clap lets through what is listed")
    })
}

impl AskedArgs {
    /// # Errors
    ///
    /// When it is asked of a report that does not know it.
    fn of(self, reports: &[&Report]) -> Result<Asked> {
        if self.by.is_some() && !reports.iter().any(|report| report.name == "profile") {
            return Err(CommandError::ByWithoutProfile);
        }
        Ok(Asked { by: self.by })
    }
}

/// `ft-agent SECTION DIR`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShortArgs {
    /// Directory of the trace [default: the newest of trace, trace-2, …].
    #[arg(value_name = "DIR")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    rest: Rest,
    /// Print JSON: every lock and thread, bins of 0.1 µs, times in ns.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    asked: AskedArgs,
}

fn after_help() -> String {
    let reports = sections::all().iter();
    let width = reports.clone().map(|report| report.name.len()).max().unwrap_or(0);
    let sections: String = reports.map(|r| format!("  {:width$}  {}\n", r.name, r.about)).collect();
    format!(
        "\
Sections:
{sections}
`ft-agent SECTION DIR` is short for `ft-agent report DIR SECTION`.
Text is as wide as the terminal, or as COLUMNS says, at least 80 columns; 100 when it is piped. Columns for \
which a table has no room follow below it.

Examples:
  ft-agent report                     everything of the newest trace
  ft-agent report trace               everything of this one
  ft-agent report trace locks waits   who held which lock, and who waited for it
  ft-agent report trace requests --request http.begin,http.end --key id
                                      requests from one event to another, on whatever threads
  ft-agent report trace requests --of 17
                                      one of them, with its critical path; with --html, a page of it
  ft-agent report trace reactivity --from 'irq:eth*' --to event:msg.received
                                      how long it took from a packet's interrupt to the event
  ft-agent report trace --deadline 'rt-loop=1ms'
                                      which cycles of a periodic thread took longer, and why
  ft-agent report trace profile --by lock-held
                                      what ran while which lock was held
  ft-agent report trace --html page.html
                                      all of it for a browser, in one file, with a timeline
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
        let value = |report: &Report| PossibleValue::new(report.name).help(report.about);
        Some(Box::new(sections::all().iter().map(value)))
    }
}

/// The exit status where a cycle missed its deadline.
const MISSED: u8 = 3;

/// Reads `rt-loop=1ms`.
pub(super) fn deadline(text: &str) -> std::result::Result<RequestKind, String> {
    let wrong = || "name a thread and a time, as in 'rt-loop=1ms'".to_owned();
    let (threads, time) = text.rsplit_once('=').ok_or_else(wrong)?;
    let time = units::duration(time)?;
    RequestKind::deadline(threads, time.as_nanos() as i64).map_err(|_| wrong())
}

/// Of the same ones the first: each has rows of its own.
pub(super) fn each_once(deadlines: Vec<RequestKind>) -> Vec<RequestKind> {
    let mut each: Vec<RequestKind> = Vec::new();
    for deadline in deadlines {
        if !each.contains(&deadline) {
            each.push(deadline);
        }
    }
    each
}

/// The exit status of whoever asked for deadlines.
///
/// # Errors
///
/// When one is of threads that have no cycle.
pub(super) fn judged(tally: &Tally) -> Result {
    let deadlines = &tally.requests.deadlines;
    let missed = |deadline: &Deadline| deadline.missed + deadline.not_over_alive > 0;
    if let Some(none) = deadlines.iter().find(|d| d.cycles == 0 && !missed(d)) {
        return Err(CommandError::NoCycle(none.kind.clone()));
    }
    let missed = deadlines.iter().any(missed);
    Ok(if missed { ExitCode::from(MISSED) } else { ExitCode::SUCCESS })
}

/// What is asked of a trace.
pub(crate) struct Request {
    trace: TraceArg,
    reports: Vec<&'static Report>,
    form: Form,
    /// Requests that are asked for.
    kinds: Vec<RequestKind>,
    /// Deadlines are among them: the exit status says whether all were met.
    judges: bool,
    /// One request alone.
    of: Option<i64>,
    asked: Asked,
}

/// As what it is asked for.
enum Form {
    Text,
    Json,
    /// A page, with every detail of its timeline in a window.
    Html(PathBuf, Option<page::Window>),
}

impl Form {
    fn printed(json: bool) -> Form {
        if json { Form::Json } else { Form::Text }
    }
}

impl Args {
    /// `ft-agent report DIR study`.
    pub(super) fn study(trace: PathBuf, json: bool) -> Args {
        Args {
            trace: Some(trace),
            rest: Rest::default(),
            sections: vec!["study".into()],
            json,
            html: None,
            from: None,
            request: Vec::new(),
            key: Vec::new(),
            deadline: Vec::new(),
            of: None,
            to: None,
            asked: AskedArgs::default(),
        }
    }

    /// # Errors
    ///
    /// When there is no such section.
    pub(crate) fn request(self) -> Result<Request> {
        let Args {
            trace,
            rest,
            sections: mut names,
            json,
            html,
            from,
            request,
            key,
            deadline,
            of,
            to,
            asked,
        } = self;
        let (trace, section) = named(trace)?;
        let trace = TraceArg { trace, rest };
        names.splice(..0, section);
        let (window, reaction) = End::both(from, to)?;
        let mut kinds = kinds(&request, reaction, &key)?;
        let judges = !deadline.is_empty();
        if judges && names.is_empty() && html.is_none() && of.is_none() {
            names.push("deadlines".into());
        }
        kinds.extend(each_once(deadline));
        let mut reports: Vec<&Report> = Vec::new();
        for name in names {
            let report = sections::find(&name).ok_or(CommandError::UnknownSection(name))?;
            if !reports.iter().any(|known| known.name == report.name) {
                reports.push(report);
            }
        }
        if window.is_some() && html.is_none() {
            return Err(CommandError::WindowWithoutPage);
        }
        let form = html.map_or(Form::printed(json), |file| Form::Html(file, window));
        let asked = asked.of(&reports)?;
        if of.is_some() && reports.iter().any(|report| report.name != "requests") {
            return Err(CommandError::OfRequest);
        }
        // What is printed where nothing is named, the trace decides.
        if reports.is_empty() && matches!(form, Form::Html(..)) {
            reports.extend(sections::all());
        }
        Ok(Request { trace, reports, form, kinds, judges, of, asked })
    }
}

impl ShortArgs {
    /// # Errors
    ///
    /// When something is asked that the section does not know.
    pub(crate) fn request(self, report: &'static Report) -> Result<Request> {
        let (reports, form) = (vec![report], Form::printed(self.json));
        let asked = self.asked.of(&reports)?;
        let trace = self.trace.map_or_else(numbered::newest, Ok)?;
        let trace = TraceArg { trace, rest: self.rest };
        let (kinds, judges, of) = (Vec::new(), false, None);
        Ok(Request { trace, reports, form, kinds, judges, of, asked })
    }
}

/// The trace that is named first, or the newest one; and the section that is named in its place.
fn named(first: Option<PathBuf>) -> Result<(PathBuf, Option<String>)> {
    let Some(first) = first else { return Ok((numbered::newest()?, None)) };
    let section = first.to_str().filter(|name| sections::find(name).is_some() && !first.exists());
    match section.map(str::to_owned) {
        None => Ok((first, None)),
        section => Ok((numbered::newest()?, section)),
    }
}

/// What `--request`, `--from`, `--to` and `--key` ask for.
fn kinds(
    requests: &[String],
    reaction: Option<[String; 2]>,
    keys: &[String],
) -> Result<Vec<RequestKind>> {
    let asked = requests.len() + usize::from(reaction.is_some());
    match keys.len() {
        1.. if asked == 0 => return Err(CommandError::KeyAlone),
        2.. if keys.len() != asked => return Err(CommandError::Keys(keys.len(), asked)),
        _ => {}
    }
    let key = |i: usize| {
        let key = keys.get(i).or(keys.first().filter(|_| keys.len() == 1));
        key.map(String::as_str)
    };
    let requests = requests.iter().enumerate().map(|(i, text)| RequestKind::parse(text, key(i)));
    let reaction = reaction.map(|[from, to]| RequestKind::reaction(&from, &to, key(asked - 1)));
    requests.chain(reaction).collect::<std::result::Result<_, _>>().map_err(CommandError::Request)
}

/// The counts of the trace's analysis, with the requests that are asked for.
pub(super) fn analyzed(trace: &Trace, kinds: Vec<RequestKind>) -> Result<Tally> {
    let mut watch = Watch::begin("analysis");
    if kinds.is_empty() {
        return Ok(analyze::ensure(trace, &mut |progress| watch.look(progress))?);
    }
    let sites: Vec<SiteRow> = trace.rows().collect::<std::result::Result<_, _>>()?;
    let recorded = match kinds.iter().any(RequestKind::needs_kernel) {
        true => analyze::recorded(trace)?,
        false => Recorded::default(),
    };
    let check = |kind: &RequestKind| kind.check(&sites, &recorded);
    kinds.iter().try_for_each(check).map_err(CommandError::Request)?;
    Ok(analyze::ensure_asking(trace, &sites, kinds, &mut |progress| watch.look(progress))?)
}

pub(crate) fn run(request: Request) -> Result {
    if let Form::Html(file, _) = &request.form {
        page::check(file)?;
    }
    let trace = request.trace.open()?;
    let tally = analyzed(&trace, request.kinds)?;
    if let Some(number) = request.of {
        let found = Document::of_request(&trace, &tally, number)?;
        let (document, time) = found.ok_or(CommandError::NoRequest(number))?;
        match request.form {
            Form::Html(file, window) => {
                let window = match window {
                    Some((from, to)) => listing::window(&trace, from, to)?,
                    None => time,
                };
                let bytes = page::with_timeline(&trace, &tally, &document, Some(window), &file)?;
                page::say(&mut io::stdout(), &file, bytes)?;
            }
            form => print(&document, matches!(form, Form::Json))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut reports = request.reports;
    if reports.is_empty() {
        let as_text = matches!(request.form, Form::Text);
        reports.extend(sections::usual(&trace.meta().start.kernel_groups, &tally, as_text));
    }
    let document = match request.form {
        Form::Html(file, window) => {
            let (document, bytes) =
                page::of_trace(&trace, &tally, reports, window, request.asked, &file)?;
            page::say(&mut io::stdout(), &file, bytes)?;
            document
        }
        form => {
            let document = Document::of(&trace, &tally, reports, request.asked)?;
            print(&document, matches!(form, Form::Json))?;
            document
        }
    };
    match document.fault() {
        Some(fault) => Err(CommandError::Fault(fault)),
        None if request.judges => judged(&tally),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Prints a document for whoever reads it.
/// Prints what a document says, without its head.
pub(super) fn print_sections(out: &mut dyn Write, document: &Document) -> Result<()> {
    for section in &document.sections {
        write!(out, "{section:0$}", columns())?;
    }
    Ok(())
}

pub(super) fn print(document: &Document, json: bool) -> Result<()> {
    match json {
        true => output::print_json(document),
        false => Ok(write!(io::stdout().lock(), "{document:0$}", columns())?),
    }
}
