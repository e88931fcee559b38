use super::judge::MARGIN_NS;
use super::*;
use crate::clock::{ClockModel, ClockSample};
use crate::convert::ledger::Ledger;
use crate::convert::segment::decode;
use crate::convert::synthetic::{self, Ring, meta, sample, tsc};
use crate::spool::Spool;
use crate::spool::frame::Frame;
use crate::tables::SliceOutcome;
use ft_user::layout::{ABSENT, ArgType, SiteKind, Slice, TEXT_CUT};

const PLAIN: u32 = 0x1000;
const RICH: u32 = 0x1008;
const MAYBE: u32 = 0x1010;

/// A registry with two sites, and a clock from 1 to 3 ms.
struct Bench {
    dir: tempfile::TempDir,
    registry: Registry,
    model: ClockModel,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let types = [
            (ArgType::Tsc, "when"),
            (ArgType::Str, "text"),
            (ArgType::Float, "f"),
            (ArgType::Bytes, "raw"),
            (ArgType::Bool, "b"),
        ];
        let maybe = [
            (ArgType::OptionalSigned, "n"),
            (ArgType::OptionalFloat, "f"),
            (ArgType::OptionalStr, "text"),
            (ArgType::Unsigned, "last"),
        ];
        let directory = [
            meta(PLAIN, SiteKind::Event, "app.plain", &[(ArgType::Unsigned, "n")]),
            meta(RICH, SiteKind::Event, "app.rich", &types),
            meta(MAYBE, SiteKind::Event, "app.maybe", &maybe),
        ];
        synthetic::registry(dir.path(), &directory.concat(), true);
        let registry = Registry::open(&Spool::of(dir.path())).unwrap();
        let model = ClockModel::new(&[1, 2, 3].map(|ms| sample(ms * 1_000_000))).unwrap();
        Bench { dir, registry, model }
    }

    fn scan(&self, ring: &Ring) -> UserSlots {
        let mut user = UserSlots::with_capacity(0);
        let bytes = ring.bytes();
        let frame = Slots {
            source: 0,
            ring: 0,
            tid: 101,
            generation: 1,
            first_index: ring.first_index,
            bytes: &bytes,
        };
        user.scan(&frame, &mut Judge::new(&self.registry, &self.model));
        user.sort();
        user
    }

    fn rows(&self, user: &UserSlots) -> Vec<UserEvent> {
        let mut cursor = self.model.cursor();
        (0..user.len()).map(|at| user.row(at, &self.registry, &mut cursor)).collect()
    }
}

#[test]
fn arguments_of_every_type_reach_their_columns() {
    let bench = Bench::new();
    let text = "grüße, 17 bytes";
    assert_eq!(text.len(), 17);
    let mut words = vec![tsc(1_500_000), text.len() as u64];
    let mut padded = text.as_bytes().to_vec();
    padded.resize(24, 0);
    words.extend(padded.chunks(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap())));
    words.extend([
        2.5f64.to_bits(),
        3 | TEXT_CUT,
        u64::from_ne_bytes([0xde, 0xad, 1, 0, 0, 0, 0, 0]),
        1,
    ]);
    let rows = bench.rows(&bench.scan(Ring::default().event(RICH, tsc(2_000_000), &words)));
    let row = &rows[0];
    assert_eq!((row.ts, row.pid, row.tid, row.cpu), (Nanos(2_000_000), Pid(100), Tid(101), Cpu(1)));
    assert_eq!((&*row.event, &*row.category), ("app.rich", "app"));
    assert_eq!(row.arg, [Some(1_500_000), None, None, None, Some(1), None]);
    assert_eq!(row.argf[2], Some(2.5));
    assert_eq!(row.argt[1].as_deref(), Some(text));
    assert_eq!(row.argt[3].as_deref(), Some("dead01…"));
}

#[test]
fn what_is_absent_is_null_and_nothing_else_is() {
    let bench = Bench::new();
    let check = |words: &[u64], n: Option<i64>, f: Option<f64>, text: Option<&str>| {
        let rows = bench.rows(&bench.scan(Ring::default().event(MAYBE, tsc(2_000_000), words)));
        let row = &rows[0];
        assert_eq!((row.arg[0], row.argf[1], row.argt[2].as_deref()), (n, f, text));
        assert_eq!(row.arg[3], Some(7), "what follows is where it should be");
        assert_eq!(row.arg[1].or(row.arg[2]), None);
    };
    let all = u64::from_ne_bytes(*b"text\0\0\0\0");
    check(&[ABSENT, ABSENT, ABSENT, 7], None, None, None);
    check(&[8, ABSENT, 8, 0, 4, all, 7], Some(ABSENT as i64), Some(0.0), Some("text"));
    check(&[8, -1i64 as u64, ABSENT, 0, 7], Some(-1), None, Some(""));
    assert_eq!(
        bench.registry.sites()[2].row.args.as_ref(),
        "n:signed?, f:float?, text:str?, last:unsigned"
    );
}

