//! Functions of C and C++ programs that are compiled with `-finstrument-functions`, with sleds or with patchable entries, and
//! nothing else, and of Rust with the attribute `function`: their calls and times against what the programs say of themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ft_trace::Mark;
use ft_trace::spool::Spool;
use ft_trace::store::Trace;
use ft_trace::tables::Function;

use crate::errors;
use crate::harness::{self, Stage, assert_success, gate};
use crate::holes::Holes;
use crate::recomputed::agrees;
use crate::registry::has_mapping;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ft-user/tests/c/");

const HOOKS: &[&str] = &["-finstrument-functions"];

/// Of each function, however small.
const SLEDS: &[&str] = &[
    "-fxray-instrument",
    "-fxray-instruction-threshold=1",
    "-fnoxray-link-deps",
    "-DPLAIN=__attribute__((xray_never_instrument))",
];

const ENTRIES: &[&str] =
    &["-fpatchable-function-entry=11", "-DPLAIN=__attribute__((patchable_function_entry(0)))"];

/// Compiles a program with each of the compilers that are there; says which are not.
fn compiled(
    stage: &Stage,
    source: &str,
    compilers: &[&str],
    way: &[&str],
    flags: &[&str],
) -> Vec<(String, PathBuf)> {
    let mut programs = Vec::new();
    for compiler in compilers {
        if Command::new(compiler).arg("--version").output().is_err() {
            gate::skipped(&format!("{compiler} is not installed; `cargo xtask setup` gets it"));
            continue;
        }
        let name = format!("{compiler}{}{}", way[0], flags[0]);
        let program = stage.path(&name);
        let mut command = Command::new(compiler);
        command.args(["-g", "-Wall", "-pthread"]).args(way).args(flags);
        command.arg(Path::new(SOURCES).join(source)).arg("-o").arg(&program);
        assert_success(&command.output().expect("the compiler starts"));
        programs.push((name, program));
    }
    programs
}

/// The short form.
const ROUNDS: usize = 20;

/// What a program says of its functions: their calls, their self time at least and their time at most, ns.
type Truth = BTreeMap<String, [i64; 3]>;

/// Recordings until a program was looked at, which it waits 100 ms for. On a busy machine it can be over before the look.
const RECORDINGS: usize = 20;

/// Records a program; what it says of its functions, their rows, and the trace.
fn record(
    stage: &Stage,
    name: &str,
    program: &Path,
    globs: &[&str],
) -> (Truth, Vec<Function>, Trace) {
    for n in 0..RECORDINGS {
        let recorded = record_once(stage, &format!("{name}-{n}"), program, globs);
        if let Some((truth, rows, trace)) = recorded {
            let nameless: Vec<_> =
                rows.iter().filter(|row| row.function.starts_with("0x")).collect();
            assert!(nameless.is_empty(), "{name}: {nameless:#?}");
            return (truth, rows, trace);
        }
    }
    panic!("{name} was over before it was looked at in all of {RECORDINGS} recordings");
}

/// The same; `None` if the program was over before it was looked at.
fn record_once(
    stage: &Stage,
    name: &str,
    program: &Path,
    globs: &[&str],
) -> Option<(Truth, Vec<Function>, Trace)> {
    let dir = stage.path(&format!("{name}-trace"));
    let mut agent = harness::agent();
    agent.args(["record", "--preload", "--no-convert", "-o"]).arg(&dir);
    agent.args(globs.iter().flat_map(|glob| ["-e", glob])).arg("--").arg(program);
    agent.arg(harness::rounds(ROUNDS).to_string());
    agent.env("FT_PRELOAD", harness::preload()).env("FT_PATCHABLE", "1");
    let output = agent.output().expect("the agent starts");
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let mut number = || words.next().map_or(Some(0), |word| word.parse().ok());
        Some((name, [number()?, number()?, number()?]))
    };
    let truth: Truth = text.lines().map_while(line).collect();
    let is_seen = has_mapping(&Spool::of(&dir), |mapping| Path::new(&mapping.path) == program);
    let is_seen = is_seen.expect("a whole registry");
    for command in ["convert", "analyze"] {
        let output = harness::agent().arg(command).arg(&dir).output();
        assert_success(&output.expect("the agent starts"));
    }
    let trace: Trace = harness::open(&dir);
    let rows: Vec<Function> = trace.rows().map(|row| row.expect("a row")).collect();
    if agrees(&format!("functions of {name}"), &dir) {
        gate::measured(&format!("{name}: {} functions, their calls and times", rows.len()));
    }
    is_seen.then_some((truth, rows, trace))
}

