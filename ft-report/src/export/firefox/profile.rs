//! A profile as it is written: tables of columns for each thread.
//!
//! All of a column stands together, and the columns of a thread; events come otherwise. So columns grow in pieces that
//! [`Sorted`] puts together, and only what each thread's tables of names and stacks hold is kept.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::schema::{Category, Marker, categories, schemas};
use crate::export::sorted::Sorted;

/// Columns of a thread, and what stands before each: three of samples and one of their CPU time, six of markers.
const COLUMNS: [&str; 10] = [
    r#""stack":["#,
    r#"],"timeDeltas":["#,
    r#"],"weight":["#,
    r#"],"threadCPUDelta":["#,
    r#""data":["#,
    r#"],"name":["#,
    r#"],"startTime":["#,
    r#"],"endTime":["#,
    r#"],"phase":["#,
    r#"],"category":["#,
];

/// The first column of markers.
const MARKERS: usize = 4;

/// Phases of markers.
const INSTANT: &str = "0";
const INTERVAL: &str = "1";

/// Bytes of a column that are written together.
const PIECE_BYTES: usize = 1 << 10;

/// Version of the format: that of `fxprof-processed-profile` 0.8.1, which the viewer upgrades when it reads.
const VERSION: u32 = 55;

/// A thread, or what is shown like one.
pub(super) struct Track {
    pub(super) name: String,
    pub(super) process: String,
    pub(super) pid: String,
    pub(super) tid: String,
    pub(super) is_main: bool,
    strings: HashMap<String, usize>,
    /// Stacks: what is above each (its number, or none), its name and category.
    stacks: HashMap<(Option<usize>, usize, Category), usize>,
    samples: u64,
    markers: u64,
    /// Begin and end of the newest sample, ns, and how much of that ran.
    last: Option<(i64, i64, i64)>,
    columns: [String; COLUMNS.len()],
}

impl Track {
    pub(super) fn new(name: String, process: String, pid: String, tid: String) -> Track {
        let is_main = pid == tid;
        Track {
            name,
            process,
            pid,
            tid,
            is_main,
            strings: HashMap::new(),
            stacks: HashMap::new(),
            samples: 0,
            markers: 0,
            last: None,
            columns: Default::default(),
        }
    }

    fn string(&mut self, text: &str) -> usize {
        match self.strings.get(text) {
            Some(&number) => number,
            None => {
                self.strings.insert(text.to_owned(), self.strings.len());
                self.strings.len() - 1
            }
        }
    }

    /// The stack of these names, the outermost first; empty names are left out.
    fn stack(&mut self, names: &[&str], category: Category) -> Option<usize> {
        names.iter().filter(|name| !name.is_empty()).fold(None, |above, name| {
            let name = self.string(name);
            let next = self.stacks.len();
            Some(*self.stacks.entry((above, name, category)).or_insert(next))
        })
    }

    fn put(&mut self, column: usize, value: &str) {
        let text = &mut self.columns[column];
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(value);
    }

    /// A sample from `at` on, of this weight; the time before it was spent as its last sample says.
    fn sample(&mut self, at: i64, stack: Option<usize>, weight: i64) {
        let (before, ran) = self.last.map_or((0, 0), |(from, _, ran)| (from, ran));
        self.put(0, &stack.map_or("null".into(), |stack| stack.to_string()));
        self.put(1, &ms(at - before));
        self.put(2, &ms(weight));
        self.put(3, &ran.to_string());
        self.samples += 1;
    }

    /// A sample without a stack, where the newest one ends.
    fn pause(&mut self) {
        if let Some((_, to, _)) = self.last {
            self.sample(to, None, 0);
            self.last = Some((to, to, 0));
        }
    }
}

/// A profile that grows.
pub(super) struct Profile {
    tracks: Vec<Track>,
    pieces: Sorted,
}

impl Profile {
    pub(super) fn new() -> Profile {
        Profile { tracks: Vec::new(), pieces: Sorted::new() }
    }

    /// Adds a track and returns its number.
    pub(super) fn track(&mut self, track: Track) -> usize {
        self.tracks.push(track);
        self.tracks.len() - 1
    }

    /// A thread was doing something from when to when (ns from the begin); `stack` says what, the outermost first. Of one
    /// track, these come in order. `runs`: that is time on a CPU.
    pub(super) fn state(
        &mut self,
        track: usize,
        (from, to): (i64, i64),
        stack: &[&str],
        category: Category,
        runs: bool,
    ) -> io::Result<()> {
        let on = &mut self.tracks[track];
        if on.last.is_some_and(|(_, end, _)| end < from) {
            on.pause();
        }
        let stack = on.stack(stack, category);
        on.sample(from, stack, to - from);
        on.last = Some((from, to, if runs { to - from } else { 0 }));
        self.keep(track, PIECE_BYTES)
    }

    /// A marker from when to when; without an end, an instant.
    pub(super) fn marker<M: Marker>(
        &mut self,
        track: usize,
        (from, to): (i64, Option<i64>),
        name: &str,
        marker: &M,
    ) -> io::Result<()> {
        let on = &mut self.tracks[track];
        let name = on.string(name);
        on.put(MARKERS, &serde_json::to_string(marker)?);
        on.put(MARKERS + 1, &name.to_string());
        on.put(MARKERS + 2, &ms(from));
        on.put(MARKERS + 3, &to.map_or("null".into(), ms));
        on.put(MARKERS + 4, if to.is_some() { INTERVAL } else { INSTANT });
        on.put(MARKERS + 5, &(M::CATEGORY as u32).to_string());
        on.markers += 1;
        self.keep(track, PIECE_BYTES)
    }

