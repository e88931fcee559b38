//! Durations over time: the average and the longest of each moment, with a logarithmic axis.

use std::fmt;

use plotters::prelude::*;

use super::csv::Csv;
use super::plot::{self, Axis, FILL, HEIGHT, LINE, Plot, WIDTH};
use super::{Drawing, Failed};
use crate::document::Value;
use crate::render::number;
use crate::stats::{OverTime, Window};

/// Draws one for each, and says how to read them.
pub(super) fn draw(
    counted: &str,
    window: Window,
    each: &[(Value, OverTime)],
) -> Result<(Vec<Drawing>, String), fmt::Error> {
    let one = |(of, found): &(Value, OverTime)| {
        let plot = Plot::new((WIDTH, HEIGHT), |area| one(area, window, found))?;
        Ok(Drawing { of: of.clone(), plot, csv: csv(counted, window, found) })
    };
    let drawings = each.iter().map(one).collect::<Result<_, fmt::Error>>()?;
    let moment = plot::ns(window.begin_ns(1) as f64);
    let note = format!(
        "Dots: the longest of the {counted} that began in each {moment}; the bars go from their average to it. Times \
         are since the begin of the trace."
    );
    Ok((drawings, note))
}

fn csv(counted: &str, window: Window, found: &OverTime) -> Csv {
    let mut csv = Csv::new(&["from_ns", counted, "mean_ns", "max_ns"]);
    for (at, moment) in found.iter() {
        let mean = moment.total_ns as f64 / moment.count as f64;
        let numbers = [moment.count.to_string(), number::whole(mean), moment.max_ns.to_string()];
        csv.row([window.begin_ns(at).to_string()].into_iter().chain(numbers));
    }
    csv
}

fn one(area: &plot::Area<'_>, window: Window, found: &OverTime) -> Result<(char, Axis), Failed> {
    let values = 0.0..window.length_ns() as f64;
    let mean = |m: &crate::stats::Moment| (m.total_ns as f64 / m.count as f64).max(1.0);
    let least = found.iter().map(|(_, m)| mean(&m)).fold(f64::INFINITY, f64::min);
    let most = found.iter().map(|(_, m)| m.max_ns).max().unwrap_or(1) as f64;
    let lengths = least.min(most / 20.0).max(1.0) * 0.7..most.max(10.0) * 1.6;
    let floor = lengths.start;
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .x_label_area_size(42)
        .y_label_area_size(76)
        .build_cartesian_2d(values.clone(), lengths.log_scale())?;
    plot::mesh(&mut chart)
        .disable_x_mesh()
        .x_labels(9)
        .y_labels(7)
        .x_label_formatter(&|value| plot::ns(*value))
        .y_label_formatter(&|value| plot::ns(*value))
        .x_desc("since the begin of the trace")
        .y_desc("length")
        .draw()?;
    let middle = |at: u32| window.begin_ns(at).midpoint(window.begin_ns(at + 1)) as f64;
    let bar = |(at, m): (u32, crate::stats::Moment)| {
        PathElement::new(
            [(middle(at), mean(&m)), (middle(at), m.max_ns as f64)],
            FILL.stroke_width(2),
        )
    };
    chart.draw_series(found.iter().map(bar))?;
    let dot = |(at, m): (u32, crate::stats::Moment)| {
        Circle::new((middle(at), m.max_ns.max(1) as f64), 2, LINE.filled())
    };
    chart.draw_series(found.iter().map(dot))?;
    let pixel = |value| chart.backend_coord(&(value, floor)).0;
    let pixels = pixel(values.start)..pixel(values.end);
    let width = window.begin_ns(1) as f64;
    Ok(('x', Axis { is_log: false, values, pixels, before: 0.0, width }))
}