fn row<'a>(rows: &'a [Function], name: &str) -> &'a Function {
    let of_name: Vec<_> = rows.iter().filter(|row| &*row.function == name).collect();
    let [row] = of_name[..] else { panic!("{} rows of {name}: {rows:#?}", of_name.len()) };
    row
}

#[test]
fn functions_of_c_have_the_calls_and_the_times_that_they_measured_themselves() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    calls_and_times(&stage, &["gcc", "clang"], HOOKS);
}

#[test]
fn functions_with_sleds_have_the_calls_and_the_times_that_they_measured_themselves() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    calls_and_times(&stage, &["clang"], SLEDS);
}

fn calls_and_times(stage: &Stage, compilers: &[&str], way: &[&str]) {
    let flags = [["-O0", "-std=gnu11"], ["-O2", "-std=gnu11"]];
    for flags in flags {
        for (name, program) in compiled(stage, "functions.c", compilers, way, &flags) {
            let (truth, rows, trace) = record(stage, &name, &program, &["fn.*"]);
            let (bound, missing) = (trace.meta().clock.bound_ns, Holes::of(&trace));
            assert_eq!(truth.len(), 8, "{truth:?}");
            for (function, [calls, ns, around]) in &truth {
                let row = row(&rows, function);
                assert_eq!(row.calls, *calls, "{function} of {name}");
                let line =
                    row.place.strip_prefix("functions.c:").and_then(|line| line.parse().ok());
                // A sled is of no line, and what follows it may be of none.
                assert!(line.is_some_and(|line: u32| line > 0), "{row:?}");
                // Each call of these measures within itself; of one that is left, the end is not known.
                if row.left == 0 {
                    assert!(row.self_ns >= *ns, "{function} of {name}: {ns}, {row:?}");
                }
                if *around > 0 {
                    let most = around + calls * bound;
                    assert!(row.total_ns <= most, "{function} of {name}: {around}, {row:?}");
                }
            }
            let left = |function: &str| row(&rows, function).left;
            let told = ["leaf", "branch", "ladder", "catcher", "relay", "runner"];
            assert_eq!(told.map(left), [0; 6], "{name}");
            // Four calls of it within each other, which jump away together.
            assert_eq!(left("thrower"), truth["thrower"][0], "{name}");
            assert_eq!(row(&rows, "thrower").mark, Mark::Censored);
            let worker = row(&rows, "worker");
            assert_eq!((worker.calls, worker.unfinished), (1, 0), "{name}");
            // It calls all others.
            let own: i64 = rows.iter().map(|row| row.self_ns).sum();
            assert_eq!(own, worker.total_ns, "{name}");
            // What is called last of all is within its caller, whose end the hooks tell behind it; a sled tells it before the jump, and
            // then the time is that of the caller's caller.
            let is_jump = way == SLEDS && flags[0] == "-O2";
            let (relay, runner) = (row(&rows, "relay"), row(&rows, "runner"));
            let within = if is_jump { 0 } else { runner.total_ns };
            assert_eq!(relay.total_ns, relay.self_ns + within, "{name}: {relay:?} {runner:?}");
            let both = relay.self_ns + runner.self_ns;
            assert!(both <= truth["relay"][2] + 2 * relay.calls * bound, "{name}: {both}");
            // Recursion counts once.
            let ladder = row(&rows, "ladder");
            assert_eq!(ladder.total_ns, ladder.self_ns, "{name}");
            for row in [worker, ladder] {
                missing.judged(row.mark, row.ts.0, i64::MAX - row.ts.0);
            }
            let sleeper = row(&rows, "sleeper");
            let blocked = sleeper.self_blocked_ns.expect("a kernel stream");
            assert!(
                blocked > 0 && sleeper.self_ns >= truth["sleeper"][0] * 3_000_000,
                "{sleeper:?}"
            );
            // Somebody wanted its CPU all the time.
            let preempted = worker.total_preempted_ns.expect("a kernel stream");
            assert!(preempted > 0, "{worker:?}");
        }
    }
}

