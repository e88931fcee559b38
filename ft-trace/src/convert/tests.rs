//! Whole conversions of spools that are made in memory.

mod damaged;
mod extreme;
mod interrupted;

use super::synthetic::{Ring, file, meta, name, registry, sample, slots, tsc};
use std::fs;

use super::*;
use crate::convert::kernel::test_bytes as bytes;
use crate::ids::Tid;
use crate::spool::frame::{ClockSample, Directory, Frame, HostClock, Loss, Process};
use crate::store::{ClockMeta, HostClockMeta, Trace};
use crate::tables::*;
use crate::warning::Warning;
use ft_user::layout::{ArgType, SiteKind};

const KEY: u32 = 0x4000;

fn directory() -> Vec<u8> {
    let args = [(ArgType::Pointer, "lock"), (ArgType::Unsigned, "place(a, 1)")];
    [meta(KEY, SiteKind::LockAcquire, "lock.mutex_acquire", &args), name(1, "accounts")].concat()
}

fn ring(events: &[u64]) -> Ring {
    let mut ring = Ring::default();
    for &us in events {
        ring.event(KEY, tsc(us * 1000), &[us, 0]);
    }
    ring
}

fn switch(us: u64, prev: u32, next: u32) -> Vec<u8> {
    // Thread 101 belongs to the process that is registered; the others are all their process has.
    let process = |tid| if tid == 101 { 100 } else { tid };
    bytes(&ft_ebpf::Switch {
        header: ft_ebpf::Header { ts: us * 1000, kind: ft_ebpf::kind::SWITCH, cpu: 1, tid: prev },
        prev_tgid: process(prev),
        next_tid: next,
        next_tgid: process(next),
        ..Default::default()
    })
}

/// Two segments, 1 to 2 ms and 2 to 3 ms. An event of 1.9 ms comes only in the second.
fn recording(dir: &Path) {
    registry(dir, &directory(), true);
    let spool = Spool::of(dir);
    let clocks =
        [1000, 1300, 1600, 2000, 2300, 2600, 3000].map(|us| Frame::Clock(sample(us * 1000)));
    let (first, second) = (ring(&[1100, 1200, 1950]), ring(&[2100, 1900, 2900]));
    let (first_bytes, second_bytes) = (first.bytes(), second.bytes());
    let kernel = [switch(1050, 9, 101), switch(1250, 101, 0), switch(1900, 0, 101)].concat();
    let loss = Loss {
        origin: "kernel".into(),
        what: "irq_handler_exit".into(),
        count: 3,
        from: 5,
        ..Loss::default()
    };
    file(
        &spool.segment(0),
        &[
            clocks[0].clone(),
            slots(&first, 101, &first_bytes),
            clocks[1].clone(),
            Frame::Kernel(&kernel),
            clocks[2].clone(),
            Frame::Loss(loss),
            clocks[3].clone(),
        ],
    );
    file(
        &spool.segment(1),
        &[
            clocks[3].clone(),
            clocks[4].clone(),
            slots(&second, 101, &second_bytes),
            clocks[5].clone(),
            clocks[6].clone(),
        ],
    );
}

fn events(trace: &Trace) -> Vec<(i64, i64)> {
    trace.rows::<UserEvent>().map(|e| e.map(|e| (e.ts.0, e.arg[0].unwrap())).unwrap()).collect()
}

const EXPECTED: [(i64, i64); 6] = [
    (1_100_000, 1100),
    (1_200_000, 1200),
    (1_900_000, 1900),
    (1_950_000, 1950),
    (2_100_000, 2100),
    (2_900_000, 2900),
];

#[test]
fn a_recording_becomes_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path());
    let mut left = Vec::new();
    let meta = convert(dir.path(), |report, n| left.push((report.segment, report.user_events, n)))
        .unwrap();
    assert_eq!(left, [(0, 3, 1), (1, 3, 0)]);
    assert!(!dir.path().join("spool").exists() && !dir.path().join("spool.done").exists());

    let trace = Trace::open(dir.path()).unwrap();
    assert_eq!(*trace.meta(), meta);
    assert_eq!(events(&trace), EXPECTED);
    assert!(meta.complete);
    let table = &meta.tables["user_events"];
    assert_eq!((table.rows, table.parts, table.late_rows, table.late_max_ns), (6, 2, 1, 50_000));
    assert_eq!(meta.lost["kernel"], 3);
    assert_eq!(
        meta.warnings,
        [Warning::Loss { origin: "kernel".into(), count: 3, ring_bytes: None }]
    );
    assert_eq!((meta.clock.tsc_hz, meta.clock.samples), (2e9, 7));
    assert_eq!((meta.clock.checked, meta.clock.violations), (3, 0));

    let sites: Vec<SiteRow> = trace.rows().map(|r| r.unwrap()).collect();
    assert_eq!(
        (sites[0].kind.word(), &*sites[0].args, sites[0].started),
        ("lock_acquire", "lock:pointer, place(a,1):unsigned", 4242)
    );
    let names: Vec<NameRow> = trace.rows().map(|r| r.unwrap()).collect();
    assert_eq!((names[0].id, &*names[0].text), (1, "accounts"));
    let threads: Vec<ThreadRow> = trace.rows().map(|r| r.unwrap()).collect();
    let main = threads.iter().find(|t| t.tid == Tid(100)).unwrap();
    assert_eq!((&*main.name, main.observed), ("app", true));
    assert_eq!(trace.rows::<ClockRow>().count(), 7, "no sample twice");
    assert_eq!(trace.rows::<LossRow>().count(), 1);
    assert_eq!(trace.rows::<Irq>().count(), 0, "a table without rows opens");

    assert_eq!(convert(dir.path(), |_, _| panic!("nothing is left")).unwrap(), meta);
}

