//! Histograms of durations in bins of 0.1 µs, with their cumulative distribution; both axes are logarithmic.

use std::fmt;
use std::ops::Range;

use plotters::prelude::*;

use super::csv::Csv;
use super::plot::{self, Axis, FILL, HEIGHT, INK, LINE, Plot, WIDTH};
use super::{Drawing, Failed};
use crate::document::{Step, Value};
use crate::render::number;
use crate::stats::{BIN_NS, MAX_BINS};

/// Where a bar begins at most that has durations of 0, too, of which a logarithm knows no begin.
///
/// Limit: part of the definition of the figure.
/// Shown by: no figure but that: its file has the bins.
const LEAST_NS: f64 = 50.0;

/// Draws one for each, and says how to read them. `exact`: the steps are bins of [`BIN_NS`].
pub(super) fn draw<'a>(
    counted: &str,
    each: impl Iterator<Item = (&'a Value, Vec<Step>)>,
    exact: bool,
) -> Result<(Vec<Drawing>, String), fmt::Error> {
    let mut open = false;
    let mut drawings = Vec::new();
    for (of, steps) in each.filter(|(_, steps)| !steps.is_empty()) {
        open |= steps.last().is_some_and(|step| match exact {
            true => step.from_ns == MAX_BINS * BIN_NS,
            false => step.to_ns.is_none(),
        });
        let plot = Plot::new((WIDTH, HEIGHT), |area| one(area, counted, &steps, exact))?;
        drawings.push(Drawing { of: of.clone(), plot, csv: csv(counted, &steps, exact) });
    }
    let bins = if exact { "in each bin of 0.1 µs" } else { "in each step" };
    let open = match (open, exact) {
        (true, true) => "; the last bin has all of 10 ms and more",
        (true, false) => "; the last step has all that are longer",
        (false, _) => "",
    };
    Ok((
        drawings,
        format!("Area: {counted} {bins}{open}. Line: share of those that are not longer."),
    ))
}

/// Bins of [`BIN_NS`] as steps; no empty one is stored.
pub(super) fn of_bins(bins: &[(i64, u64)]) -> Vec<Step> {
    let step =
        |&(from_ns, count)| Step { from_ns, to_ns: Some(from_ns.saturating_add(BIN_NS)), count };
    bins.iter().map(step).collect()
}

/// A line for each step. Bins all have one width, and end where it says.
fn csv(counted: &str, steps: &[Step], exact: bool) -> Csv {
    let mut csv = match exact {
        true => Csv::new(&["from_ns", counted, "not_longer_share"]),
        false => Csv::new(&["from_ns", "to_ns", counted, "not_longer_share"]),
    };
    let total: u64 = steps.iter().map(|step| step.count).sum();
    for (Step { from_ns, to_ns, count }, below) in Step::cumulative(steps) {
        let to_ns = (!exact).then(|| to_ns.map_or(String::new(), |to| to.to_string()));
        let share = number::fraction(below as f64 / total as f64);
        csv.row([from_ns.to_string()].into_iter().chain(to_ns).chain([count.to_string(), share]));
    }
    csv
}

fn one(
    area: &plot::Area<'_>,
    counted: &str,
    steps: &[Step],
    exact: bool,
) -> Result<(char, Axis), Failed> {
    let (values, edges) = edges(steps);
    let largest = steps.iter().map(|step| step.count).max().unwrap_or(1);
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
    let floor = plot::counts(largest).start;
    let pixel = |value| chart.backend_coord(&(value, floor)).0;
    let pixels = pixel(values.start)..pixel(values.end);
    let width = if exact { BIN_NS as f64 } else { 0.0 };
    let axis = Axis { is_log: true, values: values.clone(), pixels, before: 0.0, width };
    let outline = outline(&edges, &axis, floor);
    chart.draw_series([Polygon::new(outline, FILL.filled())])?;
    let total: u64 = steps.iter().map(|step| step.count).sum();
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

/// What the axis shows; and begin and end on it of each step that has any, and its count.
fn edges(steps: &[Step]) -> (Range<f64>, Vec<(f64, f64, u64)>) {
    // What is open ends somewhere, or it would not be seen.
    let end = |step: &Step| step.to_ns.map_or(2.0 * step.from_ns as f64, |to| to as f64).max(1.0);
    let begin = |step: &Step| match step.from_ns {
        ..=0 => LEAST_NS.min(end(step) / 2.0),
        from => from as f64,
    };
    let there = || steps.iter().filter(|step| step.count > 0);
    let last = there().map(end).fold(20.0, f64::max);
    // An axis of less than a decade has no labels.
    let first = there().map(begin).fold(last / 20.0, f64::min).max(1.0);
    let edge = |step: &Step| {
        let from = if step.from_ns <= 0 { first } else { begin(step) };
        (from, end(step), step.count)
    };
    (first..last, there().map(edge).collect())
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
        let axis =
            Axis { is_log: true, values: 100.0..1e7, pixels: 0..500, before: 0.0, width: 100.0 };
        let bins = [(100, 7), (5_000_000, 1), (5_000_100, 9), (5_000_200, 2)];
        let outline = outline(&edges(&of_bins(&bins)).1, &axis, 0.5);
        let tops: Vec<f64> = outline.iter().map(|p| p.1).filter(|n| *n > 0.5).collect();
        assert_eq!(tops, [7.0, 7.0, 9.0, 9.0]);
        let widths: Vec<i32> =
            outline.windows(2).map(|w| axis.pixel(w[1].0) - axis.pixel(w[0].0)).collect();
        assert!(widths.iter().all(|width| *width >= 0) && widths.contains(&1), "{widths:?}");
    }

    #[test]
    fn a_file_has_every_bin_and_ends_with_all() {
        let mut link = String::new();
        csv("holds", &of_bins(&[(0, 1), (300, 3)]), true).link(&mut link, "a").unwrap();
        let data = "from_ns,holds,not_longer_share%0A0,1,0.250000%0A300,3,1.000000%0A";
        assert!(link.contains(data), "{link}");
    }
}
