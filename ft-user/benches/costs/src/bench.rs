//! What the rows need: the programs, the scratch folder, and recordings.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::figures::Figures;
use crate::lttng::Daemon;

/// Nothing that is started may take longer, seconds.
const LIMIT: &str = "120";

/// Bytes of segments that every recording of a row exceeds: with fewer there were clock samples alone, and what was
/// measured are events that were off, as when agent and subject do not understand each other.
const LEAST_RECORDED: u64 = 16 << 10;

/// The programs and folders of one run. Dropped, it removes the scratch folder.
pub(crate) struct Bench {
    /// Few rounds, short batches.
    pub(crate) quick: bool,
    agent: PathBuf,
    /// Where the subjects lie: beside this program.
    programs: PathBuf,
    scratch: PathBuf,
}

/// What a recording told.
pub(crate) struct Recorded {
    pub(crate) figures: Figures,
    /// Events and kernel records that were lost.
    pub(crate) lost: u64,
}

impl Bench {
    pub(crate) fn new(agent: &Path, quick: bool) -> Result<Bench> {
        let own = std::env::current_exe().context("this program has no path")?;
        let programs = own.parent().context("this program lies nowhere")?.to_owned();
        let scratch = PathBuf::from(format!("/dev/shm/ft-costs-{}", std::process::id()));
        fs::create_dir(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
        Ok(Bench { quick, agent: agent.to_owned(), programs, scratch })
    }

    /// Rounds over the subjects of a row.
    pub(crate) fn rounds(&self, rounds: usize) -> usize {
        if self.quick { 1 } else { rounds }
    }

    /// A path on tmpfs.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Has the machine back so much memory now. A virtual machine's host takes back what lies free for some
    /// seconds, and giving it again costs more than writing it does: that is no tracer's cost.
    pub(crate) fn back_memory(&self, bytes: f64) -> Result<()> {
        let path = self.path("memory");
        let written = fs::File::create(&path).and_then(|mut file| {
            let chunk = vec![0; 1 << 20];
            (0..bytes as usize / chunk.len()).try_for_each(|_| file.write_all(&chunk))
        });
        fs::remove_file(&path)?;
        written.context("no memory for the trace")
    }

    /// A program, ended when it takes too long.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", LIMIT]).arg(program);
        command.env("FT_SOCKET", "/nonexistent/agent.sock").env("LTTNG_UST_REGISTER_TIMEOUT", "0");
        if self.quick {
            command.env(ft_costs::QUICK, "1");
        }
        command
    }

    /// Path of a program that is built with this one.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// The preload library, which lies beside the agent.
    pub(crate) fn preload(&self) -> PathBuf {
        self.agent.with_file_name("libft_preload.so")
    }

    /// Runs a subject that nobody records.
    pub(crate) fn subject(&self, arguments: &[&str]) -> Result<Figures> {
        Figures::of(self.program(self.beside("subject")).args(arguments))
    }

    /// Records a subject into a spool on tmpfs, which is removed.
    pub(crate) fn record(&self, options: &[&str], subject: &[&str]) -> Result<Recorded> {
        let dir = self.path("trace");
        let recorded = self.record_into(&dir, options, subject);
        let _ = fs::remove_dir_all(&dir);
        recorded
    }

    /// Records a subject into a spool, unconverted.
    pub(crate) fn record_into(
        &self,
        dir: &Path,
        options: &[&str],
        subject: &[&str],
    ) -> Result<Recorded> {
        let _ = fs::remove_dir_all(dir);
        let mut command = self.recorder(dir, options);
        let figures = Figures::of(command.arg(self.beside("subject")).args(subject))?;
        let recorded = segment_bytes(&dir.join("spool"));
        ensure!(
            recorded >= LEAST_RECORDED,
            "the agent recorded {recorded} bytes of {subject:?}: build agent and subjects from the same sources"
        );
        Ok(Recorded { lost: losses(&figures)?, figures })
    }

    /// The agent, which records into a spool, unconverted; the command to record is to be added.
    pub(crate) fn recorder(&self, dir: &Path, options: &[&str]) -> Command {
        let mut command = self.program(&self.agent);
        command.args(["record", "--no-convert", "-o"]).arg(dir).args(options).arg("--");
        command
    }

    /// What `ft-load` says, which lies beside the agent, on all CPUs.
    fn load(&self, words: &[&str]) -> Result<serde_json::Value> {
        let mut command = Command::new(self.agent.with_file_name("ft-load"));
        command.args(words).arg("--json").stdin(Stdio::null());
        let output = ft_costs::cpu::everywhere(&mut command).output();
        let output = output.with_context(|| format!("{command:?} does not start"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", said.trim());
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The highest rate without loss that `ft-load capacity` finds, million events a second of all threads.
    pub(crate) fn capacity(&self, threads: usize, kernel: &str) -> Result<f64> {
        let (time, count) = (if self.quick { "500ms" } else { "2s" }, threads.to_string());
        let agent = self.agent.to_str().context("the agent's path is no UTF-8")?;
        // As many bytes as LTTng has.
        let ring = ["--ring-size", "32M", "-k", kernel, "--time", time];
        let words = [&["capacity", "--threads", &count, "--agent", agent], &ring[..]].concat();
        let reached = self.load(&words)?[0]["capacity"]["reached"].as_f64();
        Ok(reached.context("events are lost at any rate")? * threads as f64 / 1e6)
    }

    /// The loop of `ft-load npt`, as long as ours: the mean of a pass and its p99.9, ns.
    pub(crate) fn npt(&self, passes: f64) -> Result<[f64; 2]> {
        let loops = (passes as u64).to_string();
        let told = self.load(&["npt", "--rt", "80", "--loops", &loops])?;
        let figure =
            |name: &str| told[name].as_f64().with_context(|| format!("there is no {name}"));
        Ok([figure("mean_ns")?, figure("p99_9_ns")?])
    }

    /// The agent with arguments.
    pub(crate) fn agent(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.agent);
        command.args(arguments);
        command
    }

    /// Whether LTTng's subject was built, and its daemon is there.
    pub(crate) fn has_lttng(&self) -> bool {
        self.beside("lttng").exists() && Path::new("/usr/bin/lttng-sessiond").exists()
    }

    /// A session daemon of LTTng's, where there is LTTng.
    pub(crate) fn lttng(&self) -> Result<Option<Daemon<'_>>> {
        if self.has_lttng() { Daemon::start(self).map(Some) } else { Ok(None) }
    }
}

/// What a recording tells of its losses.
pub(crate) fn losses(figures: &Figures) -> Result<u64> {
    let lost = figures.text.lines().find_map(|line| {
        let (_, lost) = line.strip_prefix("recorded ")?.split_once(", ")?;
        lost.split_once(" events lost")?.0.replace(',', "").parse().ok()
    });
    lost.context("the agent does not tell its losses")
}

/// Bytes of the segments of a spool.
fn segment_bytes(spool: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(spool) else { return 0 };
    let segments =
        entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("segment-"));
    segments.filter_map(|segment| Some(segment.metadata().ok()?.len())).sum()
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}
