//! `ft-agent fleet`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use ft_catalogue::{Entry, list};
use ft_report::fleet::{By, Fleet, Member, Question, Sides};
use ft_trace::tables::Quantity;

use super::{Result, page, report};

/// Says where the time of many hosts goes, which hosts differ, and whether a build is slower.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the catalogue, as a path or file:///PATH.
    #[arg(value_name = "URL")]
    url: String,
    /// What is looked at: hold, wait, dispatch, gap, scope or request.
    #[arg(long, value_name = "QUANTITY", default_value = "hold", value_parser = quantity)]
    of: Quantity,
    /// Group it by host, kernel, hour, thread or a label.
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
}

const EXAMPLES: &str = "\
The traces must have been analysed (`ft-agent analyze`); what is read of each is its table histograms.

Examples:
  ft-agent fleet /srv/traces          the worst locks over all hosts, and hosts that differ
  ft-agent fleet /srv/traces --of wait --by hour
                                      waits for locks by the hour at which the trace began
  ft-agent fleet /srv/traces --of dispatch --by kernel
                                      wake-ups by release of the kernel
  ft-agent fleet /srv/traces --compare build=1.4,1.5
                                      is the new build slower, and how sure is that";

fn quantity(text: &str) -> std::result::Result<Quantity, String> {
    let known = Quantity::ALL.iter().copied().find(|quantity| quantity.word() == text);
    known.ok_or_else(|| "name hold, wait, dispatch, gap, scope or request".into())
}

pub(crate) fn run(args: Args) -> Result {
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
    let root = ft_catalogue::directory(&args.url)?;
    let mut fleet = Fleet::new(Question { quantity: args.of, by: args.by, sides: args.compare });
    for entry in &listing.entries {
        fleet.add(member(entry), &root.join(&*entry.path));
    }
    let document = fleet.document();
    match args.html {
        Some(file) => page::say(&file, page::write(&document, "", &file)?)?,
        None => report::print(&document, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
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
