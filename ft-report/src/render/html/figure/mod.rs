//! Figures, each drawn as an SVG of all together and of each lock or thread, with its data as a file to download.
//!
//! `plotters` draws; the page's script shows one of the drawings at a time, and says what lies under the pointer. It
//! reads that from the file, so what it says is what is downloaded.

mod bars;
mod csv;
mod flame;
mod histogram;
mod matrix;
mod over_time;
mod plot;
mod stacks;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write};

use super::escape::Escaped;
use super::table;
use super::value::Links;
use crate::document::{Data, Figure, Kind, Row, Step, Table, Value};
use crate::render::number::count;
use crate::render::text;
use csv::Csv;
use plot::{Failed, Plot};

/// Rows of all files of a figure, but for the first, which is whole: a link holds at most 2 MiB in Chromium, and a page
/// should stay small.
///
/// Limit: a note that `--json` has the data replaces the link.
/// Shown by: `files_that_do_not_fit_are_said`.
const MOST_CSV_ROWS: usize = 60_000;

/// One drawing.
struct Drawing {
    /// Of whom.
    of: Value,
    plot: Plot,
    csv: Csv,
}

/// Writes a figure; `name` distinguishes it from the others of the page.
pub(super) fn figure<W: Write>(
    out: &mut W,
    figure: &Figure,
    name: &str,
    links: Links,
) -> fmt::Result {
    let (drawings, note) = match &figure.data {
        Data::Tails { of, tails } => {
            return table::table(out, &as_table(figure, *of, tails), "", links);
        }
        Data::Matrix { rows, columns, cells, counted } => {
            let matrix = matrix::Matrix { rows, columns, cells, counted };
            return matrix.write(out, figure, name, links);
        }
        Data::Flames { chains } => return flame::write(out, figure, chains, name, links),
        Data::Bars { axis, counted, bars, each } => {
            let all = (text::ALL, bars);
            let each = each.iter().map(|(of, bars)| (of, bars));
            (bars::draw(axis, counted, [(&all.0, all.1)].into_iter().chain(each))?, String::new())
        }
        Data::Cumulative { counted, steps, bins, each, .. } => {
            let exact = !bins.is_empty();
            let all = if exact { histogram::of_bins(bins) } else { Step::rows(steps).to_vec() };
            let each = each.iter().map(|h| (&h.of, histogram::of_bins(&h.bins)));
            histogram::draw(counted, [(&text::ALL, all)].into_iter().chain(each), exact)?
        }
        Data::Histograms { counted, each } => {
            let each = each.iter().map(|h| (&h.of, histogram::of_bins(&h.bins)));
            histogram::draw(counted, each, true)?
        }
        Data::Stacks { parts, stacks, more } => {
            let note = match more {
                0 => String::new(),
                n => format!("{} more threads are in the tables and in --json.", count(*n)),
            };
            (vec![stacks::draw(parts, stacks)?], note)
        }
        Data::OverTime { counted, window, each } => over_time::draw(counted, *window, each)?,
    };
    write!(out, "<figure class=plot id=\"{name}\">\n<figcaption>")?;
    links.sentence(out, &figure.title)?;
    out.write_str("</figcaption>\n")?;
    if drawings.len() > 1 {
        out.write_str("<div class=tools><select aria-label=\"Of what\">")?;
        for (i, drawing) in drawings.iter().enumerate() {
            write!(out, "<option value={i}>{}</option>", Escaped(&text::cell(&drawing.of)))?;
        }
        out.write_str("</select></div>\n")?;
    }
    let mut rows = 0;
    for (i, Drawing { plot, csv, .. }) in drawings.iter().enumerate() {
        let hidden = if i == 0 { "" } else { " hidden" };
        write!(out, "<div class=drawing{hidden}>{plot}<p class=data>")?;
        if i > 0 {
            rows += csv.rows();
        }
        match rows <= MOST_CSV_ROWS {
            true => csv.link(out, &format!("{name}-{i}.csv"))?,
            false => out.write_str("<span>its data is in <code>--json</code></span>")?,
        }
        out.write_str("<output></output></p></div>\n")?;
    }
    if !note.is_empty() {
        writeln!(out, "<p class=note>{}</p>", Escaped(&note))?;
    }
    out.write_str("</figure>\n")
}

/// Percentiles are read, not drawn.
fn as_table(
    figure: &Figure,
    (title, kind): (&str, Kind),
    tails: &[(Value, u64, crate::stats::Tail)],
) -> Table {
    use crate::document::{N, Ns};
    let mut table = Table::of(tails)
        .column(title, |(of, ..)| of.clone())
        .column("n", |(_, n, _)| N(*n))
        .column("p50", |(.., t)| Ns(t.p50_ns))
        .column("p90", |(.., t)| t.p90_ns.map(Ns))
        .column("p99", |(.., t)| t.p99_ns.map(Ns))
        .column("p99.9", |(.., t)| t.p999_ns.map(Ns))
        .column("p99.99", |(.., t)| t.p9999_ns.map(Ns))
        .column("max", |(.., t)| Ns(t.max_ns))
        .titled(figure.title.clone());
    table.columns[0].kind = kind;
    // Figures have the one over all last.
    if let [_, .., Row { cells, total, .. }] = &mut table.rows[..]
        && text::cell(&cells[0]) == text::cell(&text::ALL)
    {
        (*total, table.count) = (true, table.count - 1);
    }
    table
}
