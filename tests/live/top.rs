//! `ft-agent top` on a terminal of its own, beside a program that holds a lock.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ft_agent::flight::complete;
use ft_trace::store::Trace;
use ft_trace::tables::CriticalSection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::program::{Program, agent};
use crate::{gate, signal};

/// What has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(300);

/// A terminal, and `top` on it.
struct Terminal {
    top: Child,
    keys: File,
    /// What a program is given: its settings are those of the terminal.
    end: File,
    written: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    is_gone: Arc<AtomicBool>,
}

fn settings(terminal: &File) -> String {
    let Termios { input_modes, output_modes, local_modes, .. } = tcgetattr(terminal).unwrap();
    format!("{input_modes:?} {output_modes:?} {local_modes:?}")
}

impl Terminal {
    fn run(args: &[&str]) -> Terminal {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let end = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&end, size).unwrap();
        let mut top = agent();
        top.arg("top").args(args).env("TERM", "xterm");
        let stdio = || Stdio::from(end.as_fd().try_clone_to_owned().unwrap());
        top.stdin(stdio()).stdout(stdio()).stderr(stdio());
        // SAFETY: these system calls are allowed between fork and exec; 0 is the terminal by then.
        unsafe {
            top.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let top = top.spawn().unwrap();
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let is_gone = Arc::new(AtomicBool::new(false));
        let (keys, into, stop) = (File::from(keys), written.clone(), is_gone.clone());
        let mut screen = keys.try_clone().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !stop.load(Relaxed) {
                let mut readable = [PollFd::new(&screen, PollFlags::IN)];
                let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                if !matches!(poll(&mut readable, Some(&moment)), Ok(1..)) {
                    continue;
                }
                let Ok(count @ 1..) = screen.read(&mut bytes) else { return };
                into.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { top, keys, end, written, reader, is_gone }
    }

    /// Closes its window.
    fn hang_up(self) -> Child {
        self.is_gone.store(true, Relaxed);
        self.reader.join().unwrap();
        self.top
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until something that fits was written, while the program works.
    fn wait(&mut self, program: &mut Program, what: &str) {
        let began = Instant::now();
        while !self.text().contains(what) {
            assert!(began.elapsed() < PATIENCE, "no '{what}' in {:?}", self.text());
            assert!(self.top.try_wait().unwrap().is_none(), "it ended: {:?}", self.text());
            program.ask("hold 1", "held");
        }
    }

    fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).unwrap();
    }
}

const LEFT: &str = "\x1b[?1049l";

#[test]
fn it_freezes_takes_a_snapshot_and_leaves_the_terminal_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("top");
    let mut program = Program::start();
    let pid = program.pid();
    let mut terminal =
        Terminal::run(&["--share", "100", "-k", "none", "-p", &pid, "-o", out.to_str().unwrap()]);
    let before = settings(&terminal.end);
    // The lock of the program, in the table.
    terminal.wait(&mut program, "looked at");
    terminal.wait(&mut program, "quit");
    terminal.press(" ");
    terminal.wait(&mut program, "FROZEN");
    terminal.press(" ");
    terminal.press("s");
    let began = Instant::now();
    while complete(&out).unwrap_or_default().is_empty() {
        assert!(began.elapsed() < PATIENCE, "no snapshot: {:?}", terminal.text());
        program.ask("hold 1", "held");
    }
    let snapshot = complete(&out).unwrap().remove(0);
    let holds = Trace::open(&snapshot).unwrap().rows::<CriticalSection>().count();
    assert!(holds > 0, "{holds} holds");
    let report = agent().arg("report").arg(&snapshot).output().unwrap();
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    terminal.press("q");
    assert!(terminal.top.wait().unwrap().success(), "{:?}", terminal.text());
    assert_eq!(settings(&terminal.end), before);
    assert!(terminal.text().contains(LEFT));
    assert!(!out.join("spool").exists(), "the recorder has ended, too");
    // Its sites are off again.
    program.tick(10, 0);
    assert!(program.end().success());
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was_and_ends_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("top");
    let mut program = Program::start();
    let pid = program.pid();
    let mut terminal = Terminal::run(&["-k", "none", "-p", &pid, "-o", out.to_str().unwrap()]);
    let before = settings(&terminal.end);
    terminal.wait(&mut program, "quit");
    assert_ne!(settings(&terminal.end), before, "it reads keys");
    signal::send(terminal.top.id(), libc::SIGTERM);
    let status = terminal.top.wait().unwrap();
    assert_eq!(status.code(), Some(128 + libc::SIGTERM), "{:?}", terminal.text());
    assert_eq!(settings(&terminal.end), before);
    assert!(terminal.text().contains(LEFT) && !out.join("spool").exists());
    program.tick(10, 0);
    assert!(program.end().success());
}

