//! What all drawings share: their size, colours and axes, and what the script needs to find a value under the pointer.

use std::fmt;
use std::ops::Range;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::render::number;

/// Width of a drawing, in its own pixels.
pub(super) const WIDTH: u32 = 800;

/// Height of most.
pub(super) const HEIGHT: u32 = 260;

/// Colours of the light page; in the dark its style sheet replaces them, by these same numbers.
pub(super) const INK: RGBColor = RGBColor(0x5e, 0x66, 0x73);
const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
pub(super) const FILL: RGBColor = RGBColor(0x8f, 0xb4, 0xe3);
pub(super) const LINE: RGBColor = RGBColor(0xc2, 0x4b, 0x1a);

/// A drawing under construction.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A drawing.
pub(super) struct Plot {
    svg: String,
    /// The axis along which values are found, and `x` or `y`.
    axis: (char, Axis),
}

/// An axis: which values are at which pixels.
#[derive(Clone)]
pub(super) struct Axis {
    pub(super) is_log: bool,
    pub(super) values: Range<f64>,
    pub(super) pixels: Range<i32>,
    /// How far before its value the place of a row begins, and how long it is; 0 where a file says where its rows end.
    pub(super) before: f64,
    pub(super) width: f64,
}

impl Plot {
    /// Draws; `draw` returns the axis along which values are found.
    pub(super) fn new(
        (width, height): (u32, u32),
        draw: impl FnOnce(&Area<'_>) -> Result<(char, Axis), Failed>,
    ) -> Result<Plot, fmt::Error> {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let axis = draw(&root).map_err(|_| fmt::Error)?;
        root.present().map_err(|_| fmt::Error)?;
        drop(root);
        // Lines' ends are for people, who do not read this.
        Ok(Plot { svg: svg.replace('\n', ""), axis })
    }
}

/// The looks of all axes, and of the lines behind what is drawn.
pub(super) fn mesh<'a, 'b, X, Y, DB>(
    chart: &'b mut ChartContext<'a, DB, Cartesian2d<X, Y>>,
) -> MeshStyle<'a, 'b, X, Y, DB>
where
    X: Ranged + ValueFormatter<<X as Ranged>::ValueType>,
    Y: Ranged + ValueFormatter<<Y as Ranged>::ValueType>,
    DB: DrawingBackend,
{
    let mut mesh = chart.configure_mesh();
    mesh.axis_style(INK).bold_line_style(GRID).light_line_style(TRANSPARENT).label_style(tick());
    mesh
}

impl fmt::Display for Plot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plot { svg, axis: (name, axis) } = self;
        let Axis { is_log, values, pixels, before, width } = axis;
        let scale = if *is_log { "log" } else { "linear" };
        write!(
            f,
            "<div class=canvas data-axis=\"{name} {scale} {} {} {} {} {before} {width}\">{svg}</div>",
            values.start, values.end, pixels.start, pixels.end
        )
    }
}

/// That a drawing failed; into memory none does.
pub(super) struct Failed;

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for Failed {
    fn from(_: DrawingAreaErrorKind<E>) -> Failed {
        Failed
    }
}

/// Text at an axis; a drawing has it a fifth smaller.
pub(super) fn tick() -> TextStyle<'static> {
    ("sans-serif", 14).into_font().color(&INK)
}

/// Text where there is less room.
pub(super) fn label() -> TextStyle<'static> {
    ("sans-serif", 12).into_font().color(&INK)
}

/// Text that ends where it is put, in the middle of its height.
pub(super) fn label_to_the_left() -> TextStyle<'static> {
    label().pos(Pos::new(HPos::Right, VPos::Center))
}

/// A duration on an axis: `1 µs`, without digits that say nothing.
pub(super) fn ns(value: f64) -> String {
    let shown = number::ns(value);
    match shown.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => shown,
    }
}

/// A count on an axis.
pub(super) fn count(value: f64) -> String {
    if value < 1.0 {
        String::new()
    } else {
        number::short_count(value.round() as u64).replace(".00", "")
    }
}

/// Counts on a logarithmic axis, from less than 1, so that one is seen.
pub(super) fn counts(largest: u64) -> Range<f64> {
    0.7..(largest.max(1) as f64 * 1.6)
}
