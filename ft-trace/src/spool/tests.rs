//! Round trips of whole spools, and every way to damage a small one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::frame::*;
use super::{Damage, Limits, Reader, Spool, Writer};

const NEVER: Limits = Limits { bytes: u64::MAX, age: Duration::MAX };

/// The even ones have asked the kernel for its time of day.
fn clock(n: u64) -> ClockSample {
    let host = HostClock {
        result: -1,
        status: 0x2001,
        tai_s: 37,
        offset: -(n as i64),
        frequency: i64::MIN,
        max_error_us: i64::MAX,
        estimated_error_us: 20,
    };
    let host = n.is_multiple_of(2).then_some(host);
    ClockSample { tsc: n, mono_ns: n as i64, host, ..ClockSample::default() }
}

fn slots(bytes: &[u8]) -> Frame<'_> {
    Frame::Slots(Slots { source: 1, ring: 2, tid: 3, generation: 4, first_index: 4096, bytes })
}

/// Debug forms of all frames of a file, and the damage.
fn read(path: &Path) -> (Vec<String>, Option<Damage>) {
    let mut reader = Reader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        frames.push(format!("{frame:?}"));
    }
    (frames, reader.damage().unwrap())
}

fn forms(frames: &[Frame<'_>]) -> Vec<String> {
    frames.iter().map(|f| format!("{f:?}")).collect()
}

#[test]
fn a_spool_reads_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::create(dir.path()).unwrap();
    let mut writer = Writer::create(spool.clone(), NEVER, Start::default(), clock(1)).unwrap();
    let process = Frame::Process(Process { source: Some(0), pid: 7, ..Process::default() });
    let loss = Frame::Loss(Loss { count: 9, ..Loss::default() });
    writer.push(&process).unwrap();
    writer.push(&slots(&[5; 64])).unwrap();
    assert_eq!(writer.rotate(clock(2)).unwrap().number, 0);
    writer.push(&loss).unwrap();
    assert_eq!(writer.finish(clock(3), End::default()).unwrap().number, 1);

    assert_eq!(spool.segments().unwrap(), [0, 1]);
    let first = [Frame::Clock(clock(1)), slots(&[5; 64]), Frame::Clock(clock(2))];
    assert_eq!(read(&spool.segment(0)), (forms(&first), None));
    let second = [Frame::Clock(clock(2)), loss, Frame::Clock(clock(3))];
    assert_eq!(read(&spool.segment(1)), (forms(&second), None));
    let (registry, damage) = read(&spool.registry());
    assert_eq!(registry.len(), 3);
    assert!(registry[2].starts_with("End"), "{registry:?}");
    assert_eq!(damage, None);
}

#[test]
fn a_segment_is_due_by_size_and_by_age() {
    let due = |limits, payload: &[u8]| {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::create(dir.path()).unwrap();
        let mut writer = Writer::create(spool, limits, Start::default(), clock(1)).unwrap();
        writer.push(&slots(payload)).unwrap();
        writer.is_due()
    };
    assert!(!due(NEVER, &[0; 320]));
    assert!(!due(Limits { bytes: 300, ..NEVER }, &[0; 32]));
    assert!(due(Limits { bytes: 300, ..NEVER }, &[0; 320]));
    assert!(due(Limits { age: Duration::ZERO, ..NEVER }, &[]));
}

#[test]
fn a_file_that_grows_is_read_on() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::create(dir.path()).unwrap();
    let mut writer = Writer::create(spool.clone(), NEVER, Start::default(), clock(1)).unwrap();
    let mut reader = Reader::open(&spool.segment(0)).unwrap();
    assert_eq!(reader.next().unwrap(), Some(Frame::Clock(clock(1))));
    assert_eq!(reader.next().unwrap(), None);
    writer.push(&slots(&[1; 32])).unwrap();
    writer.flush().unwrap();
    assert_eq!(reader.next().unwrap(), Some(slots(&[1; 32])));
    assert_eq!(reader.next().unwrap(), None);
    assert_eq!(reader.damage().unwrap(), None);
}

/// Three frames and where each ends.
fn small_file() -> (Vec<u8>, [usize; 3]) {
    let mut bytes = Vec::new();
    let ends = [Frame::Clock(clock(1)), slots(&[7; 64]), Frame::Clock(clock(2))].map(|frame| {
        frame.encode(&mut bytes);
        bytes.len()
    });
    (bytes, ends)
}

#[test]
fn a_file_cut_at_any_byte_gives_its_whole_frames() {
    let (bytes, ends) = small_file();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.ft");
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (frames, damage) = read(&path);
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(frames.len(), whole, "cut at {cut}");
        let offset = if whole == 0 { 0 } else { ends[whole - 1] };
        let expected = (cut > offset).then(|| Damage {
            path: path.clone(),
            offset: offset as u64,
            bytes: (cut - offset) as u64,
            reason: FrameError::Truncated,
        });
        assert_eq!(damage, expected, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_ends_the_file_before_its_frame() {
    let (bytes, ends) = small_file();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flipped.ft");
    // One or two of each byte, each time another one.
    for bit in (0..bytes.len() * 8).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &flipped).unwrap();
        let (frames, damage) = read(&path);
        let before = ends.iter().filter(|&&end| end <= bit / 8).count();
        assert_eq!(frames.len(), before, "bit {bit}");
        assert!(damage.is_some(), "bit {bit}");
    }
}
