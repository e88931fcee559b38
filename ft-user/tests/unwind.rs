//! From each instruction of an event a stack can be walked, and a handler can do what it likes.
//!
//! In the long form (`FT_ROUNDS`, as `cargo xtask truths` sets it) with all compilers and options; else with `cc`.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

#[path = "common/c.rs"]
mod c;
mod common;
mod stepper;

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use c::{Link, build, compilers};
use common::Memory;
use stepper::{Mark, Stepper, Stop};

/// Kinds of events in `c/stepped.c`.
const KINDS: usize = 9;
/// Those in `examples/stepped.rs`.
const RUST_KINDS: usize = 10;

/// Whether the long form was asked for.
fn is_long() -> bool {
    std::env::var_os("FT_ROUNDS").is_some()
}

/// Instructions of an event at each of which a signal comes; then it comes at each `stride`. Only an event that goes the rare way
/// has more.
const DENSE: u64 = 600;
/// The stride where the rare way is not what is looked at.
const STRIDE: u64 = 17;

fn command(program: &Path, action: &str, number: usize, sites: &str) -> Command {
    let mut command = Command::new(program);
    command.args([action, &number.to_string()]).env("FT_ENABLE", sites);
    command
        .env("FT_SOCKET", "/nonexistent")
        .env("LD_BIND_NOW", "1")
        .env("FT_PATCHABLE", "1")
        .stdout(Stdio::piped());
    command
}

/// What a program said in its last line.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    callers: u64,
    handled: u64,
    without_callers: u64,
}

impl Said {
    fn of(output: &str) -> Said {
        let mut numbers = output.split([' ', '\n']).filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().unwrap_or_else(|| panic!("three numbers, not {output:?}"));
        Said { callers: next(), handled: next(), without_callers: next() }
    }
}

/// Lets a program that is at its end say what it found, and takes its events.
fn finish(stepper: &mut Stepper) -> (Said, Vec<common::Event>) {
    assert_eq!(stepper.run(), Stop::Mark(Mark::Done));
    let events = Memory::of(stepper.child.id()).take_last();
    assert!(matches!(stepper.run(), Stop::Ended(_)));
    let mut output = String::new();
    stepper.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    (Said::of(&output), events)
}

/// At each instruction of each kind of event the handler walks the stack, and if functions are described, to `main` and further.
/// The numbers of instructions with sites on and off.
fn walk(program: &Path, kinds: usize, is_described: bool, stride: u64) -> [u64; 2] {
    ["*", "none.*"].map(|sites| {
        let mut all = 0;
        for number in 0..kinds {
            let mut stepper = Stepper::start(&mut command(program, "backtrace", number, sites));
            assert_eq!(stepper.run(), Stop::Mark(Mark::Begin));
            let signals = stepper.at_each(DENSE, stride);
            let (said, _) = finish(&mut stepper);
            assert!(said.callers >= 2 || !is_described, "{program:?}: {said:?}");
            // Of functions that are not described the way on is not known.
            let without_callers = if is_described { 0 } else { said.without_callers };
            let expected = Said { handled: signals, without_callers, ..said };
            assert_eq!(said, expected, "{program:?}: event {number}, sites {sites}");
            all += signals;
        }
        all
    })
}

/// The same in the first event of a thread, which claims its buffer; at some instructions, of which there are many.
fn walk_first(program: &Path, kinds: usize) {
    let stride = if is_long() { 3 } else { 101 };
    for number in [1, 4] {
        let mut stepper = Stepper::start(&mut command(program, "backtrace", kinds + number, "*"));
        assert_eq!(stepper.run(), Stop::Mark(Mark::Begin));
        let signals = stepper.at_each(0, stride);
        let (said, _) = finish(&mut stepper);
        assert_eq!((said.handled, said.without_callers), (signals, 0), "{program:?}");
    }
}

