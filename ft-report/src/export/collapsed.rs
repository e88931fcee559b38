//! Call chains as lines of functions and a number, from the outermost on: what flame graphs are made of (Gregg's
//! `stackcollapse`, which has no specification: functions with `;` between them, a blank, a number).
//!
//! The number is time, ns. A chain begins with the process and what the thread did: `running` (a sample stands for the
//! time to the next one), `waiting`, `preempted`; then, where that is known, for which lock it waited, or which it held,
//! the one acquired last. So no time is there twice, and all of it has one unit.
//!
//! Of names only a `;` or the end of a line could be anything else: the former becomes `:`, the latter its picture.
//!
//! Memory: a line for each different chain of each process; what the conversion kept of chains bounds that.

use std::collections::BTreeMap;
use std::io::Write;

use super::chained::{self, Chained};
use super::text::visible;
use super::{Job, Result};
use crate::code::Code;

/// Lines of a trace, with their time; one at least.
pub(super) fn lines(job: &mut Job<'_>) -> Result<BTreeMap<String, i64>> {
    let code = Code::read(job.trace)?;
    let mut lines = BTreeMap::new();
    chained::each(job, &code, |time| *lines.entry(line(&time)).or_insert(0i64) += time.ns)?;
    Ok(lines)
}

fn line(time: &Chained<'_, '_>) -> String {
    let lock = time
        .lock
        .as_ref()
        .map(|lock| format!("{} '{}'", if lock.waited_for { "for" } else { "holding" }, lock.name));
    let mut line = String::new();
    let functions = time.frames.iter().rev().map(|frame| &*frame.label);
    let first = [&*time.process, time.did.word()];
    for (i, part) in first.into_iter().chain(lock.as_deref()).chain(functions).enumerate() {
        if i > 0 {
            line.push(';');
        }
        line.extend(part.chars().map(|c| if c == ';' { ':' } else { visible(c) }));
    }
    line
}

/// Writes them.
pub(super) fn write(job: &mut Job<'_>, out: &mut dyn Write) -> Result<()> {
    for (line, ns) in lines(job)? {
        writeln!(out, "{line} {ns}")?;
    }
    Ok(())
}
