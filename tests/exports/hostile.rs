//! A trace whose every name and text wants to break out of whatever it is put into, and whose numbers are the largest that
//! a program can tell.

use std::path::Path;

use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use ft_trace::spool::frame::{End, Start};
use ft_trace::store::{Footer, Meta, Row, SCHEMA_VERSION, TableMeta, TableWriter};
use ft_trace::tables::*;

/// Ends strings, comments, lines, elements and blocks of the formats that are written.
const NAMES: [&str; 9] = [
    "\"; }; event { name = \"x",
    "</script><script>alert(1)</script>",
    "line\nbreak\r\n%EndEventDef\n1 2 3",
    "nul\0 and after",
    "\\\\\" \\\" \\",
    "\u{1b}[31m\u{7f}\u{85}\u{2028}\u{202e}",
    "*/ /* // # %s {0}",
    "grüße 日本語 \u{1f980}",
    " ",
];

const PID: Pid = Pid(100);
const BEGIN: i64 = 1_000_000;

/// A time after the begin.
fn at(ns: i64) -> Nanos {
    Nanos(BEGIN + ns)
}

/// Writes a table of a trace.
pub(crate) fn table<R: Row>(dir: &Path, meta: &mut Meta, rows: impl IntoIterator<Item = R>) {
    let mut writer = TableWriter::create(dir, Footer::default()).unwrap();
    rows.into_iter().for_each(|row| writer.push(row).unwrap());
    let rows = writer.finish().unwrap();
    meta.tables.insert(R::TABLE.into(), TableMeta { rows, parts: 1, ..TableMeta::default() });
}

/// Writes it.
pub(crate) fn write(dir: &Path) {
    let mut meta = Meta { schema_version: SCHEMA_VERSION, complete: true, ..Meta::default() };
    meta.start = Start {
        host: NAMES[0].into(),
        kernel: NAMES[2].into(),
        agent_version: NAMES[3].into(),
        boot_id: NAMES[1].into(),
        cpus: 2,
        start_ns: BEGIN,
        kernel_groups: vec!["sched".into()],
        ..Start::default()
    };
    meta.end = Some(End { reason: "finished".into(), ts: BEGIN + 1_000_000, ..End::default() });
    meta.clock.realtime_offset_ns = 1_700_000_000_123_456_789;
    let hostile = || (0i32..).zip(NAMES);
    let tid = |i: i32| Tid(101 + i);
    // Thread `i` has the CPU from 10 i to 10 i + 10 µs.
    let from = |i: i32| 10_000 * i64::from(i);

    table(
        dir,
        &mut meta,
        hostile().map(|(i, name)| ThreadRow {
            ts: at(0),
            tid: tid(i),
            pid: PID,
            name: name.into(),
            process: NAMES[0].into(),
            prio: Some(120),
            observed: true,
        }),
    );
    table(
        dir,
        &mut meta,
        hostile().map(|(i, name)| SchedSwitch {
            ts: at(from(i)),
            cpu: Cpu(0),
            prev_tid: if i == 0 { Tid(0) } else { tid(i - 1) },
            prev_pid: if i == 0 { Pid(0) } else { PID },
            prev_comm: if i == 0 { "swapper/0" } else { NAMES[i as usize - 1] }.into(),
            prev_prio: 120,
            prev_state: TaskState::Preempted,
            prev_woken: false,
            next_tid: tid(i),
            next_pid: PID,
            next_comm: name.into(),
            next_prio: -1,
        }),
    );
    table(
        dir,
        &mut meta,
        hostile().map(|(i, name)| Irq {
            ts: at(from(i) + 1000),
            dur: 500,
            cpu: Cpu(0),
            kind: [IrqKind::Hard, IrqKind::Soft, IrqKind::Vector][i as usize % 3],
            number: i32::MAX - i,
            name: name.into(),
            tid: tid(i),
            pid: PID,
        }),
    );
    table(
        dir,
        &mut meta,
        hostile().map(|(i, name)| Syscall {
            ts: at(from(i) + 2000),
            dur: 700,
            cpu: Cpu(1),
            tid: tid(i),
            pid: PID,
            number: i32::MAX,
            name: name.into(),
            ret: i64::MIN,
            file: None,
            seen: CallSeen::Whole,
        }),
    );
    table(
        dir,
        &mut meta,
        hostile().map(|(i, name)| TaskEvent {
            ts: at(from(i) + 2500),
            cpu: Cpu(0),
            kind: TaskKind::Rename,
            tid: tid(i),
            pid: PID,
            comm: name.into(),
            parent_pid: None,
        }),
    );
    table(
        dir,
        &mut meta,
        hostile().map(|(i, name)| Contention {
            ts: at(from(i) + 2800),
            dur: 100,
            cpu: Cpu(0),
            tid: tid(i),
            pid: PID,
            lock: -1,
            name: Some(name.into()),
            caller: Some(name.into()),
            kind: name.into(),
            flags: -1,
            end: ContentionEnd::Acquired,
            stack: None,
            cut: false,
        }),
    );
    table(
        dir,
        &mut meta,
        hostile().map(|(i, name)| LossRow {
            ts: at(from(i) + 2900),
            dur: 50,
            origin: if i % 2 == 0 { LossOrigin::Ring } else { LossOrigin::Agent },
            what: name.into(),
            cpu: Cpu::UNKNOWN,
            pid: PID,
            tid: tid(i),
            count: i64::from(i),
        }),
    );
    user(dir, &mut meta);
    table(dir, &mut meta, [] as [SchedWaking; 0]);
    table(dir, &mut meta, [] as [SchedMigrate; 0]);
    table(dir, &mut meta, [] as [PageFault; 0]);
    table(dir, &mut meta, [] as [Signal; 0]);
    table(dir, &mut meta, [] as [ClockRow; 0]);
    meta.write(dir).unwrap();
}

