//! Curves: values over values, with intervals of confidence where there are any.

use std::ops::Range;

use anyhow::{Result, ensure};
use plotters::prelude::*;

use super::{COLOURS, GRID, INK, drawing, failed, text};

/// A curve.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    /// x, y, and half the height of the interval; 0 for none.
    pub(crate) points: Vec<(f64, f64, f64)>,
}

/// What the axes say.
pub(crate) struct Axes<'a> {
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    /// The base of a logarithmic axis: the labels are its powers.
    pub(crate) log_x: f64,
    pub(crate) y_range: Range<f64>,
    /// Whether the curves leave room for their names at the lower right, and not at the upper left.
    pub(crate) names_below: bool,
    /// How a value of x is written.
    pub(crate) x_label: &'a dyn Fn(f64) -> String,
}

/// Draws the curves in one frame.
pub(crate) fn draw(curves: &[Curve], axes: &Axes<'_>) -> Result<String> {
    let x = |value: f64| value.max(f64::MIN_POSITIVE).log(axes.log_x);
    let all = || curves.iter().flat_map(|curve| &curve.points).map(|point| x(point.0));
    let low = all().fold(f64::INFINITY, f64::min).min(1e15);
    let high = all().fold(low + 1e-9, f64::max);
    // The drawing library would look for labels for ever.
    let (bottom, top) = (axes.y_range.start, axes.y_range.end);
    let is_finite = [low, high, bottom, top].iter().all(|end| end.is_finite());
    ensure!(is_finite, "an axis of the drawing has no end; measure for longer");
    drawing(360, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(14)
            .margin_right(26)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(low..high, axes.y_range.clone())
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(text(12))
            .axis_desc_style(text(14))
            .x_desc(axes.x)
            .y_desc(axes.y)
            // One for each power, and not the halves between them.
            .x_labels(((high - low) as usize + 1).clamp(2, 14))
            .x_label_formatter(&|at| match (at - at.round()).abs() < 1e-9 {
                true => (axes.x_label)(axes.log_x.powf(*at)),
                false => String::new(),
            })
            .y_label_formatter(&|y| format!("{y}"))
            .draw()
            .map_err(failed)?;
        for (n, curve) in curves.iter().enumerate() {
            let colour = COLOURS[n % COLOURS.len()];
            let line = curve.points.iter().map(|(at, y, _)| (x(*at), *y));
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))
                .map_err(failed)?
                .label(&curve.name)
                .legend(move |(x, y)| {
                    PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
                });
            let bars = curve.points.iter().filter(|(_, _, half)| *half > 0.0 && half.is_finite());
            let bars = bars.map(|(at, y, half)| {
                let ends = [(y - half).max(bottom), (y + half).min(top)];
                PathElement::new(ends.map(|y| (x(*at), y)).to_vec(), colour)
            });
            chart.draw_series(bars).map_err(failed)?;
        }
        chart
            .configure_series_labels()
            .position(match axes.names_below {
                true => SeriesLabelPosition::LowerRight,
                false => SeriesLabelPosition::UpperLeft,
            })
            .background_style(WHITE.mix(0.8))
            .label_font(text(13))
            .draw()
            .map_err(failed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_is_named() {
        let curve = |name: &str, points| Curve { name: name.into(), points };
        let axes = Axes {
            x: "size",
            y: "cost",
            log_x: 2.0,
            y_range: 0.0..5.0,
            names_below: true,
            x_label: &|x| x.to_string(),
        };
        let svg = draw(
            &[
                curve("first", vec![(1.0, 2.0, 0.5), (4.0, 3.0, f64::INFINITY)]),
                curve("none", vec![]),
            ],
            &axes,
        )
        .unwrap();
        let endless = Axes { y_range: 0.0..f64::INFINITY, ..axes };
        assert!(draw(&[], &endless).is_err());
        assert!(svg.contains("first") && svg.contains("none") && svg.contains("cost"));
    }
}
