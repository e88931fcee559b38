//! The judge of a CPU that goes and comes (`tests/python/hotplug.py`), which guests need, on traces that are made up.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ft_trace::ids::{Cpu, Nanos, Pid, Tid};
use ft_trace::spool::frame::End;
use ft_trace::store::Meta;
use ft_trace::tables::*;

use crate::gate;
use crate::oracle::python;
use crate::rows::{table, trace};

/// CPU 1 is there five times for a second, and gone for half of one after each but the last; s.
const THERE: [i64; 5] = [1, 3, 5, 7, 9];

const SECOND: i64 = 1_000_000_000;

/// What was lost, as `meta.json` counts it and as the table has it.
struct Lost {
    origin: LossOrigin,
    counted: u64,
    placed: i64,
}

/// A trace of that and of what was lost; whether the judge finds all as it should be, and what it says. With `ghost` there is a
/// sample of the CPU while it is gone.
fn judged(lost: Option<Lost>, ghost: bool) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    trace(dir, 0);
    let mut times = "cpus 1 3 samples\nbegins 1.00\n".to_owned();
    for (i, at) in THERE.into_iter().enumerate() {
        let ends = if i == THERE.len() - 1 { "ends" } else { "gone" };
        if i > 0 {
            writeln!(times, "comes {0}.50\nback {1}.00\ngoes {1}.90", at - 1, at).unwrap();
        }
        writeln!(times, "{ends} {at}.95").unwrap();
    }
    let said = dir.join("hotplug.times");
    fs::write(&said, times).unwrap();
    let mut meta = Meta::read(dir).unwrap().unwrap();
    (meta.start.start_ns, meta.end) = (SECOND, Some(End { ts: 10 * SECOND, ..End::default() }));
    // A hundred of each in each second in which it is there, and none in the last tenth.
    let at = |i: i32| Nanos(THERE[i as usize / 90] * SECOND + i64::from(i % 90) * SECOND / 100);
    let ghosts = i32::from(ghost);
    table(dir, &mut meta, 450 + ghosts, |i| Sample {
        ts: if i < 450 { at(i) } else { Nanos(2 * SECOND + SECOND / 4) },
        cpu: Cpu(1),
        tid: Tid(101),
        pid: Pid(100),
        stack: None,
        user: 0,
        in_kernel: false,
        cut: false,
    });
    switches(dir, &mut meta, at);
    if let Some(Lost { origin, counted, placed }) = lost {
        meta.lost.insert(origin.to_string(), counted);
        table(dir, &mut meta, i32::from(placed > 0), |_| LossRow {
            ts: Nanos(4 * SECOND),
            dur: SECOND / 10,
            origin,
            what: "softirq_exit".into(),
            cpu: Cpu(-1),
            pid: Pid(-1),
            tid: Tid(-1),
            count: placed,
        });
    }
    meta.write(dir).unwrap();
    let output = python("python/hotplug.py", &[dir, &said])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), text))
}

/// As many switches as samples.
fn switches(dir: &Path, meta: &mut Meta, at: impl Fn(i32) -> Nanos) {
    table(dir, meta, 450, |i| SchedSwitch {
        ts: at(i),
        cpu: Cpu(1),
        prev_tid: Tid(0),
        prev_pid: Pid(0),
        prev_comm: "swapper/1".into(),
        prev_prio: 120,
        prev_state: TaskState::Runnable,
        prev_woken: false,
        next_tid: Tid(101),
        next_pid: Pid(100),
        next_comm: "worker".into(),
        next_prio: 120,
    });
}

#[test]
fn what_the_kernel_left_out_and_says_is_no_fault_of_a_recording_and_all_else_is() {
    let lost = |origin, counted, placed| Some(Lost { origin, counted, placed });
    let (skipped, full) = (LossOrigin::KernelSkipped, LossOrigin::Kernel);
    for (what, lost, ghost, right) in [
        ("nothing", None, false, true),
        ("left out by the kernel", lost(skipped, 2, 2), false, true),
        ("left out by the kernel, and not placed", lost(skipped, 2, 0), false, false),
        ("left out by the kernel, and not all placed", lost(skipped, 2, 1), false, false),
        ("without room", lost(full, 2, 2), false, false),
        ("nothing, of a CPU that is gone", None, true, false),
    ] {
        let Some((is_right, said)) = judged(lost, ghost) else { return };
        assert_eq!(is_right, right, "{what}: {said}");
    }
    gate::ran();
}
