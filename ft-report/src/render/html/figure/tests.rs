//! What is drawn of a figure, what its table says in text, and what its file has: one and the same.

use super::*;
use crate::document::{Document, Histogram, Section};
use crate::render::html::Page;
use crate::render::number;
use crate::stats::{OverTime, Window};

/// Colours of what is drawn, as a drawing has them.
const FILL: &str = "#8FB4E3";
const LINE: &str = "#C24B1A";

/// A drawing of a page: its marks with their numbers, and the axis that its script reads.
struct Drawn {
    svg: String,
    axis: Vec<f64>,
    csv: Vec<Vec<String>>,
}

/// What stands between two marks of a text, for each time that they do.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    text.split(begin).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// The drawings of the only figure of a page, and the rows of its table in text.
fn draw(data: Data) -> (Vec<Drawn>, Vec<Vec<String>>) {
    let mut s = Section::new("locks", "");
    s.figure("A title", data);
    let words = |line: &str| {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    let text = format!("{s:200}");
    let lines = text.lines().map(words).skip_while(|cells| cells.get(1).is_none_or(|c| c != "n"));
    let table = lines.skip(1).filter(|cells| cells.len() > 1).collect();
    let document = Document { begin_ns: 0, head: Section::new("trace", ""), sections: vec![s] };
    let page = Page::of(&document).to_string();
    let drawing = |drawing: &str| {
        let axis = between(drawing, "data-axis=\"", "\"")[0];
        let link = between(drawing, "href=\"data:text/csv;charset=utf-8,", "\"")[0];
        let lines = link.split("%0A").filter(|line| !line.is_empty());
        Drawn {
            svg: between(drawing, "<svg", "</svg>")[0].to_owned(),
            axis: axis.split(' ').skip(2).map(|n| n.parse().expect("a number")).collect(),
            csv: lines.map(|line| line.split(',').map(str::to_owned).collect()).collect(),
        }
    };
    (between(&page, "<div class=drawing", "<output>").into_iter().map(drawing).collect(), table)
}

impl Drawn {
    /// The points of the mark of this name and colour.
    fn points(&self, mark: &str, color: &str) -> Vec<(f64, f64)> {
        let marks = between(&self.svg, &format!("<{mark} "), ">");
        let found = marks.into_iter().find(|mark| mark.contains(color)).expect("it is drawn");
        let points = between(found, "points=\"", "\"")[0];
        let point = |p: &str| {
            let (x, y) = p.split_once(',').expect("two numbers");
            (x.parse().expect("a number"), y.parse().expect("a number"))
        };
        points.split_whitespace().map(point).collect()
    }

    /// Attributes of all marks of this name that have them all, and a colour.
    fn marks(&self, mark: &str, color: &str, names: &[&str]) -> Vec<Vec<f64>> {
        let found = between(&self.svg, &format!("<{mark} "), ">");
        let found = found.into_iter().filter(|mark| mark.contains(color));
        let number = |mark: &str, name: &str| {
            between(mark, &format!("{name}=\""), "\"").first()?.parse::<f64>().ok()
        };
        found.filter_map(|mark| names.iter().map(|name| number(mark, name)).collect()).collect()
    }

    /// Where a value lies, as the page's script finds it.
    fn x(&self, value: f64, is_log: bool) -> f64 {
        let [from, to, first, last, ..] = self.axis[..] else { panic!("{:?}", self.axis) };
        let part = match is_log {
            true => (value / from).ln() / (to / from).ln(),
            false => (value - from) / (to - from),
        };
        first + part.clamp(0.0, 1.0) * (last - first)
    }

    fn numbers(&self, column: &str) -> Vec<f64> {
        let i = self.csv[0].iter().position(|title| title == column);
        let i = i.unwrap_or_else(|| panic!("no {column}: {:?}", self.csv[0]));
        self.csv[1..].iter().map(|row| row[i].parse().unwrap_or(f64::INFINITY)).collect()
    }
}

/// Where a count lies between the bottom and the top of a drawing whose largest count is this.
fn height(n: f64, largest: f64, bottom: f64) -> f64 {
    let counts = plot::counts(largest as u64);
    let part = (n / counts.start).ln() / (counts.end / counts.start).ln();
    bottom - part * (bottom - 6.0)
}

/// Pixels are whole.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1.5
}

