//! The groups that are recorded only when asked for.

use ft_trace::tables::{Access, Contention, FaultCause, PageFault, Syscall};

use crate::harness::{self, Stage, gate};

#[test]
fn system_calls_faults_and_lock_waits_are_in_their_tables() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let groups = ["-k", "sched,irq,task,lock,syscall,fault"];
    let (truth, dir) = stage.record(&groups, &["kernel-groups", "100"]);
    let trace = harness::open(&dir);
    let number = |name: &str| truth[name].as_i64().expect("a number");
    let (pages, tid, first) = (number("pages"), number("tid") as i32, number("first"));
    let [begin, end] = ["groups.begin", "groups.end"].map(|mark| harness::when(&trace, mark));

    let calls = trace.rows::<Syscall>().map(|row| row.expect("a row"));
    let closes = calls
        .filter(|c| c.tid.0 == tid && &*c.name == "close" && begin <= c.ts && c.ts <= end)
        .inspect(|c| {
            assert_eq!((c.ret, i64::from(c.number)), (-i64::from(libc::EBADF), libc::SYS_close));
            assert!(c.dur > 0 && c.ts + c.dur <= end, "{c:?}");
        })
        .count();
    assert_eq!(closes as i64, pages, "one row for each call");

    // A page can fault again when the kernel moves it, but none may be missing.
    let mut touched: Vec<i64> = trace
        .rows::<PageFault>()
        .map(|row| row.expect("a row"))
        .filter(|f| f.tid.0 == tid && (first..first + pages * 4096).contains(&f.address))
        .filter(|f| (f.access, f.cause) == (Access::Write, FaultCause::NotPresent))
        .map(|f| (f.address - first) / 4096)
        .collect();
    touched.sort_unstable();
    touched.dedup();
    assert_eq!(touched.len() as i64, pages, "one fault for each fresh page");

    if trace.meta().start.missing.iter().any(|missing| missing.group == "lock") {
        return gate::skipped("waits for kernel locks: this kernel has no tracepoint for them");
    }
    let waits: Vec<Contention> =
        trace.rows::<Contention>().map(|row| row.expect("a row")).collect();
    assert!(!waits.is_empty(), "four writers of one file never waited for each other");
    assert!(waits.iter().all(|w| w.dur >= 0 && w.lock != 0), "{waits:?}");
}
