//! What the report of kernel locks says of timelines.

use super::*;
use ft_analysis::timeline::run;
use ft_trace::ids::Pid;

const TIMELINE: &str = "
    0 0 .>a S
    0 7 .>b S
    500 open a
    600 acquire a A 1
    1000 contend a mutex 9000 M
    1500 contend a spinlock 200 Q
    2000 0 a>X D
    8000 wake b a 0
    9000 0 X>a R
    11000 release a A
    12000 contend a mutex 500 M failed
    13000 close a
    14000 contend a mutex 700 M
    14001 contend X mutex 700 M
    15000 contend b rwsem-read 1 R end-only
    16000 0 a>. S";

fn report(kernel: bool, timeline: &str) -> KernelLocksReport {
    let (mut rows, tally) = run(kernel, timeline);
    let mut locks = KernelLocks::default();
    for r in &mut rows.kernel_lock_waits {
        r.caller = (r.lock == i64::from(b'M')).then(|| "vfs_write".into());
        r.name = (r.lock == i64::from(b'Q')).then(|| "queue".into());
        locks.add(r, &Code::default());
    }
    locks.finish(true, &tally)
}

#[test]
fn waits_are_summed_by_lock_and_by_what_they_delayed() {
    let report = report(true, TIMELINE);
    let found: Vec<_> = report
        .locks
        .iter()
        .map(|l| (l.name.as_deref(), l.caller.as_deref(), l.waits.waits, l.waits.total_ns))
        .collect();
    assert_eq!(found, [(None, Some("vfs_write"), 3, 10_200), (Some("queue"), None, 1, 200)]);
    for l in &report.locks {
        assert_eq!(l.waits.parts.total_ns(), l.waits.total_ns);
    }
    let all = &report.all;
    assert_eq!((all.waits, all.total_ns, all.failed), (3, 10_200, 1), "each time once");
    assert_eq!((report.nested, report.without_begin, report.of_others), (1, 1, 1));
    let delayed = |rows: &[Delayed]| -> Vec<_> {
        rows.iter().map(|d| (d.name.clone(), d.waits.waits, d.waits.total_ns)).collect()
    };
    assert_eq!(delayed(&report.holds), [("0x41".to_owned(), 1, 9_000)]);
    assert_eq!(delayed(&report.requests), [("work.outer".to_owned(), 2, 9_500)]);
    let text = format!("{:200}", report.section());
    for line in [
        "4 waits, all exact",
        "1 given up",
        "1 within another wait",
        "dynamic",
        "vfs_write",
        "x.rs:1",
        "mutex of vfs_write",
        "Requests that were delayed",
        "The longest waits",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn without_scheduler_records_there_are_lengths_and_without_the_group_a_remedy() {
    let alone = format!("{:200}", report(false, TIMELINE).section());
    assert!(alone.contains("record `sched`") && !alone.contains("asleep"), "{alone}");
    let none = KernelLocks::default().finish(false, &Tally::default()).section();
    assert!(format!("{none:160}").contains("-k default,lock"));
    let empty = format!("{:160}", report(true, "0 0 .>a S").section());
    assert!(empty.contains("No observed thread waited"), "{empty}");
}

#[test]
fn waits_of_the_agent_and_for_locks_of_its_programs_are_the_recordings_own() {
    let (rows, tally) = run(true, TIMELINE);
    let report = |agent| {
        let mut locks = KernelLocks { own: own::Rows::of(agent), ..KernelLocks::default() };
        rows.kernel_lock_waits.iter().for_each(|r| locks.add(r, &Code::default()));
        locks.finish(true, &tally)
    };
    let mut agents = report(Some(rows.kernel_lock_waits[0].pid));
    assert_eq!(agents.of_recording, Some(OwnRows { count: 3, total_ns: 10_200 }), "each time once");
    agents.left_out_own = Some(5);
    let text = format!("{:200}", agents.section());
    for said in
        ["of threads of ft-agent: 3 waits (10.2 µs)", "5 waits more for locks of the recording's"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let others = report(Some(Pid(-5)));
    assert_eq!(others.of_recording, Some(OwnRows::default()));
    let text = format!("{:200}", others.section());
    assert!(!text.contains("recording's own"), "{text}");
}
