//! Functions of a C program that knows nothing of us, in which clang has left sleds, or gcc patchable entries: switched from
//! outside while it runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ft_tests::built;
use ft_trace::store::Trace;
use ft_trace::tables::{Function, ProbeHit, ProbeKind};

use crate::control::{run, state};
use crate::gate;
use crate::program::{Program, agent};

/// Sleds in functions of any size.
const ALL: &str = "-fxray-instruction-threshold=1";

/// `programs/sleds.c`, where there is a compiler for it.
fn compiled(folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    if Command::new("clang").arg("--version").output().is_err() {
        gate::skipped("clang is not installed; `cargo xtask setup` gets it");
        return None;
    }
    let program = folder.join("sleds");
    let mut clang = Command::new("clang");
    clang.args(["-O1", "-g", "-fxray-instrument", "-fnoxray-link-deps"]).args(flags);
    clang.arg("-o").arg(&program);
    clang.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/programs/sleds.c"));
    assert!(clang.status().expect("clang starts").success());
    Some(program)
}

/// The same with so many nops of gcc at the begin of each function.
fn patchable(folder: &Path, nops: u8, flags: &[&str]) -> PathBuf {
    let program = folder.join("patchable");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g"]).arg(format!("-fpatchable-function-entry={nops}")).args(flags);
    gcc.arg("-o").arg(&program);
    gcc.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/programs/sleds.c"));
    assert!(gcc.status().expect("gcc starts").success());
    program
}

pub(crate) fn start(program: &Path) -> Program {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", built::preload()).env("FT_SOCKET", "/dev/null/none");
    command.env("FT_PATCHABLE", "1");
    Program::ready(command)
}

/// Calls of each function.
pub(crate) fn calls(trace: &Path) -> BTreeMap<String, (i64, i64)> {
    let rows =
        Trace::open(trace).expect("a trace").rows::<Function>().map(|row| row.expect("a row"));
    rows.map(|row| (row.function.to_string(), (row.calls, row.left + row.begun_before))).collect()
}

/// How often each function was called whose ends are not recorded.
fn entered(trace: &Path) -> BTreeMap<String, i64> {
    let rows =
        Trace::open(trace).expect("a trace").rows::<Function>().map(|row| row.expect("a row"));
    rows.map(|row| (row.function.to_string(), row.entered)).collect()
}

/// What is expected of them.
fn counts<const N: usize>(expected: [(&str, i64); N]) -> BTreeMap<String, i64> {
    expected.map(|(function, calls)| (function.to_owned(), calls)).into()
}

/// Calls that the kernel's probe has seen.
fn probed(trace: &Path) -> usize {
    let trace = Trace::open(trace).expect("a trace");
    let hits = trace.rows::<ProbeHit>().map(|hit| hit.expect("a hit"));
    hits.filter(|hit| hit.kind == ProbeKind::Begin).count()
}

/// Waits for a recording, which does what it should; what it said.
fn ended(recording: Child) -> String {
    let output = recording.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    errors
}

/// A recording that has switched `parse_line` on, which has so many triggers.
fn recording_of_lines(pid: &str, out: &Path, triggers: u64) -> Child {
    let mut recording = agent()
        .args(["record", "-k", "none", "-e", "fn.parse_l*", "-p", pid, "-o"])
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    while state(pid, "fn.parse_line") != Some((triggers, triggers)) {
        let ended = recording.try_wait().expect("its state");
        assert_eq!(ended, None, "it records");
        std::thread::sleep(Duration::from_millis(10));
    }
    recording
}

