//! The timeline of a report's page: a trace that one walks through, from its whole length down to 100 ns.
//!
//! A page cannot hold every span of a long trace. So it has two parts, both made in one walk over the trace and in
//! bounded memory ([`crate::tracks`]): the whole trace in buckets (`level.rs`), each with the time that each row spent in
//! each state, to the nanosecond, and how many events there are of each kind (`density.rs`); and *windows* (`windows.rs`) with every span and event, around what the reports name
//! (`survey.rs`), or over all of a trace that is small enough. What has no row, or no window, is counted, and the page says so.
//!
//! ```
//! use ft_report::timeline::Timeline;
//! use ft_trace::store::Trace;
//!
//! fn page(dir: &std::path::Path) -> Result<String, Box<dyn std::error::Error>> {
//!     let trace = Trace::open(dir)?;
//!     let tally = ft_report::analyze::ensure(&trace, &mut |_| std::ops::ControlFlow::Continue(()))?;
//!     Ok(Timeline::read(&trace, &tally, None)?.fragment())
//! }
//! # assert!(page("/no/such/trace".as_ref()).is_err());
//! ```
//!
//! The page's script is in `script/`: plain JavaScript whose types are checked, in modules that the page has as one.
//! `encode.rs` and `script/codec.js` are two ends of one format, which nobody else reads.

mod build;
mod density;
mod encode;
mod kinds;
mod level;
mod names;
mod page;
mod polling;
mod rows;
mod states;
mod survey;
#[cfg(test)]
mod tests;
mod windows;

use std::ops::Range;

use ft_analysis::Tally;
use ft_trace::Mark;
use ft_trace::store::{Result, Trace};
use ft_trace::stream;
use ft_trace::tables::GapCause;
use serde::Serialize;

use crate::render::number;
use crate::tracks::{Args, Item, Walk};
use build::{Builder, Loss, Words};
use kinds::Kind;
use level::Level;
use names::cut;
use rows::Rows;
use states::STATES;
use survey::Survey;
use windows::Windows;

/// A timeline, ready to be put into a page.
#[derive(Debug)]
pub struct Timeline {
    head: Head,
    /// The buckets, then the windows: zlib as base64.
    chunks: Vec<String>,
    /// What is said of the data in words.
    notes: Vec<String>,
}

/// What the script must know before it unpacks anything; `script/types.js` says what it means. Times are ns since `begin`.
#[derive(Debug, Serialize)]
struct Head {
    /// CLOCK_MONOTONIC ns, as text: a number of JavaScript has 53 bits.
    begin: String,
    offset: i64,
    span: i64,
    bound: i64,
    level: Buckets,
    states: [&'static str; STATES.len()],
    marks: Vec<&'static str>,
    causes: Vec<&'static str>,
    strings: Vec<Box<str>>,
    cpus: Vec<usize>,
    threads: Vec<ThreadRow>,
    locks: Vec<LockRow>,
    events: Vec<Kind>,
    incidents: Vec<Place>,
    windows: Vec<Between>,
    losses: Vec<Loss>,
    gaps: bool,
    runs: bool,
}

#[derive(Debug, Serialize)]
struct Buckets {
    width: i64,
    count: usize,
}

#[derive(Debug, Serialize)]
struct ThreadRow {
    pid: i32,
    tid: i32,
    name: String,
    depth: i32,
    scopes: i32,
}

#[derive(Debug, Serialize)]
struct LockRow {
    pid: i32,
    address: String,
    name: String,
}

#[derive(Debug, Serialize)]
struct Place {
    from: i64,
    to: i64,
    pid: i32,
    tid: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    says: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Between {
    from: i64,
    to: i64,
}

/// Of a trace what its drawing needs beside its items.
struct Frame {
    /// CLOCK_MONOTONIC of the first and the last event, ns.
    begin: i64,
    end: i64,
    /// From which times within the trace are counted, CLOCK_MONOTONIC ns.
    zero: i64,
    bound: i64,
    cpus: usize,
    /// Spans that are expected.
    spans: u64,
}

impl Timeline {
    /// Of an analysed trace, with every detail of `window` (CLOCK_MONOTONIC ns) beside that around incidents.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read.
    pub fn read(trace: &Trace, tally: &Tally, window: Option<Range<i64>>) -> Result<Timeline> {
        let survey = Survey::read(trace)?;
        let start = &trace.meta().start;
        let begin = start.window_from_ns.unwrap_or(start.start_ns);
        let frame = Frame {
            begin: survey.first.map_or(begin, |first| first.min(begin)),
            end: tally.last_ns,
            zero: start.start_ns,
            bound: trace.meta().clock.bound_ns,
            cpus: start.cpus as usize,
            spans: 2 * stream::count(trace),
        };
        let args = Args::read(trace)?;
        let words = |event: &_, out: &mut _| args.write_words(event, out);
        Timeline::draw(frame, survey, &words, window, Walk::new(trace, i64::MIN..i64::MAX)?)
    }

