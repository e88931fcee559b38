//! `cargo xtask test checks`: what is held of the sources themselves, and of each choice of features.

use anyhow::Result;

use crate::{
    features, packaged,
    workspace::{cargo, root, step, target_dir},
};

/// A check, and what it is called in a report.
pub(crate) type Check = (&'static str, fn() -> Result<()>);

/// Checks that use all CPUs, or that tests wait for.
pub(crate) const FIRST: [Check; 5] = [
    ("formatting", formatting),
    ("the packaged BPF object", packaged_object),
    ("lints", lints),
    ("documentation", documentation),
    ("examples of the documentation", examples),
];

/// Checks of which each step takes one CPU: they run beside the tests.
pub(crate) const BESIDE: [Check; 3] = [
    ("each choice of features", features::check),
    ("ft-user without sites", features::without_sites),
    ("tokio's hooks", tokio_hooks),
];

/// Runs these, whatever fails.
pub(crate) fn run(checks: &[Check]) -> impl Iterator<Item = (&'static str, Result<()>)> {
    checks.iter().map(|(name, check)| (*name, check()))
}

fn formatting() -> Result<()> {
    step(cargo().args(["fmt", "--all", "--check"]))?;
    // A workspace of its own.
    let programs = ["fmt", "--manifest-path", "ft-ebpf/programs/Cargo.toml", "--check"];
    step(cargo().args(programs))
}

fn packaged_object() -> Result<()> {
    println!("the packaged BPF object is {}", packaged::check()?);
    Ok(())
}

fn lints() -> Result<()> {
    let all = ["clippy", "--workspace", "--all-targets", "--all-features"];
    step(cargo().args(all).args(["--", "-D", "warnings"]))
}

fn documentation() -> Result<()> {
    let all = ["doc", "--workspace", "--all-features", "--no-deps", "--quiet"];
    let lints = "-D warnings -A rustdoc::private_intra_doc_links";
    step(cargo().env("RUSTDOCFLAGS", lints).args(all).arg("--document-private-items"))?;
    // As docs.rs makes its page, which links to nothing that is private.
    let one = ["doc", "--package", "ft-user", "--all-features", "--no-deps", "--quiet"];
    step(cargo().env("RUSTDOCFLAGS", "-D warnings").args(one))
}

fn examples() -> Result<()> {
    step(cargo().args(["test", "--workspace", "--all-features", "--doc", "--no-fail-fast"]))
}

/// Tokio's hooks of tasks, for which all that uses tokio must be built.
fn tokio_hooks() -> Result<()> {
    for command in [&["clippy", "--all-targets", "--", "-D", "warnings"][..], &["test"]] {
        let hooks = "--cfg tokio_unstable";
        let mut tokio = cargo();
        tokio.env("RUSTFLAGS", hooks).env("RUSTDOCFLAGS", hooks);
        tokio.env("CARGO_TARGET_DIR", target_dir().join("tokio"));
        step(tokio.current_dir(root().join("ft-tokio")).args(command))?;
    }
    Ok(())
}
