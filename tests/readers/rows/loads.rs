//! Rows of the tables of loads.

use std::path::Path;

use ft_trace::Mark;
use ft_trace::ids::{Cpu, Nanos, Pid, Tid};
use ft_trace::store::Meta;
use ft_trace::tables::*;

use super::{parts, table};

const PID: Pid = Pid(100);
const TID: Tid = Tid(101);
const CPU: Cpu = Cpu(1);

fn time(i: i32) -> Nanos {
    Nanos(1_000_000 + i64::from(i) * 1000)
}

fn some(i: i32) -> Option<i32> {
    (i % 2 == 0).then_some(i)
}

/// The tables of hourglass and of npt.
pub(super) fn tables(dir: &Path, meta: &mut Meta, count: i32) {
    hourglass(dir, meta, count);
    npt(dir, meta, count);
}

fn hourglass(dir: &Path, meta: &mut Meta, count: i32) {
    table(dir, meta, count, |i| LoadWorker {
        ts: time(i),
        dur: 1_000,
        pid: PID,
        tid: TID,
        comm: "worker".into(),
        worker: i,
        workload: Workload::Periodic,
        amount_ns: some(i).map(i64::from),
        period_ns: some(i).map(i64::from),
        timer: LoadTimer::Hr,
        policy: Policy::Fifo,
        priority: 50,
        reserved_ns: some(i).map(i64::from),
        reserved_period_ns: some(i).map(i64::from),
        only_cpu: some(i),
        bound_ns: some(i).map(i64::from),
        runs: 3,
        run_ns: 900,
        gap_ns: 100,
        jobs: 3,
        hit: 2,
        missed: 1,
        sleeps: 3,
        mark: Mark::Exact,
    });
    table(dir, meta, count, |i| LoadRun {
        ts: time(i),
        dur: 100,
        pid: PID,
        tid: TID,
        comm: "worker".into(),
        worker: 0,
        cpu: CPU,
        ended: RunEnd::Yielded,
        gap_ns: some(i).map(i64::from),
        parts: parts(i),
        mark: Mark::Exact,
    });
    table(dir, meta, count, |i| LoadJob {
        ts: time(i),
        dur: 107,
        pid: PID,
        tid: TID,
        comm: "worker".into(),
        worker: 0,
        number: i64::from(i),
        due: time(i + 1),
        start: time(i),
        finish: some(i).map(|i| time(i).0 + 107),
        deadline: Deadline::Hit,
        backlog_ns: 7,
        parts: parts(i),
        culprit: some(i).map(|_| "burner".into()),
        culprit_tid: some(i),
        culprit_ns: some(i).map(i64::from),
        agent_ns: some(i).map(|_| 0),
        mark: Mark::Exact,
    });
    table(dir, meta, count, |i| TimerLatency {
        ts: time(i),
        dur: 100,
        pid: PID,
        tid: TID,
        comm: "worker".into(),
        worker: 0,
        timer: LoadTimer::Hr,
        cpu: some(i),
        timer_ns: some(i).map(|_| 40),
        interrupt_ns: some(i).map(|_| 30),
        dispatch_ns: some(i).map(|_| 20),
        return_ns: some(i).map(|_| 10),
        interrupt: some(i).map(|_| "local_timer".into()),
        running_tid: some(i),
        running_comm: some(i).map(|_| "burner".into()),
        running_ns: some(i).map(i64::from),
        mark: Mark::LowerBound,
    });
    table(dir, meta, count, |i| LoadSwitch {
        ts: time(i),
        dur: 100,
        pid: PID,
        tid: TID,
        worker: 1,
        from_tid: Tid(102),
        from_worker: 0,
        cpu: CPU,
        ended: RunEnd::Slept,
        inferred: SwitchKind::Voluntary,
        kernel: some(i).map(|_| SwitchSeen::Switch),
        out_ns: some(i).map(|_| 50),
        others_ns: some(i).map(|_| 0),
        in_ns: some(i).map(|_| 50),
        mark: Mark::Exact,
    });
}

fn npt(dir: &Path, meta: &mut Meta, count: i32) {
    table(dir, meta, count, |i| LoopBin {
        ts: time(i),
        pid: PID,
        tid: TID,
        comm: "npt".into(),
        from_cycles: 64,
        to_cycles: 128,
        from_ns: some(i).map(|_| 16.5),
        to_ns: some(i).map(|_| 33.0),
        passes: 5,
        of_passes: 15,
        mark: Mark::Exact,
    });
    table(dir, meta, count, |i| LoopPeak {
        ts: time(i),
        dur: 1_000,
        pid: PID,
        tid: TID,
        comm: "npt".into(),
        cpu: CPU,
        pass: some(i).map(i64::from),
        own_ns: 20,
        excess_ns: 980,
        cause: some(i).map(|_| PeakCause::Interrupt),
        culprit: some(i).map(|_| "local_timer".into()),
        culprit_tid: None,
        culprit_ns: some(i).map(|_| 900),
        interrupt_ns: some(i).map(|_| 900),
        preempted_ns: some(i).map(|_| 0),
        blocked_ns: some(i).map(|_| 0),
        tracer_ns: some(i).map(|_| 0),
        unexplained_ns: some(i).map(|_| 80),
        mark: Mark::Exact,
    });
}
