//! `cargo xtask test`: sets up what is missing and runs everything: formatting, lints, documentation,
//! unit and integration tests, tests against the running kernel, and the readers of the Parquet.

use std::fs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::{
    build,
    build_ebpf::{self, Toolchain},
    framed_python, kernels, node, package, packaged, programs, python, setup, space,
    steps::Steps,
    workspace::{cargo, in_path, root, step, target_dir},
};

/// Runs all checks; `args` go to `cargo test`.
///
/// # Errors
///
/// The first check that fails ends the run.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(warning) = space::warning(&target_dir()).filter(|_| args.is_empty()) {
        eprintln!("{warning}");
    }
    setup::run(setup::TESTS);
    // Without a compiler the kernel tests are skipped and say so. With one, programs that do not build
    // are a failure.
    match Toolchain::find() {
        Ok(_) => drop(build_ebpf::run()?),
        Err(_) => build::bpf(&mut Steps::new(1)),
    }
    println!("the packaged BPF object is {}", packaged::check()?);
    // What tests use is downloaded while the code is compiled for the first time.
    let tools = thread::scope(|scope| {
        let tools = scope.spawn(Tools::ensure);
        checks()?;
        tools.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;

    let mut ledger = Ledger::new()?;
    let environment = ledger.environment(&tools);
    let tests = match args.is_empty() {
        true => whole(&environment),
        false => {
            let mut test = cargo();
            test.args(["test", "--workspace", "--no-fail-fast"]).args(args);
            step(test.envs(environment).env(WORKSPACE, "1"))
        }
    };
    ledger.read();
    // Where the tests passed on this kernel, those on others are worth their time.
    let others = match args.is_empty() && tests.is_ok() {
        true => kernels::in_test_run(&mut ledger.reported, tools.python.as_deref()),
        false => Ok(()),
    };
    let counted = Counted::from_ledger(&ledger.reported);
    println!("{}", counted.summary());
    tests?;
    others?;
    if args.is_empty() {
        let lock_api = ["test", "--package", "ft-user", "--features", "lock_api,lock_api_0_4"];
        step(cargo().args(lock_api).args(["--test", "lock_api*"]))?;
        step(cargo().args(lock_api).args(["--doc", "lock_api"]))?;
        let slice = ["test", "--package", "ft-user", "--features", "slice"];
        step(cargo().args(slice).args(["--lib", "slice"]))?;
        step(cargo().args(slice).args(["--test", "slice", "--test", "locks"]))?;
        // Tokio's hooks of tasks, for which all that uses tokio must be built.
        for command in [&["clippy", "--all-targets", "--", "-D", "warnings"][..], &["test"]] {
            let hooks = "--cfg tokio_unstable";
            let mut tokio = cargo();
            tokio.env("RUSTFLAGS", hooks).env("RUSTDOCFLAGS", hooks);
            tokio.env("CARGO_TARGET_DIR", target_dir().join("tokio"));
            step(tokio.current_dir(root().join("ft-tokio")).args(command))?;
        }
        println!("{}", package::check()?);
    }
    if args.is_empty() && counted.ran + counted.skipped.len() == 0 {
        bail!("no test reported on the kernel: the kernel tests did not run");
    }
    Ok(())
}

/// What needs no kernel and no tools: formatting, lints, documentation, and the model of the rings.
fn checks() -> Result<()> {
    step(cargo().args(["fmt", "--all", "--check"]))?;
    step(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    for feature in ["off", "lock_api", "lock_api_0_4", "slice"] {
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
    // Its page has what features add, which nothing else here asks for.
    let page = docs_rs_features(&fs::read_to_string(root().join("ft-user/Cargo.toml"))?)?;
    step(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--package",
        "ft-user",
        "--no-deps",
        "--quiet",
        "--features",
        &page,
    ]))?;

    // Every interleaving of the rings' two ends; see `ft-user/tests/loom`.
    step(
        cargo()
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", target_dir().join("loom"))
            .args(["test", "--package", "ft-user", "--test", "loom", "--release"]),
    )
}

/// Says that examples which tests record are to be built with the features that all packages together have.
const WORKSPACE: &str = "FT_WORKSPACE";

/// The tests of all packages, and the examples in their documentation. Whoever waits for the whole run wants to see all that
/// fails in it, and not the first alone.
fn whole(environment: &[(&str, PathBuf)]) -> Result<()> {
    let programs = programs::build(&[])?;
    let tests = programs::run(programs, &target_dir().join("tests"), |program| {
        program.envs(environment.iter().cloned()).env(WORKSPACE, "1");
    });
    let examples = step(cargo().args(["test", "--workspace", "--doc", "--no-fail-fast"]));
    tests.and(examples)
}

/// The features with which docs.rs documents a crate, by its manifest, with commas.
fn docs_rs_features(manifest: &str) -> Result<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[package.metadata.docs.rs]").skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let list = lines.find_map(|line| line.strip_prefix("features = [")?.strip_suffix(']'));
    let list = list.context("the manifest has no features for docs.rs")?;
    Ok(list.replace(['"', ' '], ""))
}

/// Recordings of programs that know what they did, in as many rounds as `FT_ROUNDS` says, or 50: those tests whose names
/// contain one of `tests`, or all. In the whole test run some play fewer.
///
/// # Errors
///
/// The first set of tests that fails.
pub(crate) fn truths(tests: &[String]) -> Result<()> {
    setup::run(setup::TESTS);
    build_ebpf::run()?;
    let mut ledger = Ledger::new()?;
    let rounds = std::env::var("FT_ROUNDS").unwrap_or_else(|_| "50".into());
    let mut test = cargo();
    test.env("FT_ROUNDS", rounds).args(["test", "--package", "ft-tests"]);
    test.args(["--test", "end_to_end", "--test", "chains", "--"]).args(tests);
    let python = python::READERS.ensure()?;
    let (framed_python, node) = (framed_python::ensure(), node::ensure()?);
    let tools = Tools { python, framed_python, spark: None, sail: None, store: None, node };
    let tests = step(test.envs(ledger.environment(&tools)));
    ledger.read();
    println!("{}", Counted::from_ledger(&ledger.reported).summary());
    tests
}

/// Interpreters that tests use, with what is installed for them; `None` where they cannot be had.
struct Tools {
    python: Option<PathBuf>,
    framed_python: Option<PathBuf>,
    spark: Option<PathBuf>,
    store: Option<PathBuf>,
    sail: Option<PathBuf>,
    node: Option<PathBuf>,
}

impl Tools {
    fn ensure() -> Result<Tools> {
        Ok(Tools {
            python: python::READERS.ensure()?,
            framed_python: framed_python::ensure(),
            // Without Java there is no use for it.
            spark: if in_path("java") { python::SPARK.ensure()? } else { None },
            store: python::STORE.ensure()?,
            sail: python::SAIL.ensure()?,
            node: node::ensure()?,
        })
    }
}

/// What the tests that need a kernel tell: cargo shows no output of tests that pass, and one that could not run must not look
/// like one that did.
struct Ledger {
    file: PathBuf,
    reported: String,
}

impl Ledger {
    fn new() -> Result<Ledger> {
        let file = target_dir().join("kernel-tests.log");
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Ledger { file, reported: String::new() })
    }

    /// What tests that tell it, and use tools, find in their environment.
    fn environment(&self, tools: &Tools) -> Vec<(&'static str, PathBuf)> {
        let Tools { python, framed_python, spark, sail, store, node } = tools;
        let named = [
            ("FT_KERNEL_TEST_LOG", &Some(self.file.clone())),
            ("FT_PYTHON", python),
            ("FT_FRAMED_PYTHON", framed_python),
            ("FT_SPARK", spark),
            ("FT_SAIL", sail),
            ("FT_MOTO", store),
            ("FT_NODE", node),
        ];
        named.into_iter().filter_map(|(name, tool)| Some((name, tool.clone()?))).collect()
    }

    /// Reads what they have told.
    fn read(&mut self) {
        self.reported = fs::read_to_string(&self.file).unwrap_or_default();
    }
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
    fn a_page_of_docs_rs_has_the_features_of_its_manifest() {
        let manifest = "[features]\nfeatures = [\"x\"]\n[package.metadata.docs.rs]\ntargets = []\n\
                        features = [\"a\", \"b_c\"]\n\n[dependencies]\n";
        assert_eq!(docs_rs_features(manifest).unwrap(), "a,b_c");
        let none = manifest.replace("features = [\"a\"", "others = [\"a\"");
        assert!(docs_rs_features(&none).is_err());
    }

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
