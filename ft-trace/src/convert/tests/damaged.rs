//! Spools that were damaged after they were written.

use super::*;
use crate::spool::frame::{End, Start};
use crate::spool::{Limits, Writer};

/// Events of one round.
const ROUND: usize = 50;

/// Writes 400 rounds of events and as many records of the kernel, 0.1 ms apart; how many.
fn written(dir: &Path) -> u64 {
    let spool = Spool::create(dir).unwrap();
    let limits = Limits { bytes: u64::MAX, age: std::time::Duration::MAX };
    let start = Start { host: "host".into(), tsc_hz: 3e9, start_ns: 1, ..Start::default() };
    let mut writer = Writer::create(spool, limits, start, sample(1_000_000)).unwrap();
    let process = Process { source: Some(0), pid: 100, comm: "app".into(), ..Process::default() };
    writer.push(&Frame::Process(process)).unwrap();
    writer.push(&Frame::Directory(Directory { source: 0, bytes: &directory() })).unwrap();
    let mut index = 4096;
    for round in 0..400u64 {
        let us = 1000 + 100 * round;
        let mut ring = Ring { first_index: index, ..Ring::default() };
        for n in 0..ROUND as u64 {
            ring.event(KEY, tsc(us * 1000 + n), &[us, 0]);
        }
        index += ROUND as u64;
        let bytes = ring.bytes();
        writer.push(&slots(&ring, 101, &bytes)).unwrap();
        let records: Vec<u8> = (0..ROUND as u64).flat_map(|_| switch(us, 9, 101)).collect();
        writer.push(&Frame::Kernel(&records)).unwrap();
        if round % 10 == 9 {
            writer.push(&Frame::Clock(sample((us + 1) * 1000))).unwrap();
        }
    }
    let end = End { ts: 42_000_000, reason: "finished".into(), ..End::default() };
    writer.finish(sample(41_500_000), end).unwrap();
    400 * ROUND as u64
}

/// What a conversion has of it: events, switches, and the losses.
fn converted(dir: &Path) -> (u64, u64, Vec<LossRow>, Meta) {
    let meta = convert(dir, |_, _| {}).unwrap();
    let trace = Trace::open(dir).unwrap();
    let losses = trace.rows::<LossRow>().map(std::result::Result::unwrap).collect();
    let switches = trace.rows::<SchedSwitch>().count() as u64;
    (events(&trace).len() as u64, switches, losses, meta)
}

#[test]
fn events_behind_damage_are_read_and_those_in_it_are_lost_with_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path());
    let path = Spool::of(dir.path()).segment(0);
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle..middle + 4096].fill(0xa5);
    fs::write(&path, &damaged).unwrap();
    let (events, switches, losses, meta) = converted(dir.path());
    let lost = |what: LossReason| {
        let of = losses.iter().filter(|loss| loss.reason() == what);
        of.map(|loss| loss.count as u64).sum::<u64>()
    };
    assert_eq!(events + lost(LossReason::DamagedEvents), all);
    assert_eq!(switches + lost(LossReason::DamagedRecords), all);
    // The chunk of it, and no more.
    assert!(events < all && events > all * 3 / 4 && switches > all * 3 / 4, "{events} {switches}");
    for loss in &losses {
        assert_eq!(loss.origin, LossOrigin::Spool);
        // The middle of the file is the middle of the recording.
        let (from, to) = (loss.ts.0, loss.ts.0 + loss.dur);
        assert!(from > 15_000_000 && to < 27_000_000 && from < to, "{loss:?}");
    }
    assert!(
        !meta.complete
            && meta.lost["spool"]
                == lost(LossReason::DamagedEvents) + lost(LossReason::DamagedRecords)
    );
}

#[test]
fn what_a_damaged_registry_has_lost_may_be_anything() {
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path());
    let path = Spool::of(dir.path()).registry();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|word| word == b"app\"").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let (events, switches, losses, meta) = converted(dir.path());
    assert_eq!((events, switches), (0, all));
    let [loss] = &losses[..] else { panic!("{losses:?}") };
    assert_eq!((loss.ts.0, loss.dur, loss.count), (1, 42_000_000 - 1, 0));
    assert!(loss.is_of_unknown_number() && !meta.complete);
    assert!(meta.end.is_some(), "it is read on behind it");
}
