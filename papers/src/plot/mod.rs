//! Drawings, as SVG that is the same wherever it is opened.

pub(crate) mod bars;
pub(crate) mod curves;
pub(crate) mod lanes;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Width of all drawings, in their own pixels.
const WIDTH: u32 = 900;

const INK: RGBColor = RGBColor(0x3a, 0x40, 0x4a);
const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);

/// Of several things in one drawing, told apart without red and green, too (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// A drawing of this height on white.
fn drawing(
    height: u32,
    draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        draw(&root)?;
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Into memory no drawing fails.
fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("the drawing failed: {error}")
}
