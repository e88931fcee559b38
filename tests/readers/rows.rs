//! A trace that has rows of every table.

mod contended;
mod loads;
mod results;

use std::path::Path;

use ft_trace::Mark;
use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use ft_trace::store::{Footer, Meta, Row, SCHEMA_VERSION, TableMeta, TableWriter};
use ft_trace::tables::*;

/// 100 ns, or null.
fn parts(i: i32) -> Option<Decomposition> {
    (i % 2 == 0).then_some(Decomposition {
        running_ns: 60,
        preempted_ns: 20,
        hardirq_ns: 15,
        unexplained_ns: 5,
        ..Decomposition::default()
    })
}

/// Of each kind some, or null.
fn counts(i: i32) -> Option<Counts> {
    let faults = (i % 4 == 0).then_some([12, 1]);
    (i % 2 == 0).then_some(Counts { sleeps: 3, switches: 2, moves: 1, faults })
}

/// Both, one, or neither.
fn counter(i: i32) -> [Option<i64>; 2] {
    let both = [Some(1 << 40 | i64::from(i)), (i % 4 == 0).then_some(7)];
    if i % 2 == 0 { both } else { [None; 2] }
}

/// Time of a row.
fn time(i: i32) -> Nanos {
    Nanos(1_000_000 + i64::from(i) * 1000)
}

/// Every other number.
fn some(i: i32) -> Option<i32> {
    (i % 2 == 0).then_some(i)
}

