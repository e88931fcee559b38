//! Tables that a reader can sort and filter.

use std::fmt::{self, Write};

use ft_analysis::Mark;

use super::escape::Escaped;
use super::value::{Links, class, is_number, meaning, order, sort_key};
use crate::document::{Column, Kind, Row, Table, Value};
use crate::render::number::{more, style_share};

/// Rows from which on a table has a field to filter them.
const WORTH_FILTERING: usize = 5;

/// Writes a table of this section.
pub(super) fn table<W: Write>(
    out: &mut W,
    table: &Table,
    section: &str,
    links: Links,
) -> fmt::Result {
    match table.anchor {
        "" => out.write_str("<figure class=table>")?,
        anchor => write!(out, "<figure class=table id=\"{section}-{anchor}\">")?,
    }
    if !table.title.pieces().is_empty() {
        out.write_str("<figcaption>")?;
        links.sentence(out, &table.title)?;
        out.write_str("</figcaption>")?;
    }
    if table.rows.len() >= WORTH_FILTERING {
        out.write_str(
            "<div class=tools><input type=search placeholder=\"Filter rows\" aria-label=\"Filter rows\">\
             <output></output></div>",
        )?;
    }
    out.write_str("<div class=scroll><table>\n<thead><tr>")?;
    table.columns.iter().try_for_each(|column| heading(out, column))?;
    out.write_str("</tr></thead>\n<tbody>\n")?;
    for row in table.rows.iter().filter(|row| !row.total) {
        line(out, &table.columns, row, links)?;
    }
    out.write_str("</tbody>")?;
    if table.rows.iter().any(|row| row.total) {
        out.write_str("\n<tfoot>\n")?;
        for row in table.rows.iter().filter(|row| row.total) {
            line(out, &table.columns, row, links)?;
        }
        out.write_str("</tfoot>")?;
    }
    out.write_str("</table></div>")?;
    if table.left_out() > 0 {
        let what = if table.what.is_empty() { "rows" } else { table.what };
        let more = more(table.left_out(), what);
        write!(out, "<p class=omitted>… and {more}, which <code>--json</code> has</p>")?;
    }
    out.write_str("</figure>\n")
}

fn heading<W: Write>(out: &mut W, Column { title, kind }: &Column) -> fmt::Result {
    let numbers = if is_number(*kind) { " class=n" } else { "" };
    let title = Escaped(title);
    match order(*kind) {
        None => write!(out, "<th scope=col{numbers}>{title}</th>"),
        Some(order) => write!(
            out,
            "<th scope=col{numbers} data-order={order}><button type=button>{title}</button></th>"
        ),
    }
}

fn line<W: Write>(out: &mut W, columns: &[Column], row: &Row, links: Links) -> fmt::Result {
    match row.mark {
        Mark::Exact => out.write_str("<tr>")?,
        mark => write!(out, "<tr class={}>", class(mark))?,
    }
    let is_said = columns.iter().any(|column| column.kind == Kind::Mark);
    let starred = columns.iter().position(|column| column.kind == Kind::DurationNs);
    for (i, (column, value)) in columns.iter().zip(&row.cells).enumerate() {
        cell(out, column.kind, value, links)?;
        if row.mark != Mark::Exact && !is_said && Some(i) == starred {
            write!(out, "<abbr class=mark title=\"{}\">*</abbr>", meaning(row.mark))?;
        }
        out.write_str("</td>")?;
    }
    out.write_str("</tr>\n")
}

/// A cell, but for its end.
fn cell<W: Write>(out: &mut W, kind: Kind, value: &Value, links: Links) -> fmt::Result {
    out.write_str("<td")?;
    if is_number(kind) {
        out.write_str(" class=n")?;
    } else if kind == Kind::Thread {
        out.write_str(" class=t")?;
    }
    let key = sort_key(value);
    match key {
        // As the script reads it.
        Some(f64::INFINITY) => out.write_str(" data-v=Infinity")?,
        Some(key) => write!(out, " data-v={key}")?,
        None => {}
    }
    // A share is drawn behind its number.
    if let (Value::Share(..), Some(key)) = (value, key) {
        write!(out, " style=\"--share:{}\"", style_share(key.clamp(0.0, 1.0), 1))?;
    }
    out.write_str(">")?;
    links.cell(out, value)
}
