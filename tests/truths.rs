//! Programs that know what they did, beside what the reports say of it: a line for each figure, which `cargo xtask test` prints.

#[path = "../ft-user/tests/common/c.rs"]
mod c;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use c::{Link, build, compilers, run};
use ft_tests::gate::measured;
use ft_trace::store::Trace;
use ft_trace::tables::{AsyncTask, Function, Scope};
use serde_json::Value;

/// A program of `programs/truths/`, or beside it.
fn program(source: &str, flags: &[&str]) -> Option<PathBuf> {
    let compiler = *compilers(&["gcc"]).first()?;
    let path = format!("{}/programs/{source}", env!("CARGO_MANIFEST_DIR"));
    let name = Path::new(source).file_stem()?.to_str()?;
    let flags = [&["-std=gnu11", "-O1"], flags].concat();
    Some(build(compiler, &flags, &[&path], Link::Static, name))
}

/// Records a command; returns what it has printed, with the agent's report behind it.
fn record(options: &[&str], command: &[&str], out: &Path) -> String {
    let mut agent = Command::new(ft_tests::agent());
    agent.args(["record", "-k", "none", "-o"]).arg(out).args(options).arg("--").args(command);
    run(&mut agent)
}

/// One line: the program, what was measured, the truth, the figure.
fn told(program: &str, what: &str, truth: impl ToString, figure: impl ToString) {
    let (truth, figure) = (truth.to_string(), figure.to_string());
    measured(&format!("{program}: {what}: truth {truth}, figure {figure}"));
}

/// The same of a time. The figure has, beside the work, what lies around it: no more than what the program did beside its work.
fn told_time(what: &str, truth_ns: i64, figure_ns: i64, (around_ns, bound_ns): (i64, i64)) {
    let ms = |ns: i64| format!("{:.3} ms", ns as f64 / 1e6);
    told("fibers.c", what, ms(truth_ns), ms(figure_ns));
    let allowed = truth_ns - bound_ns..=truth_ns + around_ns + bound_ns;
    assert!(allowed.contains(&figure_ns), "{what}: {figure_ns} is not in {allowed:?}");
}

#[test]
fn a_number_in_a_format_is_a_position() {
    let Some(formats) = program("formats.c", &[]) else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    record(&[], &[formats.to_str().unwrap()], &out);
    let listing = run(Command::new(ft_tests::agent()).arg("events").arg(&out));
    for (event, truth) in [("format.state", "state 1 of fd 9"), ("format.six", "1 2 3 4 5.5 six")] {
        let line = listing.lines().find(|line| line.contains(event)).expect("the event");
        let figure = line.split_once(event).map_or("", |(_, text)| text.trim());
        told("formats.c", event, truth, figure);
        assert_eq!(figure, truth);
    }
}

/// Its time by its own clock, and the time of its functions and scopes.
#[test]
fn what_a_fiber_did_is_its_own() {
    let Some(fibers) = program("truths/fibers.c", &["-finstrument-functions"]) else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let said = record(&["--preload"], &[fibers.to_str().unwrap()], &out);
    let line = said.lines().find(|line| line.starts_with('{')).expect("what the program printed");
    let truth: Value = serde_json::from_str(line).unwrap();
    let truth = |what: &str| truth[what].as_i64().unwrap();
    let (turns, inner, other) = (truth("turns"), truth("inner"), truth("other"));
    let trace = Trace::open(&out).unwrap();
    let bound = 4 * turns * trace.meta().clock.bound_ns;
    // Switches, events, hooks, and whatever took the CPU then.
    let around = (truth("all") - truth("outer") - inner - other, bound);

    let functions: Vec<Function> = trace.rows().map(Result::unwrap).collect();
    let function = |name: &str| {
        let all: Vec<_> = functions.iter().filter(|f| &*f.function == name).collect();
        let sum = |of: fn(&Function) -> i64| all.iter().map(|f| of(f)).sum::<i64>();
        (sum(|f| f.calls), sum(|f| f.self_ns), sum(|f| f.total_ns))
    };
    for (name, made) in [("outer", 1), ("inner", turns), ("other", 1)] {
        let (figure, self_ns, _) = function(name);
        told("fibers.c", &format!("calls of {name}"), made, figure);
        assert_eq!(figure, made, "{name}");
        told_time(&format!("{name} itself"), truth(name), self_ns, around);
    }
    let with = truth("outer") + inner;
    told_time("outer with what it calls", with, function("outer").2, around);

    let scopes: Vec<Scope> = trace.rows().map(Result::unwrap).collect();
    let lasted: i64 = scopes.iter().map(|scope| scope.dur).sum();
    told("fibers.c", "scopes", turns, scopes.len());
    assert_eq!(scopes.len() as i64, turns);
    assert!(scopes.iter().all(|scope| scope.depth == 0), "{scopes:?}");
    told_time("scopes, work of both fibers in them", inner + other, lasted, around);

    let mut polled: Vec<i64> =
        trace.rows::<AsyncTask>().map(|task| task.unwrap().polled_ns).collect();
    assert_eq!(polled.len(), 2);
    polled.sort_unstable();
    told_time("turns of the second fiber", other, polled[0], around);
    told_time("turns of the first fiber", with, polled[1], around);
}

#[test]
fn functions_are_those_of_the_program() {
    let Some(helpers) = program("truths/helpers.c", &["-O0", "-finstrument-functions"]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    record(&["--preload"], &[helpers.to_str().unwrap()], &out);
    let trace = Trace::open(&out).unwrap();
    let mut figure: BTreeMap<String, i64> = BTreeMap::new();
    for row in trace.rows::<Function>().map(Result::unwrap) {
        // `main` has begun before it starts the tracer.
        *figure.entry(row.function.to_string()).or_default() += row.calls + row.begun_before;
    }
    let truth = [("branch", 1), ("leaf", 1000), ("main", 1)];
    let truth: BTreeMap<String, i64> = truth.map(|(name, n)| (name.to_owned(), n)).into();
    told("helpers.c", "functions and their calls", format!("{truth:?}"), format!("{figure:?}"));
    assert_eq!(figure, truth);
}

/// A shell, its child, and a grandchild in a session of its own, when the recording ends before them.
#[test]
fn all_that_a_command_has_started_ends_with_its_recording() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let script =
        "sleep 1000 & echo $! > $0; setsid sleep 1000 & echo $! >> $0; echo $$ >> $0; wait";
    let command = ["sh", "-c", script, pids.to_str().unwrap()];
    record(&["-d", "5s"], &command, &dir.path().join("trace"));
    let text = std::fs::read_to_string(&pids).unwrap();
    let pids: Vec<&str> = text.lines().collect();
    assert_eq!(pids.len(), 3, "{text}");
    let lives = |pid: &&&str| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
    };
    let alive: Vec<_> = pids.iter().filter(lives).collect();
    told("sh", "processes that outlive the recording, of 3", 0, alive.len());
    assert!(alive.is_empty(), "{alive:?}");
}
