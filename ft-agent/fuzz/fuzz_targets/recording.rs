//! A small recording whose bytes an application or a damaged file could have made.

use std::fs;
use std::path::{Path, PathBuf};

use arbitrary::Arbitrary;
use ft_trace::clock::ClockSample;
use ft_trace::spool::Spool;
use ft_trace::spool::frame::{
    Directory, End, Frame, Loss, Process, Shared, Slots, Start, kernel_record_bytes,
};
use ft_user::layout::{ArgType, LOSS_KEY, SiteKind, commit, dir_kind};

/// Keys of the sites are the multiples of 8 behind this, which no site has.
const FIRST_KEY: u32 = LOSS_KEY;

const FIRST_INDEX: u64 = 4096;

/// First sample, TSC; one cycle is half a nanosecond.
const BEGIN: u64 = 1 << 40;

/// Between first and last sample.
const CYCLES: u64 = 1 << 30;

/// Process of all events.
const PID: i32 = 7;

#[derive(Debug, Arbitrary)]
pub struct Recording<'a> {
    sites: [Site; 4],
    /// More of the directory, as the application left it.
    directory: &'a [u8],
    system_wide: bool,
    pieces: Vec<Piece<'a>>,
}

/// A good entry of the directory.
#[derive(Debug, Arbitrary)]
struct Site {
    kind: u8,
    types: [u8; 6],
    arguments: u8,
}

/// A frame of the segment.
#[derive(Debug, Arbitrary)]
enum Piece<'a> {
    Slots {
        thread: u8,
        slots: Vec<Slot<3>>,
    },
    Shared {
        slots: Vec<(u8, Slot<13>)>,
    },
    Kernel(Vec<Record<'a>>),
    /// Kernel records without a repair.
    Raw(&'a [u8]),
    Loss {
        from: u32,
        to: u32,
        is_tsc: bool,
        count: u64,
        kernel: bool,
    },
}

/// A slot of `N` words behind its commit word, the first of them the TSC.
#[derive(Debug, Arbitrary)]
struct Slot<const N: usize> {
    repair: Repair,
    word: u64,
    words: [u64; N],
}

/// What is made right.
#[derive(Clone, Copy, Debug, Arbitrary)]
struct Repair {
    /// Flags, tag and key; else the slot is as it is.
    commit: bool,
    /// The TSC lies between the samples.
    time: bool,
    /// Arguments are few, so that locks and places repeat.
    small: bool,
}

#[derive(Debug, Arbitrary)]
struct Record<'a> {
    kind: u8,
    cpu: u8,
    thread: u8,
    ts: u32,
    small: bool,
    bytes: &'a [u8],
}

impl Recording<'_> {
    /// Slots that the recording holds.
    pub fn slots(&self) -> u64 {
        let slots = self.pieces.iter().map(|piece| match piece {
            Piece::Slots { slots, .. } => slots.len(),
            Piece::Shared { slots } => slots.len(),
            _ => 0,
        });
        slots.sum::<usize>() as u64
    }

    /// Writes the spool: a registry, and a segment between two good clock samples.
    pub fn write(&self, trace: &Path) {
        let spool = Spool::of(trace);
        fs::create_dir_all(spool.dir()).unwrap();
        let entries =
            self.sites.iter().zip(1..).flat_map(|(site, n)| site.entry(FIRST_KEY + 8 * n));
        let directory: Vec<u8> = entries.chain(self.directory.iter().copied()).collect();
        let kernel_groups = vec!["sched".into()];
        let system_wide = self.system_wide;
        let start = Start { tsc_hz: 2e9, kernel_groups, system_wide, ..Start::default() };
        let registry = [
            Frame::Start(start),
            Frame::Process(Process { source: Some(0), pid: PID, ..Process::default() }),
            Frame::Directory(Directory { source: 0, bytes: &directory }),
            Frame::End(End::default()),
        ];
        file(spool.registry(), &registry);

        let pieces: Vec<Vec<u8>> = self.pieces.iter().map(Piece::bytes).collect();
        let frames = self.pieces.iter().zip(&pieces).map(|(piece, bytes)| piece.frame(bytes));
        let (first, last) = (Frame::Clock(sample(0)), Frame::Clock(sample(CYCLES)));
        let frames: Vec<_> = [first].into_iter().chain(frames).chain([last]).collect();
        file(spool.segment(0), &frames);
    }
}