#[test]
fn functions_are_switched_from_outside_while_the_program_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(dir.path(), &[ALL]) else { return };
    let mut program = start(&program);
    let pid = program.pid();
    for function in ["fn.parse_word", "fn.parse_line", "fn.skip_blank"] {
        assert_eq!(state(&pid, function), Some((0, 2)), "{function}");
    }
    program.ask("call 10", "called");
    let out = dir.path().join("trace");
    let recording = recording_of_lines(&pid, &out, 2);
    program.ask("call 100", "called");
    let (success, told, _) = run(&["enable", "-p", &pid, "fn.parse_w*", "fn.parse_l*"]);
    assert!(success && told == "2 triggers switched on, 2 already on\n", "{told}");
    program.ask("call 1000", "called");
    let (success, told, _) = run(&["disable", "-p", &pid, "fn.parse_word"]);
    assert!(success && told.starts_with("2 triggers switched off"), "{told}");
    program.ask("call 10000", "called");
    crate::signal::send(recording.id(), libc::SIGTERM);
    let errors = ended(recording);
    assert!(!errors.contains("no site matches"), "{errors}");
    let expected = [("parse_line", 11_100), ("parse_word", 2000)];
    let expected = expected.map(|(function, calls)| (function.to_owned(), (calls, 0)));
    assert_eq!(calls(&out), BTreeMap::from(expected));
    // A recording leaves on what was on before it, and no more.
    for function in ["fn.parse_word", "fn.parse_line", "fn.skip_blank"] {
        assert_eq!(state(&pid, function), Some((0, 2)), "{function}");
    }
    let (success, _, errors) = run(&["enable", "-p", &pid, "fn.parse_tree"]);
    assert!(!success && errors.contains("no site of process"), "{errors}");
    assert!(program.end().success());
}

#[test]
fn functions_of_gcc_are_switched_and_their_calls_are_counted() {
    let dir = tempfile::tempdir().expect("a folder");
    for flags in [&["-fcf-protection"][..], &["-fno-pie", "-no-pie"]] {
        let mut program = start(&patchable(dir.path(), 11, flags));
        let pid = program.pid();
        program.ask("call 10", "called");
        let out = dir.path().join(format!("trace-{}", flags.len()));
        let recording = recording_of_lines(&pid, &out, 1);
        program.ask("call 100", "called");
        let (success, told, _) = run(&["enable", "-p", &pid, "fn.parse_w*", "fn.parse_l*"]);
        assert!(success && told == "1 trigger switched on, 1 already on\n", "{told}");
        program.ask("call 1000", "called");
        crate::signal::send(recording.id(), libc::SIGTERM);
        ended(recording);
        assert_eq!(entered(&out), counts([("parse_line", 1100), ("parse_word", 2000)]));
        let trace = Trace::open(&out).expect("a trace");
        let rows: Vec<Function> = trace.rows().collect::<Result<_, _>>().expect("its functions");
        // Nothing is said of what is not known.
        let known = |row: &Function| {
            (row.calls, row.unfinished, row.left, row.begun_before, row.total_ns, row.self_ns)
        };
        assert!(rows.iter().all(|row| known(row) == (0, 0, 0, 0, 0, 0)), "{rows:?}");
        assert!(rows.iter().all(|row| row.place.starts_with("sleds.c:")), "{rows:?}");
        assert!(program.end().success());
    }
}

