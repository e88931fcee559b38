//! A trace of locks that are easily mixed up: two processes have one at the same address, two of one name lie beside each other,
//! readers hold one together, many threads wait for one, and one is told by several names.

use std::path::Path;

use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use ft_trace::spool::frame::{End, Start};
use ft_trace::store::{Meta, SCHEMA_VERSION};
use ft_trace::tables::*;

use crate::hostile::table;

const PIDS: [Pid; 2] = [Pid(100), Pid(200)];

/// Threads of each process.
const THREADS: i32 = 4;

/// What the sites of a process tell, in the order of their numbers.
const SITES: [(&str, SiteKind); 5] = [
    ("lock.mutex_wait", SiteKind::LockWait),
    ("lock.mutex_acquire", SiteKind::LockAcquire),
    ("lock.mutex_release", SiteKind::LockRelease),
    ("lock.rwlock_read_acquire", SiteKind::LockAcquire),
    ("lock.rwlock_read_release", SiteKind::LockRelease),
];

/// Names of locks; their numbers begin with 1.
const NAMES: [&str; 3] = ["book", "ledger", "journal"];

/// One thing that a thread of each process does: when (ns), which thread, which of the sites, which lock, by which of the names.
type Step = (i64, i32, usize, i64, i64);

const STEPS: [Step; 20] = [
    // Three wait while one holds it.
    (1_000, 0, 1, 0x1000, 1),
    (1_100, 1, 0, 0x1000, 1),
    (1_200, 2, 0, 0x1000, 1),
    (1_300, 3, 0, 0x1000, 1),
    (2_000, 0, 2, 0x1000, 1),
    (2_010, 2, 1, 0x1000, 1),
    (2_500, 2, 2, 0x1000, 1),
    (2_510, 1, 1, 0x1000, 1),
    (3_000, 1, 2, 0x1000, 1),
    (3_010, 3, 1, 0x1000, 1),
    (3_500, 3, 2, 0x1000, 1),
    // Another of that name.
    (4_000, 0, 1, 0x2000, 1),
    (4_500, 0, 2, 0x2000, 1),
    // The first one by another name.
    (5_000, 1, 1, 0x1000, 3),
    (5_500, 1, 2, 0x1000, 3),
    // Two read together.
    (6_000, 0, 3, 0x3000, 2),
    (6_100, 1, 3, 0x3000, 2),
    (6_500, 0, 4, 0x3000, 2),
    (6_600, 1, 4, 0x3000, 2),
    (7_000, 2, 3, 0x3000, 2),
];

/// Writes it.
pub(crate) fn write(dir: &Path) {
    let mut meta = Meta { schema_version: SCHEMA_VERSION, complete: true, ..Meta::default() };
    meta.start = Start { cpus: 2, start_ns: 0, ..Start::default() };
    meta.end = Some(End { reason: "finished".into(), ts: 10_000, ..End::default() });
    let threads = PIDS.iter().flat_map(|&pid| {
        (0..THREADS).map(move |i| ThreadRow {
            ts: Nanos(0),
            tid: Tid(pid.0 + i),
            pid,
            name: "worker".into(),
            process: "locks".into(),
            prio: Some(120),
            observed: true,
        })
    });
    table(dir, &mut meta, threads);
    let sites = (0i32..).zip(PIDS).flat_map(|(source, pid)| {
        (0i32..).zip(SITES).map(move |(i, (event, kind))| SiteRow {
            site: SiteId(10 * source + i),
            pid,
            event: event.into(),
            category: "lock".into(),
            kind,
            file: "locks.rs".into(),
            line: 1,
            args: "lock:pointer, place:unsigned".into(),
            format: "".into(),
            triggers: 1,
            source,
            started: 0,
            program: 0,
            on_ns: Some(0),
        })
    });
    table(dir, &mut meta, sites);
    // In turns: both do the same at nearly the same time.
    let events = STEPS.iter().flat_map(|&(ts, thread, site, lock, name)| {
        (0i32..).zip(PIDS).map(move |(source, pid)| {
            let (event, kind) = SITES[site];
            let mut e = UserEvent {
                ts: Nanos(ts + i64::from(source)),
                tsc: ts,
                pid,
                tid: Tid(pid.0 + thread),
                cpu: Cpu(source),
                site: SiteId(10 * source + site as i32),
                event: event.into(),
                category: "lock".into(),
                kind,
                arg: [None; 6],
                argf: [None; 6],
                argt: [const { None }; 6],
            };
            (e.arg[0], e.arg[1]) = (Some(lock), Some(name << 32));
            e
        })
    });
    table(dir, &mut meta, events);
    let names = (0i32..).zip(PIDS).flat_map(|(source, pid)| {
        (1i32..).zip(NAMES).map(move |(id, text)| NameRow {
            pid,
            source,
            id,
            kind: NameKind::Name,
            text: text.into(),
            line: 0,
            column: 0,
        })
    });
    table(dir, &mut meta, names);
    table(dir, &mut meta, [] as [LossRow; 0]);
    table(dir, &mut meta, [] as [SymbolRow; 0]);
    meta.write(dir).unwrap();
}