/// The texts of an event whose payload is a time, a length word, and words of `x`.
fn check_length(length: u64, words: usize, expected: [Option<&str>; 2]) {
    let bench = Bench::new();
    let mut payload = vec![tsc(1_500_000), length];
    payload.resize(2 + words, u64::from_ne_bytes(*b"xxxxxxxx"));
    let rows = bench.rows(&bench.scan(Ring::default().event(RICH, tsc(2_000_000), &payload)));
    assert_eq!([rows[0].argt[1].as_deref(), rows[0].argt[3].as_deref()], expected);
}

#[test]
fn a_wild_length_takes_no_more_than_the_event_has() {
    let six = "xxxxxxxx".repeat(6) + "…";
    check_length(3, 0, [Some("…"), None]);
    check_length(7, 3, [Some("xxxxxxx"), Some("…")]);
    for length in [49, u64::MAX >> 1, u64::MAX, TEXT_CUT | 48] {
        check_length(length, 6, [Some(&six), None]);
    }
}

#[test]
fn events_are_sorted_and_equal_times_keep_their_order() {
    let bench = Bench::new();
    let mut ring = Ring::default();
    for (n, us) in [1500, 1400, 1600, 1500].into_iter().enumerate() {
        ring.event(PLAIN, tsc(us * 1000), &[n as u64]);
    }
    let order: Vec<_> = bench.rows(&bench.scan(&ring)).iter().map(|r| r.arg[0].unwrap()).collect();
    assert_eq!(order, [1, 0, 3, 2]);
}

#[test]
fn a_loss_event_becomes_a_loss() {
    let bench = Bench::new();
    let user = bench.scan(Ring::default().loss(tsc(2_000_000), tsc(1_200_000), 77));
    let loss = &user.losses[0];
    assert_eq!((loss.ts, loss.dur, loss.count), (Nanos(1_200_000), 800_000, 77));
    assert_eq!((loss.origin, loss.pid, loss.tid), (LossOrigin::Ring, Pid(100), Tid(101)));
    assert_eq!(user.len(), 0);
}

/// Spoils one of three good events; what must remain, and how many slots are rejected.
fn check(spoil: impl FnOnce(&mut Ring), remain: usize, rejected: u64) {
    let bench = Bench::new();
    let mut ring = Ring::default();
    for us in [1100, 1200, 1300] {
        ring.event(PLAIN, tsc(us * 1000), &[0]);
    }
    spoil(&mut ring);
    let user = bench.scan(&ring);
    assert_eq!((bench.rows(&user).len(), user.rejected), (remain, rejected));
}

#[test]
fn hostile_slots_are_counted_and_the_rest_is_used() {
    check(|_| {}, 3, 0);
    check(|ring| ring.words[4] &= !commit::COMMITTED, 2, 1);
    check(|ring| ring.words[4] |= commit::CONTINUATION, 2, 1);
    check(|ring| ring.words[4] ^= 1 << commit::TAG_SHIFT, 2, 1);
    check(|ring| ring.words[4] = ring.words[4] & !0xffff_fff8 | 0x7777_7770, 2, 1);
    check(|ring| ring.words[5] = tsc(1) + (2 * MARGIN_NS as u64) * synthetic::CYCLES, 2, 1);
    check(|ring| ring.words[5] = u64::MAX, 2, 1);
    check(|ring| ring.words[4] |= 15 << commit::CONT_SHIFT, 2, 1);
    check(|ring| ring.words[4] |= 1 << commit::CONT_SHIFT, 2, 1);
    check(|ring| ring.words[8] |= 3 << commit::CONT_SHIFT, 2, 1);
    check(|ring| ring.first_index = u64::MAX, 0, 3);
    check(|ring| ring.words.clear(), 0, 0);
}

#[test]
fn random_bytes_never_panic() {
    let bench = Bench::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..200 {
        let mut ring = Ring::default();
        ring.words = (0..64)
            .map(|i| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // Now and then a plausible first slot, with a wild number of continuations.
                let tag = commit::tag(ring.first_index) << commit::TAG_SHIFT;
                let cont = (random >> 60) << commit::CONT_SHIFT;
                match (i % 4, random % 3) {
                    (0, 0) => tag | cont | u64::from(RICH) | commit::COMMITTED,
                    (0, 1) => tag | commit::COMMITTED | commit::CONTINUATION,
                    (1, 0 | 1) => tsc(2_000_000),
                    _ => random,
                }
            })
            .collect();
        let user = bench.scan(&ring);
        bench.rows(&user);
    }
}

