//! Histograms of durations in bins of 0.1 µs, with their cumulative distribution; both axes are logarithmic.

use std::fmt;

use plotters::prelude::*;

use super::csv::Csv;
use super::plot::{self, Axis, FILL, HEIGHT, INK, LINE, Plot, WIDTH};
use super::{Drawing, Failed};
use crate::document::Value;
use crate::render::number;
use crate::stats::{BIN_NS, MAX_BINS};

/// Where the axis begins when there are durations of less than a bin, of which a logarithm knows no begin.
const LEAST_NS: f64 = 50.0;

/// Draws one for each, and says how to read them. `exact`: the bins are of [`BIN_NS`], not steps.
pub(super) fn draw<'a>(
    counted: &str,
    each: impl Iterator<Item = (&'a Value, &'a Vec<(i64, u64)>)>,
    exact: bool,
) -> Result<(Vec<Drawing>, String), fmt::Error> {
    let mut open = false;
    let mut drawings = Vec::new();
    for (of, bins) in each.filter(|(_, bins)| !bins.is_empty()) {
        open |= bins.last().is_some_and(|(ns, _)| *ns == (MAX_BINS - 1) * BIN_NS);
        let plot = Plot::new((WIDTH, HEIGHT), |area| one(area, counted, bins, exact))?;
        drawings.push(Drawing { of: of.clone(), plot, csv: csv(counted, bins) });
    }
    let bins = if exact { "in each bin of 0.1 µs" } else { "in each step" };
    let open = if open && exact { "; the last bin has all of 10 ms and more" } else { "" };
    Ok((
        drawings,
        format!("Area: {counted} {bins}{open}. Line: share of those that are not longer."),
    ))
}

/// Cumulative steps as bins: (edge, how many do not exceed it).
pub(super) fn of_steps(steps: &[(i64, u64)]) -> Vec<(i64, u64)> {
    let mut before = (0, 0);
    let mut bins = Vec::new();
    for &(edge, below) in steps {
        if below > before.1 {
            bins.push((before.0, below - before.1));
        }
        before = (edge, below);
    }
    bins
}

fn csv(counted: &str, bins: &[(i64, u64)]) -> Csv {
    let mut csv = Csv::new(&["from_ns", counted, "not_longer_share"]);
    let total: u64 = bins.iter().map(|bin| bin.1).sum();
    let mut below = 0;
    for (from, n) in bins {
        below += n;
        csv.row([from.to_string(), n.to_string(), number::fraction(below as f64 / total as f64)]);
    }
    csv
}

fn one(
    area: &plot::Area<'_>,
    counted: &str,
    bins: &[(i64, u64)],
    exact: bool,
) -> Result<(char, Axis), Failed> {
    let edges = edges(bins, exact);
    let first = edges.first().map_or(LEAST_NS, |(from, ..)| *from);
    let last = edges.last().map_or(1e3, |(_, to, _)| *to);
    // An axis of less than a decade has no labels.
    let values = first.min(last / 20.0).max(1.0)..last;
    let largest = bins.iter().map(|bin| bin.1).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .right_y_label_area_size(62)
        .build_cartesian_2d(values.clone().log_scale(), plot::counts(largest).log_scale())?
        .set_secondary_coord(values.clone().log_scale(), 0.0..1.0);
    plot::mesh(&mut chart)
        .x_labels(12)
        .y_labels(6)
        .x_label_formatter(&|value| plot::ns(*value))
        .y_label_formatter(&|value| plot::count(*value))
        .x_desc("length")
        .y_desc(counted)
        .draw()?;
    chart
        .configure_secondary_axes()
        .axis_style(INK)
        .label_style(plot::tick())
        .y_labels(5)
        .y_label_formatter(&|share| number::axis_share(*share))
        .y_desc("not longer")
        .draw()?;
    let (pixels, _) = chart.plotting_area().get_pixel_range();
    let axis = Axis { is_log: true, values: values.clone(), pixels, before: 0.0 };
    let floor = plot::counts(largest).start;
    let outline = outline(&edges, &axis, floor);
    chart.draw_series([Polygon::new(outline, FILL.filled())])?;
    let total: u64 = bins.iter().map(|bin| bin.1).sum();
    let mut below = 0;
    let mut line = vec![(values.start, 0.0)];
    for (_, to, n) in &edges {
        let before = below as f64 / total as f64;
        below += n;
        let share = below as f64 / total as f64;
        // No point for what would be the same pixel.
        let &(x, y) = line.last().expect("its begin");
        if axis.pixel(*to) > axis.pixel(x) || share - y > 0.004 {
            line.extend([(*to, before), (*to, share)]);
        }
    }
    line.push((values.end, 1.0));
    chart.draw_secondary_series(LineSeries::new(line, LINE.stroke_width(2)))?;
    Ok(('x', axis))
}

