//! Spools from elsewhere, whose numbers are as large or as small as they can be.

use super::*;
use crate::spool::mapping::{Mapping, Mappings};

const TIMES: [i64; 4] = [i64::MIN, -1, 0, i64::MAX];
const COUNTS: [u64; 4] = [0, 1, u64::MAX / 2, u64::MAX];

/// What is in a spool, by numbers that are chosen at random.
fn spool(dir: &Path, random: &mut impl FnMut() -> usize) {
    registry(dir, &directory(), true);
    let registry = Spool::of(dir).registry();
    let mut whole = fs::read(&registry).unwrap();
    let [start, end, offset] = [(); 3].map(|()| COUNTS[random() % 4]);
    let mapping = Mapping { start, end, offset, path: "/nonexistent".into(), ..Mapping::default() };
    let mappings = Mappings { pid: 100, mappings: vec![mapping], ..Mappings::default() };
    Frame::Mappings(mappings).encode(&mut whole);
    Frame::Loss(loss(random)).encode(&mut whole);
    fs::write(&registry, whole).unwrap();

    // Times advance, or there is no clock; from which numbers on, nobody knows.
    let mut samples: Vec<ClockSample> = (0..6).map(|_| clock(random)).collect();
    samples.sort_by_key(|sample| (sample.tsc, sample.mono_ns));
    let mut times = samples.iter().map(|sample| sample.mono_ns).collect::<Vec<_>>();
    times.sort_unstable();
    samples.iter_mut().zip(times).for_each(|(sample, time)| sample.mono_ns = time);
    let mut ring = Ring::default();
    for _ in 0..4 {
        let tsc = COUNTS[random() % 4];
        ring.event(KEY, tsc, &[COUNTS[random() % 4], COUNTS[random() % 4]]);
        ring.loss(tsc, COUNTS[random() % 4], COUNTS[random() % 4]);
    }
    let bytes = ring.bytes();
    let kernel = [switch(0, 9, 101), switch(u64::MAX / 1000, 101, 0)].concat();
    let mut frames: Vec<_> = samples.into_iter().map(Frame::Clock).collect();
    frames.extend([slots(&ring, 101, &bytes), Frame::Kernel(&kernel), Frame::Loss(loss(random))]);
    file(&Spool::of(dir).segment(0), &frames);
}

fn clock(random: &mut impl FnMut() -> usize) -> ClockSample {
    ClockSample {
        tsc: COUNTS[random() % 4].wrapping_add(random() as u64 % 8),
        mono_ns: TIMES[random() % 4].wrapping_add(random() as i64 % 8),
        bracket_tsc: COUNTS[random() % 4],
        realtime_offset_ns: TIMES[random() % 4],
        boottime_offset_ns: TIMES[random() % 4],
        cpu: random() as u32 % 2,
        step_tsc: COUNTS[random() % 4] as u32,
        host: None,
    }
}

fn loss(random: &mut impl FnMut() -> usize) -> Loss {
    Loss {
        origin: ["kernel", "ring"][random() % 2].into(),
        what: "sched_switch".into(),
        count: COUNTS[random() % 4],
        from: TIMES[random() % 4],
        to: TIMES[random() % 4],
        ..Loss::default()
    }
}

#[test]
fn numbers_of_a_spool_from_elsewhere_need_not_make_sense() {
    let mut state = 7_usize;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let (mut with_events, rounds) = (0, 40);
    for _ in 0..rounds {
        let dir = tempfile::tempdir().unwrap();
        spool(dir.path(), &mut random);
        let meta = convert(dir.path(), |_, _| {}).unwrap();
        with_events +=
            u32::from(meta.tables.get("user_events").is_some_and(|table| table.rows > 0));
    }
    assert!(with_events > 0, "some have a clock");
}