/// Two segments of a host whose clock is as the kernel says it at 1, 2 (the end of one and the begin of the other) and 3 ms.
fn host_clocks(says: [Option<HostClock>; 3]) -> (Vec<HostClockRow>, Option<HostClockMeta>) {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), true);
    let spool = Spool::of(dir.path());
    let at = |ms: u64, host| Frame::Clock(ClockSample { host, ..sample(ms * 1_000_000) });
    let [first, second, third] = says;
    file(&spool.segment(0), &[at(1, first), Frame::Clock(sample(1_500_000)), at(2, second)]);
    file(&spool.segment(1), &[at(2, second), Frame::Clock(sample(2_500_000)), at(3, third)]);
    let meta = convert(dir.path(), |_, _| {}).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    assert_eq!(Meta::read(dir.path()).unwrap().unwrap().clock, meta.clock);
    (trace.rows().map(|row| row.unwrap()).collect(), meta.clock.host)
}

#[test]
fn the_time_of_day_is_as_good_as_its_worst_sample() {
    let good = |max_error_us| {
        let estimated_error_us = 20;
        Some(HostClock { max_error_us, estimated_error_us, tai_s: 37, ..HostClock::default() })
    };
    let (rows, meta) = host_clocks([good(312), good(812), good(111)]);
    let of = |rows: &[HostClockRow]| rows.iter().map(|r| (r.ts.0, r.bound_ns)).collect::<Vec<_>>();
    let expected =
        [(1_000_000, Some(312_000)), (2_000_000, Some(812_000)), (3_000_000, Some(111_000))];
    assert_eq!(of(&rows), expected, "no sample twice");
    let (state, bound_ns, tai_s) = (HostClockState::Synchronised, Some(812_000), Some(37));
    assert_eq!(meta, Some(HostClockMeta { state, bound_ns, tai_s, samples: 3 }));

    // It is lost meanwhile: what it was before says nothing of the whole.
    let lost = Some(HostClock { result: 5, status: 0x40, ..HostClock::default() });
    let (rows, meta) = host_clocks([good(312), good(812), lost]);
    assert_eq!(of(&rows)[2], (3_000_000, None));
    let (state, bound_ns, tai_s) = (HostClockState::Unsynchronised, None, None);
    assert_eq!(meta, Some(HostClockMeta { state, bound_ns, tai_s, samples: 3 }));
    let refused = Some(HostClock { result: -1, ..HostClock::default() });
    assert_eq!(host_clocks([refused, good(1), lost]).1.unwrap().state, HostClockState::Unknown);

    // Of a recording that did not ask.
    assert_eq!(host_clocks([None; 3]), (Vec::new(), None));
}

/// The clock of a recording with clock samples from 10.001 to 10.002 s, in which thread 101 ran for the first quarter of a
/// millisecond and the last tenth, and had events at these times, in µs from 10 s on.
fn clock_with_events_at(us: &[i64]) -> ClockMeta {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), true);
    let at = |us: i64| (10_000_000 + us) as u64;
    let ring = ring(&us.iter().map(|&us| at(us)).collect::<Vec<_>>());
    let slot_bytes = ring.bytes();
    let kernel = [(1050, 9, 101), (1250, 101, 0), (1900, 0, 101)];
    let kernel = kernel.map(|(us, prev, next)| switch(at(us), prev, next)).concat();
    let clocks = [1000, 1300, 1600, 2000].map(|us| Frame::Clock(sample(at(us) * 1000)));
    let mut frames = clocks.to_vec();
    frames.extend([slots(&ring, 101, &slot_bytes), Frame::Kernel(&kernel)]);
    file(&Spool::of(dir.path()).segment(0), &frames);
    convert(dir.path(), |_, _| {}).unwrap().clock
}

