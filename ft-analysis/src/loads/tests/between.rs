//! What lies between runs: switches that are inferred and seen, and timers that are late.

use super::*;
use crate::tests::timelines::TURNS;
use ft_trace::tables::{LoadSwitch, SwitchKind, SwitchSeen, TimerLatency};

/// How the workers of [`TURNS`] go on: both sleep.
const BOTH_SLEEP: &str = "
    148 sleep a 300
    150 0 a>. S
    200 wake . b 0
    205 0 .>b S
    208 woke b 200 207
    209 gap b 0 94 208
    300 wake . a 0
    302 0 b>a R
    305 woke a 300 304
    306 gap a 0 147 305";

fn turns() -> String {
    TURNS.to_owned() + BOTH_SLEEP
}

/// `a>b 18+7 involuntary switch 2 0 5`: inferred, seen, and the parts.
fn switch_text(r: &LoadSwitch) -> String {
    let (from, to) = (r.from_tid.0 as u8 as char, r.tid.0 as u8 as char);
    let seen = r.kernel.map_or("?", SwitchSeen::word);
    let parts = [r.out_ns, r.others_ns, r.in_ns].into_iter().flatten();
    let parts: String = parts.map(|ns| format!(" {ns}")).collect();
    format!("{from}>{to} {}+{} {} {seen}{parts}{}", r.ts, r.dur, r.inferred, mark(r.mark))
}

#[test]
fn what_lies_between_runs_is_inferred_and_seen() {
    let (rows, tally) = run(true, &turns());
    hold(&rows, &tally);
    let found: Vec<String> = rows.switches.iter().map(switch_text).collect();
    assert_eq!(
        found,
        [
            "a>b 18+7 involuntary switch 2 0 5",
            "b>a 39+6 voluntary switch 3 0 3",
            "b>b 79+4 interruption none",
            // X had it in between, which nobody can infer.
            "a>b 58+8 involuntary others 2 4 2",
            "b>a 94+19 voluntary others 6 10 3",
            "a>b 147+61 wait others 3 55 3",
        ]
    );
    let cells = tally.agreement.switches.iter();
    let cells: Vec<_> = cells.map(|c| (&*c.inferred, &*c.kernel, c.switches)).collect();
    assert_eq!(
        cells,
        [
            ("voluntary", "switch", 1),
            ("voluntary", "others", 1),
            ("involuntary", "switch", 1),
            ("involuntary", "others", 1),
            ("interruption", "none", 1),
            ("wait", "others", 1),
        ]
    );
    // Without the kernel there is the inference.
    let (rows, tally) = run(false, &turns());
    let kinds: Vec<_> = rows.switches.iter().map(|r| (r.inferred, r.kernel)).collect();
    assert_eq!((kinds.len(), kinds[0]), (6, (SwitchKind::Involuntary, None)));
    assert!(tally.agreement.switches.is_empty());
}

#[test]
fn nothing_but_an_interrupt_takes_the_cpu_from_the_highest_real_time_worker() {
    let timeline = |classes: &str| {
        format!("0 0 .>a S\n 1 worker a 0 0 0\n {classes}\n 3 first a 3\n 900 gap a 0 10 899")
    };
    for (classes, expected) in [
        ("1 class a 1 11 0\n 2 worker b 1 0 0\n 2 class b 1 10 0", SwitchKind::Interruption),
        ("1 class a 1 11 0\n 2 worker b 1 0 0\n 2 class b 0 0 0", SwitchKind::Interruption),
        ("1 class a 1 10 0\n 2 worker b 1 0 0\n 2 class b 1 10 0", SwitchKind::Either),
        ("1 class a 1 10 0\n 2 worker b 1 0 0\n 2 class b 1 11 0", SwitchKind::Either),
        // Its amount is a limit, at which it is stopped.
        ("1 class a 6 0 0", SwitchKind::Either),
        ("1 class a 0 -20 0", SwitchKind::Either),
    ] {
        let (rows, _) = run(true, &timeline(classes));
        assert_eq!(rows.switches[0].inferred, expected, "{classes}");
    }
}

#[test]
fn a_late_worker_had_a_late_timer_interrupt_or_dispatch() {
    let (rows, _) = run(true, &turns());
    let text = |r: &TimerLatency| {
        let parts = [r.timer_ns, r.interrupt_ns, r.dispatch_ns, r.return_ns].map(Option::unwrap);
        let behind = r.running_comm.as_ref().zip(r.running_ns);
        (r.ts.0, r.dur, parts, behind.map(|(comm, ns)| (comm.to_string(), ns)), r.mark)
    };
    let found: Vec<_> = rows.timer_latency.iter().map(text).collect();
    assert_eq!(
        found,
        [
            (200, 7, [0, 0, 5, 2], Some((".".into(), 5)), Mark::Exact),
            (300, 4, [0, 0, 2, 2], Some(("b".into(), 2)), Mark::Exact),
        ]
    );
}

#[test]
fn a_cpu_that_cannot_be_has_no_switches() {
    assert_eq!(cpus::Cpus::default().switched(Cpu(i32::MAX), 5), 0);
}
