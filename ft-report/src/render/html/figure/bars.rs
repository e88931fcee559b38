//! How many of each class, with a logarithmic axis for the counts.

use std::fmt;

use plotters::prelude::*;

use super::csv::Csv;
use super::plot::{self, Axis, FILL, HEIGHT, Plot, WIDTH};
use super::{Drawing, Failed};
use crate::document::Value;
use crate::render::number;

/// Draws one for each.
pub(super) fn draw<'a>(
    axis: &str,
    counted: &str,
    each: impl Iterator<Item = (&'a Value, &'a Vec<(u64, u64)>)>,
) -> Result<Vec<Drawing>, fmt::Error> {
    let one = |(of, bars): (&Value, &Vec<(u64, u64)>)| {
        let plot = Plot::new((WIDTH, HEIGHT - 60), |area| one(area, axis, counted, bars))?;
        let mut csv = Csv::new(&[axis, counted]);
        bars.iter().for_each(|(class, n)| csv.row([class.to_string(), n.to_string()]));
        Ok(Drawing { of: of.clone(), plot, csv })
    };
    each.filter(|(_, bars)| !bars.is_empty()).map(one).collect()
}

fn one(
    area: &plot::Area<'_>,
    axis: &str,
    counted: &str,
    bars: &[(u64, u64)],
) -> Result<(char, Axis), Failed> {
    let last = bars.last().map_or(0, |bar| bar.0);
    let values = -0.5..(last.max(7) as f64 + 0.5);
    let largest = bars.iter().map(|bar| bar.1).max().unwrap_or(1);
    let counts = plot::counts(largest);
    let floor = counts.start;
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(values.clone(), counts.log_scale())?;
    let whole = |value: &f64| match value.fract() == 0.0 && *value >= 0.0 {
        true => number::whole(*value),
        false => String::new(),
    };
    plot::mesh(&mut chart)
        .disable_x_mesh()
        .x_labels((last as usize + 2).clamp(9, 24))
        .y_labels(6)
        .x_label_formatter(&whole)
        .y_label_formatter(&|value| plot::count(*value))
        .x_desc(axis)
        .y_desc(counted)
        .draw()?;
    let bar = |&(class, n): &(u64, u64)| {
        let class = class as f64;
        Rectangle::new([(class - 0.4, floor), (class + 0.4, n as f64)], FILL.filled())
    };
    chart.draw_series(bars.iter().filter(|bar| bar.1 > 0).map(bar))?;
    let pixel = |value| chart.backend_coord(&(value, floor)).0;
    let pixels = pixel(values.start)..pixel(values.end);
    Ok(('x', Axis { is_log: false, values, pixels, before: 0.5, width: 1.0 }))
}
