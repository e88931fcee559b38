//! The shares of functions beside those that `perf record -e cpu-clock` finds in the same run.

use std::collections::HashMap;
use std::process::Command;

use ft_report::code::Code;
use ft_trace::store::Trace;
use ft_trace::tables::Sample;

use crate::gate;
use crate::stage::{Stage, functions, succeed};

/// The functions that the program spends its time in.
const FUNCTIONS: [&str; 3] = ["alone", "holding", "either"];

/// Quantiles of the normal distribution: what lies nearer has a probability of 99 %, and of 99.99 %, which is what is asserted:
/// three shares of one run would be further off than the first in one run of forty, by chance.
const LIKELY: f64 = 2.5758;
const ALMOST_SURE: f64 = 3.8906;

/// Samples of the program, and those with each function.
#[derive(Default)]
struct Counted {
    all: f64,
    with: HashMap<&'static str, f64>,
}

impl Counted {
    fn add<S: AsRef<str>>(&mut self, chain: &[S]) {
        self.all += 1.0;
        for name in FUNCTIONS {
            if chain.iter().any(|function| function.as_ref() == name) {
                *self.with.entry(name).or_default() += 1.0;
            }
        }
    }

    fn share(&self, name: &str) -> f64 {
        self.with.get(name).map_or(0.0, |n| n / self.all)
    }
}

/// The difference of a share in two samples, in standard errors of such a difference where there is none.
fn apart(name: &str, a: &Counted, b: &Counted) -> f64 {
    let both = (a.share(name) * a.all + b.share(name) * b.all) / (a.all + b.all);
    let error = (both * (1.0 - both) * (1.0 / a.all + 1.0 / b.all)).sqrt();
    (a.share(name) - b.share(name)).abs() / error
}

#[test]
fn shares_are_those_of_perf_in_the_same_run() {
    let Some(stage) = Stage::enter() else { return };
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return gate::skipped("perf is not installed (Debian: linux-perf)");
    }
    let program = stage.compile("shares");
    let data = stage.trace().with_extension("perf");
    let mut agent = stage.agent("record");
    agent
        .args(["-k", "default,profile", "--sample-rate", "997", "-o"])
        .arg(stage.trace())
        .arg("--");
    agent.args(["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "997", "-o"]);
    succeed(agent.arg(&data).arg("--").arg(&program));

    let mut script = Command::new("perf");
    script.args(["script", "-F", "comm,pid,ip,sym", "-i"]).arg(&data);
    let text = String::from_utf8(succeed(&mut script).stdout).expect("text");
    let (mut theirs, mut pid) = (Counted::default(), None);
    // A line that says whose it is, then one for each function, with its address.
    for sample in text.split("\n\n") {
        let mut lines = sample.lines();
        let head: Vec<&str> = lines.next().unwrap_or("").split_whitespace().collect();
        if let ["shares", number] = head[..] {
            pid = number.parse().ok();
            let chain: Vec<&str> =
                lines.filter_map(|line| line.split_whitespace().nth(1)).collect();
            theirs.add(&chain);
        }
    }
    let pid: i32 = pid.expect("samples of the program");

    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let mut ours = Counted::default();
    for sample in trace.rows::<Sample>().map(|row| row.expect("a row")) {
        if sample.pid.0 == pid {
            ours.add(&functions(&code, sample.stack));
        }
    }
    // Three seconds on a CPU, of which a virtual machine can take some away.
    assert!(ours.all > 1500.0 && theirs.all > 1500.0, "{} and {} samples", ours.all, theirs.all);
    for name in FUNCTIONS {
        let (apart, ours_of_it, theirs_of_it) =
            (apart(name, &ours, &theirs), ours.share(name), theirs.share(name));
        let within = if apart <= LIKELY { "within" } else { "not within" };
        gate::measured(&format!(
            "{name}: {:.2} % of {} samples, perf {:.2} % of {}: {apart:.2} standard errors apart, {within} 99 %",
            100.0 * ours_of_it,
            ours.all,
            100.0 * theirs_of_it,
            theirs.all
        ));
        assert!(apart <= ALMOST_SURE, "{name}: {ours_of_it} and perf's {theirs_of_it}");
    }
}

#[test]
fn the_judge_of_two_shares_would_see_a_wrong_one() {
    let counted = |n: f64, all: f64| Counted { all, with: HashMap::from([("alone", n)]) };
    let apart = |a: f64, b: f64| apart("alone", &counted(a, 3000.0), &counted(b, 3000.0));
    assert!(apart(1500.0, 1560.0) < LIKELY);
    assert!((LIKELY..ALMOST_SURE).contains(&apart(1500.0, 1620.0)));
    assert!(apart(1500.0, 1700.0) > ALMOST_SURE);
}
