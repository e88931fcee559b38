//! What is built together, with all features of all packages, records: no feature of one silences another.

use std::path::Path;
use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::tables::UserEvent;

/// Builds the demo, the loads and the agent by one command; returns the folder of what is built.
fn build() -> &'static Path {
    ft_tests::built::build(&["--workspace", "--all-features", "--bins", "--example", "demo"])
}

/// Events of a recording, by the name of each.
fn events(command: &mut Command) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let mut agent = Command::new(build().join("ft-agent"));
    agent.args(["record", "-k", "none", "-o"]).arg(&trace).arg("--");
    let output = agent.arg(command.get_program()).args(command.get_args()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = Trace::open(&trace).unwrap();
    trace.rows::<UserEvent>().map(|row| row.unwrap().event.to_string()).collect()
}

#[test]
fn a_demo_and_a_load_that_were_built_beside_the_agent_record() {
    let folder = build();
    let of_demo = events(Command::new(folder.join("examples/demo")).args(["--seconds", "1"]));
    for name in ["order.placed", "lock.mutex_acquire", "lock.mutex_release"] {
        assert!(of_demo.iter().any(|event| event == name), "{name} of {}", of_demo.len());
    }
    let mut load = Command::new(folder.join("ft-load"));
    let of_load = events(load.args(["events", "--rate", "1000", "--time", "100ms"]));
    assert!(of_load.iter().any(|event| event == "load.event"), "{} events", of_load.len());
}