    fn draw(
        frame: Frame,
        survey: Survey,
        words: Words<'_>,
        window: Option<Range<i64>>,
        items: impl Iterator<Item = Result<Item>>,
    ) -> Result<Timeline> {
        let begin = frame.begin;
        // It ends behind the last event, which else would lie in no window.
        let span = (frame.end - begin).max(0) + 1;
        let rows = Rows::new(frame.cpus, &survey);
        let level = Level::new(span, rows.levels(), STATES.len());
        let places: Vec<_> =
            survey.incidents.iter().map(|i| i.from - begin..i.to - begin).collect();
        let window = window.map(|w| w.start.saturating_sub(begin)..w.end.saturating_sub(begin));
        let asked = window.as_ref().map(|w| w.start.max(0)..w.end.min(span));
        let windows = Windows::new(&places, window, span, frame.spans, rows.lanes());
        let mut builder = Builder::new(rows, level, windows, &survey, words, begin);
        for item in items {
            builder.add(&item?);
        }
        builder.finish();
        Ok(Timeline::of(&frame, span, asked, survey, builder))
    }

    fn of(
        frame: &Frame,
        span: i64,
        asked: Option<Range<i64>>,
        survey: Survey,
        mut built: Builder<'_>,
    ) -> Timeline {
        let mut windows = built.take_windows();
        let (cpus, others) = (built.cpus_in_use(), built.has_others());
        let between = |w: &windows::Window| Between { from: w.at.start, to: w.at.end };
        let notes = notes(frame, span, asked, &survey, &built, &windows);
        let head = Head {
            begin: frame.begin.to_string(),
            offset: frame.begin - frame.zero,
            span,
            bound: frame.bound,
            level: Buckets { width: built.level.width(), count: built.level.count() },
            states: STATES,
            marks: Mark::ALL.iter().map(|mark| mark.word()).collect(),
            causes: GapCause::ALL.iter().map(|c| c.word()).chain(["not known"]).collect(),
            threads: threads(&survey, &built, others),
            locks: survey
                .locks
                .rows
                .iter()
                .map(|((pid, lock), name)| lock_row(*pid, *lock, name))
                .collect(),
            events: built.kinds.all().to_vec(),
            incidents: survey.incidents.iter().map(|i| place(i, frame.begin)).collect(),
            windows: windows.iter().map(between).collect(),
            strings: built.names.all().to_vec(),
            cpus: cpus.clone(),
            losses: built.losses.clone(),
            gaps: built.has_gaps,
            runs: built.has_runs,
        };
        let mut level = built.level.encode(built.rows.level_rows(&cpus, others));
        built.counts.encode(&mut level);
        let packed =
            windows.iter_mut().map(|w| w.encode(built.rows.window_lanes(&cpus, others)).pack());
        Timeline { head, chunks: std::iter::once(level.pack()).chain(packed).collect(), notes }
    }