/// What the application tells: for each name a site of it, whose arguments have it, too; a lock, a scope, and a task that is
/// woken and polled.
fn user(dir: &Path, meta: &mut Meta) {
    let hostile = || (0i32..).zip(NAMES);
    let kinds =
        [SiteKind::LockAcquire, SiteKind::LockRelease, SiteKind::ScopeBegin, SiteKind::ScopeEnd];
    let tasks = [SiteKind::TaskNew, SiteKind::TaskWake, SiteKind::TaskPoll, SiteKind::TaskPolled];
    let mut sites = Vec::new();
    let mut events = Vec::new();
    let event = |ts: Nanos, i: i32, site: &SiteRow| UserEvent {
        ts,
        tsc: i64::MAX,
        pid: PID,
        tid: Tid(101 + i),
        // A program can tell any CPU.
        cpu: Cpu(if i % 2 == 0 { 0 } else { 8190 }),
        site: site.site,
        event: site.event.clone(),
        category: site.category.clone(),
        kind: site.kind,
        arg: [None; 6],
        argf: [None; 6],
        argt: [const { None }; 6],
    };
    for (i, name) in hostile() {
        let begin = 10_000 * i64::from(i);
        // Commas and colons separate in the column, so no name of an argument has ", ".
        let args = format!(
            "{name}:unsigned?, {name}:float, {name}:str, {name}:bool, :pointer, struct:bytes"
        );
        let site = SiteRow {
            site: SiteId(10 * i),
            pid: PID,
            event: name.into(),
            category: name.into(),
            kind: SiteKind::Event,
            file: name.into(),
            line: i32::MAX,
            args: args.into(),
            format: name.into(),
            triggers: 1,
            source: 0,
            started: 0,
            program: 0,
            on_ns: Some(0),
        };
        for absent in [false, true] {
            let mut e = event(at(begin + 3000 + i64::from(absent)), i, &site);
            e.arg = [(!absent).then_some(-1), None, None, Some(i.into()), Some(i64::MIN), None];
            e.argf[1] = Some(f64::MAX);
            e.argt[2] = Some(name.into());
            e.argt[5] = Some(NAMES[i as usize / 2].into());
            events.push(e);
        }
        // Nobody knows the site: its description was lost.
        let unknown = SiteRow { site: SiteId(i32::MAX - i), ..site.clone() };
        let mut e = event(at(begin + 3500), i, &unknown);
        (e.arg[5], e.argt[0]) = (Some(7), Some(name.into()));
        events.push(e);
        sites.push(site.clone());
        for (n, kind) in (1..).zip(kinds) {
            let args = if kind.has_lock() { "lock:pointer, place:unsigned" } else { "" };
            let site = SiteRow {
                site: SiteId(10 * i + n),
                kind,
                args: args.into(),
                format: "".into(),
                ..site.clone()
            };
            // The scope lies in the hold.
            let ts = at(begin + [0, 4000, 7000, 5000, 6000][n as usize]);
            let mut e = event(ts, i, &site);
            if kind.has_lock() {
                e.arg[0] = Some(-0x1000 + i64::from(i));
                e.arg[1] = Some(i64::from(2 * i + 1) << 32 | i64::from(2 * i + 2));
            }
            events.push(e);
            sites.push(site);
        }
        for (n, kind) in (5..).zip(tasks) {
            let site = SiteRow {
                site: SiteId(10 * i + n),
                kind,
                args: "task:unsigned, place:unsigned".into(),
                format: "".into(),
                ..site.clone()
            };
            let mut e = event(at(begin + [7500, 8000, 8500, 9000][n as usize - 5]), i, &site);
            e.arg[0] = Some(i64::from(i) + 1);
            e.arg[1] = Some(match kind {
                // It is ready.
                SiteKind::TaskPolled => 1,
                _ => i64::from(2 * i + 1) << 32 | i64::from(2 * i + 2),
            });
            events.push(e);
            sites.push(site);
        }
    }
    table(dir, meta, sites);
    table(dir, meta, events);
    table(
        dir,
        meta,
        hostile().flat_map(|(i, name)| {
            let name = |id, kind| NameRow {
                pid: PID,
                source: 0,
                id,
                kind,
                text: name.into(),
                line: 7,
                column: 1,
            };
            [name(2 * i + 1, NameKind::Name), name(2 * i + 2, NameKind::Place)]
        }),
    );
    table(dir, meta, [] as [SymbolRow; 0]);
}