    /// Hands over columns of at least so many bytes.
    fn keep(&mut self, track: usize, bytes: usize) -> io::Result<()> {
        for (text, column) in self.tracks[track].columns.iter_mut().zip(0..) {
            if text.len() >= bytes {
                self.pieces.push((track * COLUMNS.len() + column) as u64, text.as_bytes())?;
                text.clear();
            }
        }
        Ok(())
    }

    /// Writes it; `start` is the time of day at its begin, in ms since 1970.
    pub(super) fn write(mut self, start: f64, out: &mut dyn Write) -> io::Result<()> {
        for track in 0..self.tracks.len() {
            self.tracks[track].pause();
            self.keep(track, 1)?;
        }
        write!(out, r#"{{"meta":{},"libs":[],"threads":["#, meta(start))?;
        let Profile { tracks, pieces } = self;
        let mut writer = Columns { tracks: &tracks, opened: 0, is_empty: true, out };
        pieces.each(|column, piece| {
            writer.open_until(column as usize)?;
            writer.piece(piece)
        })?;
        let columns = tracks.len() * COLUMNS.len();
        if columns > 0 {
            writer.open_until(columns - 1)?;
            writer.close()?;
        }
        write!(out, r#"],"pages":[],"profilerOverhead":[],"counters":[]}}"#)
    }
}

/// Writes columns in their order, with all that stands between them.
struct Columns<'a> {
    tracks: &'a [Track],
    /// So many columns of all threads were begun.
    opened: usize,
    /// Nothing is in the newest one.
    is_empty: bool,
    out: &'a mut dyn Write,
}

impl Columns<'_> {
    /// Begins columns up to this one.
    fn open_until(&mut self, column: usize) -> io::Result<()> {
        while self.opened <= column {
            let (track, column) = (self.opened / COLUMNS.len(), self.opened % COLUMNS.len());
            let on = &self.tracks[track];
            match column {
                0 => {
                    if track > 0 {
                        self.close()?;
                        self.out.write_all(b",")?;
                    }
                    write!(
                        self.out,
                        r#"{{"samples":{{"length":{},"weightType":"tracing-ms","#,
                        on.samples
                    )?;
                }
                MARKERS => write!(self.out, r#"]}},"markers":{{"length":{},"#, on.markers)?,
                _ => {}
            }
            self.out.write_all(COLUMNS[column].as_bytes())?;
            self.opened += 1;
            self.is_empty = true;
        }
        Ok(())
    }

    fn piece(&mut self, piece: &[u8]) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.write_all(b",")?;
        }
        self.out.write_all(piece)
    }

    /// Ends the newest track with its tables.
    fn close(&mut self) -> io::Result<()> {
        let track = &self.tracks[self.opened.div_ceil(COLUMNS.len()) - 1];
        let tables = tables(track).to_string();
        // After its brace come the members of the thread.
        write!(self.out, "]}},{}", &tables[1..])
    }
}

/// All of a thread but its samples and markers.
fn tables(track: &Track) -> Value {
    let mut strings = vec![""; track.strings.len()];
    for (string, &number) in &track.strings {
        strings[number] = string;
    }
    // A stack is one function and one frame of its own.
    let length = track.stacks.len();
    let mut stacks = vec![(None, 0, Category::Other); length];
    for (&stack, &number) in &track.stacks {
        stacks[number] = stack;
    }
    let all = |value: Value| vec![value; length];
    let numbers: Vec<usize> = (0..length).collect();
    let prefixes: Vec<_> = stacks.iter().map(|stack| stack.0).collect();
    let names: Vec<_> = stacks.iter().map(|stack| stack.1).collect();
    let categories: Vec<_> = stacks.iter().map(|stack| stack.2 as u32).collect();
    json!({
        "name": track.name,
        "processName": track.process,
        "processType": "default",
        "pid": track.pid,
        "tid": track.tid,
        "isMainThread": track.is_main,
        "showMarkersInTimeline": true,
        "registerTime": 0.0,
        "unregisterTime": null,
        "processStartupTime": 0.0,
        "processShutdownTime": null,
        "pausedRanges": [],
        "stringArray": strings,
        "stackTable": { "length": length, "prefix": prefixes, "frame": numbers },
        "frameTable": {
            "length": length,
            "address": all(json!(-1)),
            "inlineDepth": all(json!(0)),
            "category": categories,
            "subcategory": all(json!(0)),
            "func": numbers,
            "nativeSymbol": all(Value::Null),
            "innerWindowID": all(json!(0)),
            "line": all(Value::Null),
            "column": all(Value::Null),
        },
        "funcTable": {
            "length": length,
            "name": names,
            "isJS": all(json!(false)),
            "relevantForJS": all(json!(false)),
            "resource": all(json!(-1)),
            "fileName": all(Value::Null),
            "lineNumber": all(Value::Null),
            "columnNumber": all(Value::Null),
        },
        "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
        "nativeSymbols": {
            "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [],
        },
    })
}

fn meta(start: f64) -> Value {
    json!({
        "categories": categories(),
        "debug": false,
        "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
        "interval": 1.0,
        "preprocessedProfileVersion": VERSION,
        "processType": 0,
        "product": "Feather-Trace",
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
        "startTime": start,
        "symbolicated": true,
        "pausedRanges": [],
        // The viewer looks at `preprocessedProfileVersion` only.
        "version": 24,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "markerSchema": schemas(),
    })
}

/// ms, to the ns.
fn ms(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}