/// Begin and end of each bin as an axis has them, and its count.
fn edges(bins: &[(i64, u64)], exact: bool) -> Vec<(f64, f64, u64)> {
    let next = bins.iter().skip(1).map(|bin| bin.0);
    let last = bins.last().map_or(0, |bin| bin.0.saturating_mul(2).max(BIN_NS));
    let ends = next.chain([last]);
    let end = |from: i64, next: i64| if exact { from + BIN_NS } else { next };
    let edge = |(&(from, n), next): (&(i64, u64), i64)| {
        ((from as f64).max(LEAST_NS), end(from, next) as f64, n)
    };
    bins.iter().zip(ends).map(edge).collect()
}

/// The upper side of the bins; of those that share a pixel the largest.
fn outline(edges: &[(f64, f64, u64)], axis: &Axis, floor: f64) -> Vec<(f64, f64)> {
    let mut columns: Vec<(f64, f64, u64)> = Vec::new();
    for &(from, to, n) in edges {
        match columns.last_mut() {
            Some(column) if axis.pixel(to) == axis.pixel(column.0) => {
                (column.1, column.2) = (to, column.2.max(n));
            }
            _ => columns.push((from, to, n)),
        }
    }
    let mut points = Vec::new();
    let mut end = None;
    for (from, to, n) in columns {
        // Less than a pixel is seen, too.
        let to =
            if axis.pixel(to) == axis.pixel(from) { axis.value(axis.pixel(from) + 1) } else { to };
        let apart = end.is_none_or(|end| axis.pixel(end) < axis.pixel(from));
        if apart {
            points.extend(end.map(|end| (end, floor)));
            points.push((from, floor));
        }
        points.extend([(from, n as f64), (to, n as f64)]);
        end = Some(to);
    }
    points.extend(end.map(|end| (end, floor)));
    points
}

impl Axis {
    /// The pixel of a value.
    fn pixel(&self, value: f64) -> i32 {
        let Axis { values, pixels, .. } = self;
        let part = (value / values.start).ln() / (values.end / values.start).ln();
        pixels.start + (part * f64::from(pixels.end - pixels.start)).floor() as i32
    }

    /// The value of a pixel.
    fn value(&self, pixel: i32) -> f64 {
        let Axis { values, pixels, .. } = self;
        let part = f64::from(pixel - pixels.start) / f64::from(pixels.end - pixels.start);
        values.start * (values.end / values.start).powf(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_seen_however_narrow_and_the_highest_of_a_pixel_counts() {
        let axis = Axis { is_log: true, values: 100.0..1e7, pixels: 0..500, before: 0.0 };
        let bins = [(100, 7), (5_000_000, 1), (5_000_100, 9), (5_000_200, 2)];
        let outline = outline(&edges(&bins, true), &axis, 0.5);
        let tops: Vec<f64> = outline.iter().map(|p| p.1).filter(|n| *n > 0.5).collect();
        assert_eq!(tops, [7.0, 7.0, 9.0, 9.0]);
        let widths: Vec<i32> =
            outline.windows(2).map(|w| axis.pixel(w[1].0) - axis.pixel(w[0].0)).collect();
        assert!(widths.iter().all(|width| *width >= 0) && widths.contains(&1), "{widths:?}");
    }

    #[test]
    fn steps_are_bins_of_what_lies_between_them() {
        assert_eq!(of_steps(&[(100, 0), (200, 3), (500, 3), (1000, 10)]), [(100, 3), (500, 7)]);
    }

    #[test]
    fn a_file_has_every_bin_and_ends_with_all() {
        let mut link = String::new();
        csv("holds", &[(0, 1), (300, 3)]).link(&mut link, "a").unwrap();
        let data = "from_ns,holds,not_longer_share%0A0,1,0.250000%0A300,3,1.000000%0A";
        assert!(link.contains(data), "{link}");
    }
}
