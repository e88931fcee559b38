//! `ft-agent tables`.

use std::io::{self, Write};
use std::process::ExitCode;

use ft_catalogue::Entry;
use ft_trace::store::catalogue::{self, Table};

use super::error::CommandError;
use super::{Result, output};

/// Lists the tables of a trace, and what their columns mean.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Show this table alone, with its columns.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the tables and their columns as JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent tables                     all tables, one a line
  ft-agent tables lock_waits          the columns of one: type, unit and meaning
  ft-agent tables traces              that of a catalogue (`ft-agent catalogue`)
  ft-agent tables --json | jq -r '.[].name'";

pub(crate) fn run(args: Args) -> Result {
    let mut tables = catalogue::tables();
    if let Some(name) = args.name {
        // No trace has that one, so it is not among those that are listed.
        tables.push(Entry::table());
        tables.retain(|table| table.name == name);
        let [table] = &tables[..] else { return Err(CommandError::UnknownTable(name)) };
        if args.json {
            output::print_json(table)?;
        } else {
            write!(io::stdout().lock(), "{table}")?;
        }
    } else if args.json {
        output::print_json(&tables)?;
    } else {
        write!(io::stdout().lock(), "{}", list(&tables))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each table: its name, and the first sentence about it.
fn list(tables: &[Table]) -> String {
    let width = tables.iter().map(|table| table.name.len()).max().unwrap_or(0);
    let first = |about: &str| about.split_once(". ").map_or(about, |(first, _)| first).to_owned();
    let line = |table: &Table| {
        format!("{:width$}  {}\n", table.name, first(&table.about).trim_end_matches('.'))
    };
    tables.iter().map(line).collect()
}
