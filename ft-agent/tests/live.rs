//! The agent with a real traced process, without the kernel stream.
//!
//! The traced process is this test binary again: [`traced_program`], which is no test by itself.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ft_agent::spool::Spool;
use ft_agent::store::Trace;
use ft_agent::store::rows::UserEvent;

/// Tells [`traced_program`] that it is meant.
const ROLE: &str = "FT_TEST_TRACED";

/// Obeys lines on stdin: `N` writes N events and answers how many were on, `die` kills the process.
#[test]
fn traced_program() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    ft_user::init().unwrap();
    println!("ready");
    for line in std::io::stdin().lines() {
        match line.unwrap().parse() {
            Ok(count) => {
                let mut on = 0;
                for n in 0..count {
                    // Arguments are evaluated only when the site is on.
                    ft_user::event!("live.tick", n: u64 = { on += 1; n });
                }
                println!("on {on}");
            }
            Err(_) => std::process::abort(),
        }
    }
}

struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    /// The traced program by itself.
    fn start() -> Program {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "traced_program", "--nocapture"])
            .env("FT_SOCKET", "/dev/null/none");
        Program::ready(command)
    }

    /// An agent that records the traced program.
    fn recorded(out: &Path) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ft-agent"));
        command.args(["record", "-k", "none", "-o"]).arg(out).arg("--");
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "traced_program", "--nocapture"]);
        Program::ready(command)
    }

    fn ready(mut command: Command) -> Program {
        command.env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut program = Program { child, stdin, stdout };
        program.expect("ready");
        program
    }

    /// Reads up to the line that ends with this; the test harness prints lines of its own.
    fn expect(&mut self, end: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(end) {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended before it said {end}");
        }
    }

    fn tick(&mut self, count: u64, on: u64) {
        writeln!(self.stdin, "{count}").unwrap();
        self.expect(&format!("on {on}"));
    }

    fn end(mut self) -> std::process::ExitStatus {
        drop(self.stdin);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        self.child.wait().unwrap()
    }
}

/// First arguments of all events of the trace.
fn ticks(trace: &Path) -> Vec<i64> {
    let trace = Trace::open(trace).unwrap();
    let rows = trace.rows::<UserEvent>().map(Result::unwrap);
    rows.filter(|r| &*r.event == "live.tick").map(|r| r.arg[0].unwrap()).collect()
}

#[test]
fn every_event_of_a_command_is_in_the_trace() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out);
    program.tick(5000, 5000);
    assert!(program.end().success());
    assert_eq!(ticks(&out), (0..5000).collect::<Vec<i64>>());
}

#[test]
fn a_killed_program_loses_nothing_that_it_had_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out);
    program.tick(3000, 3000);
    writeln!(program.stdin, "die").unwrap();
    // The agent reports the death of its command.
    assert_eq!(program.end().code(), Some(128 + 6));
    assert_eq!(ticks(&out).len(), 3000);
}

#[test]
fn a_killed_agent_leaves_its_program_unharmed_and_its_spool_complete() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out);
    program.tick(1000, 1000);
    // Wait until the events are handed over: then nothing can take them back.
    let segment = Spool::of(&out).segment(0);
    while fs::metadata(&segment).unwrap().len() < 1000 * 32 {
        std::thread::yield_now();
    }
    program.child.kill().unwrap();
    // Sites stay on; the ring takes these, nobody reads them.
    program.tick(100, 100);
    drop(program.stdin);
    program.child.wait().unwrap();
    let convert = Command::new(env!("CARGO_BIN_EXE_ft-agent")).arg("convert").arg(&out).output();
    assert!(convert.unwrap().status.success());
    assert_eq!(ticks(&out)[..1000], (0..1000).collect::<Vec<i64>>());
}

#[test]
fn a_running_program_is_enabled_recorded_and_disabled_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::start();
    program.tick(10, 0);
    let pid = program.child.id().to_string();
    let mut agent = Command::new(env!("CARGO_BIN_EXE_ft-agent"))
        .args(["record", "-k", "none", "-e", "live.*", "-p", &pid, "-o"])
        .arg(&out)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // On as soon as the agent has got to it.
    let mut on = String::new();
    while !on.starts_with("on 7") {
        on.clear();
        writeln!(program.stdin, "7").unwrap();
        program.stdout.read_line(&mut on).unwrap();
    }
    program.tick(500, 500);
    let term = Command::new("kill").args(["-s", "TERM", &agent.id().to_string()]).status();
    assert!(term.unwrap().success());
    assert!(agent.wait().unwrap().success());
    program.tick(10, 0);
    assert!(program.end().success());
    let recorded = ticks(&out);
    assert!(recorded.len() >= 507, "{}", recorded.len());
    assert_eq!(recorded[recorded.len() - 500..], (0..500).collect::<Vec<i64>>());
}
