//! Documents as one page for a browser, which needs nothing else: no network, no other file.
//!
//! The page is whole without its script, which only lets tables be sorted and filtered and figures answer the pointer
//! (`page.js`). What a traced program wrote goes through [`Escaped`]; should anything ever get past that, the page's
//! own policy keeps it from loading anything from anywhere. A timeline, made elsewhere, stands behind the summary.

mod escape;
mod figure;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::fmt::{self, Write};

use ft_analysis::Mark;

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

/// The section behind which the timeline stands: it says what to look for there.
const SUMMARY: &str = "summary";

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
        let links = Links { begin_ns: document.begin_ns, timeline: !timeline.is_empty() };
        write!(
            out,
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
             <meta http-equiv=Content-Security-Policy content=\"{POLICY}\">\n\
             <meta name=viewport content=\"width=device-width\">\n\
             <title>{}</title>\n<style>\n{}</style>\n",
            Escaped(&title(document)),
            include_str!("page.css")
        )?;
        self.navigation(out)?;
        out.write_str("<main>\n<header id=trace>\n")?;
        writeln!(out, "<h1>{}</h1>", Escaped(&title(document)))?;
        blocks(out, &document.head, self, links)?;
        legend(out)?;
        out.write_str("</header>\n")?;
        let summaries = document.sections.iter().take_while(|section| section.name == SUMMARY);
        let rest = summaries.clone().count();
        summaries.into_iter().try_for_each(|s| section(out, s, self, links))?;
        out.write_str(timeline)?;
        document.sections[rest..].iter().try_for_each(|s| section(out, s, self, links))?;
        write!(
            out,
            "</main>\n<script type=module>\n{}</script>\n</html>\n",
            include_str!("page.js")
        )
    }
}

impl Page<'_> {
    fn navigation<W: Write>(&self, out: &mut W) -> fmt::Result {
        out.write_str("<nav aria-label=Contents><a href=\"#trace\">trace</a>")?;
        let mut timeline = !self.timeline.is_empty();
        for section in &self.document.sections {
            if section.name != SUMMARY && std::mem::take(&mut timeline) {
                out.write_str("<a href=\"#timeline\">timeline</a>")?;
            }
            write!(out, "<a href=\"#{0}\">{0}</a>", section.name)?;
        }
        if timeline {
            out.write_str("<a href=\"#timeline\">timeline</a>")?;
        }
        out.write_str("</nav>\n")
    }

    fn has(&self, report: &str) -> bool {
        self.document.sections.iter().any(|section| section.name == report)
    }
}

/// What the trace is of.
fn title(document: &Document) -> String {
    let of = |block: &Block| match block {
        Block::Paragraph { label: "command", text, .. } => Some(text.to_string()),
        _ => None,
    };
    let command = document.head.blocks.iter().find_map(of).unwrap_or_default();
    match command.split_whitespace().next().map(|program| program.rsplit('/').next()) {
        Some(Some(program)) if !command.starts_with("none:") => format!("Feather-Trace: {program}"),
        _ => "Feather-Trace".into(),
    }
}

fn section<W: Write>(out: &mut W, s: &Section, page: &Page<'_>, links: Links) -> fmt::Result {
    let Section { name, title, .. } = s;
    write!(out, "<section id={name}>\n<h2>{name}")?;
    if !title.is_empty() {
        write!(out, " <small>{}</small>", Escaped(title))?;
    }
    out.write_str("</h2>\n")?;
    if let Some(fault) = &s.fault {
        note(out, "fault", fault, links)?;
    }
    blocks(out, s, page, links)?;
    out.write_str("</section>\n")
}

/// What a section says, in order; sentences behind labels are a list.
fn blocks<W: Write>(out: &mut W, s: &Section, page: &Page<'_>, links: Links) -> fmt::Result {
    let mut listing = false;
    let mut figures = 0;
    for block in &s.blocks {
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
            Block::Table(t) => table::table(out, t, links)?,
            Block::Figure(drawn) => {
                figures += 1;
                figure::figure(out, drawn, &format!("{}-figure-{figures}", s.name), links)?;
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