#[test]
fn a_terminal_that_goes_away_ends_it_and_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("top");
    let mut program = Program::start();
    let pid = program.pid();
    let mut terminal = Terminal::run(&["-k", "none", "-p", &pid, "-o", out.to_str().unwrap()]);
    terminal.wait(&mut program, "quit");
    let mut top = terminal.hang_up();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = top.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < PATIENCE, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(20));
    };
    // The kernel sends the signal twice, and the second one kills who has not ended by then.
    let by_signal = status.signal() == Some(libc::SIGHUP);
    assert!(by_signal || status.code() == Some(128 + libc::SIGHUP), "{status}");
    while out.join("spool").exists() {
        assert!(began.elapsed() < PATIENCE, "the recorder goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    program.tick(10, 0);
    assert!(program.end().success());
}

/// The same figures, for programs; of a recording that runs already.
#[test]
fn lines_of_json_have_the_locks_of_a_recording_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &[]);
    let mut top = lines(&out);
    let mut found = BufReader::new(top.stdout.take().unwrap()).lines();
    let began = Instant::now();
    loop {
        program.ask("hold 1", "held");
        let line = found.next().expect("it goes on").unwrap();
        let view: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(view["is_over"], false);
        if let Some(lock) = view["locks"].as_array().unwrap().first() {
            assert_eq!(lock["lock"], "live");
            assert!(lock["holds"].as_u64() > Some(0) && lock["held_ns"].as_i64() > Some(1_000_000));
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{view}");
    }
    assert!(program.end().success());
    // It ends with the recording.
    let last = found.map(Result::unwrap).last().expect("a last line");
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["is_over"], true);
    assert!(top.wait().unwrap().success());
}

/// With the kernel, who was preempted while it held a lock, by whom, and which threads came late.
#[test]
fn lines_of_json_have_preempted_holders_and_late_threads() {
    if !gate::recordable_or_skip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded_with_kernel(&out);
    let mut top = lines(&out);
    let mut views = BufReader::new(top.stdout.take().unwrap()).lines();
    let (mut preempted, mut late) = (false, false);
    for _ in 0..200 {
        program.ask("share 200", "shared");
        let line = views.next().expect("it goes on").unwrap();
        let view: serde_json::Value = serde_json::from_str(&line).unwrap();
        let rows = |name: &str| view[name].as_array().unwrap().clone();
        preempted |= rows("preempted").iter().any(|row| {
            row["lock"] == "live"
                && row["by"].is_string()
                && ["preempted", "woken"].iter().any(|cause| row["cause"] == *cause)
                && row["dur_ns"].as_i64() > Some(0)
        });
        late |= rows("late").iter().any(|row| row["dur_ns"].as_i64() > Some(0));
        if preempted && late {
            break;
        }
    }
    assert!(preempted && late, "holders preempted: {preempted}, late threads: {late}");
    assert!(program.end().success());
    drop(views);
    top.kill().unwrap();
    top.wait().unwrap();
}

/// Frames are longer than what it may look at, and too short in time to analyse them.
#[test]
fn of_a_flood_rates_are_told_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &["--flight-recorder", "1s"]);
    let mut top = agent();
    top.args(["top", "--json", "-i", "100ms", "--share", "2"]).arg(&out);
    let mut top = top.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut views = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let first: serde_json::Value = views.next().expect("a first look");
    assert!(first["bytes_per_s"].is_null() && first["events_per_s"].is_null(), "{first}");
    let began = Instant::now();
    loop {
        program.tick(100_000, 100_000);
        let view = views.next().expect("it goes on");
        let number = |name: &str| view[name].as_f64().unwrap_or(0.0);
        if number("kept_bytes") > 65536.0 && number("bytes_per_s") > 1e6 {
            // An event is a slot of 32 bytes, beside which there is little.
            let bytes = number("bytes_per_s") / number("events_per_s");
            assert!((32.0..48.0).contains(&bytes), "{bytes} bytes an event: {view}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{view}");
    }
    top.kill().unwrap();
    top.wait().unwrap();
    assert!(program.end().success());
}

fn lines(dir: &Path) -> Child {
    let mut top: Command = agent();
    top.args(["top", "--json", "-i", "100ms", "--share", "100"]).arg(dir);
    top.stdout(Stdio::piped()).spawn().unwrap()
}

/// Its recorder may be anywhere between its start and its first look.
#[test]
fn a_signal_ends_it_while_its_recorder_starts() {
    let program = Program::start();
    let mut top = agent();
    top.args(["top", "--json", "-k", "none", "-p", &program.pid()]);
    let mut top = top.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = top.id();
    let children = format!("/proc/{id}/task/{id}/children");
    let began = Instant::now();
    while std::fs::read_to_string(&children).unwrap().is_empty() {
        assert!(began.elapsed() < PATIENCE, "it starts no recorder");
    }
    signal::send(id, libc::SIGTERM);
    let status = loop {
        match top.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(began.elapsed() < PATIENCE, "it does not end"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(128 + libc::SIGTERM));
    assert!(program.end().success());
}
