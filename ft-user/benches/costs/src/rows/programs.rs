//! What whole programs lose of their throughput while somebody records them.
//!
//! Each is a script beside this crate that starts a server, drives it, and tells its rate. Everything of it is recorded,
//! the driver, too, and may use all CPUs, as the tracers may: what is found is what a user loses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::locks::WRAPPER;
use crate::bench::{Bench, losses};
use crate::figures::{Figures, Samples};
use crate::lttng::Daemon;
use crate::table::Row;

const OURS: &str = "sched,irq,task";

/// How each is recorded by us: what it is called, and the options.
const RECORDED: [(&str, &[&str]); 3] = [
    (OURS, &["-k", OURS]),
    ("with --preload", &["-k", OURS, "--preload"]),
    ("with call chains", &["-k", "sched,irq,task,stack"]),
];

/// Rounds: of six ratios, the least and the largest enclose the true median with 97 %.
const ROUNDS: usize = 6;

pub(crate) fn redis(bench: &Bench) -> Result<Vec<Row>> {
    row(bench, "redis-server under redis-benchmark", "redis")
}

pub(crate) fn memcached(bench: &Bench) -> Result<Vec<Row>> {
    row(bench, "memcached, 2 threads, under memcslap", "memcached")
}

pub(crate) fn pgbench(bench: &Bench) -> Result<Vec<Row>> {
    row(bench, "PostgreSQL under pgbench -S, 4 clients", "pgbench")
}

pub(crate) fn compile(bench: &Bench) -> Result<Vec<Row>> {
    row(bench, "make -j2 of 16 C files", "compile")
}

fn row(bench: &Bench, name: &str, script: &str) -> Result<Vec<Row>> {
    let program = Program::new(bench, script)?;
    let lttng = if Path::new(WRAPPER).exists() { bench.lttng()? } else { None };
    let mut samples = Samples::default();
    let mut remarks = Vec::new();
    // The first time makes what the others use.
    program.alone()?;
    for round in 0..bench.rounds(ROUNDS) {
        let before = program.alone()?;
        let mut taken = Vec::new();
        for (who, options) in RECORDED {
            let (rate, lost) = program.ours(options)?;
            taken.push((who, rate));
            samples.add("lost", lost as f64);
        }
        let others = [
            ("perf sched record", Some(program.perf())),
            ("LTTng-UST's wrapper", lttng.as_ref().map(|l| program.lttng(l))),
        ];
        for (who, rate) in others {
            match rate {
                Some(Ok(rate)) => taken.push((who, rate)),
                Some(Err(error)) if round == 0 => remarks.push(format!("{who}: {error:#}")),
                _ => {}
            }
        }
        let alone = (before * program.alone()?).sqrt();
        taken.into_iter().for_each(|(who, rate)| samples.add(who, rate / alone));
    }
    let ratio = |who: &str| Ratio::of(samples.all(who));
    let others = RECORDED[1..]
        .iter()
        .map(|(who, _)| *who)
        .chain(["perf sched record", "LTTng-UST's wrapper"]);
    let beside: Vec<String> =
        others.filter_map(|who| Some(format!("{who} {}", ratio(who)?.text()))).collect();
    if let Some(lost) = samples.highest("lost").filter(|&lost| lost > 0.0) {
        remarks.push(format!("**{lost:.0} records of a run were lost**"));
    }
    let ours = ratio(OURS).context("nothing was measured")?;
    let what = format!("{name}, our groups {OURS}: throughput, of that of the program alone");
    Ok(vec![Row::new(what, ours.text()).remark(&[beside, remarks].concat().join("; "))])
}

/// A ratio, and an interval that has the true median with at least 95 %.
#[derive(Debug, PartialEq)]
struct Ratio {
    median: f64,
    /// `None`: too few values for any.
    interval: Option<(f64, f64)>,
}

impl Ratio {
    /// By order: how many of n independent values lie below the true median is known whatever their distribution
    /// (W. R. Thompson, *On confidence ranges for the median*, 1936).
    fn of(values: &[f64]) -> Option<Ratio> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let median = *sorted.get(n / 2)?;
        // The probability that at most k of n lie below, halves of which are on either side.
        let (mut ways, mut below, mut k) = (1.0, 1.0, 0);
        let all = 2f64.powi(n as i32);
        while 2.0 * below / all <= 0.05 {
            k += 1;
            ways *= (n - k + 1) as f64 / k as f64;
            below += ways;
        }
        let interval = k.checked_sub(1).map(|least| (sorted[least], sorted[n - 1 - least]));
        Some(Ratio { median, interval })
    }

    fn text(&self) -> String {
        match self.interval {
            Some((least, most)) => format!("{:.3} ({least:.3} to {most:.3})", self.median),
            None => format!("{:.3}", self.median),
        }
    }
}

/// A script, and a folder of its own.
struct Program<'a> {
    bench: &'a Bench,
    script: PathBuf,
    folder: PathBuf,
}

impl Program<'_> {
    fn new<'a>(bench: &'a Bench, name: &str) -> Result<Program<'a>> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let folder = bench.path(name);
        fs::create_dir_all(&folder)?;
        Ok(Program { bench, script: scripts.join(name).with_extension("sh"), folder })
    }

    /// Adds the script to a command that runs another, and lets all of it run on all CPUs.
    fn run(&self, mut command: Command) -> Result<Figures> {
        command.arg("sh").arg(&self.script).arg(&self.folder);
        Figures::of(ft_costs::cpu::everywhere(&mut command))
    }

    fn alone(&self) -> Result<f64> {
        self.run(self.bench.program("env"))?.get("rate")
    }

    /// Rate, and losses.
    fn ours(&self, options: &[&str]) -> Result<(f64, u64)> {
        let dir = self.bench.path("trace");
        let _ = fs::remove_dir_all(&dir);
        let figures = self.run(self.bench.recorder(&dir, options));
        let _ = fs::remove_dir_all(&dir);
        let figures = figures?;
        Ok((figures.get("rate")?, losses(&figures)?))
    }

    fn perf(&self) -> Result<f64> {
        let file = self.bench.path("perf.data");
        let mut command = self.bench.program("perf");
        command.args(["sched", "record", "--quiet", "--output"]).arg(&file).arg("--");
        let figures = self.run(command);
        let _ = fs::remove_file(&file);
        figures?.get("rate")
    }

    /// Its pthread locks; what of the kernel it could record takes a module.
    fn lttng(&self, daemon: &Daemon<'_>) -> Result<f64> {
        let mut command = self.bench.program("env");
        command.arg(format!("LD_PRELOAD={WRAPPER}"));
        command.arg("sh").arg(&self.script).arg(&self.folder);
        let traced =
            daemon.record("lttng_ust_pthread:*", &[], ft_costs::cpu::everywhere(&mut command))?;
        ensure!(traced.lost == 0, "{} events were discarded", traced.lost);
        traced.figures.get("rate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_the_median_is_as_wide_as_it_must_be() {
        let check = |n: u32, interval| {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(Ratio::of(&values).and_then(|ratio| ratio.interval), interval, "{n}");
        };
        // Tables of the binomial distribution: 2/32 > 5 %, 2/64 < 5 %; 2 (1 + 9)/512 = 3.9 %.
        check(0, None);
        check(5, None);
        check(6, Some((1.0, 6.0)));
        check(8, Some((1.0, 8.0)));
        check(9, Some((2.0, 8.0)));
        check(15, Some((4.0, 12.0)));
    }
}
