//! From each instruction of a call under the library a stack can be walked.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "not all of it is used here")]
mod program;
#[path = "../../../tests/common/said.rs"]
mod said;
#[path = "../../tests/stepper/mod.rs"]
mod stepper;

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use program::{compile, preload};
use stepper::{Mark, Stepper, Stop};

/// Groups of calls in `programs/stepped.c`.
const KINDS: usize = 6;

/// Steps through one group; what the program says at its end.
fn step(program: &Path, action: &str, number: usize, events: &str) -> (u64, String) {
    let mut command = Command::new(program);
    command.args([action, &number.to_string()]).env("LD_BIND_NOW", "1").stdout(Stdio::piped());
    preload(&mut command, events);
    let mut stepper = Stepper::start(&mut command);
    assert_eq!(stepper.run(), Stop::Mark(Mark::Begin));
    let signals = stepper.at_each(u64::MAX, 1);
    assert_eq!(stepper.run(), Stop::Mark(Mark::Done));
    assert!(matches!(stepper.run(), Stop::Ended(_)));
    let mut said = String::new();
    stepper.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    (signals, said)
}

#[test]
fn stacks_are_walked_from_each_instruction() {
    let program = compile("stepped");
    for events in ["lock.*", "none.*"] {
        for number in 0..KINDS {
            let (signals, said) = step(&program, "backtrace", number, events);
            let expected = format!(" callers, {signals} handled, 0 without callers\n");
            assert!(said.ends_with(&expected), "group {number}, events {events}: {said}");
            assert!(signals > 20 && !said.starts_with(['0', '1']), "{said}");
        }
    }
}

/// A cancellation, an exception and a panic of a handler go through a condition wait as they do without the library.
#[test]
fn what_unwinds_goes_through_a_wait() {
    let source = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (of_cpp, of_rust) = (scratch.join("unwound-cpp"), scratch.join("unwound-rust"));
    let mut cpp = Command::new("c++");
    cpp.args(["-std=gnu++17", "-O1", "-fnon-call-exceptions", "-pthread", "-o"]).arg(&of_cpp);
    let mut rust = Command::new("rustc");
    rust.args(["-O", "--edition", "2024", "-o"]).arg(&of_rust);
    let cancelled = "cancelled dropped\nforced\nunlock: 0\ncancelled: 1\n";
    let programs = [
        (cpp, "unwound.cc", of_cpp, format!("{cancelled}thrown through dropped\ncaught 7\n")),
        (rust, "unwound.rs", of_rust, "dropped\ncaught: Some(\"on purpose\")\n".to_owned()),
    ];
    for (mut compiler, name, program, expected) in programs {
        match compiler.arg(source(name)).status() {
            Ok(status) => assert!(status.success(), "{compiler:?}"),
            Err(_) => {
                said::skipped(&format!("{name}: {:?} is not installed", compiler.get_program()));
                continue;
            }
        }
        for events in [None, Some("none.*"), Some("lock.*")] {
            let mut command = Command::new(&program);
            events.inspect(|events| preload(&mut command, events));
            let output = command.stderr(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said == expected, "{name}, {events:?}: {said}");
        }
    }
}

/// The handler locks a mutex of its own there.
#[test]
fn handlers_lock_at_each_instruction() {
    let program = compile("stepped");
    for number in 0..KINDS {
        let (signals, said) = step(&program, "event", number, "lock.*");
        assert!(said.contains(&format!(" {signals} handled")), "group {number}: {said}");
    }
}
