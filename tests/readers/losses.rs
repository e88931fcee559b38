//! What the analyses say beside a loss, and what the oracle does: in a trace that is made up, for no machine loses a record at a
//! time that somebody names.

use std::path::Path;

use ft_trace::Mark::{self, Censored, LowerBound};
use ft_trace::ids::{Cpu, Nanos, Pid, Tid};
use ft_trace::store::{Meta, Trace};
use ft_trace::tables::*;

use crate::gate;
use crate::oracle::python;
use crate::recordings::agent;
use crate::rows::{table, trace};

const PID: Pid = Pid(100);

/// From when to when three threads have the one CPU, one after the other. Of none the birth was seen.
///
/// ```text
///  |a====|b=========|c====|
///  0   1000       4000  6000
/// ```
const TIMES: [i64; 4] = [0, 1000, 4000, 6000];

fn tid(i: usize) -> Tid {
    Tid(PID.0 + 1 + i as i32)
}

/// A trace of them, each with a system call, in which a program was left out at a time.
fn write(dir: &Path, program: &str, ts: i64, dur: i64) {
    trace(dir, 0);
    let mut meta = Meta::read(dir).unwrap().unwrap();
    // As it leaves the CPU, it is dead; the idle thread is before the first and behind the last.
    let idle = |who: Option<usize>| who.map_or((Tid(0), Pid(0)), |i| (tid(i), PID));
    table(dir, &mut meta, 4, |i| {
        let i = i as usize;
        let ((prev_tid, prev_pid), (next_tid, next_pid)) =
            (idle(i.checked_sub(1)), idle(Some(i).filter(|i| *i < 3)));
        SchedSwitch {
            ts: Nanos(TIMES[i]),
            cpu: Cpu(0),
            prev_tid,
            prev_pid,
            prev_comm: if i == 0 { "swapper/0" } else { "worker" }.into(),
            prev_prio: 120,
            prev_state: if i == 0 { TaskState::Runnable } else { TaskState::Dead },
            prev_woken: false,
            next_tid,
            next_pid,
            next_comm: if i == 3 { "swapper/0" } else { "worker" }.into(),
            next_prio: 120,
        }
    });
    table(dir, &mut meta, 3, |i| Syscall {
        ts: Nanos(TIMES[i as usize] + 100),
        dur: 100,
        cpu: Cpu(0),
        tid: tid(i as usize),
        pid: PID,
        number: 39,
        name: "getpid".into(),
        ret: i64::from(PID.0),
        file: None,
        seen: CallSeen::Whole,
    });
    table(dir, &mut meta, 3, |i| ThreadRow {
        ts: Nanos(TIMES[i as usize]),
        tid: tid(i as usize),
        pid: PID,
        name: "worker".into(),
        process: "app".into(),
        prio: Some(120),
        observed: true,
    });
    table(dir, &mut meta, 1, |_| LossRow {
        ts: Nanos(ts),
        dur,
        origin: LossOrigin::KernelSkipped,
        what: program.into(),
        cpu: Cpu(-1),
        pid: Pid(-1),
        tid: Tid(-1),
        count: 1,
    });
    meta.write(dir).unwrap();
}

/// The marks of the rows of `a`, `b` and `c` in `thread_time` and in `breakdown`, by the analyses; the oracle has no other.
fn check(program: &str, ts: i64, dur: i64, time: [Mark; 3], breakdown: [Mark; 3]) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), program, ts, dur);
    let reported = agent(&["report", "."], folder.path());
    assert!(reported.status.success(), "{}", String::from_utf8_lossy(&reported.stderr));
    let trace = Trace::open(folder.path()).unwrap();
    let case = format!("{program} from {ts} for {dur}");
    for row in trace.rows::<ThreadTime>().map(Result::unwrap) {
        assert_eq!(row.mark, time[(row.tid.0 - tid(0).0) as usize], "{case}: {row:?}");
    }
    for row in trace.rows::<Breakdown>().map(Result::unwrap) {
        assert_eq!(row.mark, breakdown[(row.tid.0 - tid(0).0) as usize], "{case}: {row:?}");
    }
    let rows = (trace.rows::<ThreadTime>().count(), trace.rows::<Breakdown>().count());
    assert!(rows.0 >= 3 && rows.1 >= 3, "{case}: {rows:?}");
    let Some(output) = python("oracle", &[folder.path()]) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{case}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
    gate::ran();
}

#[test]
fn a_thread_is_marked_for_what_was_lost_while_it_lived() {
    let (not, touched) = ([Censored; 3], [Censored, LowerBound, Censored]);
    check("softirq_exit", 2000, 1000, touched, touched);
    check("sys_exit", 2000, 1000, not, touched);
    // At the edge of two lives.
    let edge = [LowerBound, LowerBound, Censored];
    check("softirq_exit", 1000, 500, edge, edge);
    check("sys_exit", 3500, 500, not, [Censored, LowerBound, LowerBound]);
}
