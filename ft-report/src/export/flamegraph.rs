//! The time of each call chain as a flame graph, an SVG that needs nothing else: what [`collapsed`] writes,
//! drawn. A click goes into a function.

use std::io::Write;

use inferno::flamegraph::{Options, from_lines};

use super::{Job, Result, collapsed};

/// Draws it.
pub(super) fn write(job: &mut Job<'_>, out: &mut dyn Write) -> Result<()> {
    let lines = collapsed::lines(job)?;
    let mut options = Options::default();
    options.title = "Time by call chain".to_owned();
    options.count_name = "ms".to_owned();
    options.factor = 1e-6;
    options.deterministic = true;
    let lines: Vec<String> = lines.iter().map(|(line, ns)| format!("{line} {ns}")).collect();
    from_lines(&mut options, lines.iter().map(String::as_str), out)?;
    Ok(())
}
