//! Execution traces as Hourglass's `render_trace` draws them: a lane for each thread, a box wherever it ran.

use std::ops::Range;

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{INK, WIDTH, drawing, failed, text};

/// The runs of a thread, ms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) runs: Vec<(f64, f64)>,
}

/// A window of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) lanes: Vec<Lane>,
    /// From when to when, ms.
    pub(crate) window: Range<f64>,
}

const LEFT: i32 = 130;
const RIGHT: i32 = 20;
const LANE: i32 = 30;
const HEAD: i32 = 26;
const FOOT: i32 = 34;

const BOX: RGBColor = RGBColor(0xa9, 0xb4, 0xc4);

/// Draws the panels below each other. A gap that is narrower than the boxes' own border is a dark line.
pub(crate) fn draw(panels: &[Panel]) -> Result<String> {
    let height = |panel: &Panel| HEAD + panel.lanes.len() as i32 * LANE + FOOT;
    let whole = panels.iter().map(height).sum::<i32>();
    drawing(whole as u32, |root| {
        let mut top = 0;
        for panel in panels {
            let Range { start, end } = panel.window;
            let width = f64::from(WIDTH as i32 - LEFT - RIGHT);
            let x = |ms: f64| LEFT + ((ms - start) / (end - start) * width).round() as i32;
            root.draw_text(&panel.title, &text(15), (LEFT, top + 6)).map_err(failed)?;
            for (n, lane) in panel.lanes.iter().enumerate() {
                let y = top + HEAD + n as i32 * LANE;
                let right = text(13).pos(Pos::new(HPos::Right, VPos::Center));
                root.draw_text(&lane.name, &right, (LEFT - 8, y + LANE / 2)).map_err(failed)?;
                for (from, to, cut) in boxes(&lane.runs, &panel.window, &x) {
                    let corners = [(from, y + 4), (to.max(from + 1), y + LANE - 4)];
                    root.draw(&Rectangle::new(corners, BOX.filled())).map_err(failed)?;
                    for at in cut {
                        let line = [(at, y + 4), (at, y + LANE - 4)];
                        root.draw(&PathElement::new(line.to_vec(), INK)).map_err(failed)?;
                    }
                }
            }
            let y = top + HEAD + panel.lanes.len() as i32 * LANE;
            let axis = vec![(LEFT, y), (WIDTH as i32 - RIGHT, y)];
            root.draw(&PathElement::new(axis, INK)).map_err(failed)?;
            for step in 0..=10 {
                let ms = start + (end - start) * f64::from(step) / 10.0;
                root.draw(&PathElement::new(vec![(x(ms), y), (x(ms), y + 4)], INK))
                    .map_err(failed)?;
                let middle = text(12).pos(Pos::new(HPos::Center, VPos::Top));
                let unit = if step == 10 { " ms" } else { "" };
                let label = format!("{}{unit}", (ms * 10.0).round() / 10.0);
                root.draw_text(&label, &middle, (x(ms), y + 7)).map_err(failed)?;
            }
            top += height(panel);
        }
        Ok(())
    })
}

/// Boxes in pixels: runs without a pixel between them are one, with a line at each place where they are cut.
fn boxes(
    runs: &[(f64, f64)],
    window: &Range<f64>,
    x: &impl Fn(f64) -> i32,
) -> Vec<(i32, i32, Vec<i32>)> {
    let mut boxes: Vec<(i32, i32, Vec<i32>)> = Vec::new();
    for (start, end) in runs {
        if *end < window.start || *start > window.end {
            continue;
        }
        let (from, to) = (x(start.max(window.start)), x(end.min(window.end)));
        match boxes.last_mut() {
            Some(last) if from - last.1 <= 1 => {
                if last.2.last() != Some(&from) && from > last.0 {
                    last.2.push(from);
                }
                last.1 = to.max(last.1);
            }
            _ => boxes.push((from, to, Vec::new())),
        }
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_gaps_are_lines_and_wide_ones_are_gaps() {
        let x = |ms: f64| (ms * 10.0).round() as i32;
        let runs = [(0.0, 1.0), (1.01, 2.0), (3.0, 4.0), (9.0, 11.0), (20.0, 30.0)];
        let told = boxes(&runs, &(0.0..10.0), &x);
        assert_eq!(told, [(0, 20, vec![10]), (30, 40, vec![]), (90, 100, vec![])]);
    }

    #[test]
    fn every_lane_is_named() {
        let lane = |name: &str| Lane { name: name.into(), runs: vec![(0.0, 5.0)] };
        let panel = Panel {
            title: "one".into(),
            lanes: vec![lane("LOW"), lane("HIGH")],
            window: 0.0..10.0,
        };
        let svg = draw(&[panel.clone(), panel]).unwrap();
        assert!(svg.starts_with("<svg") && svg.matches("LOW").count() == 2, "{svg}");
    }
}
