//! A trace that has rows of every table.

mod loads;

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

/// A trace whose tables hold `count` rows each, with and without the values that can be null.
pub(crate) fn trace(dir: &Path, count: i32) {
    let mut meta = Meta { schema_version: SCHEMA_VERSION, ..Meta::default() };
    let (pid, cpu) = (Pid(100), Cpu(1));
    let time = |i: i32| Nanos(1_000_000 + i64::from(i) * 1000);
    let some = |i: i32| (i % 2 == 0).then_some(i);
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
        kind: "spinlock".into(),
        flags: 1,
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
        started: 0,
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
    table(dir, &mut meta, count, |i| CriticalSection {
        ts: time(i),
        dur: 100,
        pid,
        tid: Tid(101),
        lock: 0x7fff_0000_1000,
        lock_name: "accounts".into(),
        kind: "mutex".into(),
        site: SiteId(i),
        place: "src/main.rs:7".into(),
        depth: i,
        depth_mark: Mark::Exact,
        wait_ns: 0,
        condition: false,
        parts: parts(i),
        preemptor_tid: some(i),
        preemptor_comm: some(i).map(|_| "burner".into()),
        preemptor_ns: some(i).map(i64::from),
        agent_ns: some(i).map(i64::from),
        mark: Mark::Exact,
    });
    table(dir, &mut meta, count, |i| DispatchLatency {
        ts: time(i),
        dur: 5000,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        cpu,
        prio: 120,
        waker_tid: Tid(0),
        waker_comm: "swapper/0".into(),
        running_tid: some(i),
        running_comm: some(i).map(|_| "burner".into()),
        running_ns: some(i).map(i64::from),
        migrated: false,
        stack: some(i).map(i64::from),
        agent_ns: some(i).map(i64::from),
        mark: Mark::LowerBound,
    });
    table(dir, &mut meta, count, |i| Gap {
        ts: time(i),
        dur: 100,
        pid,
        tid: Tid(101),
        comm: "poller".into(),
        cpu,
        cause: some(i).map(|_| GapCause::Hardirq),
        culprit: some(i).map(|_| "virtio0-input".into()),
        culprit_tid: None,
        parts: parts(i),
        agent_ns: some(i).map(i64::from),
        inferred: InferredCause::Tick,
        mark: Mark::Exact,
    });
    table(dir, &mut meta, count, |i| Scope {
        ts: time(i),
        dur: 100,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        site: SiteId(i),
        event: "db.query".into(),
        depth: i,
        depth_mark: Mark::LowerBound,
        parts: parts(i),
        lock_wait_ns: 30,
        preemptor_tid: some(i),
        preemptor_comm: some(i).map(|_| "burner".into()),
        preemptor_ns: some(i).map(i64::from),
        agent_ns: some(i).map(i64::from),
        mark: Mark::Exact,
    });
    table(dir, &mut meta, count, |i| Request {
        ts: time(i),
        dur: 100,
        request: i64::from(i),
        kind: "http.begin,http.end".into(),
        key: some(i).map(i64::from),
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        end_pid: pid,
        end_tid: Tid(102),
        end_comm: "sender".into(),
        parts: parts(i),
        agent_ns: some(i).map(i64::from),
        path_running_ns: some(i).map(|_| 60),
        path_preempted_ns: some(i).map(|_| 0),
        path_dispatch_ns: some(i).map(|_| 0),
        path_interrupt_ns: some(i).map(|_| 0),
        path_timer_ns: some(i).map(|_| 0),
        path_device_ns: some(i).map(|_| 0),
        path_outside_ns: some(i).map(|_| 0),
        path_unknown_ns: some(i).map(|_| 40),
        path_elsewhere_ns: some(i).map(|_| 30),
        path_pieces: some(i).map(|_| 3),
        path_mark: Mark::LowerBound,
        mark: Mark::Exact,
    });
    table(dir, &mut meta, count, |i| PathPiece {
        ts: time(i),
        dur: 100,
        request: i64::from(i),
        depth: i,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        kind: PathKind::Preempted,
        culprit: some(i).map(|_| "burner".into()),
        culprit_tid: some(i),
        wait: some(i).map(|_| "lock accounts".into()),
        waiter_tid: some(i),
        mark: Mark::Exact,
    });
    table(dir, &mut meta, count, |i| FutexWait {
        ts: time(i),
        dur: 100,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        kind: FutexKind::Wait,
        address: 0x7fff_0000_2000,
        name: "queue".into(),
        own_kind: some(i).map(|_| "lock".into()),
        own_name: some(i).map(|_| "accounts".into()),
        timeout_ns: some(i).map(i64::from),
        end: FutexEnd::Woken,
        again: true,
        owner_tid: some(i),
        parts: parts(i),
        woken_ns: some(i).map(i64::from),
        waker_tid: some(i),
        waker_pid: some(i),
        waker_comm: some(i).map(|_| "burner".into()),
        waker_call: some(i).map(|_| FutexKind::Wake),
        waker_stack: some(i).map(i64::from),
        behind_tid: some(i),
        behind_comm: some(i).map(|_| "burner".into()),
        behind_ns: some(i).map(i64::from),
        stack: some(i).map(i64::from),
        agent_ns: some(i).map(i64::from),
        mark: Mark::Exact,
    });
    table(dir, &mut meta, count, |i| LockChain {
        ts: time(i),
        dur: 0,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        kind: LockChainKind::Runs,
        lock: 0x7fff_0000_1000,
        lock_name: "accounts".into(),
        place: "src/main.rs:7".into(),
        innermost: true,
        stack: some(i).map(i64::from),
    });
    table(dir, &mut meta, count, |i| ThreadTime {
        ts: time(i),
        pid,
        tid: Tid(101 + i),
        comm: "worker".into(),
        part: Part::Preempted,
        culprit: some(i).map(|_| "hog".into()),
        culprit_tid: some(i),
        spent_ns: 100,
        stretches: 3,
        agent_ns: some(i).map(i64::from),
        wall_ns: 100,
        mark: Mark::Censored,
    });
    contended(dir, &mut meta, count);
    loads::tables(dir, &mut meta, count);
    meta.write(dir).unwrap();
}

