//! `cargo xtask build`: the BPF object, then the agent that embeds it.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    build_ebpf,
    steps::Steps,
    workspace::{self, cargo, step},
};

/// How well the agent is optimised.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Profile {
    /// For use: cargo's `release`.
    Release,
    /// For a first look, in half of the time: `quick` of the workspace's manifest.
    Quick,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Quick => "quick",
        }
    }

    /// Seconds of one CPU that the first build takes, dependencies and all.
    fn first_seconds(self) -> u64 {
        match self {
            Profile::Release => 500,
            Profile::Quick => 300,
        }
    }

    /// Where its programs lie.
    pub(crate) fn dir(self) -> PathBuf {
        workspace::target_dir().join(self.name())
    }
}

/// Builds what tests run, as the tests of all packages are built: with the features that these have together.
///
/// # Errors
///
/// When something does not build.
pub(crate) fn for_tests() -> Result<()> {
    let examples = ["subject", "demo", "plugin", "server"].map(|name| ["--example", name]);
    let all = ["build", "--quiet", "--workspace", "--all-features", "--bins"];
    step(cargo().args(all).args(examples.as_flattened()))?;
    // Alone, as a user has it.
    step(cargo().args(["build", "--quiet", "--package", "ft-preload"]))
}

/// Builds the BPF object; without it the agent gets another one, or none, so this only warns.
pub(crate) fn bpf(steps: &mut Steps) {
    let object = build_ebpf::object(&workspace::root());
    steps.next("the BPF programs", (!object.exists()).then_some(60));
    if let Err(error) = build_ebpf::run() {
        let rest = if object.exists() {
            "the agent gets the object of an earlier build"
        } else {
            "the agent gets the ones that are packaged, if they are of these sources"
        };
        eprintln!("warning: {error:#}; {rest}");
    }
}

/// Builds the agent, the preload library beside it, and the demo if it is wanted; returns where the agent lies.
///
/// # Errors
///
/// When one of them cannot be built.
pub(crate) fn agent(steps: &mut Steps, profile: Profile, demo: bool) -> Result<PathBuf> {
    let agent = profile.dir().join("ft-agent");
    steps.next("ft-agent and libft_preload.so", (!agent.exists()).then(|| profile.first_seconds()));
    let mut build = cargo();
    build.current_dir(workspace::root()).args(["build", "--profile", profile.name()]);
    build.args(["--package", "ft-agent", "--package", "ft-preload", "--lib", "--bins"]);
    if let Profile::Quick = profile {
        // What only some need is another minute of the first build.
        build.arg("--no-default-features");
    }
    if demo {
        // In one run, so that what they share is built once.
        build.args(["--package", "ft-user", "--example", "demo"]);
    }
    workspace::run(&mut build)?;
    Ok(agent)
}
