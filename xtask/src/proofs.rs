//! `cargo xtask stress`, `sanitize`, `compare-rates`, `miri`, `damage` and `fuzz`: proofs that need much time, or more than stable Rust.
//!
//! What a tool that is missing would have shown is not shown: each says so, and ends with an error, so
//! that nobody takes a run that did not happen for one that passed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::workspace::{cargo, in_path, root, step, target_dir};

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Targets of `cargo fuzz`, by the crate whose `fuzz` directory they are in.
const FUZZ: [(&str, &[&str]); 2] = [
    ("ft-user", &["directory", "ring", "shared_ring"]),
    ("ft-agent", &["header", "memfd", "outside", "hello", "frame", "names", "convert"]),
];

/// Inputs that a fuzz target begins with, and bytes of the smallest; the largest has 4 KiB.
const SEEDS: usize = 32;
const SMALLEST_SEED: usize = 32;

/// The stress tests at full length, or `FT_STRESS` times the length that `cargo test` gives them: 25 s of
/// switching sites, 25 s of signals, 5,000 processes killed, 25,000 threads.
///
/// # Errors
///
/// The first test that fails.
pub(crate) fn stress() -> Result<()> {
    let factor = std::env::var("FT_STRESS").unwrap_or_else(|_| "25".into());
    step(
        cargo()
            .env("FT_STRESS", factor)
            .args(["test", "--package", "ft-user", "--release", "--test", "stress"])
            .args(["--", "--nocapture", "--test-threads=1"]),
    )
}

/// How often `ft-agent compare` calls different what is not, and how often it finds a slowdown of 5, 20 and 50 %, and by
/// how many recordings a side in 95 % of pairs: 40 recordings of one program (`FT_COMPARE_RECORDINGS`) in turns with as many of each
/// slower version, and pairs of sets of them,
/// with these kernel groups (`FT_COMPARE_KERNEL`, none). In `FT_COMPARE_TRACES` the recordings are kept, and used again.
///
/// # Errors
///
/// When it errs more often than stated.
pub(crate) fn compare_rates() -> Result<()> {
    step(cargo().args(["test", "--package", "ft-tests", "--release", "--test", "compare"]).args([
        "--",
        "--ignored",
        "--nocapture",
    ]))
}

/// What reads or writes shared memory, or parses what an application wrote: arguments of `cargo test`, the
/// tests that run under AddressSanitizer, and those of them that run under valgrind, which is slow.
const PARSERS: [(&[&str], &[&str], &[&str]); 3] = [
    (
        &[
            "--package",
            "ft-user",
            "--lib",
            "--test",
            "memfd",
            "--test",
            "threads",
            "--test",
            "fork",
        ],
        &[],
        &["ring", "reader", "directory", "site"],
    ),
    (
        &["--package", "ft-trace", "--lib"],
        &["build_id::", "spool::", "convert::", "clock::"],
        &["spool::", "convert::"],
    ),
    (
        &["--package", "ft-agent", "--lib"],
        &["collect::", "clock::"],
        // Not the sources: valgrind knows no `pidfd_open`.
        &["collect::outside", "collect::geometry"],
    ),
];

/// Tests of ring, records and shared memory, and of the agent's parsers of them, under AddressSanitizer, and
/// under valgrind.
///
/// # Errors
///
/// The first finding, or a tool that is missing.
pub(crate) fn sanitize() -> Result<()> {
    nightly("AddressSanitizer needs it")?;
    for (which, tests, _) in PARSERS {
        // Tests leak on purpose: what a process maps for its life, it never gives back.
        step(
            nightly_cargo()
                .env("RUSTFLAGS", "-Zsanitizer=address")
                .env("ASAN_OPTIONS", "detect_leaks=0")
                .env("CARGO_TARGET_DIR", target_dir().join("asan"))
                .args(["test", "--target", HOST])
                .args(which)
                .arg("--")
                .args(tests),
        )?;
    }
    if !in_path("valgrind") {
        bail!("valgrind is not there: install the package `valgrind`; its part was not run");
    }
    // Fair scheduling: valgrind runs one thread at a time, and a reader that polls would starve its
    // writer.
    let runner = "valgrind -q --error-exitcode=9 --fair-sched=yes";
    for (which, _, tests) in PARSERS {
        step(
            cargo()
                .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner)
                .args(["test", "--lib"])
                .args(&which[..2])
                .arg("--")
                .args(tests),
        )?;
    }
    Ok(())
}

