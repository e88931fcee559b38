//! An agent at work: waited for, and watched for what it prints and how much memory it takes.

use std::fs;
use std::io::Read;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// An agent that has not ended by then never will: an attack and an honest program take seconds. But who finishes a trace waits for
/// the disk (fsync), and one to which others write has kept an agent waiting for five minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// An agent at work, and what it prints.
pub(crate) struct Running {
    agent: Child,
    since: Instant,
    printed: [thread::JoinHandle<String>; 2],
}

impl Running {
    pub(crate) fn watch(mut agent: Child) -> Running {
        fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).expect("a pipe");
                String::from_utf8_lossy(&bytes).into_owned()
            })
        }
        let printed = [
            collect(agent.stdout.take().expect("a pipe")),
            collect(agent.stderr.take().expect("a pipe")),
        ];
        Running { agent, since: Instant::now(), printed }
    }

    pub(crate) fn wait_for(&self, what: &str, mut is_there: impl FnMut() -> bool) {
        while !is_there() {
            assert!(self.since.elapsed() < PATIENCE, "{what} never came");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it printed, when it has ended by itself, without an error; and its memory at most, KiB.
    pub(crate) fn end(mut self) -> (String, u64) {
        let mut peak_kib = 0;
        let status = loop {
            peak_kib = peak(self.agent.id() as i32).unwrap_or(peak_kib);
            if let Some(status) = self.agent.try_wait().expect("a child") {
                break Ok(status);
            }
            if self.since.elapsed() > PATIENCE {
                let doing = doing(self.agent.id());
                self.agent.kill().and_then(|()| self.agent.wait()).expect("a child");
                break Err(doing);
            }
            thread::sleep(Duration::from_millis(10));
        };
        let printed = self.printed.map(|text| text.join().expect("text")).concat();
        let status = status.unwrap_or_else(|doing| {
            panic!("the agent did not end, and was at\n{doing}\n{printed}")
        });
        assert!(status.success(), "the agent: {status}\n{printed}");
        (printed, peak_kib)
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
