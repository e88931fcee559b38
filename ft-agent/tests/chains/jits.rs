//! Code that is compiled while it runs, under the names in the maps that its compilers leave.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::gate;
use crate::stage::{Stage, succeed};

/// Records a run, and looks for samples of a function, itself or what it had called.
fn check(program: &str, arguments: &[&str], source: &str, inner: &str, outer: &str) {
    let Some(stage) = Stage::enter() else { return };
    // Without a compiler Java runs no source.
    let needed = if program == "java" { "javac" } else { program };
    if Command::new(needed).arg("--version").output().is_err() {
        gate::skipped(&format!("{needed} is not installed; run `cargo xtask test`"));
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/chains").join(source);
    let mut agent = stage.agent("record");
    agent.args(["-k", "default,profile", "-o"]).arg(stage.trace()).arg("--");
    // node leaves a log where it runs.
    agent.current_dir(stage.trace().parent().expect("a folder"));
    succeed(agent.arg(program).args(arguments).arg(source));
    let values = stage.report("profile");
    let functions = values["functions"].as_array().expect("rows");
    let share = |name: &str, figure: &str| {
        let is = |row: &&Value| row["name"].as_str().is_some_and(|found| found.contains(name));
        let rows: Vec<_> = functions.iter().filter(is).collect();
        assert!(rows.iter().all(|row| row["object"] == "JIT"), "{rows:?}");
        let sum: u64 = rows.iter().filter_map(|row| row[figure].as_u64()).sum();
        sum as f64 / values["samples"].as_f64().expect("a number")
    };
    // Two of its three seconds at the least, but for what a compiler puts into its caller.
    let own = share(inner, "samples") + share(outer, "samples");
    assert!(own > 0.25, "{own} in {inner} and {outer}: {values}");
    // What is not inlined has its caller.
    let below = share(outer, "with_callees");
    assert!(below > 0.25, "{below} below {outer}: {values}");
}

#[test]
fn functions_of_node_have_their_names() {
    let options = ["--perf-basic-prof", "--interpreted-frames-native-stack"];
    check("node", &options, "jit.js", "jittedInner", "jittedOuter");
}

#[test]
fn functions_of_java_have_their_names() {
    let options =
        ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:+PreserveFramePointer"];
    check("java", &options, "Jit.java", "jittedInner", "jittedOuter");
}