/// Bars, from, to and height, are those of the file's rows that have any, on a logarithmic axis; so is the line above them.
fn compare(drawn: &Drawn, from: &[f64], to: &[f64], counts: &[f64]) {
    let outline = drawn.points("polygon", FILL);
    let bottom = outline.iter().map(|p| p.1).fold(0.0, f64::max);
    let tops =
        outline.windows(2).filter(|p| p[0].1 == p[1].1 && p[0].1 < bottom && p[0].0 < p[1].0);
    let tops: Vec<_> = tops.map(|p| (p[0].0, p[1].0, p[0].1)).collect();
    let largest = counts.iter().copied().fold(0.0, f64::max);
    let rows = from.iter().zip(to).zip(counts).filter(|(_, n)| **n > 0.0);
    let rows: Vec<_> = rows.map(|((from, to), n)| (*from, *to, *n)).collect();
    assert_eq!(tops.len(), rows.len(), "{tops:?} are not {rows:?}");
    let (line, total) = (drawn.points("polyline", LINE), counts.iter().sum::<f64>());
    let mut below = 0.0;
    for ((x0, x1, y), (from, to, n)) in tops.into_iter().zip(rows) {
        let expected = (drawn.x(from, true), drawn.x(to, true), height(n, largest, bottom));
        let (at, end, top) = expected;
        // Less than a pixel is drawn as one.
        assert!(
            near(x0, at) && (near(x1, end) || near(x1, x0 + 1.0) && end < at + 1.0),
            "{x0} to {x1}, not {at} to {end}"
        );
        assert!(near(y, top), "{n}: {y}, not {top}");
        below += n;
        let before = line.iter().rfind(|p| p.0 <= x1 + 1.5).expect("it has a begin");
        let share = bottom - below / total * (bottom - 6.0);
        assert!((before.1 - share).abs() <= 2.5, "{below} of {total}: {before:?}, not {share}");
    }
}

#[test]
fn steps_are_drawn_and_stored_as_their_table_has_them() {
    let study = [100, 200, 500, 1_000, 2_000, 5_000, 100_000_000];
    let edges = |below: [u64; 7]| study.into_iter().zip(below).collect::<Vec<_>>();
    let many: Vec<_> = (0..40).map(|i| ((100.0 * 1.3f64.powi(i)) as i64, 3 * i as u64)).collect();
    for (edges, total) in [
        // All below the first edge; holes; some longer than the last; a single one; none; many.
        (edges([7; 7]), 7),
        (edges([0, 3, 3, 3, 3, 5, 5]), 5),
        (edges([1, 1, 1, 90, 90, 90, 95]), 1_000),
        (edges([0, 0, 0, 0, 1, 1, 1]), 1),
        (edges([0; 7]), 0),
        (many, 200),
    ] {
        check(Step::between(&edges, total), total);
    }
    // Where a bin begins is known: that of 8.08 ms is not drawn from the one before.
    let bin = |from_ns, to_ns, count| Step { from_ns, to_ns: Some(to_ns), count };
    check(vec![bin(64, 64, 3), bin(393_216, 560_000, 90), bin(6_291_456, 8_080_000, 1)], 94);
    check(vec![bin(0, 0, 3)], 3);
}

fn check(steps: Vec<Step>, total: u64) {
    let counted = "n";
    let (drawings, table) = draw(Data::Cumulative {
        axis: "shorter than",
        counted,
        steps: steps.clone(),
        bins: Vec::new(),
        each: Vec::new(),
    });
    let rows = Step::rows(&steps);
    let Some(drawn) = drawings.first() else {
        assert!(total == 0 && table.is_empty(), "{steps:?}: {table:?}");
        return;
    };
    let (from, to) = (drawn.numbers("from_ns"), drawn.numbers("to_ns"));
    let (counts, shares) = (drawn.numbers(counted), drawn.numbers("not_longer_share"));
    // In the table: edge, count, its share, how many up to it, their share.
    let mut below = 0;
    let filed = (0..to.len()).map(|i| {
        below += counts[i] as u64;
        let edge = if to[i].is_finite() { number::ns(to[i]) } else { "longer".into() };
        let [n, so_far] = [counts[i] as u64, below];
        assert!((shares[i] - so_far as f64 / total as f64).abs() < 1e-6);
        [
            edge,
            number::count(n),
            number::share(n, total),
            number::count(so_far),
            number::share(so_far, total),
        ]
    });
    let filed: Vec<_> = filed.map(Vec::from).collect();
    let table: Vec<_> = table.into_iter().map(|row| row[..5].to_vec()).collect();
    assert_eq!(filed, table);
    assert_eq!((filed.len(), below), (rows.len(), total));
    compare(drawn, &from, &to, &counts);
}