fn file(path: PathBuf, frames: &[Frame<'_>]) {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    fs::write(path, bytes).unwrap();
}

fn sample(cycles: u64) -> ClockSample {
    let (tsc, mono_ns) = (BEGIN + cycles, ns(cycles));
    ClockSample { tsc, mono_ns, bracket_tsc: 40, step_tsc: 2, ..Default::default() }
}

fn ns(cycles: u64) -> i64 {
    ((BEGIN + cycles) / 2) as i64
}

impl Site {
    fn entry(&self, key: u32) -> Vec<u8> {
        let string = |text: &str| [&(text.len() as u16).to_ne_bytes(), text.as_bytes()].concat();
        let types = &self.types[..usize::from(self.arguments) % 7];
        let kind = u16::from(self.kind) % (SiteKind::LockAbandon as u16 + 1);
        let mut content = key.to_ne_bytes().to_vec();
        content.extend(kind.to_ne_bytes());
        content.extend([types.len() as u8, 0]);
        content.extend(17u32.to_ne_bytes());
        content.extend([string("fuzz.event"), string("main.rs"), string("")].concat());
        for ty in types {
            content.push(ty % ArgType::Bytes as u8 + 1);
            content.extend(string("x"));
        }
        let size = (8 + content.len()).next_multiple_of(8);
        let mut entry = [dir_kind::META.to_ne_bytes(), (size as u32).to_ne_bytes()].concat();
        entry.extend(content);
        entry.resize(size, 0);
        entry
    }
}

impl Piece<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Piece::Slots { slots, .. } => {
                slots.iter().zip(FIRST_INDEX..).flat_map(|(slot, i)| slot.bytes(i)).collect()
            }
            Piece::Shared { slots } => slots.iter().flat_map(shared).collect(),
            Piece::Kernel(records) => records.iter().flat_map(Record::bytes).collect(),
            Piece::Raw(bytes) => bytes.to_vec(),
            Piece::Loss { .. } => Vec::new(),
        }
    }

    fn frame<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        match *self {
            Piece::Slots { thread, .. } => Frame::Slots(Slots {
                source: u32::from(thread / 128),
                ring: u32::from(thread % 4),
                tid: PID + i32::from(thread % 4),
                generation: 1,
                first_index: FIRST_INDEX,
                bytes,
            }),
            Piece::Shared { .. } => Frame::Shared(Shared { source: 0, bytes }),
            Piece::Kernel(_) | Piece::Raw(_) => Frame::Kernel(bytes),
            Piece::Loss { from, to, is_tsc, count, kernel } => Frame::Loss(Loss {
                origin: if kernel { "kernel" } else { "ring" }.into(),
                what: "sched_switch".into(),
                cpu: -1,
                pid: -1,
                tid: -1,
                from: ns(from.into()),
                to: ns(to.into()),
                is_tsc,
                count,
            }),
        }
    }
}

impl<const N: usize> Slot<N> {
    /// Commit word and words of the slot with this index.
    fn bytes(&self, index: u64) -> impl Iterator<Item = u8> {
        let (mut word, mut words) = (self.word, self.words);
        if self.repair.commit {
            let free = 15 << commit::CONT_SHIFT | 7 << commit::CPU_SHIFT | commit::CONTINUATION;
            let key = u64::from(FIRST_KEY) + word % 5 * 8;
            let tag = commit::tag(index) << commit::TAG_SHIFT;
            word = word & free | tag | key | commit::COMMITTED;
        }
        if self.repair.time {
            words[0] = BEGIN + words[0] % CYCLES;
        }
        if self.repair.small {
            words[1..].iter_mut().for_each(|word| *word %= 4);
        }
        [word].into_iter().chain(words).flat_map(u64::to_ne_bytes)
    }
}

/// A slot of the shared ring: marker and thread, then the rest.
fn shared((marker, slot): &(u8, Slot<13>)) -> Vec<u8> {
    let first = u64::from(marker % 4) | (PID as u64 + u64::from(marker / 64)) << 32;
    let mut bytes = first.to_ne_bytes().to_vec();
    bytes.extend(slot.bytes(0));
    bytes.resize(bytes.len().next_multiple_of(128), 0);
    bytes
}

impl Record<'_> {
    /// A record of a known kind and whole, with a time between the samples.
    fn bytes(&self) -> Vec<u8> {
        let kind = u16::from(self.kind) % 14 + 1;
        let mut bytes = self.bytes.to_vec();
        bytes.resize(kernel_record_bytes(kind).unwrap(), 0);
        if self.small {
            let small = |(i, &byte): (usize, &u8)| if i % 4 == 0 { byte % 16 } else { 0 };
            bytes = bytes.iter().enumerate().map(small).collect();
        }
        let ts = ns(u64::from(self.ts) % CYCLES) as u64;
        let (cpu, tid) = (u16::from(self.cpu % 4), u32::from(self.thread % 16));
        // The header: time, kind, CPU, thread.
        bytes[..8].copy_from_slice(&ts.to_ne_bytes());
        bytes[8..10].copy_from_slice(&kind.to_ne_bytes());
        bytes[10..12].copy_from_slice(&cpu.to_ne_bytes());
        bytes[12..16].copy_from_slice(&tid.to_ne_bytes());
        bytes
    }
}
