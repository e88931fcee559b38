//! `cargo xtask test`: sets up what is missing and runs everything: formatting, lints, documentation,
//! unit and integration tests, tests against the running kernel, and the readers of the Parquet.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::{
    build,
    build_ebpf::{self, Toolchain},
    node, python, setup,
    steps::Steps,
    workspace::{cargo, in_path, step, target_dir},
};

/// Runs all checks; `args` go to `cargo test`.
///
/// # Errors
///
/// The first check that fails ends the run.
pub(crate) fn run(args: &[String]) -> Result<()> {
    setup::run(setup::TESTS);
    // Without a compiler the kernel tests are skipped and say so. With one, programs that do not build
    // are a failure.
    match Toolchain::find() {
        Ok(_) => drop(build_ebpf::run()?),
        Err(_) => build::bpf(&mut Steps::new(1)),
    }
    let python = python::READERS.ensure()?;
    // Without Java there is no use for it.
    let spark = if in_path("java") { python::SPARK.ensure()? } else { None };
    let node = node::ensure()?;

    step(cargo().args(["fmt", "--all", "--check"]))?;
    step(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    for feature in ["off", "lock_api", "lock_api_0_4"] {
        step(
            cargo()
                .args(["clippy", "--package", "ft-user", "--all-targets", "--features", feature])
                .args(["--", "-D", "warnings"]),
        )?;
    }
    step(cargo().env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links").args([
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--quiet",
    ]))?;

    // Every interleaving of the rings' two ends; see `ft-user/tests/loom`.
    step(
        cargo()
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", target_dir().join("loom"))
            .args(["test", "--package", "ft-user", "--test", "loom", "--release"]),
    )?;

    // The tests that need a kernel tell in this file what they did: cargo shows no output of tests
    // that pass, and a test that could not run must not look like one that did.
    let ledger = target_dir().join("kernel-tests.log");
    fs::write(&ledger, "").with_context(|| format!("cannot write {}", ledger.display()))?;
    let mut test = cargo();
    test.args(["test", "--workspace"]).args(args).env("FT_KERNEL_TEST_LOG", &ledger);
    if let Some(python) = &python {
        test.env("FT_PYTHON", python);
    }
    if let Some(spark) = &spark {
        test.env("FT_SPARK", spark);
    }
    if let Some(node) = &node {
        test.env("FT_NODE", node);
    }
    let tests = step(&mut test);
    let reported = fs::read_to_string(&ledger).unwrap_or_default();
    let counted = Counted::from_ledger(&reported);
    println!("{}", counted.summary());
    tests?;
    if args.is_empty() {
        let lock_api = ["test", "--package", "ft-user", "--features", "lock_api,lock_api_0_4"];
        step(cargo().args(lock_api).args(["--test", "lock_api*"]))?;
        step(cargo().args(lock_api).args(["--doc", "lock_api"]))?;
    }
    if args.is_empty() && counted.ran + counted.skipped.len() == 0 {
        bail!("no test reported on the kernel: the kernel tests did not run");
    }
    Ok(())
}

/// What the kernel tests reported.
struct Counted<'a> {
    ran: usize,
    /// Each `NAME: REASON`.
    skipped: Vec<&'a str>,
    /// Figures of tests that compare with a known truth, or with other programs.
    measured: Vec<&'a str>,
}

impl<'a> Counted<'a> {
    /// Each line is `ran NAME`, `skipped NAME: REASON` or `measured FIGURE`.
    fn from_ledger(ledger: &'a str) -> Self {
        Counted {
            ran: ledger.lines().filter(|line| line.starts_with("ran ")).count(),
            skipped: ledger.lines().filter_map(|line| line.strip_prefix("skipped ")).collect(),
            measured: ledger.lines().filter_map(|line| line.strip_prefix("measured ")).collect(),
        }
    }

    fn summary(&self) -> String {
        let mut text = format!("kernel tests: {} ran, {} skipped", self.ran, self.skipped.len());
        for line in &self.skipped {
            text += "\n  skipped ";
            text += line;
        }
        for figure in &self.measured {
            text += "\n  ";
            text += figure;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_named_with_their_reason() {
        let counted =
            Counted::from_ledger("ran a\nskipped b: no CAP_BPF\nmeasured x: 5 ns\nran c\n");
        assert_eq!(
            counted.summary(),
            "kernel tests: 2 ran, 1 skipped\n  skipped b: no CAP_BPF\n  x: 5 ns"
        );
    }
}