/// The handler writes an event at each instruction: all of them are there.
fn write(program: &Path, kinds: usize) {
    for number in 0..kinds {
        let mut stepper = Stepper::start(&mut command(program, "event", number, "*"));
        assert_eq!(stepper.run(), Stop::Mark(Mark::Begin));
        let signals = stepper.at_each(DENSE, STRIDE);
        let (said, events) = finish(&mut stepper);
        let inner = events.iter().filter(|event| event.name == "inner.event").count() as u64;
        // Two of them before.
        assert_eq!((said.handled, inner), (signals, signals + 2), "{program:?}: event {number}");
        let outer = events.len() - inner as usize;
        assert!(outer >= 3 && !events.iter().any(|event| event.name == "loss"), "{events:?}");
    }
}

/// The handler leaves the event at each instruction, or at some, the one after the other: the program goes on, and writes events.
fn leave(program: &Path, action: &str, kinds: usize) {
    // The way to each instruction begins anew.
    let stride = |number| if is_long() || number < 4 { 1 } else { 11 };
    for number in 0..kinds {
        let mut stepper = Stepper::start(&mut command(program, action, number, "*"));
        assert_eq!(stepper.run(), Stop::Mark(Mark::Begin));
        let mut times = 0;
        loop {
            match stepper.after(times * stride(number)) {
                Stop::Mark(Mark::Begin) => times += 1,
                Stop::Mark(Mark::End) => break,
                stop => panic!("{program:?}: {stop:?}, event {number} left {times} times"),
            }
        }
        let (said, events) = finish(&mut stepper);
        assert!(times > 4 && said.handled == times, "{program:?}: {said:?}, left {times} times");
        let after = events.iter().filter(|event| event.name == "after.event").count() as u64;
        assert_eq!(after, times + 1, "{program:?}: event {number}");
    }
}

/// The handler ends the program, or executes another one, at some instructions.
fn end(program: &Path, kinds: usize) {
    let stride = if is_long() { 1 } else { 13 };
    for (action, number) in
        [("exit", 1), ("exec", 1), ("exit", 4), ("exec", 4), ("exit", kinds + 1)]
    {
        let mut at = 0;
        loop {
            let mut stepper = Stepper::start(&mut command(program, action, number, "*"));
            assert_eq!(stepper.run(), Stop::Mark(Mark::Begin));
            let (expected, status) = match stepper.after(at) {
                Stop::Mark(Mark::End) => break,
                Stop::Executed => (("exec", Some(0), "executed\n"), stepper.run()),
                stop => (("exit", Some(7), ""), stop),
            };
            let Stop::Ended(status) = status else { panic!("{program:?}: {status:?} at {at}") };
            let mut output = String::new();
            stepper.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
            assert_eq!((action, status.code(), &*output), expected, "{program:?} at {at}");
            at += if number < kinds { stride } else { 41 * stride };
        }
        assert!(at > 40, "{program:?}: {action} at {at} instructions");
    }
}

/// The program of a compiler.
fn compile(compiler: &str, flags: &[&str], link: Link) -> PathBuf {
    let name = format!("stepped-{compiler}{}-{link:?}", flags.concat().replace('=', ""));
    build(compiler, flags, &["tests/c/stepped.c"], link, &name)
}

#[test]
fn stacks_of_c_are_walked() {
    for (flags, link) in
        [(["-std=gnu11", "-O2"], Link::Static), (["-std=gnu11", "-O0"], Link::Shared)]
    {
        let program = compile("cc", &flags, link);
        walk(&program, KINDS, true, if is_long() { 1 } else { STRIDE });
        walk_first(&program, KINDS);
    }
}

