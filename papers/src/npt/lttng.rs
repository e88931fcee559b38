//! npt's loop traced by LTTng-UST, with a session daemon of our own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::passes::Passes;
use crate::load::output;

/// The paper's buffers (section 6).
const CHANNEL: [&str; 4] = ["--buffers-uid", "--discard", "--subbuf-size=1M", "--num-subbuf=32"];

/// How the reader learns that a buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// The writer tells it.
    Woken,
    /// It looks, every so many µs.
    Timer(u32),
}

/// A session daemon that runs, and the traced program. Dropped, the daemon ends, and its files go.
#[derive(Debug)]
pub(super) struct Lttng {
    daemon: Child,
    home: PathBuf,
}

impl Lttng {
    /// Whether there is a daemon to start.
    pub(super) fn is_installed() -> bool {
        Command::new("lttng-sessiond").arg("--version").output().is_ok()
    }

    /// Builds the program and starts the daemon; its files lie in memory.
    ///
    /// # Errors
    ///
    /// When LTTng-UST is not installed, or its daemon does not start.
    pub(super) fn start() -> Result<Lttng> {
        let home = Path::new("/dev/shm").join(format!("ft-papers-lttng-{}", std::process::id()));
        fs::create_dir_all(&home)?;
        Lttng::start_in(&home).inspect_err(|_| drop(fs::remove_dir_all(&home)))
    }

    fn start_in(home: &Path) -> Result<Lttng> {
        fs::write(home.join("npt.c"), include_str!("lttng/npt.c"))?;
        fs::write(home.join("npt_events.h"), include_str!("lttng/npt_events.h"))?;
        let mut cc = Command::new("cc");
        cc.current_dir(home).args(["-O2", "-I.", "npt.c", "-o", "npt", "-llttng-ust", "-ldl"]);
        output(&mut cc)?;
        let mut daemon = Command::new("lttng-sessiond");
        daemon.arg("--no-kernel").env("LTTNG_HOME", home).stdin(Stdio::null());
        let daemon = daemon.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let daemon = daemon.context("`lttng-sessiond` cannot be started")?;
        let lttng = Lttng { daemon, home: home.to_owned() };
        for _ in 0..100 {
            if lttng.command(&["list"]).is_ok() {
                return Ok(lttng);
            }
            sleep(Duration::from_millis(50));
        }
        bail!("lttng-sessiond does not answer; run it by hand to see why");
    }

    /// Runs the loop while it is traced; the passes, and how many events were discarded.
    pub(super) fn run(
        &self,
        reader: Reader,
        cpu: usize,
        priority: u32,
        ns: f64,
        hz: f64,
    ) -> Result<(Passes, u64)> {
        let trace = self.home.join("trace");
        self.command(&["create", "npt", &format!("--output={}", trace.display())])?;
        let passes = self.traced(reader, cpu, priority, ns, hz);
        self.command(&["destroy", "npt"])?;
        let _ = fs::remove_dir_all(&trace);
        passes
    }

    fn traced(
        &self,
        reader: Reader,
        cpu: usize,
        priority: u32,
        ns: f64,
        hz: f64,
    ) -> Result<(Passes, u64)> {
        let mut channel = vec!["enable-channel", "-u", "-s", "npt"];
        channel.extend(CHANNEL);
        let timer = match reader {
            Reader::Woken => String::new(),
            Reader::Timer(us) => format!("--read-timer={us}"),
        };
        channel.extend((!timer.is_empty()).then_some(timer.as_str()));
        channel.push("channel");
        self.command(&channel)?;
        self.command(&["enable-event", "-u", "-s", "npt", "-c", "channel", "npt:*"])?;
        self.command(&["start", "npt"])?;
        let cycles = (ns * hz / 1e9) as u64;
        let mut npt = Command::new(self.home.join("npt"));
        npt.args([cpu.to_string(), priority.to_string(), cycles.to_string()]);
        npt.env("LTTNG_HOME", &self.home).env("LTTNG_UST_REGISTER_TIMEOUT", "5000");
        let text = output(&mut npt)?;
        self.command(&["stop", "npt"])?;
        let mut passes = Passes::default();
        for line in text.lines() {
            let (cycles, count) = line.split_once(' ').context("a line of npt")?;
            passes.add(cycles.parse::<f64>()? * 1e9 / hz, count.parse()?);
        }
        Ok((passes, discarded(&self.command(&["list", "npt"])?)))
    }

    fn command(&self, arguments: &[&str]) -> Result<String> {
        let mut lttng = Command::new("lttng");
        output(lttng.arg("--no-sessiond").args(arguments).env("LTTNG_HOME", &self.home))
    }
}

impl Drop for Lttng {
    fn drop(&mut self) {
        // SAFETY: takes no pointer; our own child, which is not waited for yet.
        unsafe { libc::kill(self.daemon.id() as i32, libc::SIGTERM) };
        let _ = self.daemon.wait();
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// What `lttng list` says of discarded events.
fn discarded(list: &str) -> u64 {
    let of = |line: &str| line.split_once("Discarded events:")?.1.trim().parse::<u64>().ok();
    list.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_events_are_read() {
        assert_eq!(
            discarded("  Statistics:\n      Discarded events: 12\nother\n  Discarded events: 30\n"),
            42
        );
        assert_eq!(discarded("nothing"), 0);
    }
}