/// A trace whose tables hold `count` rows each, with and without the values that can be null.
pub(crate) fn trace(dir: &Path, count: i32) {
    let mut meta = Meta { schema_version: SCHEMA_VERSION, ..Meta::default() };
    let (pid, cpu) = (Pid(100), Cpu(1));
    table(dir, &mut meta, count, |i| UserEvent {
        ts: time(i),
        tsc: 2_000_000 + i64::from(i),
        pid,
        tid: Tid(101),
        cpu,
        site: SiteId(i),
        event: "lock.acquire".into(),
        category: "lock".into(),
        kind: SiteKind::LockAcquire,
        // Beyond 2^53 a float is another number.
        arg: [
            Some(i64::MIN),
            Some(1),
            None,
            None,
            None,
            some(i).map(|i| (1 << 53) + 1 + i64::from(i)),
        ],
        argf: [None, None, Some(0.5), None, None, None],
        argt: [None, None, None, some(i).map(|_| "grüße".into()), None, None],
    });
    table(dir, &mut meta, count, |i| SchedSwitch {
        ts: time(i),
        cpu,
        prev_tid: Tid(101),
        prev_pid: pid,
        prev_comm: "worker".into(),
        prev_prio: 120,
        prev_state: TaskState::Preempted,
        prev_woken: false,
        next_tid: Tid(0),
        next_pid: Pid(0),
        next_comm: "swapper/1".into(),
        next_prio: 120,
    });
    table(dir, &mut meta, count, |i| Sleep {
        ts: time(i),
        cpu,
        tid: Tid(101),
        pid,
        call: some(i).map(|_| "futex".into()),
        file: some(i).map(|_| FileKind::Pipe),
        argument: [some(i).map(i64::from), some(i).map(|_| -1), None, some(i).map(|_| i64::MIN)],
        until: some(i).map(|_| (1 << 53) + 1),
        word: some(i).map(|_| -2),
        owner: some(i),
    });
    table(dir, &mut meta, count, |i| Throttle {
        ts: time(i),
        dur: 100,
        cpu,
        tid: Tid(101),
        pid,
        cgroup: some(i).map(|_| "web".into()),
        cgroup_id: some(i).map(i64::from),
        quota_ns: some(i).map(|_| 20_000_000),
        period_ns: some(i).map(|_| 100_000_000),
        measured: i % 2 == 0,
        since_left: i % 2 == 0,
    });
    table(dir, &mut meta, count, |i| SchedWaking {
        ts: time(i),
        cpu,
        waker_tid: Tid(0),
        tid: Tid(101),
        pid,
        prio: 120,
        target_cpu: cpu,
        is_new: i == 0,
    });
    table(dir, &mut meta, count, |i| SchedMigrate {
        ts: time(i),
        cpu,
        tid: Tid(101),
        pid,
        from_cpu: Cpu(0),
        to_cpu: cpu,
    });
    table(dir, &mut meta, count, |i| Irq {
        ts: time(i),
        dur: 900,
        cpu,
        kind: IrqKind::Vector,
        number: 1,
        name: "local_timer".into(),
        tid: Tid(101),
        pid,
    });
    table(dir, &mut meta, count, |i| TaskEvent {
        ts: time(i),
        cpu,
        kind: TaskKind::Fork,
        tid: Tid(102),
        pid,
        comm: "worker".into(),
        parent_pid: some(i),
    });
    table(dir, &mut meta, count, |i| Contention {
        ts: time(i),
        dur: 4_000,
        cpu,
        tid: Tid(101),
        pid,
        lock: i64::MIN + i64::from(i),
        name: some(i).map(|_| "uts_sem".into()),
        caller: some(i).map(|_| "vfs_write".into()),
        kind: "spinlock".into(),
        flags: 1,
        end: ContentionEnd::Acquired,
        stack: some(i).map(i64::from),
        cut: false,
    });
    table(dir, &mut meta, count, |i| Syscall {
        ts: time(i),
        dur: 700,
        cpu,
        tid: Tid(101),
        pid,
        number: 202,
        name: "futex".into(),
        ret: -11,
        file: some(i).map(|_| FileKind::Pipe),
        seen: CallSeen::Whole,
    });
    table(dir, &mut meta, count, |i| FutexCall {
        ts: time(i),
        dur: 700,
        cpu,
        tid: Tid(101),
        pid,
        kind: FutexKind::Wait,
        address: 0x7fff_0000_2000,
        shared: false,
        second: some(i).map(i64::from),
        value: -2,
        word: some(i),
        timeout_ns: some(i).map(i64::from),
        ret: -110,
        result: FutexResult::TimedOut,
    });
    table(dir, &mut meta, count, |i| PageFault {
        ts: time(i),
        cpu,
        tid: Tid(101),
        pid,
        address: 0x7fff_0000_1000,
        access: Access::Write,
        cause: FaultCause::NotPresent,
        error: 6,
        in_kernel: true,
        dur: some(i).map(i64::from),
        kind: some(i).map(|_| FaultKind::Major),
    });
    table(dir, &mut meta, count, |i| ProbeHit {
        ts: time(i),
        cpu,
        tid: Tid(101),
        pid,
        kind: ProbeKind::End,
        probe: "server:serve".into(),
        stack_pointer: some(i).map(|i| 0x7fff_0000_3000 + i64::from(i)),
    });
    table(dir, &mut meta, count, |i| Signal {
        ts: time(i),
        cpu,
        kind: SignalKind::Generate,
        sender_tid: some(i),
        sender_pid: some(i),
        tid: Tid(101),
        pid,
        number: 10,
        name: "SIGUSR1".into(),
        to_process: true,
        result: some(i).map(|_| SignalResult::Delivered),
    });
    table(dir, &mut meta, count, |i| KernelSections {
        ts: time(i),
        lock: SectionLock::Mutex,
        interrupt: false,
        caller: some(i).map(|_| "vfs_write".into()),
        caller_address: -4096,
        what: SectionCount::Length,
        at_least: 64,
        count: 3,
        total_ns: 210,
        max_ns: 80,
    });
    table(dir, &mut meta, count, |i| CpuCount {
        ts: time(i),
        dur: 1_000,
        cpu,
        tid: Tid(101),
        pid,
        comm: "worker".into(),
        prio: 120,
        counter: [some(i).map(i64::from), Some(7)],
    });
    table(dir, &mut meta, count, |i| CallChain {
        ts: time(i),
        dur: 0,
        cpu,
        tid: Tid(101),
        pid,
        kind: ChainKind::Wake,
        woken_tid: some(i),
        woken_pid: some(i),
        stack: some(i).map(i64::from),
        user: 2,
        cut: false,
    });
    table(dir, &mut meta, count, |i| Sample {
        ts: time(i),
        cpu,
        tid: Tid(101),
        pid,
        stack: some(i).map(i64::from),
        user: 2,
        in_kernel: true,
        cut: false,
    });
    table(dir, &mut meta, count, |i| StackRow {
        stack: i64::from(i),
        position: 0,
        pid,
        address: i64::MIN + i64::from(i),
    });
    table(dir, &mut meta, count, |i| FrameRow {
        pid,
        address: i64::MIN + i64::from(i),
        inlined: 0,
        function: "main".into(),
        file: "src/main.rs".into(),
        line: 7,
        object: "/usr/bin/app".into(),
        build_id: "ab01".into(),
        offset: 0x1000,
    });
    table(dir, &mut meta, count, |i| BinaryRow {
        functions: i,
        framed: i,
        object: "/usr/bin/app".into(),
        build_id: "ab01".into(),
    });
    table(dir, &mut meta, count, |i| ThreadRow {
        ts: time(i),
        tid: Tid(101 + i),
        pid,
        name: "worker".into(),
        process: "app".into(),
        prio: some(i),
        observed: true,
    });
    table(dir, &mut meta, count, |i| SiteRow {
        site: SiteId(i),
        pid,
        event: "lock.acquire".into(),
        category: "lock".into(),
        kind: SiteKind::LockAcquire,
        file: "src/main.rs".into(),
        line: 7,
        args: "lock:pointer".into(),
        format: "".into(),
        triggers: 1,
        source: 0,
        started: 0,
        program: 0,
        on_ns: Some(0),
    });
    table(dir, &mut meta, count, |i| SymbolRow {
        pid,
        address: 0x7f00_0000_1000 + i64::from(i),
        kind: SymbolKind::Call,
        symbol: "transfer".into(),
        file: "src/main.c".into(),
        line: 7,
        object: "/usr/bin/app".into(),
        offset: 0x1000,
    });
    table(dir, &mut meta, count, |i| NameRow {
        pid,
        source: 0,
        id: i + 1,
        kind: NameKind::Name,
        text: "accounts".into(),
        line: 0,
        column: 0,
    });
    table(dir, &mut meta, count, |i| ClockRow {
        ts: time(i),
        tsc: 2_000_000,
        bracket_ns: 30,
        residual_ns: -3,
        bound_ns: 52,
        realtime_offset_ns: 1_700_000_000_000_000_000,
        boottime_offset_ns: 0,
        cpu,
    });
    table(dir, &mut meta, count, |i| HostClockRow {
        ts: time(i),
        state: HostClockState::Synchronised,
        bound_ns: some(i).map(|_| 316_000),
        estimate_ns: some(i).map(|_| 20_000),
        correction_ns: some(i).map(|_| -4000),
        frequency_ppm: some(i).map(|_| -3.5),
        tai_s: some(i),
        status: some(i),
    });
    table(dir, &mut meta, count, |i| LossRow {
        ts: time(i),
        dur: 10,
        origin: LossOrigin::Kernel,
        what: "sched_switch".into(),
        cpu,
        pid: Pid(-1),
        tid: Tid(-1),
        count: 2,
    });
    results::tables(dir, &mut meta, count);
    contended::tables(dir, &mut meta, count);
    loads::tables(dir, &mut meta, count);
    meta.write(dir).unwrap();
}

/// Writes a table of so many rows in the place of the one of before.
pub(crate) fn table<R: Row>(dir: &Path, meta: &mut Meta, count: i32, row: impl Fn(i32) -> R) {
    let mut writer = TableWriter::create(dir, Footer::default()).unwrap();
    // Backwards, since it is the writer that sorts.
    for i in (0..count).rev() {
        writer.push(row(i)).unwrap();
    }
    let rows = writer.finish().unwrap();
    meta.tables.insert(R::TABLE.into(), TableMeta { rows, parts: 1, ..TableMeta::default() });
}
