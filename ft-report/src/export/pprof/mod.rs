//! Call chains as a profile of pprof, which Go's tools, Pyroscope and others read: on the CPU, waiting and preempted are
//! three kinds of values, in ns. Labels are the process, the thread, and the lock that it waited for or held.
//!
//! No address is written: what has a name has it here, and a viewer that looked for more would look into files of its own
//! machine. Names are texts of their own; those of control characters are their pictures, as viewers print them.
//!
//! Memory: each different chain of each thread's name once; what the conversion kept of chains bounds that.

mod proto;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ft_trace::tables::UNSEEN;
use prost::Message as _;

use super::chained::{self, Chained, Did};
use super::text::visible;
use super::{Job, Result};
use crate::code::{Code, Frame};
use proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

/// The kinds of values, in their order in each sample.
const KINDS: [(Did, &str); 3] =
    [(Did::Running, "cpu"), (Did::Waiting, "waiting"), (Did::Preempted, "preempted")];

/// What the kernel's functions are of.
const KERNEL: &str = "[kernel]";

/// Writes it.
pub(super) fn write(job: &mut Job<'_>, out: &mut dyn Write) -> Result<()> {
    let profile = profile(job)?;
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&profile.encode_to_vec())?;
    out.finish()?;
    Ok(())
}

fn profile(job: &mut Job<'_>) -> Result<Profile> {
    let code = Code::read(job.trace)?;
    let mut made = Made::new();
    chained::each(job, &code, |time| made.add(&time))?;
    let (meta, begin, period) = (job.trace.meta(), job.begin()?, chained::period(job));
    let end = meta.end.as_ref().map_or(begin, |end| end.ts).min(job.window.end);
    let Made { mut profile, samples, mut texts, .. } = made;
    for ((labels, location_id), value) in samples {
        let label = labels.into_iter().map(|(key, str)| Label { key, str }).collect();
        profile.sample.push(Sample { location_id, value: value.to_vec(), label });
    }
    // The first is shown as the program that was profiled.
    let is_program = |mapping: &Mapping| {
        let name = &texts.all[mapping.filename as usize];
        name != KERNEL && !name.contains(".so")
    };
    profile.mapping.sort_by_key(|mapping| !is_program(mapping));
    let unit = texts.place("nanoseconds");
    let kinds = KINDS.map(|(_, kind)| ValueType { r#type: texts.place(kind), unit });
    profile.default_sample_type = kinds[usize::from(period.is_none())].r#type;
    profile.period_type = Some(kinds[0].clone());
    profile.sample_type = kinds.to_vec();
    profile.period = period.unwrap_or(0);
    profile.time_nanos = begin.saturating_add(meta.clock.realtime_offset_ns);
    profile.duration_nanos = end.saturating_sub(begin).max(0);
    profile.string_table = texts.all;
    Ok(profile)
}

/// Keys and texts of the labels of a sample.
type Labels = Vec<(i64, i64)>;

/// A profile that is being made.
struct Made<'c> {
    profile: Profile,
    samples: BTreeMap<(Labels, Vec<u64>), [i64; KINDS.len()]>,
    texts: Texts,
    functions: HashMap<(i64, i64), u64>,
    locations: HashMap<&'c Frame, u64>,
    mappings: HashMap<i64, u64>,
}

impl<'c> Made<'c> {
    fn new() -> Made<'c> {
        let mut texts = Texts { all: Vec::new(), places: HashMap::new() };
        texts.place("");
        Made {
            profile: Profile::default(),
            samples: BTreeMap::new(),
            texts,
            functions: HashMap::new(),
            locations: HashMap::new(),
            mappings: HashMap::new(),
        }
    }

    fn add(&mut self, time: &Chained<'c, '_>) {
        let lock = time
            .lock
            .as_ref()
            .map(|lock| (if lock.waited_for { "waits for" } else { "holds" }, lock.name));
        let labels = [("process", &*time.process), ("thread", &*time.thread)];
        let labels = labels.into_iter().chain(lock);
        let labels = labels.map(|(key, text)| (self.texts.place(key), self.texts.place(text)));
        let labels = labels.collect();
        let chain = time.frames.iter().map(|frame| self.location(frame)).collect();
        let values = self.samples.entry((labels, chain)).or_default();
        for (value, (kind, _)) in values.iter_mut().zip(KINDS) {
            *value += if kind == time.did { time.ns } else { 0 };
        }
    }

    fn location(&mut self, frame: &'c Frame) -> u64 {
        if let Some(id) = self.locations.get(frame) {
            return *id;
        }
        let (file, line) = frame.place.rsplit_once(':').unwrap_or_default();
        let function = self.function(&frame.label, file);
        let line = Line { function_id: function, line: line.parse().unwrap_or(0) };
        let mapping_id = match &*frame.object {
            _ if frame.kernel => self.mapping(KERNEL),
            "" | UNSEEN => 0,
            object => self.mapping(object),
        };
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, mapping_id, line: vec![line] });
        self.locations.insert(frame, id);
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, filename) = (self.texts.place(name), self.texts.place(file));
        let id = self.profile.function.len() as u64 + 1;
        *self.functions.entry((name, filename)).or_insert_with(|| {
            self.profile.function.push(Function { id, name, system_name: name, filename });
            id
        })
    }

    fn mapping(&mut self, object: &str) -> u64 {
        let filename = self.texts.place(object);
        let id = self.profile.mapping.len() as u64 + 1;
        *self.mappings.entry(filename).or_insert_with(|| {
            // All that can be found is here.
            self.profile.mapping.push(Mapping {
                id,
                filename,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
            id
        })
    }
}

/// Texts by their places.
struct Texts {
    all: Vec<String>,
    places: HashMap<String, i64>,
}

impl Texts {
    fn place(&mut self, text: &str) -> i64 {
        let text: String = text.chars().map(visible).collect();
        let next = self.all.len() as i64;
        *self.places.entry(text).or_insert_with_key(|text| {
            self.all.push(text.clone());
            next
        })
    }
}

#[cfg(test)]
mod tests;
