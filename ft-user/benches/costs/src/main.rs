//! The cost table: runs every row with every peer, interleaved, and prints it as Markdown.
//!
//! `cargo xtask bench` builds what this needs and starts it. This process, and with it every tracer and
//! reader that it starts, runs on CPU 0; the subjects bind themselves to the last CPU.

mod bench;
mod figures;
mod lttng;
mod machine;
mod rows;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use bench::Bench;
use table::Row;

const USAGE: &str = "usage: ft-costs --agent FILE [--write README] [--quick] [ROW]…";

struct Arguments {
    agent: PathBuf,
    write: Option<PathBuf>,
    quick: bool,
    rows: Vec<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments> {
        let (mut agent, mut write, mut quick, mut rows) = (None, None, false, Vec::new());
        while let Some(word) = words.next() {
            match word.as_str() {
                "--agent" => agent = words.next(),
                "--write" => write = words.next(),
                "--quick" => quick = true,
                row if rows::ALL.iter().any(|(name, _)| *name == row) => rows.push(word),
                other => {
                    let known: Vec<&str> = rows::ALL.iter().map(|(name, _)| *name).collect();
                    bail!("there is no row `{other}`; there are: {}", known.join(", "));
                }
            }
        }
        let agent = agent.context(USAGE)?.into();
        Ok(Arguments { agent, write: write.map(PathBuf::from), quick, rows })
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    ft_costs::cpu::pin(0);
    let bench = Bench::new(&arguments.agent, arguments.quick)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut failed = 0;
    for (name, measure) in rows::ALL {
        if !arguments.rows.is_empty() && !arguments.rows.iter().any(|row| row == name) {
            continue;
        }
        eprintln!("costs: {name}");
        match measure(&bench) {
            Ok(measured) => rows.extend(measured),
            Err(error) => {
                failed += 1;
                rows.push(Row::unmeasured(name, &error));
            }
        }
    }
    let text = table::markdown(&machine::describe(&bench), &rows);
    println!("{text}");
    match &arguments.write {
        Some(readme) if arguments.rows.is_empty() && !arguments.quick => {
            table::write(readme, &machine::family(), &text)?;
            println!("written to {}", readme.display());
        }
        _ => println!("a part or a try: written nowhere"),
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
