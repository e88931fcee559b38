//! A small trace with a row of every kind.

use crate::listing::{Form, Result, Selection, list};
use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use ft_trace::store::{Footer, Meta, Row, SCHEMA_VERSION, TableMeta, TableWriter, Trace};
use ft_trace::tables::*;

/// An event of thread 101 of process 100.
pub(in crate::listing) fn user(ts: i64, site: i32, event: &str) -> UserEvent {
    UserEvent {
        ts: Nanos(ts),
        tsc: 2 * ts,
        pid: Pid(100),
        tid: Tid(101),
        cpu: Cpu(1),
        site: SiteId(site),
        event: event.into(),
        category: event.split('.').next().unwrap_or_default().into(),
        kind: SiteKind::Event,
        arg: [None; 6],
        argf: [None; 6],
        argt: [const { None }; 6],
    }
}

fn site(number: i32, event: &str, kind: &str, args: &str, format: &str) -> SiteRow {
    SiteRow {
        site: SiteId(number),
        pid: Pid(100),
        event: event.into(),
        category: "".into(),
        kind: SiteKind::of(kind),
        file: "src/main.rs".into(),
        line: 10 + number,
        args: args.into(),
        format: format.into(),
        triggers: 1,
        source: 0,
        started: 0,
        program: 0,
        on_ns: Some(0),
    }
}

pub(super) fn thread(pid: i32, tid: i32, name: &str) -> ThreadRow {
    ThreadRow {
        ts: Nanos(1000),
        tid: Tid(tid),
        pid: Pid(pid),
        name: name.into(),
        process: "app".into(),
        prio: None,
        observed: pid == 100,
    }
}

fn name(id: i32, kind: &str, text: &str) -> NameRow {
    NameRow {
        pid: Pid(100),
        source: 0,
        id,
        kind: NameKind::of(kind),
        text: text.into(),
        line: 7,
        column: 1,
    }
}

/// A trace that began at 1 µs and ended at 11 µs.
pub(super) struct Sample(pub(super) tempfile::TempDir);

impl Sample {
    pub(super) fn new() -> Sample {
        Sample::with(&[], &[])
    }

    /// With more threads and events of applications, which come last.
    pub(super) fn with(threads: &[ThreadRow], events: &[UserEvent]) -> Sample {
        let sample = Sample(tempfile::tempdir().unwrap());
        let dir = sample.0.path();
        let mut meta = Meta { schema_version: SCHEMA_VERSION, ..Meta::default() };
        meta.start.start_ns = 1000;
        meta.start.cpus = 4;
        meta.end = Some(ft_trace::spool::frame::End { ts: 11_000, ..Default::default() });
        meta.clock.realtime_offset_ns = 1_700_000_000_000_000_000;
        user_tables(dir, &mut meta, threads, events);
        kernel_tables(dir, &mut meta);
        meta.write(dir).unwrap();
        sample
    }

    pub(super) fn trace(&self) -> Trace {
        Trace::open(self.0.path()).unwrap()
    }

