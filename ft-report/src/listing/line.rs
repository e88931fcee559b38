//! One event as one line: aligned text, or a JSON object.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::Form;
use super::entry::{Entry, kernel_names};
use super::filter::Filter;
use super::names::{Names, Site, write_thread};
use super::time::Times;
use crate::render::number::{count, dur};
use crate::tracks::args;
use ft_trace::ids::{Nanos, Pid, Tid};
use ft_trace::legible::{legible, write_json};
use ft_trace::store::Trace;
use ft_trace::stream::Timed;
use ft_trace::tables::{Line, UserEvent};

/// Columns are never wider than this for the sake of a few long names.
///
/// Limit: the name is not cut, and its line is longer than the others.
/// Shown by: `a_long_name_moves_its_own_line_alone`.
const MOST_WIDTH: usize = 32;

/// Writes lines.
pub(super) struct Lines<'a> {
    names: &'a Names,
    times: Times,
    json: bool,
    /// Widths of the columns time, thread and event.
    widths: [usize; 3],
    /// Parts of the line, kept for their memory.
    time: String,
    thread: String,
    words: String,
    line: String,
}

impl<'a> Lines<'a> {
    /// Lines of the events that `filter` selects, with columns as wide as their names need.
    pub(super) fn new(
        trace: &Trace,
        names: &'a Names,
        filter: &Filter,
        form: Form,
        kernel: bool,
    ) -> Lines<'a> {
        let times = Times::new(form.times, trace.meta());
        let width =
            |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0).min(MOST_WIDTH);
        let threads = names.threads.iter();
        let selected =
            threads.filter(|t| filter.selects_thread(t.pid, t.tid) && (kernel || t.observed));
        let thread = width(&mut selected.map(|t| {
            let mut text = String::new();
            names.write_thread(Some(t.pid), t.tid, &mut text);
            text.chars().count()
        }));
        let of_kernel = kernel_names().filter(|_| kernel);
        let events = names.sites().map(|site| &*site.row.event).chain(of_kernel);
        let event =
            width(&mut events.filter(|e| filter.selects_event(e)).map(|e| e.chars().count()));
        let mut line = String::new();
        times.write(trace.meta().end.as_ref().map_or(0, |end| end.ts), &mut line);
        let time = line.chars().count().max(times.title().len());
        Lines {
            names,
            times,
            json: form.json,
            widths: [time, thread.max(6), event.max(5)],
            time: String::new(),
            thread: String::new(),
            words: String::new(),
            line,
        }
    }

    /// Writes the line above the first event.
    pub(super) fn write_title(&self, out: &mut dyn Write) -> io::Result<()> {
        let [time, thread, event] = self.widths;
        let title = self.times.title();
        writeln!(out, "{title:>time$} cpu  {:<thread$}  {:<event$}  what", "thread", "event")
    }

    /// Writes an event.
    pub(super) fn write(&mut self, entry: &Entry, out: &mut dyn Write) -> io::Result<()> {
        self.words.clear();
        match entry {
            Entry::User(e) => self.names.write_user(e, self.times, &mut self.words),
            _ => {
                let mut line = Words { names: self.names, out: &mut self.words };
                // Writing into a `String` does not fail.
                let _ = entry.say(&mut line);
            }
        }
        let length = self.words.trim_end().len();
        self.words.truncate(length);
        if self.json { self.write_json(entry, out) } else { self.write_text(entry, out) }
    }

    fn write_text(&mut self, entry: &Entry, out: &mut dyn Write) -> io::Result<()> {
        let [time_width, thread_width, event_width] = self.widths;
        for text in [&mut self.time, &mut self.thread, &mut self.line] {
            text.clear();
        }
        self.times.write(entry.ts().0, &mut self.time);
        let (pid, tid) = entry.subject();
        self.names.write_thread(pid, tid, &mut self.thread);
        // Writing into a `String` does not fail.
        let _ = write!(self.line, "{:>time_width$} ", self.time);
        let _ = match entry.cpu().0 {
            ..0 => write!(self.line, "  -"),
            cpu => write!(self.line, "{cpu:>3}"),
        };
        let (thread, words) = (&self.thread, &self.words);
        let _ =
            write!(self.line, "  {thread:<thread_width$}  {:<event_width$}  {words}", entry.name());
        // Names and texts come from the traced program, and a terminal must not obey them.
        if let Cow::Owned(legible) = legible(&self.line) {
            self.line = legible;
        }
        let length = self.line.trim_end().len();
        self.line.truncate(length);
        self.line.push('\n');
        out.write_all(self.line.as_bytes())
    }

    fn write_json(&self, entry: &Entry, out: &mut dyn Write) -> io::Result<()> {
        let (pid, tid) = entry.subject();
        let args = match entry {
            Entry::User(event) => self.names.site(event.site).map(|s| Args::User(s, event)),
            _ => Some(Args::Kernel(entry.fields())),
        };
        let object = Object {
            ts: entry.ts(),
            cpu: entry.cpu().0,
            pid: pid.map(|pid| pid.0),
            tid: tid.0,
            thread: self.names.thread(pid, tid),
            event: &entry.name(),
            text: &self.words,
            args,
        };
        write_json(&mut *out, &object)?;
        out.write_all(b"\n")
    }
}

/// The words of an event of the kernel.
struct Words<'a> {
    names: &'a Names,
    out: &'a mut String,
}

impl std::fmt::Write for Words<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.out.write_str(text)
    }
}

impl Line for Words<'_> {
    fn duration(&mut self, ns: i64) -> std::fmt::Result {
        self.out.write_str(&dur(ns))
    }

    fn count(&mut self, n: u64) -> std::fmt::Result {
        self.out.write_str(&count(n))
    }

    fn thread(&mut self, pid: Pid, tid: Tid) -> std::fmt::Result {
        self.names.write_thread(Some(pid), tid, self.out);
        Ok(())
    }

    fn thread_named(&mut self, comm: &str, tid: Tid) -> std::fmt::Result {
        write_thread(comm, tid, self.out);
        Ok(())
    }
}

/// What a line is in JSON.
#[derive(Serialize)]
struct Object<'a> {
    /// CLOCK_MONOTONIC, ns.
    ts: Nanos,
    cpu: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    tid: i32,
    thread: &'a str,
    event: &'a str,
    text: &'a str,
    /// Arguments of an application's event by their names, as numbers, booleans or texts (null where the
    /// event was too short); columns of a kernel's event.
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args<'a>>,
}

enum Args<'a> {
    User(&'a Site, &'a UserEvent),
    Kernel(Map<String, Value>),
}

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (site, event) = match self {
            Args::User(site, event) => (site, event),
            Args::Kernel(fields) => return fields.serialize(serializer),
        };
        let mut map = serializer.serialize_map(None)?;
        for (i, arg) in site.args().iter().enumerate() {
            map.serialize_entry(&arg.name, &args::value(arg.kind, event, i))?;
        }
        map.end()
    }
}