/// Whatever a compiler leaves of frame pointers and tables. Where functions are not described there is nothing to walk, and nothing
/// fails.
#[test]
fn stacks_of_all_compilers_are_walked() {
    const BARE: &str = "-fno-asynchronous-unwind-tables";
    let long: [&[&str]; 5] = [
        &["-fomit-frame-pointer"],
        &["-fno-omit-frame-pointer"],
        &[BARE],
        &[BARE, "-fno-exceptions"],
        &["-fPIC", "-ffunction-sections", "-Wl,--gc-sections"],
    ];
    let short: [&[&str]; 2] = [&["-fno-omit-frame-pointer"], &[BARE]];
    let (c, cpp) = (["-std=gnu11", "-x", "c"], ["-std=gnu++17", "-x", "c++"]);
    let all = [("gcc", c), ("clang", c), ("g++", cpp), ("clang++", cpp)];
    let (languages, levels, forms) = match is_long() {
        true => (&all[..], &["-O0", "-O1", "-O2", "-O3", "-Os"][..], &long[..]),
        false => (&[("cc", c)][..], &["-O1"][..], &short[..]),
    };
    for (compiler, language) in languages {
        for compiler in compilers(&[compiler]) {
            for (level, form) in
                levels.iter().flat_map(|level| forms.iter().map(move |form| (level, form)))
            {
                let flags = [&language[..1], &[*level], form, &language[1..]].concat();
                walk(
                    &compile(compiler, &flags, Link::Static),
                    KINDS,
                    !form.contains(&BARE),
                    STRIDE,
                );
            }
        }
    }
}

#[test]
fn handlers_of_c_write_at_each_instruction() {
    write(&compile("cc", &["-std=gnu11", "-O2"], Link::Static), KINDS);
}

#[test]
fn handlers_of_c_leave_at_each_instruction() {
    leave(&compile("cc", &["-std=gnu11", "-O1"], Link::Static), "leave", KINDS);
}

/// `-fnon-call-exceptions`: what a handler throws is caught. Not from the rare way of an event, whose Rust is not made for it.
#[test]
fn handlers_of_cpp_throw_at_each_instruction() {
    for compiler in compilers(&["g++"]) {
        let flags = ["-std=gnu++17", "-O2", "-fnon-call-exceptions", "-x", "c++"];
        leave(&compile(compiler, &flags, Link::Shared), "throw", KINDS - 1);
    }
}

/// An event whose text cannot be read, and a handler that makes an exception of it.
#[test]
fn text_that_cannot_be_read_can_throw() {
    for compiler in compilers(&["g++"]) {
        let flags = ["-std=gnu++17", "-O1", "-fnon-call-exceptions"];
        let program =
            build(compiler, &flags, &["tests/c/unreadable.cc"], Link::Shared, "unreadable");
        let run = |argument| {
            let mut command = Command::new(&program);
            command.arg(argument).env("FT_SOCKET", "/nonexistent").env("FT_ENABLE", "*");
            let output = command.stderr(Stdio::null()).output().unwrap();
            (String::from_utf8(output.stdout).unwrap(), output.status.signal())
        };
        assert_eq!(run("later"), ("caught 3\n".into(), None));
        // As the header says.
        assert_eq!(run("first"), (String::new(), Some(libc::SIGABRT)));
    }
}

#[test]
fn programs_end_at_each_instruction() {
    end(&compile("cc", &["-std=gnu11", "-O1"], Link::Shared), KINDS);
}

/// A profiler walks the stack at 1 kHz or as often as the kernel ticks, with sites on: some seconds, or a minute of it.
#[test]
fn a_profiler_walks_the_stack() {
    let samples = if is_long() { "60000" } else { "1000" };
    let c = compile("cc", &["-std=gnu11", "-O2"], Link::Static);
    let rust = example(&["--release"], "", "stepped");
    for program in [c, rust] {
        let mut profiled = Command::new(&program);
        profiled.args(["profile", samples]).env("FT_ENABLE", "*").env("FT_SOCKET", "/nonexistent");
        let said = Said::of(&c::run(&mut profiled));
        assert!(said.callers >= 2 && said.without_callers == 0, "{program:?}: {said:?}");
    }
}