#[test]
fn the_shared_ring_names_its_writers() {
    let bench = Bench::new();
    let slot = |marker: u32, tid: u32, key: u32, us: u64, n: u64| {
        let mut words = [0u64; 16];
        words[0] = u64::from(tid) << 32 | u64::from(marker);
        words[1] = u64::from(key) | commit::COMMITTED | commit::CPU_UNKNOWN << commit::CPU_SHIFT;
        words[2] = tsc(us * 1000);
        words[3] = n;
        words
    };
    let words = [
        slot(marker::READY, 201, PLAIN, 1500, 5),
        slot(marker::BUSY, 201, PLAIN, 1500, 6),
        slot(marker::READY, 201, 0x7770, 1500, 7),
        slot(marker::READY, 202, PLAIN, 1200, 8),
    ];
    let bytes: Vec<u8> = words.as_flattened().iter().flat_map(|w| w.to_ne_bytes()).collect();
    let mut user = UserSlots::with_capacity(0);
    let mut judge = Judge::new(&bench.registry, &bench.model);
    user.scan_shared(&Shared { source: 0, bytes: &bytes }, &mut judge);
    user.scan_shared(&Shared { source: 9, bytes: &bytes }, &mut judge);
    user.sort();
    let rows: Vec<_> =
        bench.rows(&user).iter().map(|r| (r.tid.0, r.cpu, r.arg[0].unwrap())).collect();
    assert_eq!(rows, [(202, Cpu::UNKNOWN, 8), (201, Cpu::UNKNOWN, 5)]);
    assert_eq!(user.rejected, 2 + 4);
}

#[test]
fn times_outside_the_samples_are_noted() {
    let bench = Bench::new();
    let mut ring = Ring::default();
    ring.event(PLAIN, tsc(500_000), &[0]).event(PLAIN, tsc(2_000_000), &[0]);
    let (events, distance, bound) = bench.scan(&ring).beyond;
    assert_eq!((events, distance), (1, 500_000));
    assert!(bound > bench.model.bound_ns());
}

/// A program cannot have done anything after the clock sample that was read when all of its events had been collected. Of a
/// recording that was cut off nobody knows when that was.
#[test]
fn nothing_happens_after_what_was_collected_later() {
    let bench = Bench::new();
    let (ms, minute) = (1_000_000, 60_000_000_000);
    let (mut now, mut later) = (Ring::default(), Ring::default());
    now.event(PLAIN, tsc(2 * ms), &[1]);
    later.event(PLAIN, tsc(minute), &[2]);
    let bytes = [now.bytes(), later.bytes()];
    let now = || synthetic::slots(&now, 101, &bytes[0]);
    let later = || synthetic::slots(&later, 101, &bytes[1]);
    let clock = |n: u64| Frame::Clock(sample(n * ms));
    let path = Spool::of(bench.dir.path()).segment(0);
    let events_of = |frames: &[Frame<'_>]| {
        synthetic::file(&path, frames);
        let mut ledger = Ledger::default();
        let user = decode(&path, &[], &bench.registry, &mut ledger).unwrap().user;
        (user.len(), ledger.rejected)
    };
    let closed = [clock(1), now(), later(), clock(3)];
    assert_eq!(events_of(&closed), (1, 1));
    let cut_off = [clock(1), now(), clock(3), later()];
    assert_eq!(events_of(&cut_off), (2, 0));
    // The closing sample was interrupted, so the clock is not known by it: what came before it is not after all others.
    let interrupted = ClockSample { bracket_tsc: 1_000_000, ..sample(2 * 60_000 * ms) };
    let closed_late = [clock(1), now(), clock(2), clock(3), later(), Frame::Clock(interrupted)];
    assert_eq!(events_of(&closed_late), (2, 0));
}

#[test]
fn the_slots_of_a_segment_are_allocated_at_once() {
    let bench = Bench::new();
    let mut ring = Ring::default();
    (0..33).for_each(|n| _ = ring.event(PLAIN, tsc(2_000_000), &[n]));
    let (bytes, ms) = (ring.bytes(), 1_000_000);
    let slots = || synthetic::slots(&ring, 101, &bytes);
    let (first, last) = (Frame::Clock(sample(ms)), Frame::Clock(sample(3 * ms)));
    let path = Spool::of(bench.dir.path()).segment(0);
    synthetic::file(&path, &[first, slots(), slots(), slots(), last]);
    let user = decode(&path, &[], &bench.registry, &mut Ledger::default()).unwrap().user;
    assert_eq!(user.len(), 3 * 33);
    assert_eq!(user.words.capacity(), user.words.len());
}

#[test]
fn what_came_of_an_extension_has_the_number_that_programs_tell() {
    let told = |slice: Slice| SliceOutcome::told(slice as i64);
    assert_eq!(told(Slice::Impossible), SliceOutcome::Impossible);
    assert_eq!(told(Slice::Pending), SliceOutcome::Pending);
    assert_eq!(told(Slice::Granted), SliceOutcome::Granted);
    assert_eq!(told(Slice::Over), SliceOutcome::Over);
    assert_eq!([0, 5, -1, i64::MIN].map(SliceOutcome::told), [SliceOutcome::None; 4]);
}
