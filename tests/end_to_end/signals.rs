//! The table of signals: each that was sent is in it, with who sent it and who got it.

use std::collections::BTreeSet;

use ft_trace::tables::{Signal, SignalKind, SignalResult};

use crate::harness::{self, Stage};

/// Signals that the subject gets.
const SENT: usize = 20;

#[test]
fn every_signal_has_its_sender_and_its_receiver() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let dir = stage.path("trace");
    // A shell, which takes each before it starts the process that sends the next.
    let script = format!(
        "echo $$; trap : USR1; i=0; while [ $i -lt {SENT} ]; do /bin/kill -USR1 $$; i=$((i+1)); done"
    );
    let mut agent = harness::agent();
    agent.args(["record", "-k", "signal", "-o"]).arg(&dir).args(["--", "sh", "-c", &script]);
    let output = agent.output().expect("the agent starts");
    harness::assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let shell: i32 = text.lines().find_map(|line| line.parse().ok()).expect("the shell's number");

    let trace = harness::open(&dir);
    let rows: Vec<Signal> = trace.rows::<Signal>().map(|row| row.expect("a row")).collect();
    let of = |kind| rows.iter().filter(move |s| s.kind == kind && &*s.name == "SIGUSR1");
    let sent: Vec<&Signal> = of(SignalKind::Generate).collect();
    assert_eq!(sent.len(), SENT, "{rows:?}");
    for signal in &sent {
        assert_eq!((signal.pid.0, signal.number), (shell, libc::SIGUSR1), "{signal:?}");
        assert_eq!(signal.result, Some(SignalResult::Delivered), "{signal:?}");
        assert!(signal.to_process && signal.sender_tid == signal.sender_pid, "{signal:?}");
    }
    let senders: BTreeSet<_> = sent.iter().map(|signal| signal.sender_pid).collect();
    assert!(senders.len() == SENT && !senders.contains(&Some(shell)), "{senders:?}");

    let taken: Vec<&Signal> = of(SignalKind::Deliver).collect();
    assert_eq!(taken.len(), SENT, "{rows:?}");
    for (taken, sent) in taken.iter().zip(&sent) {
        assert_eq!((taken.tid.0, taken.sender_tid, taken.result), (shell, None, None), "{taken:?}");
        assert!(sent.ts <= taken.ts, "{sent:?} {taken:?}");
    }
}
