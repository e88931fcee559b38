//! A conversion: any directory, any slots, any shared slots, any kernel records between two good clock
//! samples. It ends without an error, and accounts for every event: a row, or a rejection.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use ft_agent::clock::ClockSample;
use ft_agent::convert::convert;
use ft_agent::spool::Spool;
use ft_agent::spool::frame::{Directory, End, Frame, Process, Shared, Slots, Start};
use ft_user::layout::{ArgType, SiteKind, commit, dir_kind};
use libfuzzer_sys::fuzz_target;

const KEY: u32 = 64;
const FIRST_INDEX: u64 = 4096;
/// First sample, TSC; one cycle is half a nanosecond.
const BEGIN: u64 = 1 << 40;
const CYCLES: u64 = 1_000_000;

#[derive(Debug, arbitrary::Arbitrary)]
struct Input<'a> {
    /// Types of the arguments of the one good site.
    types: [u8; 6],
    directory: &'a [u8],
    /// Each slot: key, tag and flags are made right, TSC within the samples; then its words.
    slots: Vec<(bool, bool, u64, [u64; 3])>,
    shared: Vec<(u8, bool, u64, [u64; 13])>,
    kernel: &'a [u8],
    /// Changes no kernel record, or its kind to one that is known.
    kernel_kind: u16,
}

fuzz_target!(|input: Input<'_>| {
    let dir = dir();
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir.join("spool")).unwrap();
    let spool = Spool::of(dir);
    let directory = [meta(&input.types), input.directory.to_vec()].concat();
    let start = Start { tsc_hz: 2e9, ..Start::default() };
    let process = Process { source: Some(0), pid: 100, ..Process::default() };
    let frames = [
        Frame::Start(start),
        Frame::Process(process),
        Frame::Directory(Directory { source: 0, bytes: &directory }),
        Frame::End(End::default()),
    ];
    file(spool.registry(), &frames);

    let (slots, shared) = (slots(&input.slots), shared(&input.shared));
    let mut kernel = input.kernel.to_vec();
    if let Some(kind) = kernel.get_mut(..2) {
        kind.copy_from_slice(&(input.kernel_kind % 32).to_le_bytes());
    }
    let first_index = FIRST_INDEX;
    let frames = [
        Frame::Clock(sample(0)),
        Frame::Slots(Slots {
            source: 0,
            ring: 0,
            tid: 7,
            generation: 1,
            first_index,
            bytes: &slots,
        }),
        Frame::Shared(Shared { source: 0, bytes: &shared }),
        Frame::Kernel(&kernel),
        Frame::Clock(sample(CYCLES)),
    ];
    file(spool.segment(0), &frames);
    let mut told = None;
    convert(dir, |report, left| told = Some((report.clone(), left))).expect("a conversion");
    let (report, left) = told.expect("one segment");
    assert_eq!(left, 0);
    let slots = input.slots.len() as u64 + input.shared.len() as u64;
    assert!(report.user_events <= slots, "{report:?}");
});

fn dir() -> &'static PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| tempfile::Builder::new().tempdir_in("/dev/shm").unwrap().keep())
}

fn file(path: PathBuf, frames: &[Frame<'_>]) {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    fs::write(path, bytes).unwrap();
}

fn sample(cycles: u64) -> ClockSample {
    let (tsc, mono_ns) = (BEGIN + cycles, ((BEGIN + cycles) / 2) as i64);
    ClockSample { tsc, mono_ns, bracket_tsc: 40, step_tsc: 2, ..Default::default() }
}

/// The directory entry of a site with these arguments.
fn meta(types: &[u8; 6]) -> Vec<u8> {
    let string = |text: &str| [&(text.len() as u16).to_ne_bytes(), text.as_bytes()].concat();
    let mut content = KEY.to_ne_bytes().to_vec();
    content.extend((SiteKind::Event as u16).to_ne_bytes());
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

fn slots(slots: &[(bool, bool, u64, [u64; 3])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, &(repaired, timed, word, mut words)) in (FIRST_INDEX..).zip(slots) {
        let mut word = word;
        if repaired {
            let keep = 15 << commit::CONT_SHIFT | commit::CONTINUATION;
            let tag = commit::tag(index) << commit::TAG_SHIFT;
            word = word & keep | tag | u64::from(KEY) | commit::COMMITTED;
        }
        if timed {
            words[0] = BEGIN + words[0] % CYCLES;
        }
        bytes.extend(word.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }
    bytes
}

fn shared(slots: &[(u8, bool, u64, [u64; 13])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(marker, repaired, word, mut words) in slots {
        let keep = 15 << commit::CONT_SHIFT;
        let word = if repaired { word & keep | u64::from(KEY) | commit::COMMITTED } else { word };
        if repaired {
            words[0] = BEGIN + words[0] % CYCLES;
        }
        bytes.extend((u64::from(marker) | 7 << 32).to_ne_bytes());
        bytes.extend(word.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.resize(bytes.len().next_multiple_of(128), 0);
    }
    bytes
}
