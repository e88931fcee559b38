//! Where in the code time went: a box for each function, as wide as its share, below the one that called it (a flame graph,
//! B. Gregg, *The Flame Graph*, CACM 59(6), 2016, with its root above).
//!
//! Boxes lie in each other, so the page's script shows one as wide as the whole by hiding what lies beside it. (The library
//! that draws the exported picture gives each picture a script with names for all of its page: two cannot be in one.)

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::csv::{self, Csv};
use crate::document::Figure;
use crate::render::columns::clean;
use crate::render::html::escape::Escaped;
use crate::render::html::value::Links;
use crate::render::number::{dur, percent, style_share};
use ft_trace::ids::Name;

/// A function with less than this part of all time has no box.
///
/// Limit: the figure states the former; the file below it has all.
/// Shown by: `a_box_is_what_its_chains_sum_to`.
const LEAST: i64 = 1000;

/// Functions of a chain that have boxes.
///
/// Limit: as `LEAST`.
const DEEPEST: usize = 256;

/// A function, and what was called from it.
#[derive(Default)]
struct Node<'a> {
    ns: i64,
    callees: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, chain: &'a [Name], ns: i64) {
        self.ns += ns;
        if let [function, callees @ ..] = chain {
            self.callees.entry(function).or_default().add(callees, ns);
        }
    }
}

/// Writes a figure of chains, the outermost function first, with their times, and its file.
pub(super) fn write<W: Write>(
    out: &mut W,
    figure: &Figure,
    chains: &[(Vec<Name>, i64)],
    name: &str,
    links: Links,
) -> fmt::Result {
    let mut root = Node::default();
    let mut csv = Csv::new(&["chain", "total_ns"]);
    for (chain, ns) in chains {
        root.add(&chain[..chain.len().min(DEEPEST)], *ns);
        if csv.rows() < super::MOST_CSV_ROWS {
            csv.row([csv::name(&chain.join(";")), ns.to_string()]);
        }
    }
    write!(out, "<figure class=flame id=\"{name}\">\n<figcaption>")?;
    links.sentence(out, &figure.title)?;
    out.write_str("</figcaption>\n<div class=flames>")?;
    frame(out, "all", &root, root.ns.max(1), root.ns)?;
    out.write_str("</div>\n<p class=data>")?;
    csv.link(out, &format!("{name}.csv"))?;
    out.write_str(
        "<span class=note>Each below the one that called it; a click shows one as wide as the whole. Less than 0.1 % has no \
         box.</span></p>\n</figure>\n",
    )
}

fn frame<W: Write>(
    out: &mut W,
    function: &str,
    node: &Node<'_>,
    caller_ns: i64,
    all_ns: i64,
) -> fmt::Result {
    let label = clean(function);
    let title = format!("{label}: {}, {}", dur(node.ns), percent(node.ns, all_ns));
    write!(
        out,
        "<div class=frame style=\"--w:{};--h:{}\"><button type=button title=\"{}\">{}</button>",
        style_share(node.ns as f64 / caller_ns as f64, 3),
        hue(function),
        Escaped(&title),
        Escaped(&label)
    )?;
    let mut callees: Vec<_> = node.callees.iter().filter(|(_, n)| n.ns >= all_ns / LEAST).collect();
    callees.sort_by_key(|(function, n)| (-n.ns, **function));
    if !callees.is_empty() {
        out.write_str("<div class=callees>")?;
        for (function, callee) in callees {
            frame(out, function, callee, node.ns, all_ns)?;
        }
        out.write_str("</div>")?;
    }
    out.write_str("</div>")
}

/// A colour from red to yellow that a function has everywhere.
fn hue(function: &str) -> u32 {
    function.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 55
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_what_its_chains_sum_to() {
        let chain = |names: &str| names.split(' ').map(Name::from).collect::<Vec<_>>();
        let chains = [("main f g", 30_000), ("main f", 10_000), ("main h", 39)];
        let chains = chains.map(|(names, ns)| (chain(names), ns));
        let mut root = Node::default();
        chains.iter().for_each(|(chain, ns)| root.add(chain, *ns));
        let mut html = String::new();
        frame(&mut html, "all", &root, root.ns, root.ns).unwrap();
        let titles = html.split("title=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let boxes: Vec<&str> = titles.map(|title| title.split(", ").next().unwrap()).collect();
        // The call of h takes less than a thousandth of all.
        assert_eq!(boxes, ["all: 40.0 µs", "main: 40.0 µs", "f: 40.0 µs", "g: 30.0 µs"]);
    }
}
