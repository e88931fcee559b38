//! Where the time of several threads went: a bar for each, of its parts.

use std::fmt;

use ft_trace::tables::Part;
use plotters::prelude::*;

use super::csv::{self, Csv};
use super::plot::{self, Axis, Plot, WIDTH};
use super::{Drawing, Failed};
use crate::document::Value;
use crate::render::colors;
use crate::render::columns::cut;
use crate::render::text;

/// Height of a bar with the space to the next.
const BAR: u32 = 18;

/// Space above the bars, for the colours' names, and below them, for the axis.
const TOP: u32 = 26;
const BOTTOM: u32 = 46;

/// Characters of a name.
const NAME: usize = 22;

type Stack = (Value, Option<i32>, Vec<i64>);

/// Draws all of them.
pub(super) fn draw(parts: &[&str], stacks: &[Stack]) -> Result<Drawing, fmt::Error> {
    let height = TOP + BOTTOM + BAR * stacks.len().max(1) as u32;
    let plot = Plot::new((WIDTH, height), |area| all(area, parts, stacks))?;
    let titles = parts.iter().map(|part| format!("{part}_ns"));
    let titles: Vec<String> = ["thread".into(), "tid".into()].into_iter().chain(titles).collect();
    let mut csv = Csv::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for (of, tid, ns) in stacks {
        let tid = tid.map_or(String::new(), |tid| tid.to_string());
        let ns = ns.iter().map(ToString::to_string);
        csv.row([csv::name(&text::cell(of)), tid].into_iter().chain(ns));
    }
    Ok(Drawing { of: text::ALL, plot, csv })
}

/// The colours of these parts.
fn colors<'a>(parts: &'a [&str]) -> impl Iterator<Item = RGBColor> + 'a {
    parts.iter().map(|part| {
        let [r, g, b] = colors::light(Part::of(part));
        RGBColor(r, g, b)
    })
}

fn all(area: &plot::Area<'_>, parts: &[&str], stacks: &[Stack]) -> Result<(char, Axis), Failed> {
    let mut x = 160;
    for (part, color) in parts.iter().zip(colors(parts)) {
        area.draw(&Rectangle::new([(x, 6), (x + 11, 17)], color.filled()))?;
        area.draw(&Text::new((*part).to_owned(), (x + 16, 5), plot::label()))?;
        x += 32 + 6 * part.len() as i32;
    }
    let longest = stacks.iter().map(|(.., ns)| ns.iter().sum::<i64>()).max().unwrap_or(0).max(1);
    let rows = stacks.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_top(TOP)
        .margin_right(24)
        .x_label_area_size(BOTTOM)
        .y_label_area_size(160)
        .build_cartesian_2d(0.0..longest as f64, rows..0.0)?;
    plot::mesh(&mut chart)
        .disable_y_mesh()
        .y_labels(0)
        .x_labels(8)
        .x_label_formatter(&|value| plot::ns(*value))
        .x_desc("time in all")
        .draw()?;
    let (across, down) = chart.plotting_area().get_pixel_range();
    for (row, (of, tid, ns)) in stacks.iter().enumerate() {
        let row = row as f64;
        let mut from = 0.0;
        for (ns, color) in ns.iter().zip(colors(parts)).filter(|(ns, _)| **ns > 0) {
            let to = from + *ns as f64;
            let bar = Rectangle::new([(from, row + 0.12), (to, row + 0.88)], color.filled());
            chart.draw_series([bar])?;
            from = to;
        }
        let tid = tid.map_or(String::new(), |tid| format!(" {tid}"));
        let name = cut(&text::cell(of), NAME) + &tid;
        let middle = down.start + ((row + 0.5) * f64::from(BAR)) as i32;
        area.draw(&Text::new(name, (across.start - 6, middle), plot::label_to_the_left()))?;
    }
    let pixel = |row| chart.backend_coord(&(0.0, row)).1;
    let pixels = pixel(0.0)..pixel(rows);
    Ok(('y', Axis { is_log: false, values: 0.0..rows, pixels, before: 0.0, width: 1.0 }))
}
