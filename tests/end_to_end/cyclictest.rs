//! Against cyclictest's own histogram.
//!
//! cyclictest's latency runs from the time for which its timer was set until it reads the clock again: the
//! timer's own lateness, the interrupt, the wake-up, the switch, and the way back to user space. Ours is one
//! part of that, from the wake-up to the switch. So each of ours is shorter than the one of cyclictest, and,
//! sorted, the n-th longest of ours is shorter than its n-th longest.

use std::process::Stdio;

use ft_trace::store::Trace;
use ft_trace::tables::DispatchLatency;

use crate::harness::{self, Stage, gate};

const LOOPS: usize = 500;

/// Wake-ups of its thread that it does not measure, at most.
const OTHERS: usize = 10;

#[test]
fn wake_ups_take_a_part_of_what_cyclictest_measures() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let dir = stage.path("trace");
    let mut agent = harness::agent();
    agent.args(["record", "-o"]).arg(&dir).args(["--", "cyclictest", "-q", "-t1", "-p80"]);
    agent.args(["-i", "1000", "-h", "100000", "-l", &LOOPS.to_string()]).stderr(Stdio::piped());
    let output = agent.output().expect("the agent starts");
    if String::from_utf8_lossy(&output.stderr).contains("cannot run cyclictest") {
        return gate::skipped("cyclictest is not installed (Debian: rt-tests)");
    }
    harness::assert_success(&output);

    // Lines of the histogram: µs, rounded down, and how often.
    let text = String::from_utf8_lossy(&output.stdout);
    let mut theirs = Vec::new();
    for line in text.lines().take_while(|line| !line.starts_with("# Total")) {
        let mut words = line.split_whitespace().map(str::parse::<usize>);
        if let (Some(Ok(us)), Some(Ok(times)), None) = (words.next(), words.next(), words.next()) {
            theirs.extend(std::iter::repeat_n(us as i64 * 1000, times));
        }
    }
    assert_eq!(theirs.len(), LOOPS, "a histogram without overflow: {text}");

    let trace = Trace::open(&dir).expect("a whole trace");
    let wakes = trace.rows::<DispatchLatency>().map(|row| row.expect("a row"));
    let timed = wakes.filter(|wake| wake.tid.0 != wake.pid.0 && &*wake.comm == "cyclictest");
    let mut ours: Vec<i64> = timed.map(|wake| wake.dur).collect();
    ours.sort_unstable();
    // It sleeps a few times before it begins and after it has ended; and it does not sleep at all when it is
    // late for the next time.
    assert!((LOOPS * 9 / 10..LOOPS + OTHERS).contains(&ours.len()), "{} wake-ups", ours.len());
    for (ours, theirs) in ours.iter().rev().skip(OTHERS).zip(theirs.iter().rev()) {
        assert!(*ours < theirs + 1000, "{ours} ns, cyclictest {theirs} ns at the same rank");
    }
    let at = |sorted: &[i64], percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
    let compare = [50, 90, 99].map(|p| format!("p{p} {} of {}", at(&ours, p), at(&theirs, p)));
    gate::measured(&format!(
        "wake-up to switch, of cyclictest's latency, ns: {}",
        compare.join(", ")
    ));
}