#[test]
fn exceptions_leave_functions_which_only_gcc_tells() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let flags = ["-O1", "-std=c++17"];
    for (name, program) in compiled(&stage, "functions.cc", &["g++", "clang++"], HOOKS, &flags) {
        let (truth, rows, _) = record(&stage, &name, &program, &["fn.*"]);
        // Every second call throws.
        let thrown = truth["fails"][0] / 2;
        assert_eq!(truth["after"][0], thrown);
        let by_name =
            [("fails", "(int)"), ("passes", "(int)"), ("tries", "(int)"), ("after", "()")];
        for (function, arguments) in by_name {
            let row = row(&rows, &format!("shop::{function}{arguments}"));
            let is_left = name.starts_with("clang") && matches!(function, "fails" | "passes");
            let expected = (truth[function][0], if is_left { thrown } else { 0 }, 0, 0);
            let found = (row.calls, row.left, row.unfinished, row.begun_before);
            assert_eq!(found, expected, "{function} of {name}");
        }
    }
}

#[test]
fn single_functions_with_sleds_are_chosen_by_their_names() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let flags = ["-O2", "-std=gnu11"];
    for (name, program) in compiled(&stage, "functions.c", &["clang"], SLEDS, &flags) {
        let (truth, rows, _) = record(&stage, &name, &program, &["fn.le?f", "fn.bran*"]);
        let found: BTreeMap<&str, i64> =
            rows.iter().map(|row| (&*row.function, row.calls)).collect();
        let expected = ["branch", "leaf"].map(|function| (function, truth[function][0]));
        assert_eq!(found, BTreeMap::from(expected), "{name}");
    }
    // Mangled, as the linker has them; an exception leaves two of them without an end.
    let flags = ["-O1", "-std=c++17"];
    for (name, program) in compiled(&stage, "functions.cc", &["clang++"], SLEDS, &flags) {
        let (truth, rows, _) =
            record(&stage, &name, &program, &["fn._ZN4shop5failsEi", "fn.*tries*"]);
        let found: BTreeMap<&str, (i64, i64)> =
            rows.iter().map(|row| (&*row.function, (row.calls, row.left))).collect();
        let [fails, tries] = ["fails", "tries"].map(|function| truth[function][0]);
        let expected = [("shop::fails(int)", (fails, fails / 2)), ("shop::tries(int)", (tries, 0))];
        let expected = expected.into_iter().filter(|(_, counts)| counts.0 > 0);
        let known = found.iter().filter(|(name, _)| **name != "(unknown)").map(|(n, c)| (*n, *c));
        assert_eq!(known.collect::<BTreeMap<_, _>>(), expected.collect(), "{name}");
    }
}

#[test]
fn patchable_entries_of_gcc_have_the_calls_that_the_functions_counted() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let programs = [
        ("functions.c", "gcc", ["-O0", "-std=gnu11"]),
        ("functions.c", "gcc", ["-O2", "-std=gnu11"]),
        ("functions.cc", "g++", ["-O1", "-std=c++17"]),
    ];
    for (source, compiler, flags) in programs {
        for (name, program) in compiled(&stage, source, &[compiler], ENTRIES, &flags) {
            let (truth, rows, _) = record(&stage, &name, &program, &["fn.*"]);
            assert!(truth.len() >= 4, "{truth:?}");
            for (function, [calls, ..]) in &truth {
                let of_it = |row: &&Function| {
                    let plain = row.function.split('(').next().expect("its name");
                    plain.rsplit("::").next() == Some(function)
                };
                let row: Vec<_> = rows.iter().filter(of_it).collect();
                let counts: Vec<_> = row.iter().map(|row| (row.entered, row.calls)).collect();
                assert_eq!(counts, [(*calls, 0)], "{function} of {name}: {row:#?}");
                // However they were left, and however long they took.
                let known = (row[0].left, row[0].total_ns, row[0].self_ns, row[0].mark);
                assert_eq!(known, (0, 0, 0, Mark::Exact), "{function} of {name}");
            }
        }
    }
}

