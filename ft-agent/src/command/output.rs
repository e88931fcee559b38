//! What is printed on standard output: as text, or as JSON for programs.

use std::fmt::Display;
use std::io::{self, Write};

use ft_trace::legible::{write_json, write_json_pretty};
use serde::Serialize;

use super::Result;

/// Prints an answer, with a line's end behind its JSON.
pub(crate) fn print<T: Display + Serialize>(json: bool, answer: &T) -> Result<()> {
    if json { print_json(answer) } else { Ok(write!(io::stdout().lock(), "{answer}")?) }
}

/// Prints an answer as indented JSON.
pub(crate) fn print_json(answer: &impl Serialize) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write_json_pretty(&mut out, answer)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Prints an answer as one line of JSON: the last, where others have written before.
pub(crate) fn print_json_line(answer: &impl Serialize) -> Result<()> {
    let mut line = Vec::new();
    write_json(&mut line, answer)?;
    line.push(b'\n');
    Ok(io::stdout().write_all(&line)?)
}
