//! Running the agent on the subject, one test at a time, and reading what came of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};

use ft_agent::collect::kernel::{Group, KernelOptions};
use ft_trace::ids::Nanos;
use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, Decomposition, Gap, LockWait, UserEvent};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use ft_tests::gate;

use ft_tests::built;

#[path = "elsewhere.rs"]
mod elsewhere;

use built::build;
pub(crate) use built::{example, preload};

/// The subjects take whole CPUs as real-time threads: one test at a time.
static STAGE: Mutex<()> = Mutex::new(());

/// Exclusive use of the machine, and a folder for traces.
pub(crate) struct Stage {
    _turn: MutexGuard<'static, ()>,
    folder: TempDir,
}

impl Drop for Stage {
    /// What a test that fails recorded is kept, to be looked at: it may never come again.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("kept: {}", self.folder.path().display());
        }
    }
}

impl Stage {
    /// Waits for the other tests to leave.
    pub(crate) fn enter() -> Stage {
        let turn = STAGE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Stage { _turn: turn, folder: TempDir::new().expect("a folder for the trace") }
    }

    /// The same for a test of the kernel side; `None` when this machine cannot run it, which has been
    /// reported.
    pub(crate) fn enter_with_kernel() -> Option<Stage> {
        let stage = Stage::enter();
        if elsewhere::to_record().or_else(elsewhere::recorded).is_some() {
            gate::ran();
            return Some(stage);
        }
        gate::recordable_or_skip().then_some(stage)
    }
}

impl Stage {
    /// The same for a test of waits for locks of the kernel, which announces them since Linux 5.19.
    pub(crate) fn enter_with_locks() -> Option<Stage> {
        let stage = Stage::enter();
        let options = KernelOptions { groups: vec![Group::Lock], ..KernelOptions::default() };
        let kernel = gate::kernel_or_skip(&options)?;
        if !kernel.missing().is_empty() {
            gate::skipped("the kernel does not announce waits for its locks");
            return None;
        }
        Some(stage)
    }
}

/// Whether this kernel has what probes need, and lets programs ask for the registers of a task.
pub(crate) fn has_probes() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(15))
}

/// Whether there is a clock with periodic ticks, here or where this was recorded.
pub(crate) fn has_real_time_clock() -> bool {
    elsewhere::recorded().is_some() || Path::new("/dev/rtc0").exists()
}

/// The agent's binary.
pub(crate) fn agent() -> Command {
    let mut command = Command::new(ft_tests::agent());
    command.stdin(Stdio::null());
    command
}

/// The subject's binary.
pub(crate) fn subject() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| example("ft-tests", "subject"))
}

/// A library with a copy of the tracer of its own.
pub(crate) fn plugin() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = build(&["--package", "ft-user", "--example", "plugin"]);
        folder.join("examples/libplugin.so")
    })
}

/// The loads' binary.
pub(crate) fn load() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--package", "ft-load"]).join("ft-load"))
}

impl Stage {
    /// Path of a new file or folder of this test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records the subject; returns its truth and the trace's folder.
    pub(crate) fn record(&self, options: &[&str], scenario: &[&str]) -> (Value, PathBuf) {
        let (said, dir) = self.record_program(options, subject(), scenario);
        (truth(&said), dir)
    }

    /// Records a program; returns what it has printed, and the trace's folder.
    pub(crate) fn record_program(
        &self,
        options: &[&str],
        program: &Path,
        arguments: &[&str],
    ) -> (Vec<u8>, PathBuf) {
        if let Some(folder) = elsewhere::to_record() {
            elsewhere::record(&folder, options, program, arguments);
        }
        if let Some(folder) = elsewhere::recorded() {
            return elsewhere::received(&folder, options, arguments);
        }
        let dir = self.path("trace");
        let output = agent()
            .args(["record", "-o"])
            .arg(&dir)
            .args(options)
            .arg("--")
            .arg(program)
            .args(arguments)
            .output()
            .expect("the agent starts");
        assert_success(&output);
        (output.stdout, dir)
    }