/// Its first thread is there before the preload library has looked.
#[test]
fn who_records_functions_of_gcc_that_cannot_be_switched_is_told_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("early.c");
    let text = "#include <pthread.h>\n#include <unistd.h>\n\
                static void *sleep_on(void *x) { pause(); return x; }\n\
                __attribute__((constructor)) static void early(void) {\n\
                pthread_t thread; pthread_create(&thread, 0, sleep_on, 0); }\n";
    std::fs::write(&source, text).expect("a file");
    let early_library = dir.path().join("early.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-o"]).arg(&early_library).arg(&source);
    assert!(gcc.status().expect("gcc starts").success());
    let program = patchable(dir.path(), 11, &[]);
    let preload = built::preload();
    let expected = "stay off: the nops of gcc at";
    let recorded = |glob: &str, early: bool, is_told: bool| {
        let out = dir.path().join(format!("trace-{glob}-{early}"));
        let mut command = agent();
        command.args(["record", "-k", "none", "--preload", "-e", glob, "-o"]).arg(&out).arg("--");
        if early {
            command.arg("env").arg(format!(
                "LD_PRELOAD={}:{}",
                preload.display(),
                early_library.display()
            ));
        }
        command.arg(&program).env("FT_PATCHABLE", "1");
        let errors = dir.path().join("errors");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(File::create(&errors).expect("a file"));
        let mut recording = command.spawn().expect("the agent starts");
        let mut input = recording.stdin.take().expect("a pipe");
        writeln!(input, "call 10").expect("it reads");
        let said = || std::fs::read_to_string(&errors).expect("text");
        let patience = Instant::now();
        while is_told && !said().contains(expected) {
            assert!(patience.elapsed() < Duration::from_secs(300), "{}", said());
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(input);
        recording.wait().expect("it ends");
        said()
    };
    let said = recorded("fn.parse_*", true, true);
    assert_eq!(said.matches(expected).count(), 1, "{said}");
    for (glob, early) in [("fn.parse_*", false), ("live.*", true)] {
        let said = recorded(glob, early, false);
        assert!(!said.contains(expected), "{glob} {said}");
    }
}

/// What a process has in memory where a function of its program begins, which is linked to its addresses.
fn first_byte(pid: &str, program: &Path, function: &str) -> impl Fn() -> u8 + use<> {
    let symbols = Command::new("nm").arg(program).output().expect("nm starts");
    let symbols = String::from_utf8(symbols.stdout).expect("text");
    let symbol = symbols.lines().find_map(|line| line.strip_suffix(&format!(" T {function}")));
    let address = u64::from_str_radix(symbol.expect("its symbol"), 16).expect("an address");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("its memory");
    move || {
        let mut byte = [0];
        memory.read_exact_at(&mut byte, address).expect("text");
        byte[0]
    }
}

/// The kernel goes by the file: behind the first nop, and back to it when its probe is removed.
#[test]
fn a_probe_of_the_kernel_at_a_function_of_gcc_counts_beside_it_and_leaves_it_whole() {
    if !gate::recordable_or_skip() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = patchable(dir.path(), 11, &["-fcf-protection=none", "-fno-pie", "-no-pie"]);
    let mut program = start(&path);
    let (pid, out) = (program.pid(), dir.path().join("trace"));
    let mut recording = agent();
    recording.args(["record", "-k", "sched", "-e", "fn.parse_word", "-p", &pid, "--probe"]);
    recording.arg(format!("{}:parse_line", path.display())).arg("-o").arg(&out);
    recording.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recording = recording.spawn().expect("the agent starts");
    while state(&pid, "fn.parse_word") != Some((1, 1)) {
        let ended = recording.try_wait().expect("its state");
        assert_eq!(ended, None, "it records");
        std::thread::sleep(Duration::from_millis(10));
    }
    let first = first_byte(&pid, &path, "parse_line");
    assert_eq!(first(), 0xcc, "a breakpoint");
    program.ask("call 10", "called");
    assert!(run(&["enable", "-p", &pid, "fn.parse_l*"]).0);
    program.ask("call 100", "called");
    crate::signal::send(recording.id(), libc::SIGTERM);
    ended(recording);
    assert_eq!(probed(&out), 110);
    assert_eq!(entered(&out), counts([("parse_line", 100), ("parse_word", 220)]));
    // It is gone.
    assert_eq!(first(), 0x90);
    for verb in ["disable", "enable"] {
        let (success, _, errors) = run(&[verb, "-p", &pid, "fn.parse_line"]);
        assert!(success, "{errors}");
        program.ask("call 10", "called");
    }
    assert!(program.end().success());
}

