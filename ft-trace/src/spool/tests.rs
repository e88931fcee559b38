//! Round trips of whole spools, and every way to damage a small one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::frame::*;
use super::{Amounts, Damage, Limits, Reader, Spool, Writer};

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

/// A segment of many frames of all kinds, and what each adds to the counts.
fn large_segment(dir: &Path) -> (Vec<u8>, Vec<(usize, String, Amounts)>) {
    let spool = Spool::create(dir).unwrap();
    let mut writer = Writer::create(spool.clone(), NEVER, Start::default(), clock(1)).unwrap();
    let mut event = 1u64.to_le_bytes().to_vec();
    event.resize(32, 7);
    let waking = crate::convert::test_bytes(&ft_ebpf::Switch {
        header: ft_ebpf::Header { ts: 9, kind: ft_ebpf::kind::SWITCH, cpu: 1, tid: 2 },
        ..Default::default()
    });
    for n in 0..400u64 {
        let (events, records) = (event.repeat(n as usize % 50), waking.repeat(n as usize % 9));
        let shared = vec![3; 128 * (n as usize % 3)];
        let frames = [
            slots(&events),
            Frame::Kernel(&records),
            Frame::Shared(Shared { source: 1, bytes: &shared }),
            Frame::Loss(Loss { count: n, ..Loss::default() }),
            Frame::Clock(clock(n)),
        ];
        frames.iter().for_each(|frame| writer.push(frame).unwrap());
    }
    writer.finish(clock(999), End::default()).unwrap();
    let path = spool.segment(0);
    let mut reader = Reader::open(&path).unwrap();
    let (mut all, mut before) = (Vec::new(), Amounts::default());
    while let Some(form) = reader.next().unwrap().map(|frame| format!("{frame:?}")) {
        let now = reader.counted();
        all.push((0, form, now.without(&before)));
        before = now;
    }
    assert_eq!(reader.damage().unwrap(), None);
    let bytes = fs::read(path).unwrap();
    let mut ends = Vec::new();
    let mut at = 0;
    while let Ok((frame, size)) = Frame::decode(&bytes[at..]) {
        at += size;
        if !matches!(frame, Frame::Anchor(_)) {
            ends.push(at);
        }
    }
    assert_eq!((at, ends.len()), (bytes.len(), all.len()));
    all.iter_mut().zip(ends).for_each(|(frame, end)| frame.0 = end);
    (bytes, all)
}

/// Damage of any length at any place: what is read is what was written, in order; what is not lies at the damage; and both sum to all.
/// `FT_DAMAGED` times as many places as in each run.
#[test]
fn damage_hides_its_chunk_and_what_it_hides_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, written) = large_segment(dir.path());
    let sum = |counts: &mut dyn Iterator<Item = Amounts>| {
        counts.fold(Amounts::default(), |a, b| Amounts {
            frames: a.frames + b.frames,
            events: a.events + b.events,
            records: a.records + b.records,
        })
    };
    let all = sum(&mut written.iter().map(|(_, _, counts)| *counts));
    assert!(all.events > 5000 && all.records > 1000 && bytes.len() > 5 << 16);
    let registry = fs::read(dir.path().join("spool/registry.ft")).unwrap();
    let Ok((Frame::Start(start), _)) = Frame::decode(&registry[HEADER_BYTES + 40..]) else {
        panic!("an anchor, and the start")
    };
    let path = dir.path().join("damaged.ft");
    let mut seed = 1u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    // The first, a middle and the last byte of frames, and anything anywhere.
    let mut places: Vec<(usize, usize)> = Vec::new();
    for window in written.windows(2).step_by(37) {
        let (from, to) = (window[0].0, window[1].0);
        places.extend([(from, 1), ((from + to) / 2, 1), (to - 1, 1)]);
    }
    places.extend([(0, 1), (HEADER_BYTES, 16), (0, 4096)]);
    let seeds = std::env::var("FT_DAMAGED").map_or(1, |text| text.parse().unwrap()) * 100;
    places.extend((0..seeds).map(|_| (random(bytes.len()), [1, 4, 100, 4096, 100_000][random(5)])));
    for (at, length) in places {
        let mut damaged = bytes.clone();
        let end = (at + length).min(bytes.len());
        damaged[at..end].iter_mut().for_each(|byte| *byte ^= 1 + random(255) as u8);
        fs::write(&path, &damaged).unwrap();
        let mut reader = Reader::open(&path).unwrap().with_token(&start.token);
        let (mut next, mut read, mut missing) = (0, Amounts::default(), Vec::new());
        while let Some(form) = reader.next().unwrap().map(|frame| format!("{frame:?}")) {
            let found = written[next..].iter().position(|(_, known, _)| *known == form);
            let found = next + found.unwrap_or_else(|| panic!("{at}+{length}: {form}"));
            missing.extend(next..found);
            read = sum(&mut [read, written[found].2].into_iter());
            next = found + 1;
        }
        let is_open = reader.damage().unwrap().is_some();
        let lost = sum(&mut reader.gaps().iter().map(|gap| gap.lost));
        missing.extend(next..written.len());
        if !is_open {
            assert_eq!(sum(&mut [read, lost].into_iter()), all, "{at}+{length}");
        }
        // The last anchor has the closing sample behind it, and nothing else.
        let last = written[written.len() - 2].0;
        assert!(!is_open || end > last, "{at}+{length}");
        let near = |n: &usize| {
            let (from, to) = (n.checked_sub(1).map_or(0, |n| written[n].0), written[*n].0);
            to + 2 * super::anchor::BETWEEN_ANCHORS + 8192 > at
                && from < end + 2 * super::anchor::BETWEEN_ANCHORS
        };
        assert!(missing.iter().all(near), "{at}+{length}: {missing:?}");
    }
}

#[test]
fn what_a_program_writes_is_no_anchor() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::create(dir.path()).unwrap();
    let mut writer = Writer::create(spool.clone(), NEVER, Start::default(), clock(1)).unwrap();
    // An anchor of its own, and a frame behind it, in its events.
    let mut forged = vec![0; 8];
    let token = [5; 16];
    Frame::Anchor(super::Anchor { token, before: Amounts::default() }).encode(&mut forged);
    Frame::Clock(clock(77)).encode(&mut forged);
    forged.resize(forged.len().next_multiple_of(32), 0);
    writer.push(&slots(&forged)).unwrap();
    writer.finish(clock(3), End::default()).unwrap();
    let path = spool.segment(0);
    let mut bytes = fs::read(&path).unwrap();
    let at =
        bytes.windows(16).position(|window| window == token).unwrap() - (2 * HEADER_BYTES + 24 + 8);
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let (frames, damage) = read(&path);
    assert_eq!((frames, damage), (forms(&[Frame::Clock(clock(1)), Frame::Clock(clock(3))]), None));
}
