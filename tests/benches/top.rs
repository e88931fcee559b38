//! What `ft-agent top` takes of one CPU beside recordings of little and of much: on a terminal, and as lines of JSON.
//!
//! `cargo bench -p ft-tests --bench top [--profile quick] [-- SECONDS]`, as root; each load is watched for so many seconds (30). CPU time is the
//! kernel's, of proc(5)'s `stat`, from five seconds after the start on, and with the start. It fails at its end where watching took
//! more than [`LIMIT`]. Recordings are flight recorders, so that the disk does not fill.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ft_agent::top::Top;
use ft_tests::built;
use rustix::param::clock_ticks_per_second;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Of one CPU.
const LIMIT: f64 = 0.01;

/// After so long, what starting took is over.
const SETTLED: Duration = Duration::from_secs(5);

/// A recording has begun by then, or never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that is ended with this value.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// CPU time of all its threads, s.
    fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it runs");
        let fields = stat.rsplit(')').next().expect("fields behind its name").split_whitespace();
        // `utime` and `stime`, fields 14 and 15; the first here is the third.
        let ticks = fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks"));
        ticks.sum::<u64>() as f64 / clock_ticks_per_second() as f64
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn agent() -> Command {
    Command::new(ft_tests::agent())
}

fn main() {
    let seconds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(30);
    let loads: [(&str, PathBuf, &[&str]); 3] = [
        ("a program that sleeps", "sleep".into(), &["1000000"]),
        ("the demo", built::example("ft-user", "demo"), &["--seconds", "3600"]),
        (
            "a thread that writes as fast as it can",
            built::example("ft-tests", "subject"),
            &["flood", "1000000000000000"],
        ),
    ];
    println!(
        "| recorded | events and records a second | looked at | `top` on a terminal | with its start | `--json` | with its start |"
    );
    println!("|---|---|---|---|---|---|---|");
    let watch = |(name, program, args): (&str, PathBuf, &[&str])| {
        watch(name, Command::new(program).args(args), Duration::from_secs(seconds))
    };
    let most = loads.map(watch).into_iter().fold(0.0, f64::max);
    assert!(most < LIMIT, "{:.2} % of a CPU", 100.0 * most);
}

/// Records a program, watches the recording twice, and prints what each takes; returns the larger share.
fn watch(name: &str, program: &mut Command, time: Duration) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("trace");
    let program = Running::start(program.stdout(Stdio::null()));
    let mut record = agent();
    record.args(["record", "--flight-recorder", "5s", "-p", &program.0.id().to_string(), "-o"]);
    let _recorder = Running::start(record.arg(&dir).stdout(Stdio::null()).stderr(Stdio::null()));
    let began = Instant::now();
    while Top::new(&dir, LIMIT).is_err() {
        assert!(began.elapsed() < PATIENCE, "nothing is recorded of {name}: are you root?");
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut lines = agent();
    let mut lines = Running::start(lines.args(["top", "--json"]).arg(&dir).stdout(Stdio::piped()));
    let output = BufReader::new(lines.0.stdout.take().expect("its output"));
    let last = std::thread::spawn(|| output.lines().map_while(Result::ok).last());
    let drawn = on_a_terminal(agent().arg("top").arg(&dir));
    let began = Instant::now();
    std::thread::sleep(SETTLED);
    let both = || [&drawn, &lines].map(|top| (began.elapsed().as_secs_f64(), top.cpu_s()));
    let before = both();
    std::thread::sleep(time);
    let after = both();
    lines.0.kill().expect("it runs");
    let last = last.join().expect("its output is read").expect("a line");
    let view: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    let number = |field: &str| view[field].as_f64().unwrap_or(0.0);
    let share = |i: usize| (after[i].1 - before[i].1) / (after[i].0 - before[i].0);
    let with_start = |i: usize| after[i].1 / after[i].0;
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    println!(
        "| {name} | {:.0} | {:.0} % of the time | {} | {} | {} | {} |",
        number("events_per_s"),
        100.0 * number("covered_ns") / number("window_ns").max(1.0),
        percent(share(0)),
        percent(with_start(0)),
        percent(share(1)),
        percent(with_start(1)),
    );
    share(0).max(share(1))
}

/// Starts a program on a terminal of 40 lines, whose screen is thrown away.
fn on_a_terminal(command: &mut Command) -> Running {
    let screen =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&screen).and_then(|()| unlockpt(&screen)).expect("a terminal");
    let name = ptsname(&screen, Vec::new()).expect("its name").into_string().expect("text");
    let end = File::options().read(true).write(true).open(name).expect("its end");
    let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&end, size).expect("its size");
    let stdio = || Stdio::from(end.as_fd().try_clone_to_owned().expect("its end"));
    let program = Running::start(command.env("TERM", "xterm").stdin(stdio()).stdout(stdio()));
    // Until the program has ended.
    std::thread::spawn(move || {
        let (mut screen, mut bytes) = (File::from(screen), [0; 4096]);
        while screen.read(&mut bytes).is_ok_and(|count| count > 0) {}
    });
    program
}
