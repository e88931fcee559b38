//! Histograms of times over a logarithmic axis, below each other.

use anyhow::Result;
use plotters::prelude::*;

use super::{COLOURS, GRID, INK, drawing, failed, text};
use crate::quantity::ns;

/// A histogram.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub(crate) title: String,
    /// Lengths in ns, and how often each came.
    pub(crate) values: Vec<(f64, u64)>,
}

const EACH: u32 = 170;

/// Bins of a decade.
const BINS: f64 = 20.0;

/// Draws the histograms over one axis. Counts are logarithmic where `log` says so: rare ones are seen then.
pub(crate) fn draw(histograms: &[Histogram], log: bool) -> Result<String> {
    let all = || {
        histograms.iter().flat_map(|h| &h.values).filter(|(_, n)| *n > 0).map(|(v, _)| v.max(1.0))
    };
    let low = all().fold(f64::INFINITY, f64::min).min(1e9);
    let high = all().fold(1.0, f64::max);
    let (first, last) = ((low.log10() * BINS).floor() - 1.0, (high.log10() * BINS).floor() + 2.0);
    drawing(EACH * histograms.len().max(1) as u32, |root| {
        for (n, area) in root.split_evenly((histograms.len().max(1), 1)).iter().enumerate() {
            let Some(histogram) = histograms.get(n) else { continue };
            let mut bins = vec![0u64; (last - first) as usize + 1];
            for (value, count) in &histogram.values {
                bins[((value.max(1.0).log10() * BINS).floor() - first) as usize] += count;
            }
            let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
            // A single one is seen, too.
            let (bottom, height): (f64, fn(u64) -> f64) = match log {
                true => (0.5f64.log10(), |count| (count as f64).log10()),
                false => (0.0, |count| count as f64),
            };
            let top = bottom + (height(most as u64) - bottom) * 1.08;
            let mut chart = ChartBuilder::on(area)
                .caption(&histogram.title, text(15))
                .margin_right(20)
                .x_label_area_size(26)
                .y_label_area_size(70)
                .build_cartesian_2d(first / BINS..last / BINS, bottom..top)
                .map_err(failed)?;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(GRID)
                .axis_style(INK)
                .label_style(text(12))
                .y_labels(if log { ((top - bottom) as usize + 1).min(6) } else { 4 })
                .x_label_formatter(&|x| match (x - x.round()).abs() < 1e-9 {
                    true => ns(10f64.powf(*x)).replace(".00", "").replace(".0", ""),
                    false => String::new(),
                })
                .y_label_formatter(&|y| match log {
                    true if (y - y.round()).abs() < 1e-9 => count(10f64.powf(*y)),
                    true => String::new(),
                    false => count(*y),
                })
                .draw()
                .map_err(failed)?;
            let filled = bins.iter().enumerate().filter(|(_, count)| **count > 0);
            let boxes = filled.map(|(n, count)| {
                let x = (first + n as f64) / BINS;
                Rectangle::new([(x, bottom), (x + 1.0 / BINS, height(*count))], COLOURS[0].filled())
            });
            chart.draw_series(boxes).map_err(failed)?;
        }
        Ok(())
    })
}

/// A count as a label: `100 k`, `1 M`.
fn count(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.0} M", v / 1e6),
        v if v >= 1e4 => format!("{:.0} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_drawn_and_none_is_no_panic() {
        let histogram = |values| Histogram { title: "switches".into(), values };
        let svg = draw(&[histogram(vec![(100.0, 1), (1e6, 5)]), histogram(vec![])], true).unwrap();
        assert_eq!(svg.matches("switches").count(), 2);
        assert_eq!([1.0, 100.0, 1e5, 1e8].map(count), ["1", "100", "100 k", "100 M"]);
        assert!(draw(&[histogram(vec![(0.0, 3)])], false).is_ok() && draw(&[], false).is_ok());
    }
}
