//! How much there is between each two: a table, each of whose cells is as dark as it has much.

use std::fmt::{self, Write};

use super::csv::{self, Csv};
use crate::document::{Figure, Value};
use crate::render::html::escape::Escaped;
use crate::render::html::value::Links;
use crate::render::number::{count, dur, style_share};
use crate::render::text;

/// What is in it; see [`Data::Matrix`](crate::document::Data::Matrix).
pub(super) struct Matrix<'a> {
    pub(super) rows: &'a (&'static str, Vec<Value>),
    pub(super) columns: &'a (&'static str, Vec<Value>),
    pub(super) cells: &'a [(usize, usize, u64, i64)],
    pub(super) counted: &'static str,
}

impl Matrix<'_> {
    /// Writes it, with its file.
    pub(super) fn write<W: Write>(
        &self,
        out: &mut W,
        figure: &Figure,
        name: &str,
        links: Links,
    ) -> fmt::Result {
        let Matrix { rows, columns, cells, counted } = self;
        let (least, most) = cells.iter().fold((i64::MAX, 1), |(least, most), cell| {
            (least.min(cell.3.max(1)), most.max(cell.3))
        });
        write!(out, "<figure class=matrix id=\"{name}\">\n<figcaption>")?;
        links.sentence(out, &figure.title)?;
        write!(
            out,
            "</figcaption>\n<div class=scroll><table>\n<thead><tr><th scope=col>{}",
            rows.0
        )?;
        for column in &columns.1 {
            out.write_str("</th><th scope=col>")?;
            links.cell(out, column)?;
        }
        out.write_str("</th></tr></thead>\n<tbody>\n")?;
        let mut csv = Csv::new(&[rows.0, columns.0, counted, "total_ns"]);
        for (i, row) in rows.1.iter().enumerate() {
            out.write_str("<tr><th scope=row>")?;
            links.cell(out, row)?;
            out.write_str("</th>")?;
            for (j, column) in columns.1.iter().enumerate() {
                let Some((.., n, ns)) = cells.iter().find(|cell| (cell.0, cell.1) == (i, j)) else {
                    out.write_str("<td></td>")?;
                    continue;
                };
                let names = [row, column].map(|of| csv::name(&text::cell(of)));
                csv.row(names.into_iter().chain([n.to_string(), ns.to_string()]));
                write!(
                    out,
                    "<td data-v={ns} style=\"--heat:{}\" title=\"{}\">{}</td>",
                    style_share(heat(*ns, least, most), 0),
                    Escaped(&format!("{} {counted}", count(*n))),
                    Escaped(&dur(*ns))
                )?;
            }
            out.write_str("</tr>\n")?;
        }
        out.write_str("</tbody></table></div><p class=data>")?;
        csv.link(out, &format!("{name}.csv"))?;
        out.write_str("</p></figure>\n")
    }
}

/// By the logarithm: the least that is there is seen, as a part of the darkest.
fn heat(ns: i64, least: i64, most: i64) -> f64 {
    let part = (ns.max(1) as f64 / least as f64).ln() / (most as f64 / least as f64).ln();
    if part.is_finite() { 0.08 + 0.52 * part } else { 0.6 }
}
