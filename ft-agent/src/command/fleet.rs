//! `ft-agent fleet`.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ft_catalogue::{Entry, Key, Tasks, list};
use ft_report::analyze;
use ft_report::document::Document;
use ft_report::fleet::{By, Fleet, Longest, Member, Question, Sides};
use ft_report::sections::{self, Asked};
use ft_trace::store::{Row as _, Trace};
use ft_trace::tables::{Bucket, Quantity};

use super::error::CommandError;
use super::{Result, page, report};

/// Says where the time of many hosts goes, which hosts differ, and whether a build is slower.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The catalogue: a directory, or s3://BUCKET/PREFIX.
    #[arg(value_name = "URL")]
    url: String,
    /// What is looked at: hold, wait, dispatch, gap, scope or request.
    #[arg(long, value_name = "QUANTITY", default_value = "hold", value_parser = quantity)]
    of: Quantity,
    /// Group it by host, kernel, hour, thread, neighbour (who had the CPU instead, of hold, dispatch, gap and scope) or a label.
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
    /// Compare the traces with two values of a label, B against A: build=1.4,1.5.
    #[arg(long, value_name = "LABEL=A,B")]
    compare: Option<Sides>,
    /// Print JSON: every row, with every digit.
    #[arg(long)]
    json: bool,
    /// Write a page for a browser into this file, instead of text.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// Write pages of so many traces, too, those with the longest intervals, beside that file in FILE.traces/: the fleet's page links to
    /// the intervals in them.
    #[arg(long, value_name = "N", requires = "html", default_value_t = 0)]
    pages: usize,
}

const EXAMPLES: &str = "\
The traces must have been analysed (`ft-agent analyze`); what is read of each is its table histograms. Of a store, that is copied to
TMPDIR, of eight traces at a time; for --pages, whole traces are.

Examples:
  ft-agent fleet /srv/traces          the worst locks over all hosts, and hosts that differ
  ft-agent fleet /srv/traces --of wait --by hour
                                      waits for locks by the hour at which the trace began
  ft-agent fleet /srv/traces --of dispatch --by kernel
                                      wake-ups by release of the kernel
  ft-agent fleet /srv/traces --by neighbour
                                      holds by who preempted the holder longest
  ft-agent fleet /srv/traces --compare build=1.4,1.5
                                      is the new build slower, and how sure is that
  ft-agent fleet /srv/traces --html fleet.html --pages 5
                                      as a page, with links into five traces";

fn quantity(text: &str) -> std::result::Result<Quantity, String> {
    let known = Quantity::ALL.iter().copied().find(|quantity| quantity.word() == text);
    known.ok_or_else(|| "name hold, wait, dispatch, gap, scope or request".into())
}

pub(crate) fn run(args: Args) -> Result {
    let has_neighbour = !matches!(args.of, Quantity::Wait | Quantity::Request);
    if args.by == Some(By::Neighbour) && !has_neighbour {
        return Err(CommandError::NoNeighbour(args.of.word()));
    }
    let listing = list(&args.url)?;
    for (path, why) in &listing.wrong {
        let wrong = format!("{path}: {why}").escape_debug().to_string();
        let _ = writeln!(io::stderr(), "ft-agent: warning: no row of a trace, left out: {wrong}");
    }
    if listing.is_cut {
        let _ = writeln!(
            io::stderr(),
            "ft-agent: warning: there are more traces than are read; use DuckDB"
        );
    }
    let tasks = Tasks::of(&args.url)?;
    let mut fleet = Fleet::new(Question { quantity: args.of, by: args.by, sides: args.compare });
    // Every row that is listed names its trace.
    let entries = listing.entries.iter().filter_map(|entry| Some((entry.key()?, entry)));
    let entries: Vec<(Key, &Entry)> = entries.collect();
    tasks.read_each(
        &entries,
        |table| table == Bucket::TABLE,
        |entry, trace| match trace {
            Ok(trace) => fleet.add(member(entry), trace.dir()),
            Err(error) => fleet.add_unread(member(entry), error.to_string()),
        },
    );
    match args.html {
        Some(file) => {
            page::check(&file)?;
            write_pages(&mut fleet, args.pages, &tasks, &file)?;
            page::say(&mut io::stdout(), &file, page::write(&fleet.document(), "", &file)?)?;
        }
        None => report::print(&fleet.document(), args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// On either side of an interval, what a page has every detail of, ns.
const AROUND_NS: i64 = 1_000_000;

/// Pages of the traces with the longest intervals, as their own reports.
fn write_pages(fleet: &mut Fleet, most: usize, tasks: &Tasks, file: &Path) -> Result<()> {
    let longest = fleet.longest(most);
    if longest.is_empty() {
        return Ok(());
    }
    let mut folder = file.file_name().unwrap_or_default().to_owned();
    folder.push(".traces");
    let beside = file.with_file_name(&folder);
    let made = fs::create_dir_all(&beside);
    made.map_err(|source| CommandError::File { path: beside.clone(), source })?;
    for Longest { trace: path, ts, dur_ns } in longest {
        let Some(key) = Key::of_path(&path) else { continue };
        let readable = tasks.task(&key).read(|_| true)?;
        let trace = Trace::open(readable.dir())?;
        // Of this version, or the trace would be in no figure.
        let Some(tally) = analyze::tally(trace.dir())? else { continue };
        let reports = sections::usual(&trace.meta().start.kernel_groups, &tally, false);
        let document = Document::of(&trace, &tally, reports, Asked::default())?;
        let to = ts.saturating_add(dur_ns).saturating_add(AROUND_NS);
        let window = ts.saturating_sub(AROUND_NS)..to;
        // The trace's own name, the last of its path.
        let name = format!("{}.html", path.rsplit("trace=").next().unwrap_or_default());
        page::with_timeline(&trace, &tally, &document, Some(window), &beside.join(&name))?;
        let href = format!("{}/{name}", encoded(&folder));
        fleet.link(&path, href, document.begin_ns);
    }
    Ok(())
}

/// A file's name as a part of a URL.
fn encoded(name: &OsStr) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let each = name.as_bytes().iter().map(|&byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    each.collect()
}

fn member(entry: &Entry) -> Member {
    Member {
        path: entry.path.to_string(),
        host: entry.host.to_string(),
        kernel: entry.kernel.to_string(),
        start_ns: entry.start_ns,
        labels: entry.labels(),
        lost: entry.lost.max(0).unsigned_abs(),
    }
}