#[test]
fn bins_are_drawn_and_stored_as_they_are() {
    let many: Vec<_> =
        (0..30).map(|i| ((100 << (i / 2)) + 50 * ((i % 2) << (i / 2)), 1 + i as u64)).collect();
    for bins in
        [vec![(0, 7)], vec![(100, 3), (400, 1), (99_900, 2)], vec![], vec![(10_000_000, 4)], many]
    {
        let each = vec![Histogram { of: text::ALL, bins: bins.clone() }];
        let (drawings, _) = draw(Data::Histograms { counted: "n", each });
        let Some(drawn) = drawings.first() else {
            assert!(bins.is_empty());
            continue;
        };
        let (from, counts) = (drawn.numbers("from_ns"), drawn.numbers("n"));
        let filed: Vec<_> = from.iter().zip(&counts).map(|(f, n)| (*f as i64, *n as u64)).collect();
        assert_eq!(filed, bins);
        let to: Vec<_> = from.iter().map(|from| from + drawn.axis[5]).collect();
        compare(drawn, &from, &to, &counts);
    }
}

#[test]
fn bars_are_drawn_and_stored_as_their_table_has_them() {
    for bars in [vec![(0, 5)], vec![(0, 100), (2, 3), (3, 0), (9, 1)], vec![]] {
        let each = vec![];
        let (drawings, table) = draw(Data::Bars { axis: "depth", counted: "n", bars, each });
        let Some(drawn) = drawings.first() else {
            assert!(table.is_empty(), "{table:?}");
            continue;
        };
        let table: Vec<_> = table.iter().map(|row| row[..2].to_vec()).collect();
        assert_eq!(drawn.csv[1..], table);
        let (classes, counts) = (drawn.numbers("depth"), drawn.numbers("n"));
        let largest = counts.iter().copied().fold(0.0, f64::max);
        let found = drawn.marks("rect", FILL, &["x", "y", "width", "height"]);
        let rows: Vec<_> = classes.iter().zip(&counts).filter(|row| *row.1 > 0.0).collect();
        assert_eq!(found.len(), rows.len(), "{found:?}");
        for (bar, (class, n)) in found.iter().zip(rows) {
            let [from, to] = [-0.4, 0.4].map(|side| drawn.x(class + side, false));
            assert!(near(bar[0], from) && near(bar[0] + bar[2], to), "{bar:?}: {from} to {to}");
            let bottom = bar[1] + bar[3];
            assert!(near(bar[1], height(*n, largest, bottom)), "{bar:?} for {n}");
        }
    }
}

#[test]
fn moments_and_threads_are_drawn_as_they_are_stored() {
    let window = Window { from_ns: 0, to_ns: 256_000 };
    let mut found = OverTime::default();
    for (ts, ns) in [(5, 70), (9, 30), (128_500, 4_000), (255_999, 900)] {
        found.add(window, ts, ns);
    }
    let each = vec![(text::ALL, found)];
    let (drawings, _) = draw(Data::OverTime { counted: "n", window, each });
    let drawn = &drawings[0];
    let row = |row: &[String]| row.join(",");
    let filed: Vec<_> = drawn.csv[1..].iter().map(|r| row(r)).collect();
    assert_eq!(filed, ["0,2,50,70", "128000,1,4000,4000", "255000,1,900,900"]);
    let dots = drawn.marks("circle", LINE, &["cx", "cy"]);
    for (dot, from) in dots.iter().zip(drawn.numbers("from_ns")) {
        assert!(near(dot[0], drawn.x(from + drawn.axis[5] / 2.0, false)), "{dot:?}: {from}");
    }
    assert_eq!(dots.len(), 3);
    assert!(dots[1][1] < dots[2][1] && dots[2][1] < dots[0][1], "the longest is the highest");

    let stacks = vec![(text::ALL, Some(7), vec![300, 0, 100]), (text::ALL, None, vec![0, 50, 0])];
    let parts = vec!["running", "preempted", "blocked"];
    let (drawings, _) = draw(Data::Stacks { parts, stacks, more: 0 });
    let drawn = &drawings[0];
    let filed: Vec<_> = drawn.csv[1..].iter().map(|r| row(r)).collect();
    assert_eq!(filed, ["all,7,300,0,100", "all,,0,50,0"]);
    // Those behind the three that name the colours.
    let bars = &drawn.marks("rect", "", &["x", "y", "width"])[3..];
    let [long, short, other] = bars else { panic!("{bars:?}") };
    assert!(near(long[2], 3.0 * short[2]) && near(other[2], long[2] / 6.0), "{bars:?}");
    assert_eq!((long[1], long[0] < short[0]), (short[1], true));
    assert_eq!((other[0], other[1] > long[1]), (long[0], true));
}
