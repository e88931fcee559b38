//! The registry of reports: each answers one question with one section.
//!
//! A report is a struct of figures with `read` (from a trace) and `section` (what it says), in a file of its own, and an
//! entry of the list in `reports.rs`. The command line, its help and completions, and JSON follow from the list.

pub mod agreement;
mod apart;
pub mod breakdown;
pub mod called;
pub mod deadlines;
pub mod dispatch;
pub mod findings;
pub mod functions;
pub mod futexes;
pub mod gaps;
pub mod head;
#[cfg(test)]
mod hostile_tests;
pub mod jobs;
pub mod kernel_locks;
pub mod locks;
pub mod npt;
pub mod order;
pub mod preempted;
pub mod profile;
pub mod quality;
pub mod reactivity;
pub mod recording;
mod reports;
pub mod request;
pub mod requests;
pub mod runs;
pub mod scopes;
pub mod stacks;
pub mod steal;
pub mod study;
mod summary;
pub mod switches;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod time;
pub mod timers;
pub mod waits;
pub mod what_if;
pub mod workers;

use std::cell::OnceCell;
use std::ops::Range;

use ft_analysis::Tally;
use ft_trace::ids::Pid;
use ft_trace::store::{Result, Row, Trace};
use serde::Serialize;
use serde_json::Value;

use crate::code::Code;
use crate::document::{Document, Section};
use crate::stats::Window;
use head::Head;
use reports::REPORTS;
use request::RequestReport;

/// Of a number that JSON has only where it is not zero.
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The machine values of a report that can say nothing: whatever is counted is not known.
fn unknown(values: impl Serialize) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Number(_) => *value = Value::Null,
            Value::Array(all) => all.iter_mut().for_each(forget),
            Value::Object(all) => all.values_mut().for_each(forget),
            _ => {}
        }
    }
    let mut values = serde_json::to_value(values).unwrap_or_default();
    forget(&mut values);
    values
}

/// The machine values of a report, of which some are not known without the kernel's records: those of these names.
fn without_kernel(values: impl Serialize, of_kernel: &[&str]) -> Value {
    fn forget(value: &mut Value, of_kernel: &[&str]) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|value| forget(value, of_kernel)),
            Value::Object(all) => {
                all.iter_mut().for_each(|(name, value)| match of_kernel.contains(&name.as_str()) {
                    true => *value = Value::Null,
                    false => forget(value, of_kernel),
                })
            }
            _ => {}
        }
    }
    let mut values = serde_json::to_value(values).unwrap_or_default();
    forget(&mut values, of_kernel);
    values
}

/// What a report says that can say nothing.
const NO_SCHEDULER: &str =
    "No scheduler records: record with the kernel group `sched` (see `ft-agent doctor`).";

/// What a report of waits says that has only their lengths.
const NO_PARTS: &str =
    "Without scheduler records neither wakers nor parts are known: record `sched`, too.";

/// A trace that was analysed: what sections are made of.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its tables.
    pub trace: &'a Trace,
    /// The counts of its analysis.
    pub tally: &'a Tally,
    /// What was asked for beyond the name of a report.
    pub asked: Asked,
    /// Its call chains by name, read when the first report asks for them.
    pub code: &'a OnceCell<Code>,
}

/// What can be asked of reports beyond their name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The one grouping of a profile; `None`: all.
    pub by: Option<profile::By>,
}

impl<'a> Input<'a> {
    /// Call chains by name.
    fn code(self) -> Result<&'a Code> {
        if self.code.get().is_none() {
            // Nobody else can have set it.
            let _ = self.code.set(Code::read(self.trace)?);
        }
        Ok(self.code.get_or_init(Code::default))
    }

    /// Whether a kind of request is that of a reaction.
    fn is_reaction(self, kind: &str) -> bool {
        self.tally.requests.reactions.iter().any(|reactions| reactions.kind == kind)
    }

    /// Whether a kind of request is a cycle with a deadline.
    fn is_cycle(self, kind: &str) -> bool {
        self.tally.requests.deadlines.iter().any(|deadline| deadline.kind == kind)
    }

    /// Whether a kernel group was recorded.
    fn recorded(self, group: &str) -> bool {
        self.trace.meta().start.kernel_groups.iter().any(|recorded| recorded == group)
    }

    /// The process that recorded; not known of old traces.
    fn agent(self) -> Option<Pid> {
        self.trace.meta().start.agent_pid.map(Pid)
    }

    /// The time that the trace is of.
    fn window(self) -> Window {
        let meta = self.trace.meta();
        let from_ns = meta.start.window_from_ns.unwrap_or(meta.start.start_ns);
        Window { from_ns, to_ns: meta.end.as_ref().map_or(self.tally.last_ns, |end| end.ts) }
    }

    /// Shows every row of a table.
    fn rows<R: Row>(self, mut to: impl FnMut(R)) -> Result<()> {
        self.trace.rows::<R>().try_for_each(|row| row.map(&mut to))
    }
}