    pub(super) fn list(&self, selection: &Selection, form: Form) -> Result<String> {
        let mut out = Vec::new();
        list(&self.trace(), selection, form, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }
}

fn table<R: Row>(dir: &std::path::Path, meta: &mut Meta, rows: impl IntoIterator<Item = R>) {
    let mut writer = TableWriter::create(dir, Footer::default()).unwrap();
    rows.into_iter().for_each(|row| writer.push(row).unwrap());
    let rows = writer.finish().unwrap();
    meta.tables.insert(R::TABLE.into(), TableMeta { rows, parts: 1, ..TableMeta::default() });
}

fn user_tables(
    dir: &std::path::Path,
    meta: &mut Meta,
    threads: &[ThreadRow],
    events: &[UserEvent],
) {
    let place = ft_user::layout::place_word(2, 1) as i64;
    let with = |event: UserEvent, args: &[i64]| {
        let mut event = event;
        args.iter().zip(&mut event.arg).for_each(|(&word, arg)| *arg = Some(word));
        event
    };
    let mut named = with(user(2500, 1, "order.refused"), &[8]);
    named.argt[1] = Some("no \x1b[31mcredit".into());
    let other = UserEvent { tid: Tid(102), cpu: Cpu(0), ..user(3000, 2, "lock.mutex_acquire") };
    table(
        dir,
        meta,
        [
            with(user(2000, 0, "order.placed"), &[7, -5]),
            named,
            with(other, &[0x7f00_0000_1000, place]),
            with(user(3500, 2, "lock.mutex_acquire"), &[0x7f00_0000_2000, 0]),
            with(user(4000, 3, "gap.seen"), &[2000, 3900]),
            user(4500, 4, "task.load"),
            with(user(5000, 5, "odd.format"), &[1]),
            user(5500, 99, "un.known"),
            with(user(5800, 7, "lock.spin_acquire"), &[0x40_1000, 0x40_2000]),
        ]
        .into_iter()
        .chain(events.iter().cloned()),
    );
    table(
        dir,
        meta,
        [
            site(0, "order.placed", "event", "id:unsigned, price:signed", "order {id} at {1}"),
            site(1, "order.refused", "event", "id:unsigned, why:str", ""),
            site(2, "lock.mutex_acquire", "lock_acquire", "lock:pointer, place:unsigned", ""),
            site(3, "gap.seen", "poll_gap", "before:tsc, after:tsc", ""),
            site(4, "task.load", "scope_begin", "", ""),
            site(5, "odd.format", "event", "a:unsigned", "{a} {b} {0\n {"),
            site(6, "never.passed", "event", "", ""),
            site(7, "lock.spin_acquire", "lock_acquire", "lock:pointer, caller:pointer", ""),
        ],
    );
    table(
        dir,
        meta,
        [thread(100, 101, "worker"), thread(100, 102, "wörk\ner-2"), thread(50, 50, "other")]
            .into_iter()
            .chain(threads.iter().cloned()),
    );
    table::<AsyncTask>(dir, meta, []);
    table(dir, meta, [name(1, "name", "accounts"), name(2, "place", "src/a.rs")]);
    let symbol = |address, kind: &str, symbol: &str| SymbolRow {
        pid: Pid(100),
        address,
        kind: SymbolKind::of(kind),
        symbol: symbol.into(),
        file: "/src/b.c".into(),
        line: 3,
        object: "/bin/app".into(),
        offset: 0,
    };
    table(dir, meta, [symbol(0x40_1000, "lock", "pool"), symbol(0x40_2000, "call", "work")]);
    table(
        dir,
        meta,
        [LossRow {
            ts: Nanos(6000),
            dur: 1500,
            origin: LossOrigin::Ring,
            what: "ring full".into(),
            cpu: Cpu::UNKNOWN,
            pid: Pid(100),
            tid: Tid(101),
            count: 1234,
        }],
    );
}

fn kernel_tables(dir: &std::path::Path, meta: &mut Meta) {
    let (cpu, tid, pid) = (Cpu(1), Tid(101), Pid(100));
    let switch =
        |ts, (prev, prev_comm): (i32, &str), (next, next_comm): (i32, &str), state: &str| {
            SchedSwitch {
                ts: Nanos(ts),
                cpu,
                prev_tid: Tid(prev),
                prev_pid: Pid(prev / 50 * 50),
                prev_comm: prev_comm.into(),
                prev_prio: 120,
                prev_state: TaskState::of(state),
                prev_woken: false,
                next_tid: Tid(next),
                next_pid: Pid(next / 50 * 50),
                next_comm: next_comm.into(),
                next_prio: 98,
            }
        };
    table(
        dir,
        meta,
        [
            switch(1500, (0, "swapper/1"), (101, "worker"), "R"),
            switch(7000, (101, "worker"), (50, "other"), "R+"),
            switch(8000, (50, "other"), (0, "swapper/1"), "S"),
        ],
    );
    table(
        dir,
        meta,
        [SchedWaking {
            ts: Nanos(1400),
            cpu,
            waker_tid: Tid(0),
            tid,
            pid,
            prio: 98,
            target_cpu: Cpu(0),
            is_new: false,
        }],
    );
    table(
        dir,
        meta,
        [SchedMigrate { ts: Nanos(1450), cpu, tid, pid, from_cpu: Cpu(0), to_cpu: cpu }],
    );
    let irq = |ts, kind: &str, number, name: &str| Irq {
        ts: Nanos(ts),
        dur: 12_300,
        cpu,
        kind: IrqKind::of(kind),
        number,
        name: name.into(),
        tid,
        pid,
    };
    table(dir, meta, [irq(2100, "hard", 24, "virtio0"), irq(2200, "soft", 3, "NET_RX")]);
    let task = |ts, kind: &str, parent_pid| TaskEvent {
        ts: Nanos(ts),
        cpu,
        kind: TaskKind::of(kind),
        tid,
        pid,
        comm: "worker".into(),
        parent_pid,
    };
    table(
        dir,
        meta,
        [task(1100, "fork", Some(100)), task(1200, "rename", None), task(9000, "exit", None)],
    );
    table(
        dir,
        meta,
        [Contention {
            ts: Nanos(5100),
            dur: 400,
            cpu,
            tid,
            pid,
            lock: -4096,
            name: None,
            caller: Some("vfs_read".into()),
            kind: "rwsem-read".into(),
            flags: 2,
            end: ContentionEnd::Acquired,
            stack: None,
            cut: false,
        }],
    );
    let call = |ts, name: &str, ret| Syscall {
        ts: Nanos(ts),
        dur: 900,
        cpu,
        tid,
        pid,
        number: 0,
        name: name.into(),
        ret,
        file: None,
        seen: CallSeen::Whole,
    };
    table(
        dir,
        meta,
        [call(5200, "futex", -11), call(5300, "mmap", 0x7f00_0000_0000), call(5400, "write", 64)],
    );
    let hit = |ts, kind, stack_pointer| ProbeHit {
        ts: Nanos(ts),
        cpu,
        tid,
        pid,
        kind,
        probe: "app:serve".into(),
        stack_pointer,
    };
    table(
        dir,
        meta,
        [hit(5650, ProbeKind::Begin, Some(0x7ffc_0000_0010)), hit(5700, ProbeKind::End, None)],
    );
    table(
        dir,
        meta,
        [PageFault {
            ts: Nanos(5600),
            cpu,
            tid,
            pid,
            address: 0x7f00_0000_0010,
            access: Access::Write,
            cause: FaultCause::NotPresent,
            error: 6,
            in_kernel: false,
            dur: None,
            kind: None,
        }],
    );
}