    /// Records a command that leaves the subject behind, as soon as it has told its truth; returns the subject's process id,
    /// and the trace. The subject is ended afterwards.
    pub(crate) fn record_left_behind(&self, options: &[&str], scenario: &str) -> (i32, Trace) {
        let dir = self.path("trace");
        // The agent ends with its command.
        let script = "$0 $1 > $2 2>&1 & until [ -s $2 ]; do sleep 0.1; done; echo $!";
        let mut agent = agent();
        agent.args(["record", "--no-kill", "-o"]).arg(&dir).args(options);
        agent.args(["--", "sh", "-c", script]).arg(subject()).arg(scenario).arg(self.path("truth"));
        let output = agent.output().expect("the agent starts");
        assert_success(&output);
        let text = String::from_utf8_lossy(&output.stdout);
        let subject: i32 = text.lines().find_map(|line| line.parse().ok()).expect("its number");
        // SAFETY: the process is a child of a shell that has ended.
        unsafe { libc::kill(subject, libc::SIGKILL) };
        (subject, Trace::open(&dir).expect("a whole trace"))
    }

    /// As [`Stage::record`], again until `judge` says that it has seen enough: some machines stand still, or hide a
    /// process of their own from every tracer, and what that touches cannot be judged. What `judge` finds wrong it
    /// says at once: no recording is made up for by another.
    pub(crate) fn record_until(
        &self,
        options: &[&str],
        scenario: &[&str],
        mut judge: impl FnMut(&Value, &Trace) -> bool,
    ) -> (Value, PathBuf) {
        for _ in 0..RECORDINGS {
            let (truth, dir) = self.record(options, scenario);
            if judge(&truth, &open(&dir)) {
                return (truth, dir);
            }
            assert!(elsewhere::recorded().is_none(), "too little of {truth} could be judged");
            std::fs::remove_dir_all(&dir).expect("a folder");
        }
        panic!("too little of {RECORDINGS} recordings of {scenario:?} could be judged");
    }
}

/// The subject's line.
fn truth(stdout: &[u8]) -> Value {
    let text = String::from_utf8_lossy(stdout);
    let line = text.lines().find(|l| l.starts_with('{')).expect("the subject's truth");
    serde_json::from_str(line).expect("JSON")
}

/// How many rounds a subject plays whose short form, in the whole test run, has so many: `FT_ROUNDS`, if that is more.
pub(crate) fn rounds(short: usize) -> usize {
    let long = std::env::var("FT_ROUNDS").ok().map(|n| n.parse().expect("FT_ROUNDS is a number"));
    long.unwrap_or(0).max(short)
}

/// When the program made the only event of a name.
pub(crate) fn when(trace: &Trace, event: &str) -> Nanos {
    let mut events = trace.rows::<UserEvent>().map(|e| e.expect("a row"));
    events.find(|e| &*e.event == event).expect("the event").ts
}

/// Recordings of one scenario, at most.
const RECORDINGS: usize = 8;

/// Fails with everything that the program printed.
pub(crate) fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Opens a trace and checks what must hold for every trace: decompositions sum to the nanosecond, and
/// no event lies outside the running intervals of its thread beyond the clock bound.
pub(crate) fn open(dir: &Path) -> Trace {
    let trace = Trace::open(dir).expect("a whole trace");
    for hold in trace.rows::<CriticalSection>() {
        let hold = hold.expect("a row");
        assert_parts(hold.parts, hold.dur);
    }
    for gap in trace.rows::<Gap>() {
        let gap = gap.expect("a row");
        assert_parts(gap.parts, gap.dur);
    }
    for wait in trace.rows::<LockWait>() {
        let wait = wait.expect("a row");
        assert_parts(wait.parts, wait.dur - wait.no_holder_ns - wait.cycle_ns);
    }
    assert_eq!(trace.meta().clock.violations, 0, "events outside of running intervals");
    trace
}

fn assert_parts(parts: Option<Decomposition>, dur: i64) {
    let parts = parts.expect("a kernel stream was recorded");
    assert_eq!(parts.total_ns(), dur, "{parts:?}");
    assert!(parts.to_array().iter().all(|&ns| ns >= 0), "{parts:?}");
}