/// As which process the main thread of the program is listed that registered as `app`, where the kernel has recorded this.
fn process_of_app(kernel: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), true);
    let clocks = [1000, 2000].map(|us| Frame::Clock(sample(us * 1000)));
    let frames = [clocks[0].clone(), Frame::Kernel(kernel), clocks[1].clone()];
    file(&Spool::of(dir.path()).segment(0), &frames);
    convert(dir.path(), |_, _| {}).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let mut threads = trace.rows::<ThreadRow>().map(|row| row.unwrap());
    threads.find(|row| row.tid == Tid(100)).unwrap().process.to_string()
}

#[test]
fn a_process_is_called_as_the_kernel_saw_it_last() {
    // It registered as the shell that then executed something else.
    let mut comm = [0; ft_ebpf::COMM_LEN];
    comm[..5].copy_from_slice(b"later");
    let exec = bytes(&ft_ebpf::Task {
        header: ft_ebpf::Header { ts: 1_500_000, kind: ft_ebpf::kind::EXEC, cpu: 1, tid: 100 },
        tid: 100,
        tgid: 100,
        comm,
        ..Default::default()
    });
    assert_eq!(process_of_app(&[]), "app");
    assert_eq!(process_of_app(&exec), "later");
}

#[test]
fn an_event_of_a_thread_that_did_not_run_is_a_violation() {
    let clock = clock_with_events_at(&[1100, 1500]);
    assert_eq!((clock.checked, clock.violations, clock.worst_violation_ns), (2, 1, 250_000));
}

#[test]
fn an_event_from_long_before_the_recording_hides_no_violation() {
    // Nine seconds, extrapolated from one millisecond, are wrong by more than the violation is long.
    let clock = clock_with_events_at(&[-9_000_000, 1100, 1500]);
    assert_eq!((clock.checked, clock.violations, clock.worst_violation_ns), (2, 1, 250_000));
    assert_eq!(clock.bound_ns, clock_with_events_at(&[1100, 1500]).bound_ns);
}

#[test]
fn what_stands_before_the_damage_is_used() {
    // A clock frame is 64 bytes; the second segment ends with its slots and two of these.
    let check = |cut: usize, expected: usize| {
        let dir = tempfile::tempdir().unwrap();
        recording(dir.path());
        let path = Spool::of(dir.path()).segment(1);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
        let meta = convert(dir.path(), |_, _| {}).unwrap();
        assert!(!meta.complete);
        let damage = |w: &Warning| matches!(w, Warning::SpoolDamaged { file, .. } if file == "spool/segment-000001.ft");
        assert!(meta.warnings.iter().any(damage), "{:?}", meta.warnings);
        assert_eq!(events(&Trace::open(dir.path()).unwrap()).len(), expected);
        meta
    };
    let meta = check(1, 6);
    let beyond =
        |w: &Warning| matches!(w, Warning::Extrapolated { events: 1, distance_ns: 300_000, .. });
    assert!(meta.warnings.iter().any(beyond), "{:?}", meta.warnings);
    check(64 + 64 + 10, 3);
}

#[test]
fn a_recording_that_was_killed_at_once_has_one_sample_and_is_placed() {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), false);
    let ring = ring(&[1100]);
    let slot_bytes = ring.bytes();
    let frames = [Frame::Clock(sample(1_000_000)), slots(&ring, 101, &slot_bytes)];
    file(&Spool::of(dir.path()).segment(0), &frames);
    let meta = convert(dir.path(), |_, _| {}).unwrap();
    assert_eq!(events(&Trace::open(dir.path()).unwrap()), [(1_100_000, 1100)]);
    assert!(meta.clock.bound_ns > 100_000, "{}", meta.clock.bound_ns);
    assert!(meta.warnings.contains(&Warning::NotEnded));
}

#[test]
fn threads_without_a_number_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), true);
    let ring = ring(&[1100, 1200]);
    let bytes = ring.bytes();
    let clocks = [sample(1_000_000), sample(2_000_000)].map(Frame::Clock);
    let threads = [-17, -18, 101].map(|tid| slots(&ring, tid, &bytes));
    file(&Spool::of(dir.path()).segment(0), &[&clocks[..1], &threads, &clocks[1..]].concat());
    let meta = convert(dir.path(), |_, _| {}).unwrap();
    assert_eq!(meta.warnings, [Warning::Unnumbered { threads: 2 }]);
}

#[test]
fn what_cannot_be_converted_says_why() {
    let check = |prepare: &dyn Fn(&Path), expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let error = convert(dir.path(), |_, _| {}).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&|_| {}, "holds no recording");
    check(&|dir| fs::create_dir(dir.join("spool")).unwrap(), "registry.ft");
}

