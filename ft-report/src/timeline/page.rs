//! The timeline as a piece of HTML: its data as text that the script unpacks, its style, and its script.
//!
//! Nothing that a program wrote is HTML here: names are inside of JSON, in which no `<` is left as it is, and the script
//! puts them into the page as text.

use std::borrow::Cow;
use std::fmt::Write;

use ft_trace::legible::legible;
use serde_json::Value;

use super::Timeline;
use crate::render::html::words;

/// The modules of the script, each behind those that it uses.
const SCRIPT: [&str; 12] = [
    include_str!("script/codec.js"),
    include_str!("script/view.js"),
    include_str!("script/model.js"),
    include_str!("script/layout.js"),
    include_str!("script/paint.js"),
    include_str!("script/marks.js"),
    include_str!("script/panel.js"),
    include_str!("script/scene.js"),
    include_str!("script/said.js"),
    include_str!("script/input.js"),
    include_str!("script/main.js"),
    include_str!("script/start.js"),
];

/// The modules as one: what they import is there already, and nobody imports what they export.
fn script() -> String {
    let lines = SCRIPT.iter().flat_map(|module| module.lines());
    let own = lines.filter(|line| !line.starts_with("import ") && *line != "// @ts-check");
    own.fold(String::from("\"use strict\";\n{\n"), |mut script, line| {
        script.push_str(line.strip_prefix("export ").unwrap_or(line));
        script.push('\n');
        script
    }) + "}\n"
}

/// All texts as they are for people to read: the script shows them as they come.
fn make_legible(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = legible(text) {
                *text = shown;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_legible),
        Value::Object(values) => values.values_mut().for_each(make_legible),
        _ => {}
    }
}

pub(super) fn fragment(timeline: &Timeline) -> String {
    let size: usize = timeline.chunks.iter().map(String::len).sum();
    let mut out = String::with_capacity(size + (1 << 18));
    let mut head = serde_json::to_value(&timeline.head).expect("numbers and texts");
    make_legible(&mut head);
    let head = head.to_string();
    let notes = words(&timeline.notes.join(" "));
    let body = include_str!("timeline.html").replace("{{notes}}", &notes);
    let style = include_str!("timeline.css");
    write!(out, "<section id=timeline>\n<style>\n{style}</style>\n{body}").expect("memory");
    let head = head.replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" class=\"tl-head\">{head}</script>")
        .expect("memory");
    for chunk in &timeline.chunks {
        writeln!(out, "<script type=\"text/plain\" class=\"tl-chunk\">{chunk}</script>")
            .expect("memory");
    }
    write!(out, "<script>\n{}</script>\n</section>\n", script()).expect("memory");
    out
}
