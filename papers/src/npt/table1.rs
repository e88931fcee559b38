//! Table 1: cyclictest beside hackbench and compilers.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::{Load, output};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "npt-table1",
    title: "npt, Table 1: cyclictest beside hackbench and compilers",
    full_minutes: 60.1,
    programs: &["cyclictest", "hackbench", "c++"],
    run,
};

const PAPER_SECONDS: f64 = 3600.0;

const INTERVAL_US: f64 = 100.0;

/// Eight compilers, as `make -j8` has them: what they compile matters less than that they do.
const COMPILE: &str = "for n in 1 2 3 4 5 6 7 8; do echo '#include <regex>' | c++ -O2 -x c++ -S -o /dev/null - & done; wait";

fn run(lab: &Lab) -> Result<Finding> {
    let mut hackbench = Load::repeat("hackbench -l 1000")?;
    let mut compilers = Load::repeat(COMPILE)?;
    let file = std::env::temp_dir().join(format!("ft-papers-table1-{}.json", std::process::id()));
    let loops = (lab.seconds(PAPER_SECONDS) * 1e6 / INTERVAL_US).round();
    let mut cyclictest = Command::new("cyclictest");
    cyclictest.args(["-q", "-m", "--smp", "--default-system", "-p95", "-i100", "-h100000"]);
    cyclictest.args([format!("-l{loops}"), format!("--json={}", file.display())]);
    output(&mut cyclictest)?;
    hackbench.check("hackbench")?;
    compilers.check("the compilers")?;
    let text = std::fs::read_to_string(&file).context("cyclictest wrote no JSON")?;
    let _ = std::fs::remove_file(&file);
    let json: Value = serde_json::from_str(&text).context("cyclictest's JSON")?;
    let threads = json["thread"].as_object().context("cyclictest's threads")?;

    let mut csv = Csv::new(["cpu", "late_us", "count"]);
    let mut rows = Vec::new();
    for thread in threads.values() {
        let cpu = thread["cpu"].as_u64().unwrap_or(0);
        for (us, count) in thread["histogram"].as_object().into_iter().flatten() {
            csv.row([&cpu, us, &count.as_u64().unwrap_or(0)]);
        }
        let figure = |name: &str| thread[name].as_f64().unwrap_or(f64::NAN);
        rows.push(Row::new(
            format!("CPU {cpu}: latency, min, mean, max"),
            "max: standard kernel 18 µs on three CPUs, about twice that on the fourth; RT at most 8 µs",
            format!(
                "{:.0}, {:.1}, {:.0} µs of {:.0} cycles",
                figure("min"),
                figure("avg"),
                figure("max"),
                figure("cycles")
            ),
            "a virtual machine, whose timers and CPUs are the host's; and a kernel without preemption, where a system call of \
             the load is not interrupted",
        ));
    }
    Ok(Finding {
        how: "`cyclictest -i100 -m -p95 --smp` beside `hackbench` and eight C++ compilers, which stand for the paper's build of a \
              kernel. Only the kernel that runs here: PREEMPT_RT is left out."
            .into(),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows,
    })
}
