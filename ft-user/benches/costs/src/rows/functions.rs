//! What the call of a function costs that a compiler has instrumented, or left sleds in, beside uftrace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::bench::{Bench, losses};
use crate::figures::{Figures, Samples};
use crate::table::{Row, number};

const HOOKS: &str = "-finstrument-functions";

/// Of each function, however small; without XRay's own runtime.
const SLEDS: [&str; 4] = [
    "-fxray-instrument",
    "-fxray-instruction-threshold=1",
    "-fnoxray-link-deps",
    "-DQUIET=__attribute__((xray_never_instrument))",
];

/// gcc's patchable entries, which become sleds.
const ENTRIES: [&str; 2] =
    ["-fpatchable-function-entry=11", "-DQUIET=__attribute__((patchable_function_entry(0)))"];

/// Without it they are left alone.
const PATCHABLE: &str = "FT_PATCHABLE=1";

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let plain = compiled(bench, "plain", &[])?;
    let hooks = compiled(bench, "hooks", &[HOOKS])?;
    let counts = compiled(bench, "counts", &["-pg"])?;
    // Nops at the begin, which uftrace replaces.
    let nops =
        compiled(bench, "nops", &["-pg", "-mfentry", "-mnop-mcount", "-fno-pie", "-no-pie"])?;
    let clang = compiled_by("clang", bench, "clang", &[])?;
    let sleds = compiled_by("clang", bench, "sleds", &SLEDS)?;
    let entries = compiled_by("gcc", bench, "entries", &ENTRIES)?;
    let mut samples = Samples::default();
    let mut remarks = Vec::new();
    for round in 0..bench.rounds(7) {
        samples.add("plain", call(bench, bench.program(&plain))?);
        samples.add("hooks", call(bench, bench.program(&hooks))?);
        samples.add("off", call(bench, preloaded(bench, &hooks))?);
        samples
            .add("on", recorded(bench, &["-k", "none", "-e", "fn.*", "--preload"], &hooks, &[])?);
        samples.add("clang", call(bench, bench.program(&clang))?);
        samples.add("sleds", call(bench, bench.program(&sleds))?);
        samples.add("sleds off", call(bench, preloaded(bench, &sleds))?);
        samples.add(
            "sleds on",
            recorded(bench, &["-k", "none", "-e", "fn.leaf", "--preload"], &sleds, &[])?,
        );
        samples.add("entries", call(bench, bench.program(&entries))?);
        samples.add("entries off", call(bench, preloaded(bench, &entries))?);
        samples.add(
            "entries on",
            recorded(bench, &["-k", "none", "-e", "fn.leaf", "--preload"], &entries, &[])?,
        );
        samples.add("-pg", call(bench, bench.program(&counts))?);
        samples.add("nops", call(bench, bench.program(&nops))?);
        let peers = [("uftrace", &counts, &[][..]), ("uftrace -P", &nops, &["-P", "."])];
        for (name, program, options) in peers {
            match uftrace(bench, program, options) {
                Ok(call) => samples.add(name, call),
                Err(error) if round == 0 => remarks.push(format!("{name}: {error:#}")),
                Err(_) => {}
            }
        }
    }
    let plain = samples.must("plain")?;
    let added = |name: &str| samples.median(name).map(|call| call - plain);
    let must = |name: &str| samples.must(name).map(|call| call - plain);
    let by_clang = samples.must("clang")?;
    let sleds = |name: &str| samples.must(name).map(|call| call - by_clang);
    let off =
        "a call of a function of C with `-finstrument-functions`, preload library, off, added; ns";
    Ok(vec![
        Row::new(off, number(must("off")?)).beside([
            ("without the library", added("hooks")),
            ("-pg, as uftrace needs it", added("-pg")),
            ("nops that uftrace can patch", added("nops")),
            ("the call itself", Some(plain)),
        ]),
        Row::new("the same, on", number(must("on")?))
            .beside([
                ("uftrace record", added("uftrace")),
                ("uftrace record -P", added("uftrace -P")),
            ])
            .remark(&remarks.join("; ")),
        Row::new(
            "a call of a function of C with the sleds of clang, preload library, off, added; ns",
            number(sleds("sleds off")?),
        )
        .beside([
            ("without the library", Some(sleds("sleds")?)),
            ("nops that uftrace can patch", added("nops")),
            ("the call itself", Some(by_clang)),
        ]),
        Row::new("the same, on", number(sleds("sleds on")?)).beside([
            ("uftrace record", added("uftrace")),
            ("uftrace record -P", added("uftrace -P")),
        ]),
        Row::new(
            "a call of a function of C with a patchable entry of gcc, preload library, off, added; ns",
            number(must("entries off")?),
        )
        .beside([
            ("without the library", added("entries")),
            ("nops that uftrace can patch", added("nops")),
            ("the call itself", Some(plain)),
        ]),
        Row::new("the same, on: the begin alone", number(must("entries on")?)).beside([
            ("uftrace record", added("uftrace")),
            ("uftrace record -P", added("uftrace -P")),
        ]),
    ])
}

/// The program of `c/functions.c`, compiled with these flags.
pub(super) fn compiled(bench: &Bench, name: &str, flags: &[&str]) -> Result<PathBuf> {
    compiled_by("cc", bench, name, flags)
}

fn compiled_by(compiler: &str, bench: &Bench, name: &str, flags: &[&str]) -> Result<PathBuf> {
    let program = bench.path(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/functions.c");
    let mut cc = Command::new(compiler);
    let status = cc.arg("-O2").args(flags).arg(source).arg("-o").arg(&program).status()?;
    ensure!(status.success(), "c/functions.c does not compile with {flags:?}");
    Ok(program)
}

fn call(bench: &Bench, mut command: Command) -> Result<f64> {
    // A program with `-pg` leaves a file where it ran.
    Figures::of(command.current_dir(bench.path("")))?.get("call")
}

fn preloaded(bench: &Bench, program: &Path) -> Command {
    let mut command = bench.program("env");
    command.args([PATCHABLE, &format!("LD_PRELOAD={}", bench.preload().display())]).arg(program);
    command
}

/// What a call takes while we record the program with these options, without loss.
pub(super) fn recorded(
    bench: &Bench,
    options: &[&str],
    program: &Path,
    arguments: &[&str],
) -> Result<f64> {
    let dir = bench.path("trace");
    let mut command = bench.recorder(&dir, options);
    command.envs(PATCHABLE.split_once('='));
    let told = Figures::of(command.arg(program).args(arguments));
    let _ = fs::remove_dir_all(&dir);
    let told = told?;
    let lost = losses(&told)?;
    ensure!(lost == 0, "{lost} events were lost");
    told.get("call")
}

/// Of its own threads uftrace tells losses in the report alone, where calls are missing then.
fn uftrace(bench: &Bench, program: &Path, options: &[&str]) -> Result<f64> {
    let dir = bench.path("uftrace");
    let _ = fs::remove_dir_all(&dir);
    let mut record = bench.program("uftrace");
    record
        .args(["record", "--no-libcall", "--no-event", "-d"])
        .arg(&dir)
        .args(options)
        .arg(program);
    let call = call(bench, record)?;
    let report =
        bench.program("uftrace").args(["report", "--no-pager", "-d"]).arg(&dir).output()?;
    let _ = fs::remove_dir_all(&dir);
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    let leaf = text.lines().find(|line| line.ends_with(" leaf"));
    match leaf.and_then(|line| line.split_whitespace().rev().nth(1)) {
        Some("1050000") => Ok(call),
        Some(calls) => bail!("it has {calls} of 1050000 calls"),
        None => bail!("it has no call"),
    }
}
