//! `ft-papers`, which `cargo xtask paper` runs: the experiments of the papers, done again.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use ft_papers::experiment::named;
use ft_papers::{EXPERIMENTS, Lab, page};

const HELP: &str = "\
cargo xtask paper [OPTIONS] [ID…]

Runs the experiments of the papers again, all or the named ones, and puts what they show into papers/README.md,
with drawings and values in papers/results/. Wants root and a machine that does nothing else.

  --scale X    runs last X times as long as the paper's, and are repeated as much less often (default 1)
  --out DIR    write README.md and results/ there instead of into papers/
  --list       name the experiments, and how long each takes at full length";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ft-papers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut scale = 1.0;
    let mut out = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let (mut ids, mut wants_agent) = (Vec::new(), false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--scale" => {
                let value = words.next().and_then(|value| value.parse().ok());
                scale = value.context("--scale is followed by no number; write --scale 0.1")?;
            }
            "--out" => {
                out = words.next().context("--out is followed by no directory; name one")?.into();
            }
            "--list" => {
                list();
                return Ok(());
            }
            "--wants-agent" => wants_agent = true,
            "-h" | "--help" => {
                println!("{HELP}");
                return Ok(());
            }
            _ => ids.push(word),
        }
    }
    let experiments = named(&ids)?;
    if wants_agent {
        // For `xtask`, which builds the agent only then.
        let wants = experiments.iter().any(|experiment| experiment.programs.contains(&"ft-agent"));
        println!("{wants}");
        return Ok(());
    }
    let lab = Lab::new(scale, &out.join("results"))?;
    for experiment in experiments {
        println!("{}: {}", experiment.id, experiment.title);
        let began = Instant::now();
        let finding = (experiment.run)(&lab).with_context(|| experiment.id)?;
        for row in &finding.rows {
            println!("  {}: paper {}, ours {}", row.what, row.paper, row.ours);
        }
        println!("  took {:.0} s", began.elapsed().as_secs_f64());
        page::put(&out.join("README.md"), "results", &lab, experiment, &finding)?;
    }
    Ok(())
}

fn list() {
    for experiment in EXPERIMENTS {
        println!(
            "{:<24} {:>5.0} min  {}",
            experiment.id, experiment.full_minutes, experiment.title
        );
    }
}