/// Tests of the ring algorithms under Miri, whose small counts they choose by `cfg(miri)`.
///
/// # Errors
///
/// The first finding, or when Miri is not installed.
pub(crate) fn miri() -> Result<()> {
    nightly("Miri is a part of it")?;
    let there = nightly_cargo()
        .args(["miri", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !there.is_ok_and(|status| status.success()) {
        bail!(
            "Miri is not installed, and nothing was run; install it with \
             `rustup +nightly component add miri rust-src`"
        );
    }
    for flags in ["", "-Zmiri-preemption-rate=0"] {
        step(
            nightly_cargo()
                .env("MIRIFLAGS", format!("-Zmiri-disable-isolation {flags}"))
                .env("CARGO_TARGET_DIR", target_dir().join("miri"))
                .args(["miri", "test", "--package", "ft-user", "--lib", "--"])
                .args(["ring::", "reader::", "shared_ring::", "directory::"]),
        )?;
    }
    Ok(())
}

/// Tests that damage files by chance.
const DAMAGED: [&str; 2] = [
    "convert::names::tests::a_damaged_library_costs_its_own_names_alone",
    "spool::tests::damage_hides_its_chunk_and_what_it_hides_is_counted",
];

/// 10,000 damaged libraries and maps of compilers, read by a process without rights, and as many damaged spools; or `FT_DAMAGED` times a
/// hundred of each. The tests run one by one: the memory of one is not that of another.
///
/// # Errors
///
/// The first finding.
pub(crate) fn damage() -> Result<()> {
    let factor = std::env::var("FT_DAMAGED").unwrap_or_else(|_| "100".into());
    for test in DAMAGED {
        step(
            cargo()
                .env("FT_DAMAGED", &factor)
                .args(["test", "--package", "ft-trace", "--release", "--lib", "--"])
                .args(["--nocapture", test]),
        )?;
    }
    Ok(())
}

/// Runs every fuzz target, or those that are named, for ten minutes each, or `FT_FUZZ_SECONDS`.
///
/// # Errors
///
/// The first finding, a name that is none, or `cargo-fuzz` missing.
pub(crate) fn fuzz(args: &[String]) -> Result<()> {
    let seconds: u32 = std::env::var("FT_FUZZ_SECONDS").map_or(Ok(600), |text| text.parse())?;
    nightly("the fuzzers need it")?;
    if !in_path("cargo-fuzz") {
        bail!("cargo-fuzz is not there, and nothing was run; `cargo install cargo-fuzz`");
    }
    let known = |name: &String| FUZZ.iter().any(|(_, targets)| targets.contains(&name.as_str()));
    if let Some(other) = args.iter().find(|name| !known(name)) {
        bail!(
            "there is no fuzz target `{other}`; they are in the `fuzz` directories of the crates"
        );
    }
    for (package, targets) in FUZZ {
        for target in targets.iter().filter(|&&t| args.is_empty() || args.iter().any(|a| a == t)) {
            let dir = root().join(package).join("fuzz");
            seed(target, &dir.join("corpus").join(target))?;
            step(
                nightly_cargo()
                    .args(["fuzz", "run", "--fuzz-dir"])
                    .arg(dir)
                    .args([*target, "--"])
                    .arg(format!("-max_total_time={seconds}")),
            )?;
        }
    }
    Ok(())
}

/// Gives a target that has no inputs yet noise of all sizes to begin with. Most targets make structures of
/// any bytes; from nothing it takes the fuzzer long to come to inputs that hold more than one.
fn seed(target: &str, corpus: &Path) -> Result<()> {
    fs::create_dir_all(corpus)?;
    if fs::read_dir(corpus)?.next().is_some() {
        return Ok(());
    }
    if target == "names" {
        return programs(corpus);
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 32) as u8
    };
    for i in 0..SEEDS {
        let bytes: Vec<u8> = (0..SMALLEST_SEED << (i % 8)).map(|_| noise()).collect();
        fs::write(corpus.join(format!("seed-{i}")), bytes)?;
    }
    Ok(())
}

/// Functions with others inlined in them, some in namespaces.
const PROGRAM: &str = "
    namespace outer { template<class T> struct S { T t; }; int table[8];
        static inline int inner(S<int> s) { return s.t * table[s.t & 7]; }
        __attribute__((noinline)) int middle(int n) { return inner({n}) + inner({n + 1}); } }
    extern \"C\" int first(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += outer::middle(i); return sum; }";

/// Small libraries with debugging information of several kinds, and a compiler's map.
fn programs(corpus: &Path) -> Result<()> {
    let source = target_dir().join("names-seed.cc");
    fs::write(&source, PROGRAM)?;
    for flags in ["-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gz", "-gdwarf-4 -gz -O0", "-g0", "-g0 -s"] {
        let mut compile = Command::new("c++");
        compile.args("-O2 -shared -fPIC -nostdlib -Wl,-z,noseparate-code".split(' '));
        compile.args(flags.split(' ')).arg(&source);
        compile.arg("-o").arg(corpus.join(format!("seed{}", flags.replace(' ', ""))));
        step(&mut compile)?;
    }
    fs::write(corpus.join("seed-map"), "1000 20 first\n0x2000 8 LazyCompile:*f /a b.js:1\n")?;
    Ok(())
}

/// The cargo of the nightly toolchain.
fn nightly_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]);
    command
}

fn nightly(why: &str) -> Result<()> {
    let there = nightly_cargo().arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        bail!(
            "there is no nightly toolchain ({why}), and nothing was run; `rustup install nightly`"
        );
    }
    Ok(())
}
