//! A recording made by hand, for tests.

pub mod program;

use std::path::Path;

use ft_user::layout::{ArgType, LOSS_KEY, SiteKind, commit, dir_kind};

use crate::clock::ClockSample;
use crate::spool::Spool;
use crate::spool::frame::{Directory, End, Frame, Process, Slots, Start};

/// TSC cycles of a nanosecond on the synthetic machine.
pub const CYCLES: u64 = 2;

/// Ring size of the synthetic processes: where their indices start.
pub const RING_SLOTS: u64 = 4096;

/// TSC at this CLOCK_MONOTONIC time.
pub fn tsc(ns: u64) -> u64 {
    ns * CYCLES
}

/// An exact sample at this time.
pub fn sample(ns: u64) -> ClockSample {
    let (tsc, mono_ns) = (tsc(ns), ns as i64);
    ClockSample { tsc, mono_ns, bracket_tsc: 40, step_tsc: CYCLES as u32, ..Default::default() }
}

/// Directory entry with its header, padded.
fn entry(kind: u32, content: &[u8]) -> Vec<u8> {
    let size = (8 + content.len()).next_multiple_of(8);
    let mut bytes = [kind.to_ne_bytes(), (size as u32).to_ne_bytes()].concat();
    bytes.extend_from_slice(content);
    bytes.resize(size, 0);
    bytes
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_ne_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// META entry of a site.
pub fn meta(key: u32, kind: SiteKind, name: &str, args: &[(ArgType, &str)]) -> Vec<u8> {
    let mut content = key.to_ne_bytes().to_vec();
    content.extend_from_slice(&(kind as u16).to_ne_bytes());
    content.extend_from_slice(&[args.len() as u8, 0]);
    content.extend_from_slice(&17u32.to_ne_bytes());
    for text in [name, "src/main.rs", ""] {
        string(&mut content, text);
    }
    for (ty, name) in args {
        content.push(*ty as u8);
        string(&mut content, name);
    }
    entry(dir_kind::META, &content)
}

/// NAME entry.
pub fn name(id: u32, text: &str) -> Vec<u8> {
    let mut content = id.to_ne_bytes().to_vec();
    string(&mut content, text);
    entry(dir_kind::NAME, &content)
}

/// Writes the slots of one ring as its owner would.
pub struct Ring {
    /// Index of the first of them.
    pub first_index: u64,
    /// Words of the slots.
    pub words: Vec<u64>,
}

impl Default for Ring {
    /// Without slots, at the first index.
    fn default() -> Ring {
        Ring { first_index: RING_SLOTS, words: Vec::new() }
    }
}

impl Ring {
    /// An event with its payload words, on CPU 1.
    pub fn event(&mut self, key: u32, tsc: u64, words: &[u64]) -> &mut Ring {
        let continuations = words.len().saturating_sub(2).div_ceil(3) as u64;
        let word = u64::from(key)
            | commit::COMMITTED
            | 1 << commit::CPU_SHIFT
            | continuations << commit::CONT_SHIFT;
        let at = |i: usize| words.get(i).copied().unwrap_or(0);
        self.slot(word, [tsc, at(0), at(1)]);
        for c in 0..continuations as usize {
            let word = commit::COMMITTED | commit::CONTINUATION;
            self.slot(word, std::array::from_fn(|i| at(2 + 3 * c + i)));
        }
        self
    }

    /// A loss event.
    pub fn loss(&mut self, tsc: u64, begin: u64, count: u64) -> &mut Ring {
        self.event(LOSS_KEY, tsc, &[begin, count])
    }

    fn slot(&mut self, word: u64, words: [u64; 3]) {
        let index = self.first_index + self.words.len() as u64 / 4;
        self.words.push(word | commit::tag(index) << commit::TAG_SHIFT);
        self.words.extend(words);
    }

    /// The slots as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }
}

/// Writes a file of the spool.
pub fn file(path: &Path, frames: &[Frame<'_>]) {
    std::fs::create_dir_all(path.parent().expect("a spool")).expect("a directory");
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    std::fs::write(path, bytes).expect("a file");
}

/// Writes a registry with one process (source 0, pid 100, begun at tick 4242) and this directory.
pub fn registry(trace: &Path, directory: &[u8], end: bool) {
    let start = Start { host: "host".into(), tsc_hz: 1e9 * CYCLES as f64, ..Start::default() };
    let process = Process {
        source: Some(0),
        pid: 100,
        start_time: 4242,
        comm: "app".into(),
        ts: 500,
        ..Process::default()
    };
    let mut frames = vec![
        Frame::Start(start),
        Frame::Process(process),
        Frame::Directory(Directory { source: 0, bytes: directory }),
    ];
    if end {
        frames.push(Frame::End(End { reason: "finished".into(), ..End::default() }));
    }
    file(&Spool::of(trace).registry(), &frames);
}

/// A frame of ring 0 of source 0.
pub fn slots<'a>(ring: &Ring, tid: i32, bytes: &'a [u8]) -> Frame<'a> {
    let first_index = ring.first_index;
    Frame::Slots(Slots { source: 0, ring: 0, tid, generation: 1, first_index, bytes })
}
