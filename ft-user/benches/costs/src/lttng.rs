//! LTTng-UST with a session daemon of our own, on CPU 0 like every tracer here.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::figures::Figures;

/// 32 MiB for each CPU; what finds no room is discarded and counted.
const CHANNEL: [&str; 4] = ["--buffers-uid", "--discard", "--subbuf-size=1M", "--num-subbuf=32"];

/// A session daemon that runs. Dropped, it ends, and its consumer with it.
pub(crate) struct Daemon<'a> {
    bench: &'a Bench,
    process: Child,
    home: PathBuf,
}

/// What a session told.
pub(crate) struct Traced {
    pub(crate) figures: Figures,
    /// Events that were discarded.
    pub(crate) lost: u64,
    /// Size of the trace.
    pub(crate) bytes: u64,
}

impl Daemon<'_> {
    pub(crate) fn start(bench: &Bench) -> Result<Daemon<'_>> {
        let home = bench.path("lttng");
        fs::create_dir_all(&home).context("no folder for LTTng")?;
        let process = Command::new("lttng-sessiond")
            .arg("--no-kernel")
            .env("LTTNG_HOME", &home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("lttng-sessiond does not start")?;
        let daemon = Daemon { bench, process, home };
        for _ in 0..100 {
            if daemon.lttng(&["list"]).is_ok() {
                return Ok(daemon);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("lttng-sessiond does not answer");
    }

    /// Runs LTTng's subject while its event is recorded.
    pub(crate) fn subject(&self, channel: &[&str], arguments: &[&str]) -> Result<Traced> {
        let mut command = self.bench.program(self.bench.beside("lttng"));
        command.args(arguments);
        self.record("costs:*", channel, &mut command)
    }

    /// Runs a program while LTTng records these events.
    pub(crate) fn record(
        &self,
        events: &str,
        channel: &[&str],
        command: &mut Command,
    ) -> Result<Traced> {
        let trace = self.home.join("trace");
        let output = format!("--output={}", trace.display());
        self.lttng(&["create", "costs", &output])?;
        let enable = ["enable-channel", "-u", "-s", "costs"];
        let traced = self
            .lttng(&[&enable[..], &CHANNEL, channel, &["channel"]].concat())
            .and_then(|_| {
                self.lttng(&["enable-event", "-u", "-s", "costs", "-c", "channel", events])
            })
            .and_then(|_| self.lttng(&["start", "costs"]))
            .and_then(|_| Figures::of(command.env("LTTNG_UST_REGISTER_TIMEOUT", "5000")))
            .and_then(|figures| {
                self.lttng(&["stop", "costs"])?;
                let lost = losses(&self.lttng(&["list", "costs"])?);
                Ok(Traced { figures, lost, bytes: bytes(&trace) })
            });
        self.lttng(&["destroy", "costs"])?;
        let _ = fs::remove_dir_all(&trace);
        traced
    }

    fn lttng(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("lttng")
            .arg("--no-sessiond")
            .args(arguments)
            .env("LTTNG_HOME", &self.home)
            .stdin(Stdio::null())
            .output()
            .context("lttng does not start")?;
        if !output.status.success() {
            bail!("lttng {}: {}", arguments[0], output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // SAFETY: our own child, which is not waited for yet.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
        let _ = self.process.wait();
    }
}

/// What `lttng list` says of discarded events.
fn losses(list: &str) -> u64 {
    let of = |line: &str| line.split_once("Discarded events:")?.1.trim().parse::<u64>().ok();
    list.lines().filter_map(of).sum()
}

/// Bytes of all files below a folder.
fn bytes(dir: &std::path::Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}
