//! What a call costs whose begin and end are probed, beside bpftrace, which counts them.

use std::path::Path;

use anyhow::{Result, ensure};

use super::functions::{compiled, recorded};
use crate::bench::Bench;
use crate::figures::{Figures, Samples};
use crate::table::{Row, number};

/// Calls of a batch: a probe is a trap into the kernel, which some virtual machines make dear.
const CALLS: u64 = 5000;

/// Batches of `c/functions.c`.
const BATCHES: u64 = 21;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let program = compiled(bench, "plain", &[])?;
    let mut samples = Samples::default();
    let mut remarks = String::new();
    for round in 0..bench.rounds(7) {
        let mut alone = bench.program(&program);
        samples.add("alone", Figures::of(alone.arg(CALLS.to_string()))?.get("call")?);
        let options = ["-k", "none", "--probe", &format!("{}:leaf", program.display())];
        samples.add("ours", recorded(bench, &options, &program, &[&CALLS.to_string()])?);
        match bpftrace(bench, &program) {
            Ok(call) => samples.add("bpftrace", call),
            Err(error) if round == 0 => remarks = format!("bpftrace: {error:#}"),
            Err(_) => {}
        }
    }
    let alone = samples.must("alone")?;
    let added = |name: &str| samples.median(name).map(|call| call - alone);
    let what = "a call of a function with a probe at its begin and its end, added; ns";
    let row = Row::new(what, number(samples.must("ours")? - alone));
    Ok(vec![row.beside([("bpftrace, which counts", added("bpftrace"))]).remark(&remarks)])
}

fn bpftrace(bench: &Bench, program: &Path) -> Result<f64> {
    let (path, all) = (program.display(), CALLS * BATCHES);
    let mut command = bench.program("bpftrace");
    let counts = format!(
        "uprobe:{path}:leaf {{ @begins = count(); }} uretprobe:{path}:leaf {{ @ends = count(); }}"
    );
    let told = Figures::of(command.args(["-e", &counts, "-c", &format!("{path} {CALLS}")]))?;
    for what in ["begins", "ends"] {
        let counted = told.text.lines().any(|line| line == format!("@{what}: {all}"));
        ensure!(counted, "it does not count {all} {what}");
    }
    told.get("call")
}
