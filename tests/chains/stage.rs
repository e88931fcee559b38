//! Building a program with frame pointers, and recording it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ft_agent::collect::kernel::{Group, KernelOptions};
use ft_report::code::Code;
use serde_json::Value;
use tempfile::TempDir;

use crate::gate;

/// Rounds of 50 whose chains must be there, at least: a virtual machine can hide switches from every tracer.
pub(crate) const LEAST: usize = 45;

/// A folder for a program and its trace.
pub(crate) struct Stage(TempDir);

impl Stage {
    /// `None` where this machine cannot record the kernel, which has been reported.
    pub(crate) fn enter() -> Option<Stage> {
        Stage::enter_with(&[])
    }

    /// The same of one that can record these groups, too.
    pub(crate) fn enter_with(more: &[Group]) -> Option<Stage> {
        let groups = [&Group::DEFAULT[..], &[Group::Stack, Group::Profile], more].concat();
        let options = KernelOptions { groups, ..KernelOptions::default() };
        gate::kernel_or_skip(&options)?;
        Some(Stage(TempDir::new().expect("a folder")))
    }

    /// Where the trace is.
    pub(crate) fn trace(&self) -> PathBuf {
        self.0.path().join("trace")
    }

    /// Compiles a program and records it; what it says of itself.
    pub(crate) fn record(&self, program: &str, options: &[&str]) -> Value {
        let binary = self.compile(program);
        let mut agent = self.agent("record");
        agent.args(options).arg("-o").arg(self.trace()).arg("--").arg(&binary);
        truth(&succeed(&mut agent))
    }

    /// Compiles a program with frame pointers and a build id; its path.
    pub(crate) fn compile(&self, program: &str) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/chains");
        let binary = self.0.path().join(program);
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-pthread", "-fno-omit-frame-pointer", "-Wl,--build-id"]);
        cc.args(["-fno-optimize-sibling-calls", "-o"]);
        succeed(cc.arg(&binary).arg(sources.join(program).with_extension("c")));
        binary
    }

    /// Compiles a program with these flags; `None` where there is no such compiler.
    pub(crate) fn compile_by(
        &self,
        compiler: &str,
        source: &str,
        flags: &[&str],
    ) -> Option<PathBuf> {
        Command::new(compiler).arg("--version").output().ok()?;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/chains");
        let binary = self.0.path().join("program");
        let mut command = Command::new(compiler);
        command.args(flags).args(["-pthread", "-Wl,--build-id", "-o"]).arg(&binary);
        succeed(command.arg(sources.join(source)));
        Some(binary)
    }

    /// Leaves the trace where `FT_KEEP` says, for who wants to look at it.
    pub(crate) fn keep(&self, name: &str) {
        if let Some(dir) = std::env::var_os("FT_KEEP") {
            let mut cp = Command::new("cp");
            succeed(cp.arg("-a").arg(self.trace()).arg(Path::new(&dir).join(name)));
        }
    }

    /// A command of the agent.
    pub(crate) fn agent(&self, command: &str) -> Command {
        let mut agent = Command::new(ft_tests::agent());
        agent.arg(command).stdin(Stdio::null());
        agent
    }

    /// The values of a report.
    pub(crate) fn report(&self, section: &str) -> Value {
        let output = succeed(self.agent("report").arg(self.trace()).args([section, "--json"]));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["sections"][section]["values"].clone()
    }
}

/// What a program says of itself in a line of JSON.
pub(crate) fn truth(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with('{')).expect("the program's truth");
    serde_json::from_str(line).expect("JSON")
}

/// Runs a command; fails with everything that it printed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    succeeded(command.output().expect("it starts"), command)
}

/// The same of one that was started before.
pub(crate) fn succeeded(output: Output, command: &Command) -> Output {
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{error}", output.status);
    output
}

/// Builds the preload library beside the agent.
pub(crate) fn build_preload() {
    ft_tests::built::preload();
}

/// A thread's number, or another one, that a program has said.
pub(crate) fn number(truth: &Value, name: &str) -> i32 {
    truth[name].as_i64().and_then(|n| n.try_into().ok()).expect("a number")
}

/// The four functions of a chain (`chains.h`), the innermost first.
pub(crate) fn way(name: &str) -> [String; 4] {
    ["four", "three", "two", "one"].map(|step| format!("{name}_{step}"))
}

/// The functions of user space of a chain, the innermost first.
pub(crate) fn functions(code: &Code, stack: Option<i64>) -> Vec<String> {
    let user = code.chain(stack).into_iter().filter(|frame| !frame.kernel);
    user.map(|frame| frame.label.to_string()).collect()
}
