//! The page that collects what the experiments have shown: a section for each, between markers, so that running one again
//! replaces its own section alone.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

use crate::experiment::{EXPERIMENTS, Experiment, Finding};
use crate::lab::Lab;

/// Puts the section of an experiment into the page at `path`, which is made if it is not there. `results` is where the
/// files lie, as seen from the page.
///
/// # Errors
///
/// When the page cannot be read or written.
pub fn put(
    path: &Path,
    results: &str,
    lab: &Lab,
    experiment: &Experiment,
    finding: &Finding,
) -> Result<()> {
    let page = match fs::read_to_string(path) {
        Ok(page) => page,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let page = replaced(&page, experiment.id, &section(results, lab.scale(), experiment, finding));
    let aside = path.with_extension("new");
    fs::write(&aside, page)
        .and_then(|()| fs::rename(&aside, path))
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn begin(id: &str) -> String {
    format!("<!-- begin: {id}, written by `cargo xtask paper` -->\n")
}

fn end(id: &str) -> String {
    format!("<!-- end: {id} -->\n")
}

/// The page with this section in place of the one before, or behind those that come before it.
fn replaced(page: &str, id: &str, section: &str) -> String {
    let marked = format!("{}{section}{}", begin(id), end(id));
    let place = |id: &str| {
        let from = page.find(&begin(id))?;
        let to = from + page[from..].find(&end(id))? + end(id).len();
        Some(from..to)
    };
    if let Some(place) = place(id) {
        return format!("{}{marked}{}", &page[..place.start], &page[place.end..]);
    }
    let before = EXPERIMENTS.iter().take_while(|experiment| experiment.id != id);
    let at = before.filter_map(|experiment| place(experiment.id)).map(|place| place.end).max();
    // The first one stands before all others, behind what was written by hand.
    let first =
        EXPERIMENTS.iter().filter_map(|experiment| place(experiment.id)).map(|p| p.start).min();
    let at = at.or(first).unwrap_or(page.len());
    let gap = if page[..at].is_empty() || page[..at].ends_with("\n\n") { "" } else { "\n" };
    let behind = if page[at..].is_empty() || page[at..].starts_with('\n') { "" } else { "\n" };
    format!("{}{gap}{marked}{behind}{}", &page[..at], &page[at..])
}

/// Writing to a string cannot fail.
fn section(results: &str, scale: f64, experiment: &Experiment, finding: &Finding) -> String {
    let mut text = format!("## {}\n\n", experiment.title);
    let length = match scale {
        s if s >= 1.0 => "at full length".to_owned(),
        s => format!("at {} of the paper's times", crate::quantity::percent(s)),
    };
    let _ = writeln!(text, "`cargo xtask paper {}`, {length}. {}\n", experiment.id, finding.how);
    for figure in &finding.figures {
        let _ = writeln!(text, "![{}]({results}/{figure})\n", experiment.title);
    }
    text += "| | paper | ours | why |\n|---|---|---|---|\n";
    for row in &finding.rows {
        let cells =
            [&row.what, &row.paper, &row.ours, &row.why].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let values = finding.values.iter().map(|name| format!("[{name}]({results}/{name})"));
    let values: Vec<String> = values.collect();
    if !values.is_empty() {
        let _ = writeln!(text, "\nValues: {}.", values.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_replaces_its_own_and_no_other() {
        let (first, second) = (EXPERIMENTS[0].id, EXPERIMENTS[1].id);
        let page = replaced("# By hand\n", second, "two\n");
        let page = replaced(&page, first, "one\n");
        let whole = format!(
            "# By hand\n\n{}one\n{}\n{}two\n{}",
            begin(first),
            end(first),
            begin(second),
            end(second)
        );
        assert_eq!(page, whole);
        assert_eq!(replaced(&page, first, "one\n"), page);
        assert_eq!(replaced(&page, second, "2\n"), page.replace("two", "2"));
        assert_eq!(replaced("", first, "one\n"), format!("{}one\n{}", begin(first), end(first)));
    }
}