    /// `<section id="timeline">` with the data and the script.
    pub fn fragment(&self) -> String {
        page::fragment(self)
    }
}

fn threads(survey: &Survey, built: &Builder<'_>, others: bool) -> Vec<ThreadRow> {
    let row = |(i, (key, name)): (usize, &(ft_trace::ids::ThreadKey, ft_trace::ids::Name))| {
        let (depth, scopes) = built.nesting[i];
        ThreadRow { pid: key.pid.0, tid: key.tid.0, name: cut(name).into(), depth, scopes }
    };
    let mut rows: Vec<_> = survey.threads.rows.iter().enumerate().map(row).collect();
    if others {
        let name = match survey.threads.more {
            0 => "threads that no table names".into(),
            more => format!("others: {}", number::quantity(more as u64, "thread")),
        };
        rows.push(ThreadRow { pid: 0, tid: 0, name, depth: 0, scopes: 0 });
    }
    rows
}

fn lock_row(pid: i32, lock: i64, name: &str) -> LockRow {
    LockRow { pid, address: format!("{lock:x}"), name: cut(name).into() }
}

fn place(i: &survey::Incident, begin: i64) -> Place {
    Place {
        from: i.from - begin,
        to: i.to - begin,
        pid: i.thread.pid.0,
        tid: i.thread.tid.0,
        lock: i.lock.map(|lock| format!("{lock:x}")),
        says: cut(&i.says).into(),
    }
}

/// What is in the page, and what is not; `asked` is the interval of which every detail was asked for.
fn notes(
    frame: &Frame,
    span: i64,
    asked: Option<Range<i64>>,
    survey: &Survey,
    built: &Builder<'_>,
    windows: &[windows::Window],
) -> Vec<String> {
    use number::{count, dur, quantity};
    let mut notes = Vec::new();
    let covered: i64 = windows.iter().map(|w| w.at.end - w.at.start).sum();
    let spans: usize = windows.iter().map(windows::Window::spans).sum();
    let width = dur(built.level.width());
    notes.push(match covered == span {
        true => format!("All of it is here: {} spans and events.", count(spans as u64)),
        false => format!(
            "Every detail of {} ({} of {}, {} spans and events) around what the reports name{}. Of all other time there \
             are buckets of {width}, which tell how long each row was in each state and not when; sums over whole buckets \
             are exact. For every detail of another interval make the page with `--from` and `--to`.",
            quantity(windows.len() as u64, "window"),
            dur(covered),
            dur(span),
            count(spans as u64),
            if asked.is_some() { ", and of the interval that was asked for" } else { "" },
        ),
    });
    let cut = windows.iter().filter(|w| w.is_cut());
    let missing: i64 = cut.clone().map(|w| w.wanted - w.at.end).sum();
    if missing > 0 {
        let n = cut.count() as u64;
        notes.push(format!(
            "{} ended early, {} in all, for want of room.",
            quantity(n, "window"),
            dur(missing)
        ));
    }
    if let Some(asked) = asked {
        let shown = |w: &windows::Window| w.at.end.min(asked.end) - w.at.start.max(asked.start);
        let shown: i64 = windows.iter().map(|w| shown(w).max(0)).sum();
        let of = asked.end - asked.start;
        if shown < of {
            let (shown, of) = (dur(shown), dur(of));
            notes.push(format!(
                "Of the interval that was asked for, every detail of {shown} of {of} is here: ask for a shorter one."
            ));
        }
    }
    if !built.losses.is_empty() {
        let n = built.losses.len() as u64;
        let columns = if n == 1 { "column" } else { "columns" };
        notes.push(format!("Records were lost in the {} hatched {columns}.", count(n)));
    }
    if built.has_runs {
        notes.push(
            "The kernel was not recorded: who ran when is the execution trace that threads made of their own gaps (table `runs`)."
                .into(),
        );
    }
    if survey.threads.more > 0 {
        notes.push(format!(
            "{} that did less share one row, with sums alone.",
            quantity(survey.threads.more as u64, "thread")
        ));
    }
    if survey.locks.more > 0 {
        notes.push(format!(
            "{} waited for less have no row; their holds stand in the rows of threads.",
            quantity(survey.locks.more as u64, "lock")
        ));
    }
    if built.other_cpus > 0 {
        notes.push(format!(
            "{} of {} have no row ({} left out).",
            quantity(frame.cpus.saturating_sub(rows::MAX_CPUS) as u64, "CPU"),
            count(frame.cpus as u64),
            quantity(built.other_cpus, "span")
        ));
    }
    if built.unsaid > 0 {
        notes.push(format!("What {} say had no room.", quantity(built.unsaid, "event")));
    }
    if built.names.unnamed > 0 {
        notes.push(format!(
            "{} have lost their names, which had no room.",
            quantity(built.names.unnamed, "span")
        ));
    }
    notes
}