/// When a report is shown that nobody has named.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// Whatever was recorded.
    Always,
    /// The same as data and on a page; as text, where what it is about was recorded.
    Data(fn(&Tally) -> bool),
    /// Where one of these kernel groups was recorded, which nobody asks for without a reason.
    With(&'static [&'static str]),
    /// Where the program has recorded what it is about.
    Recorded(fn(&Tally) -> bool),
    /// Never.
    Named,
}

/// A report.
#[derive(Debug)]
pub struct Report {
    /// Its name, on the command line and in JSON.
    pub name: &'static str,
    /// What it answers, in a line that continues "prints …".
    pub about: &'static str,
    /// What must have been recorded.
    pub needs: &'static str,
    /// When it is part of a report that names no section.
    pub shown: Shown,
    make: fn(Input<'_>) -> Result<Section>,
}

impl Report {
    /// Makes the section.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn section(&self, input: Input<'_>) -> Result<Section> {
        (self.make)(input)
    }
}

/// All reports, in the order in which they are printed.
pub fn all() -> &'static [Report] {
    &REPORTS
}

/// The reports that are shown where nobody has named one: of a trace with these kernel groups and counts; `as_text`: not as data or
/// on a page.
pub fn usual<'a>(
    groups: &'a [String],
    tally: &'a Tally,
    as_text: bool,
) -> impl Iterator<Item = &'static Report> + use<'a> {
    all().iter().filter(move |report| match report.shown {
        Shown::Always => true,
        Shown::Data(of) => !as_text || of(tally),
        Shown::With(of) => groups.iter().any(|recorded| of.contains(&recorded.as_str())),
        Shown::Recorded(of) => of(tally),
        Shown::Named => false,
    })
}

/// The report of this name.
pub fn find(name: &str) -> Option<&'static Report> {
    all().iter().find(|report| report.name == name)
}

impl Document {
    /// A document of these reports about a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn of(
        trace: &Trace,
        tally: &Tally,
        reports: impl IntoIterator<Item = &'static Report>,
        asked: Asked,
    ) -> Result<Document> {
        let input = Input { trace, tally, asked, code: &OnceCell::new() };
        let sections = reports.into_iter().map(|report| report.section(input));
        Document::with(input, sections.collect::<Result<_>>()?)
    }

    /// A document about the request of this number, and when that went on (CLOCK_MONOTONIC ns); `None` when the trace has
    /// none.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn of_request(
        trace: &Trace,
        tally: &Tally,
        number: i64,
    ) -> Result<Option<(Document, Range<i64>)>> {
        let input = Input { trace, tally, asked: Asked::default(), code: &OnceCell::new() };
        let Some(report) = RequestReport::read(input, number)? else { return Ok(None) };
        let time = report.ts..report.ts.saturating_add(report.dur_ns).saturating_add(1);
        Ok(Some((Document::with(input, vec![report.section()])?, time)))
    }

    fn with(input: Input<'_>, sections: Vec<Section>) -> Result<Document> {
        let begin_ns = input.trace.meta().start.start_ns;
        Ok(Document { begin_ns, head: Head::read(input)?.section(), sections })
    }
}

#[cfg(test)]
mod registry_tests {
    use super::*;

    #[test]
    fn each_report_has_a_name_of_its_own_and_is_found_by_it() {
        for (i, report) in all().iter().enumerate() {
            let found = find(report.name).expect("it is found");
            assert!(std::ptr::eq(found, report), "{} stands at {i} and before", report.name);
            assert!(!report.about.ends_with('.') && !report.needs.is_empty(), "{}", report.name);
        }
        assert!(find("").is_none());
        let mut tally = Tally::default();
        let plain = usual(&[], &tally, false).count();
        assert!(plain < all().len());
        let groups = ["stack", "profile", "futex", "lock", "syscall"].map(str::to_owned);
        assert_eq!(usual(&groups, &tally, false).count(), plain + 5);
        (tally.tasks.tasks, tally.functions.calls) = (1, 1);
        let names: Vec<_> = usual(&[], &tally, false).map(|report| report.name).collect();
        assert!(names.len() == plain + 2 && names.ends_with(&["tasks", "functions"]), "{names:?}");
        let text: Vec<_> = usual(&[], &Tally::default(), true).map(|report| report.name).collect();
        assert_eq!(text, ["findings"]);
    }
}