/// Where the function begins there is a breakpoint, when the process looks for its functions.
#[test]
fn functions_of_gcc_are_found_where_the_kernel_probes_one_before_the_program_starts() {
    if !gate::recordable_or_skip() {
        return;
    }
    let (dir, preload) = (tempfile::tempdir().expect("a folder"), built::preload());
    for protection in ["none", "branch"] {
        let program = patchable(dir.path(), 11, &[&format!("-fcf-protection={protection}")]);
        let out = dir.path().join(format!("trace-{protection}"));
        let mut recording = agent();
        recording.args(["record", "-k", "sched", "--preload", "-e", "fn.parse_line", "--probe"]);
        recording.arg(format!("{}:parse_line", program.display())).arg("-o").arg(&out);
        recording.arg("--").arg(&program);
        recording.env("FT_PATCHABLE", "1").env("FT_PRELOAD", preload);
        recording.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut recording = recording.spawn().expect("the agent starts");
        let mut input = recording.stdin.take().expect("a pipe");
        writeln!(input, "call 10").expect("it reads");
        drop(input);
        ended(recording);
        assert_eq!(probed(&out), 10);
        assert_eq!(entered(&out), counts([("parse_line", 10)]), "{protection}");
    }
}

/// Eleven nops are needed.
#[test]
fn who_asks_for_functions_of_gcc_is_told_what_can_be_switched() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut program = start(&patchable(dir.path(), 5, &[]));
    for glob in ["fn:parse*", "fn.parse_*"] {
        let (success, _, errors) = run(&["enable", "-p", &program.pid(), glob]);
        assert!(!success && errors.starts_with("ft-agent: no site of process"), "{errors}");
        assert!(
            errors.contains("(-fxray-instrument)")
                && errors.contains("-fpatchable-function-entry=11"),
            "{errors}"
        );
    }
    // Not who asks for something else.
    let (success, _, errors) = run(&["enable", "-p", &program.pid(), "shop.*"]);
    assert!(!success && !errors.contains("gcc"), "{errors}");
    program.ask("call 10", "called");
    assert!(program.end().success());
}

/// Without the option for it clang leaves sleds in `main` alone, which has a loop.
#[test]
fn who_asks_for_a_function_that_is_too_short_for_sleds_is_told_which_option_gives_it_some() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(dir.path(), &[]) else { return };
    let program = start(&program);
    let pid = program.pid();
    assert_eq!(state(&pid, "fn.main"), Some((0, 2)));
    assert_eq!(state(&pid, "fn.parse_word"), None);
    for glob in ["fn.parse_word", "fn:parse_word"] {
        let (success, _, errors) = run(&["enable", "-p", &pid, glob]);
        let tells = |text| errors.contains(text);
        assert!(!success && tells("called fn.NAME") && tells(ALL), "{errors}");
    }
    assert!(program.end().success());
}

/// Switches from outside beside those of the program itself are in `ft-user/tests/sleds.rs`; here a thread is in the functions
/// all the time.
#[test]
fn functions_are_switched_a_hundred_times_while_they_are_called() {
    let dir = tempfile::tempdir().expect("a folder");
    let of_clang =
        [&[ALL, "-fno-pie", "-no-pie"][..], &[ALL, "-fPIE", "-pie", "-Wl,-z,noseparate-code"]];
    let of_clang = of_clang.into_iter().filter_map(|flags| compiled(dir.path(), flags));
    for program in of_clang.chain([patchable(dir.path(), 11, &[])]) {
        let sleds = if program.ends_with("patchable") { 3 } else { 6 };
        let mut program = start(&program);
        let pid = program.pid();
        program.say("call 300000000");
        for _ in 0..50 {
            for verb in ["enable", "disable"] {
                let (success, told, errors) =
                    run(&[verb, "-p", &pid, "fn.parse_*", "fn.skip_blank"]);
                let expected = format!("{sleds} triggers switched ");
                assert!(success && told.starts_with(&expected), "{told}{errors}");
            }
        }
        assert!(program.child.try_wait().expect("its state").is_none(), "it lives");
        program.child.kill().expect("it runs");
        program.child.wait().expect("it has ended");
    }
}
