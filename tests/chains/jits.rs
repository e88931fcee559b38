//! Code that is compiled while it runs, under the names in the maps that its compilers leave.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::gate;
use crate::stage::{Stage, succeed};

/// Records a run of a program of `programs/chains`.
fn record(stage: &Stage, program: &str, arguments: &[&str], source: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/chains").join(source);
    let mut agent = stage.agent("record");
    agent.args(["-k", "default,profile", "-o"]).arg(stage.trace()).arg("--");
    // node leaves a log where it runs.
    agent.current_dir(stage.trace().parent().expect("a folder"));
    succeed(agent.arg(program).args(arguments).arg(source));
}

/// Records a run, and looks for samples of a function, itself or what it had called.
fn check(program: &str, arguments: &[&str], source: &str, inner: &str, outer: &str) {
    let Some(stage) = Stage::enter() else { return };
    // Without a compiler Java runs no source.
    let needed = if program == "java" { "javac" } else { program };
    if Command::new(needed).arg("--version").output().is_err() {
        gate::skipped(&format!("{needed} is not installed; run `cargo xtask test truth`"));
        return;
    }
    record(&stage, program, arguments, source);
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

/// A Python that can leave a map, as from 3.12 on, and whose interpreter keeps frame pointers, as by itself from 3.15 on.
fn python() -> Option<String> {
    let says = "import sys, sysconfig\n\
                flags = [sysconfig.get_config_var(v) or '' for v in ('CFLAGS', 'PY_CORE_CFLAGS')]\n\
                framed = '-fno-omit-frame-pointer' in ' '.join(flags)\n\
                sys.exit(not (sys.version_info >= (3, 12) and framed))";
    let names = ["python3", "python3.15", "python3.14", "python3.13", "python3.12"];
    let given = std::env::var("FT_FRAMED_PYTHON").ok();
    given.into_iter().chain(names.map(str::to_owned)).find(|name| {
        let asked = Command::new(name).args(["-c", says]).output();
        asked.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn functions_of_python_have_their_names() {
    let Some(stage) = Stage::enter() else { return };
    let Some(python) = python() else {
        return gate::skipped(
            "there is no Python with frame pointers (3.15 has them); run `cargo xtask test truth`, which downloads one",
        );
    };
    record(&stage, &python, &["-X", "perf"], "jit.py");
    let file = stage.trace().with_extension("collapsed");
    succeed(stage.agent("export").arg(stage.trace()).args(["-f", "collapsed", "-o"]).arg(&file));
    let text = fs::read_to_string(file).expect("chains");
    // The code that has a function's name calls the interpreter, which runs the function: it is in the chains of all
    // samples of that, and never innermost.
    let (mut all, mut named) = (0, 0);
    for line in text.lines() {
        let (chain, weight) = line.rsplit_once(' ').expect("a weight");
        let weight: u64 = weight.parse().expect("ns");
        // What it waits for, or behind whom, is the machine's.
        if chain.split(';').nth(1) != Some("running") {
            continue;
        }
        all += weight;
        let python = chain.split(';').filter_map(|frame| frame.strip_prefix("py::"));
        let functions: Vec<_> = python.filter_map(|name| name.split(':').next()).collect();
        if functions.ends_with(&["<module>", "jitted_outer", "jitted_inner"]) {
            named += weight;
        }
    }
    // But for its start, all of its time on a CPU, which is a second.
    assert!(named * 2 > all, "{named} of {all} ns: {text}");
}

/// Ends a process when the test does.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_map_in_another_root_directory_is_read_under_the_number_that_the_process_has_there() {
    let Some(stage) = Stage::enter() else { return };
    let program = stage.compile("made");
    // A `/tmp` of its own hides the program, too.
    let script = "exec 3< \"$0\"; mount -t tmpfs none /tmp; exec /proc/self/fd/3";
    let mut unshare = Command::new("unshare");
    unshare.args(["-pfm", "--kill-child", "--mount-proc", "sh", "-ec", script]).arg(program);
    let Ok(child) = unshare.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        return gate::skipped("no unshare; install util-linux");
    };
    let mut outer = Killed(child);
    let mut said = String::new();
    let mut stdout = BufReader::new(outer.0.stdout.take().expect("piped"));
    stdout.read_line(&mut said).expect("text");
    if said.is_empty() {
        return gate::skipped("no namespaces; run as root");
    }
    assert_eq!(said, "1\n", "it is the first one there");
    let parent = outer.0.id();
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let inner = children.expect("its children").trim().to_owned();

    let mut agent = stage.agent("record");
    agent.args(["-k", "default,profile", "-d", "1s", "-p", &inner, "-o"]).arg(stage.trace());
    succeed(&mut agent);
    let values = stage.report("profile");
    let functions = values["functions"].as_array().expect("rows");
    let row = functions.iter().find(|row| row["name"] == "made_at_run_time");
    let row = row.unwrap_or_else(|| panic!("no such function: {values}"));
    assert_eq!(row["object"], "JIT");
    // It does nothing else.
    let (samples, all) = (row["samples"].as_u64(), values["samples"].as_u64());
    assert!(samples.expect("a number") * 2 > all.expect("a number"), "{values}");
}
