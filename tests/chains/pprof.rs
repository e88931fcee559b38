//! Profiles for pprof, read by Go's own reader.

use std::path::Path;
use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::tables::{CallChain, ChainKind, Sample};

use crate::gate;
use crate::stage::{Stage, succeed};

/// What `go tool pprof` prints of a profile.
fn pprof(profile: &Path, options: &[&str]) -> Option<String> {
    let mut go = Command::new("go");
    // It looks for nothing elsewhere.
    go.args(["tool", "pprof", "-symbolize=none"]).args(options).arg(profile);
    match go.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            gate::skipped("go is not installed (Debian: golang-go)");
            None
        }
        output => {
            let output = output.expect("go starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).expect("UTF-8"))
        }
    }
}

/// The sums of the three kinds of values of a profile as it is printed with `-raw`.
fn sums(raw: &str) -> [i64; 3] {
    let samples = raw.lines().skip_while(|line| *line != "Samples:").skip(1);
    let kinds = "cpu/nanoseconds waiting/nanoseconds preempted/nanoseconds";
    let mut samples = samples.take_while(|line| *line != "Locations");
    assert_eq!(samples.next().expect("the kinds").replace("[dflt]", ""), kinds);
    let mut sums = [0; 3];
    for (values, _) in samples.filter_map(|line| line.split_once(": ")) {
        let values = values.split_whitespace().map(|value| value.parse::<i64>().expect("a number"));
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    sums
}

/// The exported profile of a stage's trace has each time of its tables once, and the waits at these functions, the innermost first.
pub(crate) fn has_all_time(stage: &Stage, trace: &Trace, waits: &[&str]) {
    let file = stage.trace().with_extension("pprof");
    succeed(stage.agent("export").arg(stage.trace()).args(["-f", "pprof", "-o"]).arg(&file));
    let Some(raw) = pprof(&file, &["-raw"]) else { return };
    let chains: Vec<CallChain> = trace.rows().map(|row| row.expect("a row")).collect();
    let of = |kind| chains.iter().filter(|row| row.kind == kind).map(|row| row.dur).sum::<i64>();
    let hz = i64::from(trace.meta().start.sample_hz.unwrap_or(1));
    let running = trace.rows::<Sample>().count() as i64 * (1_000_000_000 / hz);
    assert_eq!(sums(&raw), [running, of(ChainKind::Wait), of(ChainKind::Preempted)]);
    let focused = ["-traces", "-sample_index=waiting", "-focus", waits[0]];
    let traces = pprof(&file, &focused).expect("go is there");
    let words: Vec<&str> = traces.split_whitespace().collect();
    let found = words.windows(waits.len()).any(|chain| chain == waits);
    assert!(found, "{traces}");
}
