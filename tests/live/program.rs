//! The traced process: this test binary again, as [`traced_program`], which is no test by itself.

use std::ffi::CString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ft_user::sync::Mutex;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Tells [`traced_program`] that it is meant.
const ROLE: &str = "FT_TEST_TRACED";

/// What has not come by then never will.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

static LOCK: Mutex<()> = Mutex::named("live", ());

/// Obeys lines on stdin and answers each: `tick N` writes N events, `flood` writes them
/// from then on without a pause, `hold MS` holds a lock so long, `share MS` computes so
/// long with the lock held, and shares its CPU with a thread that computes, too, `load PATH` loads the plugin, `plugin N`
/// runs N times through its site, `spawn N` runs N such programs one after the other, of which the Nth writes N events,
/// `abort` and `segv` end the process.
#[test]
fn traced_program() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    ft_user::init().unwrap();
    println!("ready");
    let mut plugin = None;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (verb, value) = line.split_once(' ').unwrap_or((&line, ""));
        let number = || value.parse().unwrap();
        match verb {
            "tick" => println!("on {}", tick(number())),
            "flood" => {
                std::thread::spawn(|| tick(u64::MAX));
                println!("flooding");
            }
            "hold" => {
                let guard = LOCK.lock().unwrap();
                std::thread::sleep(Duration::from_millis(number()));
                drop(guard);
                println!("held");
            }
            "share" => {
                share(Duration::from_millis(number()));
                println!("shared");
            }
            "load" => {
                plugin = Some(load(value));
                println!("loaded");
            }
            "plugin" => {
                let run = plugin.expect("it is loaded");
                (0..number()).for_each(|n| assert_eq!(run(n), n));
                println!("ran");
            }
            "spawn" => {
                (0..number()).for_each(|n: u64| spawn(n));
                println!("spawned");
            }
            // SAFETY: none: this is the fault that is wanted.
            "segv" => unsafe { std::ptr::null_mut::<u8>().write_volatile(1) },
            _ => std::process::abort(),
        }
    }
}

/// Holds the lock on a CPU that another thread wants as well.
fn share(time: Duration) {
    let compute = move || {
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    };
    let before = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
    let guard = LOCK.lock().unwrap();
    let rival = std::thread::Builder::new().name("rival".into()).spawn(compute).unwrap();
    compute();
    drop(guard);
    rival.join().unwrap();
    sched_setaffinity(None, &before).unwrap();
}

/// Writes events 0, 1, 2 …; returns for how many the site was on.
fn tick(count: u64) -> u64 {
    let mut on = 0;
    for n in 0..count {
        // Arguments are evaluated only when the site is on.
        ft_user::event!("live.tick", n: u64 = { on += 1; n });
    }
    on
}

/// Runs another [`traced_program`], which writes `n + 1` events.
fn spawn(n: u64) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "tick {}", n + 1).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Loads `ft-user/examples/plugin.rs` and starts its copy of the tracer.
fn load(path: &str) -> extern "C" fn(u64) -> u64 {
    let path = CString::new(path).unwrap();
    // SAFETY: the library was built from that source just now; its symbols have the types that stand there.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null(), "the plugin cannot be loaded");
        let symbol = |name: &std::ffi::CStr| {
            let symbol = libc::dlsym(library, name.as_ptr());
            assert!(!symbol.is_null(), "{name:?} is missing");
            symbol
        };
        let start: extern "C" fn() = std::mem::transmute(symbol(c"plugin_start"));
        start();
        std::mem::transmute::<*mut libc::c_void, extern "C" fn(u64) -> u64>(symbol(c"plugin_run"))
    }
}

/// A process that runs [`traced_program`], by itself or under an agent.
pub(crate) struct Program {
    /// The process, or the agent that runs it.
    pub(crate) child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    /// The traced program by itself.
    pub(crate) fn start() -> Program {
        Program::start_at(Path::new("/dev/null/none"))
    }

    /// The same, which looks for an agent at this socket.
    pub(crate) fn start_at(socket: &Path) -> Program {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(ARGS).env("FT_SOCKET", socket);
        Program::ready(command)
    }