/// Another unwinder in the program, where it is installed.
#[test]
fn libunwind_walks_the_stack() {
    // Debian's lies in a directory of its architecture.
    let headers = ["/usr/include/x86_64-linux-gnu/libunwind.h", "/usr/include/libunwind.h"];
    if !headers.iter().any(|header| Path::new(header).exists()) {
        return c::skipped("libunwind is not installed; its package is libunwind-dev");
    }
    let backtrace = ["-Dbacktrace=unw_backtrace", "-include", "libunwind.h"];
    let flags =
        [&["-std=gnu11", "-O2"], &backtrace[..], &["-Wl,--no-as-needed", "-lunwind"]].concat();
    let program = build("cc", &flags, &["tests/c/stepped.c"], Link::Static, "stepped-libunwind");
    walk(&program, KINDS, true, STRIDE);
}

/// A debugger, where it is installed.
#[test]
fn gdb_walks_the_stack() {
    if compilers(&["gdb"]).is_empty() {
        return;
    }
    let program = compile("cc", &["-std=gnu11", "-O2"], Link::Static);
    // It takes some milliseconds for each instruction.
    for number in if is_long() { &[1, 3, 4, 5, 7][..] } else { &[1] } {
        let mut gdb = Command::new("gdb");
        gdb.args([
            "-batch",
            "-nx",
            "-x",
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stepper/gdb.py"),
        ]);
        gdb.arg("--args").arg(&program).args(["event", &number.to_string()]);
        gdb.env("FT_SOCKET", "/nonexistent").env("FT_ENABLE", "*");
        let said = c::run(&mut gdb);
        let last = said.lines().last().unwrap_or_default();
        let steps = last.strip_suffix(" steps, 0 lost").and_then(|steps| steps.parse().ok());
        assert!(steps.is_some_and(|steps: u64| steps > 40), "event {number}: {said}");
    }
}

/// What hooks, sleds and patchable entries call, each with its compiler.
#[test]
fn stacks_are_walked_from_traced_functions() {
    let sleds = [
        "-fxray-instrument",
        "-fxray-instruction-threshold=1",
        "-fnoxray-link-deps",
        "-Wno-unused-command-line-argument",
    ];
    let forms: [(&str, &[&str]); 3] = [
        ("cc", &["-finstrument-functions"]),
        ("clang", &sleds),
        ("gcc", &["-fpatchable-function-entry=11"]),
    ];
    for (compiler, form) in forms {
        for compiler in compilers(&[compiler]) {
            for level in if is_long() { &["-O0", "-O1", "-O2"][..] } else { &["-O2"] } {
                let flags = [&["-std=gnu11", level], form].concat();
                let name = format!("functions-{compiler}{}{level}", &form[0][..6]);
                let sources = ["tests/c/stepped_functions.c"];
                let program = build(compiler, &flags, &sources, Link::Static, &name);
                let signals = walk(&program, 3, true, STRIDE);
                assert!(signals[0] > signals[1] + 100, "{name}: nothing is on: {signals:?}");
            }
        }
    }
}

/// The example, built with these arguments and flags.
fn example(arguments: &[&str], flags: &str, name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--example", "stepped"]).args(arguments);
    cargo.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    cargo.env("RUSTFLAGS", flags).arg("--target-dir").arg(&target);
    c::run(&mut cargo);
    let profile = if arguments.contains(&"--release") { "release" } else { "debug" };
    target.join(profile).join("examples/stepped")
}

#[test]
fn stacks_of_rust_are_walked() {
    // Optimised: without, the rare way of an event has ten times as many instructions.
    let release = |flags, name| example(&["--release"], flags, name);
    let mut programs = vec![(release("", "stepped"), true)];
    if is_long() {
        programs.extend([
            (example(&[], "", "stepped"), true),
            (release("-Cforce-frame-pointers", "stepped-frames"), true),
            (release("-Cpanic=abort -Cforce-unwind-tables", "stepped-abort"), true),
            (release("-Cpanic=abort -Cforce-unwind-tables=no", "stepped-bare"), false),
        ]);
    }
    for (program, is_described) in programs {
        walk(&program, RUST_KINDS, is_described, STRIDE);
        if is_described {
            walk_first(&program, RUST_KINDS);
            write(&program, RUST_KINDS);
        }
    }
}
