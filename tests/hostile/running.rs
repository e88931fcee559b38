//! An agent at work: waited for, and watched for what it prints and how much memory it takes.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// An agent that has not ended by then never will: an attack and an honest program take seconds. But who finishes a trace waits for
/// the disk (fsync), and one to which others write has kept an agent waiting for five minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// An agent at work, and what it prints. When a test fails meanwhile, it ends, and what it has printed so far is told.
pub(crate) struct Running {
    agent: Child,
    since: Instant,
    printed: [Printed; 2],
}

/// What comes of a pipe.
struct Printed {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Printed {
    fn collect(mut from: impl Read + Send + 'static) -> Printed {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let collected = bytes.clone();
        let thread = thread::spawn(move || {
            let mut piece = [0; 1 << 12];
            loop {
                let read = from.read(&mut piece).expect("a pipe");
                if read == 0 {
                    break;
                }
                collected.lock().expect("nobody panics").extend_from_slice(&piece[..read]);
            }
        });
        Printed { bytes, thread: Some(thread) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("nobody panics")).into_owned()
    }

    /// All of it.
    fn whole(&mut self) -> String {
        let thread = self.thread.take().expect("it is asked for once");
        thread.join().expect("a pipe");
        self.so_far()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that was asked for the whole has told it.
        let is_told = self.printed.iter().all(|printed| printed.thread.is_none());
        if thread::panicking() && !is_told {
            // Not to its end: whom it has started may keep the pipes.
            let printed = self.printed.each_ref().map(Printed::so_far).concat();
            eprintln!("the agent has printed\n{printed}");
            // And its command with it, which waits for the test.
            let _ = kill_process(Pid::from_child(&self.agent), Signal::TERM);
        }
    }
}

impl Running {
    pub(crate) fn watch(mut agent: Child) -> Running {
        let printed = [
            Printed::collect(agent.stdout.take().expect("a pipe")),
            Printed::collect(agent.stderr.take().expect("a pipe")),
        ];
        Running { agent, since: Instant::now(), printed }
    }

    pub(crate) fn wait_for(&self, what: &str, mut is_there: impl FnMut() -> bool) {
        while !is_there() {
            assert!(self.since.elapsed() < PATIENCE, "{what} never came");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it printed, when it has ended by itself, without an error; and the memory that it has used at most, or one that it has
    /// waited for, KiB.
    pub(crate) fn end(mut self) -> (String, u64) {
        let mut peak_kib = 0;
        let status = loop {
            if let Some((status, most)) = ended(self.agent.id() as i32) {
                peak_kib = most;
                break Ok(status);
            }
            if self.since.elapsed() > PATIENCE {
                let doing = doing(self.agent.id());
                self.agent.kill().and_then(|()| self.agent.wait()).expect("a child");
                break Err(doing);
            }
            thread::sleep(Duration::from_millis(10));
        };
        let printed = self.printed.each_mut().map(Printed::whole).concat();
        let status = status.unwrap_or_else(|doing| {
            panic!("the agent did not end, and was at\n{doing}\n{printed}")
        });
        assert!(status.success(), "the agent: {status}\n{printed}");
        (printed, peak_kib)
    }
}

/// How a child has ended, and what it, or one that it has waited for, has used of memory at most, KiB; nothing while it runs.
fn ended(child: i32) -> Option<(ExitStatus, u64)> {
    let mut status = 0;
    // SAFETY: all zeros are a value of it.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: writes to what these are.
    match unsafe { libc::wait4(child, &raw mut status, libc::WNOHANG, &raw mut usage) } {
        0 => None,
        pid if pid == child => Some((ExitStatus::from_raw(status), usage.ru_maxrss as u64)),
        _ => panic!("{}", std::io::Error::last_os_error()),
    }
}

/// The threads of a process: name, state, ticks of CPU time, and where in the kernel each waits.
fn doing(pid: u32) -> String {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let thread = |thread: fs::DirEntry| {
        let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let stat = read("stat");
        let (name, rest) = stat.rsplit_once(") ").unwrap_or_default();
        let field = |n: usize| rest.split(' ').nth(n).unwrap_or_default();
        format!("{name}) {} {}+{} {}", field(0), field(11), field(12), read("wchan"))
    };
    threads.map(thread).collect::<Vec<_>>().join("\n")
}

/// What a process that still runs has used of memory, at most, KiB.
pub(crate) fn peak(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().trim_end_matches(" kB").parse().ok()
}