    /// An agent that records the traced program, without the kernel.
    pub(crate) fn recorded(out: &Path, options: &[&str]) -> Program {
        Program::recorded_by(agent(), out, options)
    }

    /// An agent that records the traced program with the kernel.
    pub(crate) fn recorded_with_kernel(out: &Path) -> Program {
        let mut agent = agent();
        agent.args(["record", "-o"]).arg(out).arg("--").arg(std::env::current_exe().unwrap());
        agent.args(ARGS);
        Program::ready(agent)
    }

    /// An agent that records a program that has chosen rings of so many slots, and overwrite mode.
    pub(crate) fn overwriting(out: &Path, slots: u32, options: &[&str]) -> Program {
        let mut agent = agent();
        agent.env("FT_MODE", "overwrite").env("FT_RING_SLOTS", slots.to_string());
        Program::recorded_by(agent, out, options)
    }

    /// The same by this agent.
    pub(crate) fn recorded_by(mut command: Command, out: &Path, options: &[&str]) -> Program {
        command.args(["record", "-k", "none", "-o"]).arg(out).args(options).arg("--");
        command.arg(std::env::current_exe().unwrap()).args(ARGS);
        Program::ready(command)
    }

    /// Another program, which says that it is ready.
    pub(crate) fn ready(mut command: Command) -> Program {
        command.env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut program = Program { child, stdin, stdout };
        program.expect("ready");
        program
    }

    /// Id of the process, or of the agent that runs it.
    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Says a line without waiting for an answer.
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Says a line and reads up to the line that ends with `answer`; the test harness prints lines of its
    /// own.
    pub(crate) fn ask(&mut self, line: &str, answer: &str) {
        self.say(line);
        self.expect(answer);
    }

    /// Says a line; returns the lines up to the one that ends with `answer`, and that one.
    pub(crate) fn listen(&mut self, line: &str, answer: &str) -> Vec<String> {
        self.say(line);
        self.expect(answer)
    }

    fn expect(&mut self, end: &str) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        while said.last().is_none_or(|line| !line.trim_end().ends_with(end)) {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended before it said {end}");
            said.push(line);
        }
        said
    }

    /// Writes events, of which so many must find the site on.
    pub(crate) fn tick(&mut self, count: u64, on: u64) {
        assert_eq!(self.ticked(count), on);
    }

    /// Writes events; returns how many found the site on.
    fn ticked(&mut self, count: u64) -> u64 {
        self.say(&format!("tick {count}"));
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended");
            if let Some(on) = line.strip_prefix("on ") {
                return on.trim_end().parse().expect("a number");
            }
        }
    }

    /// Writes `count` events at a time until this agent has switched the site on.
    pub(crate) fn tick_until_on(&mut self, count: u64, agent: &mut Child) {
        self.tick_while(count, count, || lives(agent));
    }

    /// Writes `count` events at a time until `on` of them find the site on.
    pub(crate) fn tick_until(&mut self, count: u64, on: u64) {
        self.tick_while(count, on, || ());
    }

    fn tick_while(&mut self, count: u64, on: u64, mut meanwhile: impl FnMut()) {
        let began = Instant::now();
        while self.ticked(count) != on {
            meanwhile();
            assert!(began.elapsed() < PATIENCE, "not {on} of {count} after {PATIENCE:?}");
        }
    }

    /// Says a line again and again, until the recording has ended the program.
    pub(crate) fn say_until_end(mut self, line: &str) {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "it has not ended after {PATIENCE:?}");
            // Nobody listens where the end has just come.
            let _ = writeln!(self.stdin, "{line}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Closes stdin, which ends it, and waits.
    pub(crate) fn end(mut self) -> ExitStatus {
        drop(self.stdin);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        self.child.wait().unwrap()
    }
}

/// This agent must not have ended.
pub(crate) fn lives(agent: &mut Child) {
    assert_eq!(agent.try_wait().unwrap(), None, "the agent has ended");
}

const ARGS: [&str; 3] = ["--exact", "program::traced_program", "--nocapture"];

/// The agent's binary.
pub(crate) fn agent() -> Command {
    Command::new(ft_tests::agent())
}
