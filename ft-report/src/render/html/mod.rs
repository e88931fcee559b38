//! Documents as one page for a browser, which needs nothing else: no network, no other file.
//!
//! The page is whole without its script, which only lets tables be sorted and filtered and figures answer the pointer
//! (`page.js`). What a traced program wrote goes through `Escaped`; should anything ever get past that, the page's
//! own policy keeps it from loading anything from anywhere. A timeline, made elsewhere, stands behind the summary, and behind
//! that what was recorded; but what a reader must know before believing the rest is above all.

mod escape;
mod figure;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::fmt::{self, Write};

use ft_analysis::Mark;

use super::colors;
use crate::document::{Block, Document, Section, Text};
pub(crate) use escape::Escaped;
use value::Links;

/// A document as a page. It is displayed as HTML.
#[derive(Debug)]
pub struct Page<'a> {
    document: &'a Document,
    timeline: &'a str,
}

/// The policy of the page: nothing is loaded but what stands in it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The sections behind which the timeline stands: they say what to look for there.
const FIRST: [&str; 2] = ["findings", "summary"];

impl<'a> Page<'a> {
    /// Of a document.
    pub fn of(document: &'a Document) -> Page<'a> {
        Page { document, timeline: "" }
    }

    /// With a timeline: a `<section id="timeline">` that shows the interval of the address' fragment,
    /// `#at=FROM-TO&tid=TID&lock=ADDRESS`: nanoseconds since [`Document::begin_ns`], and an address in hexadecimal.
    #[must_use]
    pub fn with_timeline(self, fragment: &'a str) -> Page<'a> {
        Page { timeline: fragment, ..self }
    }
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Page { document, timeline } = self;
        let links = Links { document, begin_ns: document.begin_ns, timeline: !timeline.is_empty() };
        write!(
            out,
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
             <meta http-equiv=Content-Security-Policy content=\"{POLICY}\">\n\
             <meta name=viewport content=\"width=device-width\">\n\
             <title>{}</title>\n<style>\n{}{}</style>\n",
            Escaped(&title(document)),
            include_str!("page.css"),
            colors::style()
        )?;
        self.navigation(out)?;
        write!(out, "<main>\n<header>\n<h1>{}</h1>\n", Escaped(&title(document)))?;
        let (warnings, facts) = document.head.blocks.iter().partition::<Vec<_>, _>(is_warning);
        blocks(out, warnings, "", self, links)?;
        legend(out)?;
        out.write_str("</header>\n")?;
        let (summary, rest) = document
            .sections
            .iter()
            .partition::<Vec<_>, _>(|section| FIRST.contains(&section.name));
        summary.into_iter().try_for_each(|s| section(out, s, self, links))?;
        out.write_str(timeline)?;
        heading(out, document.head.name, "what was recorded, and how well")?;
        blocks(out, facts, document.head.name, self, links)?;
        out.write_str("</section>\n")?;
        rest.into_iter().try_for_each(|s| section(out, s, self, links))?;
        write!(
            out,
            "</main>\n<script type=module>\n{}</script>\n</html>\n",
            include_str!("page.js")
        )
    }
}

/// A text of ours as HTML: what stands between backticks is a command.
pub(crate) fn words(text: &str) -> String {
    let mut html = String::new();
    // A text has room for more.
    let _ = value::words(&mut html, text);
    html
}

impl Page<'_> {
    fn navigation<W: Write>(&self, out: &mut W) -> fmt::Result {
        let names = self.document.sections.iter().map(|section| section.name);
        let (summary, rest): (Vec<_>, Vec<_>) = names.partition(|name| FIRST.contains(name));
        let timeline = (!self.timeline.is_empty()).then_some("timeline");
        out.write_str("<nav aria-label=Contents>")?;
        for name in summary.into_iter().chain(timeline).chain([self.document.head.name]).chain(rest)
        {
            write!(out, "<a href=\"#{name}\">{name}</a>")?;
        }
        out.write_str("</nav>\n")
    }

    fn has(&self, report: &str) -> bool {
        self.document.sections.iter().any(|section| section.name == report)
    }
}

