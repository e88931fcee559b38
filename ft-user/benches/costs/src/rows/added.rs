//! What a figure of a subject takes more while somebody records it.

use std::fs;

use anyhow::Result;

use crate::bench::Bench;
use crate::figures::{Figures, Samples};

/// Another tracer: its name, and the figures of the subject that it records.
pub(super) type Other<'a> = (&'static str, &'a dyn Fn() -> Result<Figures>);

/// What each recorder adds, of several rounds.
pub(super) struct Added {
    samples: Samples,
    remarks: Vec<String>,
}

impl Added {
    /// Runs a subject unwatched, under the agent with each of these options, under each other tracer, and unwatched again.
    pub(super) fn to(
        figure: &str,
        subject: &[&str],
        bench: &Bench,
        rounds: usize,
        ours: &[(&str, &[&str])],
        others: &[Other<'_>],
    ) -> Result<Added> {
        let mut samples = Samples::default();
        let mut remarks = Vec::new();
        for round in 0..bench.rounds(rounds) {
            let mut taken = Vec::new();
            let before = bench.subject(subject)?.get(figure)?;
            for (name, options) in ours {
                let recorded = bench.record(options, subject)?;
                taken.push((*name, recorded.figures.get(figure)?));
                samples.add("lost", recorded.lost as f64);
            }
            for (name, figures) in others {
                match figures().and_then(|figures| figures.get(figure)) {
                    Ok(value) => taken.push((*name, value)),
                    Err(error) if round == 0 => remarks.push(format!("{name}: {error:#}")),
                    Err(_) => {}
                }
            }
            // A switch costs 2 µs at one time and 3 at another: each round is compared with itself.
            let after = bench.subject(subject)?.get(figure)?;
            let unwatched = (before + after) / 2.0;
            samples.add("unwatched", unwatched);
            samples.add("error", (before - after).abs() / 2.0);
            taken.into_iter().for_each(|(name, value)| samples.add(name, value - unwatched));
        }
        if let Some(lost) = samples.highest("lost").filter(|&lost| lost > 0.0) {
            remarks.push(format!("**{lost:.0} records of a run were lost**"));
        }
        Ok(Added { samples, remarks })
    }

    /// What a recorder adds; also `unwatched`, the figure itself, and `error`, half of what it changed within a round.
    pub(super) fn by(&self, name: &str) -> Option<f64> {
        self.samples.median(name)
    }

    /// The same of one that must have been measured.
    pub(super) fn must(&self, name: &str) -> Result<f64> {
        self.samples.must(name)
    }

    /// Who could not be measured, and what was lost.
    pub(super) fn remarks(&self) -> String {
        self.remarks.join("; ")
    }
}

/// `perf record` of a subject, on all CPUs, into a file on tmpfs, 16 MiB for each CPU.
pub(super) fn perf(
    bench: &Bench,
    options: &[&str],
    events: &[&str],
    subject: &[&str],
) -> Result<Figures> {
    let file = bench.path("perf.data");
    let mut command = bench.program("perf");
    command.args(["record", "--quiet", "--all-cpus", "--mmap-pages", "4096"]).args(options);
    command.arg("--output").arg(&file);
    for event in events {
        command.args(["--event", event]);
    }
    let figures = Figures::of(command.arg("--").arg(bench.beside("subject")).args(subject));
    let _ = fs::remove_file(&file);
    figures
}
