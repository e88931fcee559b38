//! Conversion rate and size on disk: a synthetic spool of user events, two u64 arguments each.
//!
//! `cargo bench -p ft-tests --bench convert [-- EVENTS]`; prints events per second on one core and
//! bytes per event in `user_events`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use ft_trace::convert;
use ft_trace::event::LeanUserEvent;
use ft_trace::spool::Spool;
use ft_trace::spool::frame::{ClockSample, Directory, End, Frame, Process, Slots, Start};
use ft_trace::store::Trace;
use ft_user::layout::{ArgType, SiteKind, commit, dir_kind};

/// Events of one segment: 128 MiB.
const SEGMENT_EVENTS: u64 = 4 << 20;

/// Slots of one frame.
const FRAME_SLOTS: u64 = 1 << 14;

/// Threads, each with a ring.
const THREADS: u64 = 2;

/// Mean distance of two events of one thread, TSC cycles of 2.6 GHz.
const DISTANCE: u64 = 300;

/// What the arguments are.
#[derive(Clone, Copy, Debug)]
enum Arguments {
    /// A counter and a small random number.
    Counter,
    /// One of 16 lock addresses and one of 8 places.
    Lock,
}

fn main() {
    let events =
        std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(2 * SEGMENT_EVENTS);
    println!(
        "{:10} {:>12} {:>12} {:>14} {:>14}",
        "arguments", "events", "bytes/event", "convert Mev/s", "read Mev/s"
    );
    for arguments in [Arguments::Counter, Arguments::Lock] {
        let dir = std::env::temp_dir().join(format!("ft-bench-convert-{}", std::process::id()));
        fs::create_dir_all(dir.join("spool")).expect("a directory for the spool");
        record(&dir, events, arguments);

        let start = Instant::now();
        let meta = convert::convert(&dir, |_, _| {}).expect("a conversion");
        let convert_rate = events as f64 / start.elapsed().as_secs_f64() / 1e6;
        assert_eq!(meta.tables["user_events"].rows, events);

        let parts = fs::read_dir(dir.join("user_events")).expect("the table");
        let bytes: u64 = parts.map(|p| p.and_then(|p| p.metadata()).expect("a part").len()).sum();

        let start = Instant::now();
        let rows = Trace::open(&dir).expect("a trace").rows::<LeanUserEvent>();
        let mut read = 0;
        for row in rows {
            std::hint::black_box(row.expect("a row"));
            read += 1;
        }
        assert_eq!(read, events);
        let read_rate = events as f64 / start.elapsed().as_secs_f64() / 1e6;

        println!(
            "{:10} {events:12} {:12.2} {convert_rate:14.2} {read_rate:14.2}",
            format!("{arguments:?}"),
            bytes as f64 / events as f64,
        );
        fs::remove_dir_all(&dir).expect("the trace goes");
    }
}

/// Writes the spool that a recording of `events` events would leave.
fn record(dir: &Path, events: u64, arguments: Arguments) {
    let spool = Spool::of(dir);
    let keys = [0x1000, 0x1040, 0x1080, 0x10c0];
    let directory: Vec<u8> = keys.iter().flat_map(|&key| meta_entry(key)).collect();
    let registry = [
        Frame::Start(Start { tsc_hz: 2.6e9, ..Start::default() }),
        Frame::Process(Process { source: Some(0), pid: 100, ..Process::default() }),
        Frame::Directory(Directory { source: 0, bytes: &directory }),
        Frame::End(End::default()),
    ];
    let mut file = File::create(spool.registry()).expect("the registry");
    registry.iter().for_each(|frame| write(&mut file, frame));

    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut tsc = [2_600_000_000; THREADS as usize];
    let mut count = [0u64; THREADS as usize];
    let mut written = 0;
    for segment in 0..events.div_ceil(SEGMENT_EVENTS) {
        let file = File::create(spool.segment(segment as u32)).expect("a segment");
        let mut file = BufWriter::with_capacity(1 << 20, file);
        write(&mut file, &clock(tsc[0]));
        let end = events.min(written + SEGMENT_EVENTS);
        while written < end {
            for thread in 0..THREADS as usize {
                let slots = FRAME_SLOTS.min(end - written);
                let first_index = 4096 + count[thread];
                let mut bytes = Vec::with_capacity(slots as usize * 32);
                for _ in 0..slots {
                    let r = next();
                    // Times are multiples of 10 ns, as measured in design.md.
                    tsc[thread] += (DISTANCE / 2 + r % DISTANCE) / 26 * 26;
                    let tag = commit::tag(4096 + count[thread]) << commit::TAG_SHIFT;
                    let cpu = (thread as u64) << commit::CPU_SHIFT;
                    let word = tag | cpu | keys[(r >> 32) as usize % 4] | commit::COMMITTED;
                    count[thread] += 1;
                    let (a, b) = match arguments {
                        Arguments::Counter => (count[thread], r >> 40 & 0xff),
                        Arguments::Lock => (0x7f12_3456_7000 + (r >> 40) % 16 * 64, (r >> 50) % 8),
                    };
                    for w in [word, tsc[thread], a, b] {
                        bytes.extend_from_slice(&w.to_ne_bytes());
                    }
                }
                written += slots;
                let (ring, tid) = (thread as u32, 101 + thread as i32);
                let slots =
                    Slots { source: 0, ring, tid, generation: 1, first_index, bytes: &bytes };
                write(&mut file, &Frame::Slots(slots));
            }
            write(&mut file, &clock(tsc[0]));
        }
        file.flush().expect("room for the spool");
    }
}

fn write(file: &mut impl Write, frame: &Frame<'_>) {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    file.write_all(&bytes).expect("room for the spool");
}

fn clock(tsc: u64) -> Frame<'static> {
    let mono_ns = (tsc as f64 / 2.6) as i64;
    Frame::Clock(ClockSample { tsc, mono_ns, bracket_tsc: 78, step_tsc: 26, ..Default::default() })
}

/// META entry of a site with two u64.
fn meta_entry(key: u64) -> Vec<u8> {
    let string = |text: &str| [&(text.len() as u16).to_ne_bytes()[..], text.as_bytes()].concat();
    let mut content = (key as u32).to_ne_bytes().to_vec();
    content.extend_from_slice(&(SiteKind::Event as u16).to_ne_bytes());
    content.extend_from_slice(&[2, 0, 1, 0, 0, 0]);
    for text in [&format!("bench.event_{key:x}")[..], "benches/convert.rs", ""] {
        content.extend(string(text));
    }
    for name in ["a", "b"] {
        content.push(ArgType::Unsigned as u8);
        content.extend(string(name));
    }
    content.resize(content.len().next_multiple_of(8), 0);
    let size = content.len() as u32 + 8;
    [&dir_kind::META.to_ne_bytes()[..], &size.to_ne_bytes(), &content].concat()
}