/// The kernel's records have a clock of their own.
#[test]
fn without_a_clock_what_needs_none_is_converted() {
    let check = |samples: &[Frame<'_>], expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        registry(dir.path(), &directory(), true);
        let user = ring(&[2000]);
        let (user_bytes, kernel) = (user.bytes(), switch(2000, 9, 101));
        let between = [slots(&user, 101, &user_bytes), Frame::Kernel(&kernel)];
        let frames = [&samples[..1], &between, &samples[1..]].concat();
        file(&Spool::of(dir.path()).segment(0), &frames);
        let meta = convert(dir.path(), |_, _| {}).unwrap();
        assert_eq!((meta.tables["sched_switch"].rows, meta.tables["user_events"].rows), (1, 0));
        let [Warning::NoTsc { slots, reason, .. }] = &meta.warnings[..] else {
            panic!("{:?}", meta.warnings)
        };
        assert_eq!(*slots, user_bytes.len() as u64 / 32);
        assert!(reason.contains(expected), "{reason}");
    };
    let back = [sample(3_000_000), sample(2_000_000)].map(Frame::Clock);
    check(&back, "the TSC went backwards");
    // Ten samples, 10 ms apart, on two CPUs by turns.
    let faulty = |fault: &dyn Fn(usize, &mut crate::clock::ClockSample)| {
        let samples = (0..10).map(|i| {
            let mut sample = sample(10_000_000 * (i as u64 + 1));
            sample.cpu = i as u32 % 2;
            fault(i, &mut sample);
            Frame::Clock(sample)
        });
        samples.collect::<Vec<_>>()
    };
    check(&faulty(&|i, s| s.tsc += 5_000_000 * (i as u64 / 5)), "the rate of the TSC changed by");
    check(&faulty(&|_, s| s.tsc += 100_000 * u64::from(s.cpu)), "they are not synchronised");
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path());
    let recorder = fs::File::open(Spool::of(dir.path()).registry()).unwrap();
    rustix::fs::flock(&recorder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(matches!(convert(dir.path(), |_, _| {}), Err(ConvertError::Recording(_))));
}

#[test]
fn losses_that_no_counter_holds_are_the_most_that_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), true);
    let mut ring = Ring::default();
    (0..3).for_each(|_| _ = ring.loss(tsc(2_000_000), tsc(1_500_000), u64::MAX));
    let kernel = Loss { origin: "kernel".into(), count: u64::MAX, ..Loss::default() };
    let (bytes, clock) = (ring.bytes(), |ms: u64| Frame::Clock(sample(ms * 1_000_000)));
    let frames = [clock(1), slots(&ring, 101, &bytes), Frame::Loss(kernel), clock(3)];
    for segment in [0, 1] {
        file(&Spool::of(dir.path()).segment(segment), &frames);
    }
    let meta = convert(dir.path(), |_, _| ()).unwrap();
    assert_eq!((meta.lost["kernel"], meta.lost_total()), (u64::MAX - 1, u64::MAX));
    // Half a millisecond each, and a nanosecond for each event: an application can have lost no more.
    assert_eq!((meta.lost["ring"], meta.rejected), (6 * 500_001, 6));
}

/// A loop that does nothing else loses one in about three nanoseconds.
#[test]
fn losses_of_the_fastest_loop_are_believed() {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), true);
    let mut ring = Ring::default();
    ring.loss(tsc(2_000_000), tsc(1_500_000), 170_000);
    let (bytes, clock) = (ring.bytes(), |ms: u64| Frame::Clock(sample(ms * 1_000_000)));
    file(&Spool::of(dir.path()).segment(0), &[clock(1), slots(&ring, 101, &bytes), clock(3)]);
    let meta = convert(dir.path(), |_, _| ()).unwrap();
    assert_eq!((meta.lost["ring"], meta.rejected), (170_000, 0));
}

/// A process of tick 4242 executes two programs, the first of which has two copies of the tracer; another process has its
/// number later.
#[test]
fn programs_of_a_process_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path(), &directory(), false);
    let entries = directory();
    let registered = [(4242, false), (4242, true), (4242, false), (4242, true), (5000, true)];
    let frames = registered.iter().zip(1..).flat_map(|(&(start_time, executed), number)| {
        let source = Some(number);
        let process = Process { source, pid: 100, start_time, executed, ..Process::default() };
        [Frame::Process(process), Frame::Directory(Directory { source: number, bytes: &entries })]
    });
    let mut bytes = fs::read(Spool::of(dir.path()).registry()).unwrap();
    frames.for_each(|frame| frame.encode(&mut bytes));
    fs::write(Spool::of(dir.path()).registry(), bytes).unwrap();
    let registry = Registry::open(&Spool::of(dir.path())).unwrap();
    let programs = registry.sites().iter().map(|site| (site.row.started, site.row.program));
    let expected = [(4242, 0), (4242, 0), (4242, 1), (4242, 1), (4242, 2), (5000, 0)];
    assert_eq!(programs.collect::<Vec<_>>(), expected);
}