/// What a function of the subject calls, besides itself.
fn callees(function: &str) -> &'static [&'static str] {
    match function {
        "round" => &["works", "Steps::climbs", "sleeps", "unwinds"],
        "unwinds" => &["panics"],
        _ => &[],
    }
}

/// From a reading of the clock into the kernel.
const SYSTEM_CALL_NS: i64 = 100_000;

#[test]
fn functions_of_rust_with_the_attribute_have_the_calls_and_the_times_that_they_measured() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = harness::rounds(20).to_string();
    let (truth, dir) = stage.record(&["-e", "fn.*"], &["functions", &rounds]);
    let trace = harness::open(&dir);
    let (bound, missing) = (trace.meta().clock.bound_ns, Holes::of(&trace));
    let rows: Vec<Function> = trace.rows().map(|row| row.expect("a row")).collect();
    let measured = truth["functions"].as_object().expect("the functions");
    assert_eq!((rows.len(), measured.len()), (6, 6), "{rows:#?}");
    let numbers = |function: &str| -> [i64; 4] {
        serde_json::from_value(measured[function].clone()).expect("four integers")
    };
    for function in measured.keys() {
        let [calls, inside, around, asleep] = numbers(function);
        // A name that was given, or the path.
        let row = match function.split_once("::") {
            Some(_) => row(&rows, function),
            None => row(&rows, &format!("subject::functions::{function}")),
        };
        assert_eq!((row.calls, row.tid.0), (calls, errors::tid(&truth, "tid")), "{row:?}");
        assert!(row.place.contains("subject/functions.rs:"), "{row:?}");
        let margin = calls * bound;
        let bounds = inside - margin..=around + margin;
        assert!(bounds.contains(&row.total_ns), "{row:?}: not {bounds:?}");
        // Its own time is that without what it calls, whose times are bounded in the same way.
        let [called, least, most] = callees(function).iter().map(|callee| numbers(callee)).fold(
            [0; 3],
            |[called, least, most], [calls, inside, around, _]| {
                [called + calls, least + inside, most + around]
            },
        );
        let margin = margin + called * bound;
        let bounds = inside - most - margin..=around - least + margin;
        assert!(bounds.contains(&row.self_ns), "{row:?}: its own not {bounds:?}");
        // What is missing anywhere may touch a function that is called everywhere.
        if missing.judged(row.mark, row.ts.0, i64::MAX - row.ts.0) {
            let blocked = row.self_blocked_ns.expect("a kernel stream");
            assert!(blocked >= asleep - calls * SYSTEM_CALL_NS, "{row:?}: asleep {asleep}");
            // One that works for milliseconds does not sleep for half of them; a fault can block one that does next to nothing.
            let works = asleep == 0 && row.self_ns > 1_000_000;
            assert!(!works || blocked < row.self_ns / 2, "{row:?}");
        }
    }
    // One calls all others.
    let of = |function: &str| row(&rows, function);
    let own: i64 = rows.iter().map(|row| row.self_ns).sum();
    assert_eq!(own, of("subject::functions::round").total_ns);
    // Recursion counts once.
    let climbs = of("Steps::climbs");
    assert_eq!(climbs.total_ns, climbs.self_ns);
    if agrees("functions with the attribute", &dir) {
        gate::measured(&format!(
            "{} calls of functions with the attribute",
            of("Steps::climbs").calls
        ));
    }
}