/// What the trace is of, or what else the page is about.
fn title(document: &Document) -> String {
    let of = |block: &Block| match block {
        Block::Paragraph { label: "command", text, .. } => Some(text.to_string()),
        _ => None,
    };
    let command = document.head.blocks.iter().find_map(of).unwrap_or_default();
    match command.split_whitespace().next().map(|program| program.rsplit('/').next()) {
        Some(Some(program)) if !command.starts_with("none:") => format!("Feather-Trace: {program}"),
        _ => match document.head.name {
            "trace" => "Feather-Trace".into(),
            other => format!("Feather-Trace: {other}"),
        },
    }
}

fn section<W: Write>(out: &mut W, s: &Section, page: &Page<'_>, links: Links) -> fmt::Result {
    heading(out, s.name, s.title)?;
    if let Some(fault) = &s.fault {
        note(out, "fault", fault, links)?;
    }
    blocks(out, &s.blocks, s.name, page, links)?;
    out.write_str("</section>\n")
}

/// Begins a section.
fn heading<W: Write>(out: &mut W, name: &str, title: &str) -> fmt::Result {
    write!(out, "<section id={name}>\n<h2>{name}")?;
    if !title.is_empty() {
        write!(out, " <small>{}</small>", Escaped(title))?;
    }
    out.write_str("</h2>\n")
}

/// What must be known before the rest is believed: it stands above all.
fn is_warning(block: &&Block) -> bool {
    matches!(block, Block::Warning(_))
}

/// What a section of this name says, in order; sentences behind labels are a list.
fn blocks<'a, W: Write>(
    out: &mut W,
    blocks: impl IntoIterator<Item = &'a Block>,
    name: &str,
    page: &Page<'_>,
    links: Links,
) -> fmt::Result {
    let mut listing = false;
    let mut figures = 0;
    for block in blocks {
        let labelled = matches!(block, Block::Paragraph { label, .. } if !label.is_empty());
        let goes_on = labelled || matches!(block, Block::Paragraph { .. });
        if listing && (labelled || !goes_on) {
            out.write_str("</dd>\n")?;
        }
        if listing && !goes_on {
            out.write_str("</dl>\n")?;
            listing = false;
        }
        if labelled && !listing {
            out.write_str("<dl>\n")?;
            listing = true;
        }
        match block {
            Block::Paragraph { label, report, text } => {
                if labelled {
                    match report.filter(|report| page.has(report)) {
                        Some(report) => {
                            write!(out, "<dt><a href=\"#{report}\">{label}</a></dt><dd>")?
                        }
                        None => write!(out, "<dt>{label}</dt><dd>")?,
                    }
                }
                out.write_str("<p>")?;
                links.sentence(out, text)?;
                out.write_str("</p>\n")?;
            }
            Block::Warning(text) => note(out, "warning", text, links)?,
            Block::Table(t) => table::table(out, t, name, links)?,
            Block::Figure(drawn) => {
                figures += 1;
                figure::figure(out, drawn, &format!("{name}-figure-{figures}"), links)?;
            }
        }
    }
    if listing { out.write_str("</dd>\n</dl>\n") } else { Ok(()) }
}

fn note<W: Write>(out: &mut W, kind: &str, text: &Text, links: Links) -> fmt::Result {
    write!(out, "<p class={kind} role=note><strong>{kind}</strong> ")?;
    links.sentence(out, text)?;
    out.write_str("</p>\n")
}

/// What the marks mean.
fn legend<W: Write>(out: &mut W) -> fmt::Result {
    out.write_str("<details class=legend><summary>How sure a figure is: exact")?;
    for mark in [Mark::Disturbed, Mark::LowerBound, Mark::Censored] {
        out.write_str(", ")?;
        value::mark_word(out, mark)?;
    }
    out.write_str("</summary><ul>\n")?;
    for mark in [Mark::Exact, Mark::Disturbed, Mark::LowerBound, Mark::Censored] {
        writeln!(out, "<li class={}>{}</li>", value::class(mark), value::meaning(mark))?;
    }
    out.write_str(
        "</ul><p>A star (*) stands behind the first duration of a row that is not exact. A statistic is as sure as the \
         least sure that it is made of.</p></details>\n",
    )
}