/// The tables about locks that were waited for, or whose holder did not run.
fn contended(dir: &Path, meta: &mut Meta, count: i32) {
    let (time, pid, lock) = (|i| Nanos(1_000_000 + i64::from(i)), Pid(100), 0x7fff_0000_1000);
    let some = |i: i32| (i % 2 == 1).then_some(i);
    let name = |i: i32| some(i).map(|_| "matcher".into());
    table(dir, meta, count, |i| LockWait {
        ts: time(i),
        dur: 107,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        lock,
        lock_name: "accounts".into(),
        kind: "mutex".into(),
        site: SiteId(i),
        place: "src/main.rs:7".into(),
        depth: 0,
        depth_mark: Mark::Exact,
        holders: i,
        holder_tid: some(i),
        holder_comm: name(i),
        holder_place: name(i),
        holder_ns: some(i).map(i64::from),
        holder_waits_ns: 3,
        chain: 1,
        root_tid: some(i),
        root_comm: name(i),
        root_lock: name(i),
        root_place: name(i),
        root_ns: some(i).map(i64::from),
        parts: parts(i),
        no_holder_ns: 5,
        cycle_ns: 2,
        free_asleep_ns: some(i).map(|_| 1),
        free_runnable_ns: some(i).map(|_| 3),
        free_running_ns: some(i).map(|_| 1),
        free_unknown_ns: some(i).map(|_| 0),
        waker_tid: some(i),
        waker_comm: name(i),
        woken_after_ns: some(i).map(i64::from),
        behind_tid: some(i),
        behind_comm: name(i),
        behind_ns: some(i).map(i64::from),
        overtaken: i,
        stack: some(i).map(i64::from),
        agent_ns: some(i).map(i64::from),
        mark: Mark::Exact,
    });
    table(dir, meta, count, |i| UnfinishedWait {
        ts: time(i),
        dur: 100,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        lock,
        lock_name: "accounts".into(),
        kind: "mutex".into(),
        place: "src/main.rs:7".into(),
        ended: WaitEnd::Thread,
        holder_tid: some(i),
        holder_comm: name(i),
        holder_place: name(i),
        holder_since: some(i).map(i64::from),
        holder_gone: i % 2 == 1,
        cycle: some(i),
    });
    table(dir, meta, count, |i| LockPreemption {
        ts: time(i),
        dur: 100,
        pid,
        tid: Tid(101),
        comm: "worker".into(),
        lock,
        lock_name: "accounts".into(),
        kind: "mutex".into(),
        site: SiteId(i),
        place: "src/main.rs:7".into(),
        depth: 0,
        depth_mark: Mark::Exact,
        innermost: true,
        cause: PreemptionCause::Preempted,
        nth: 1,
        stack: some(i).map(i64::from),
        preemptor_tid: some(i),
        preemptor_comm: name(i),
        preemptor_prio: some(i),
        preemptor_ns: some(i).map(i64::from),
        waiters: i,
        delayed_ns: 7,
        longest_waiter_tid: some(i),
        longest_waiter_ns: some(i).map(i64::from),
        ran_after_ns: some(i).map(i64::from),
        agent_ns: some(i).map(i64::from),
        mark: Mark::Exact,
    });
    table(dir, meta, count, |i| LockOrder {
        ts: time(i),
        count: 3,
        pid,
        tid: some(i),
        held_lock: lock,
        held_name: "accounts".into(),
        held_kind: "mutex".into(),
        held_place: "src/main.rs:7".into(),
        lock: lock + 64,
        lock_name: "journal".into(),
        kind: "mutex".into(),
        place: "src/main.rs:9".into(),
        gates: "0x7fff00000000".into(),
    });
}

fn table<R: Row>(dir: &Path, meta: &mut Meta, count: i32, row: impl Fn(i32) -> R) {
    let mut writer = TableWriter::create(dir, Footer::default()).unwrap();
    // Backwards, since it is the writer that sorts.
    for i in (0..count).rev() {
        writer.push(row(i)).unwrap();
    }
    let rows = writer.finish().unwrap();
    meta.tables.insert(R::TABLE.into(), TableMeta { rows, parts: 1, ..TableMeta::default() });
}
