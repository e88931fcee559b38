//! `cargo xtask …`: what a contributor runs. Each subcommand is a file; this one only picks it.

mod apt;
mod bench;
mod build;
mod build_ebpf;
mod cases;
mod checks;
mod features;
mod framed_python;
mod groups;
mod kernels;
mod ledger;
mod linker;
mod node;
mod package;
mod packaged;
mod packages;
mod paper;
mod programs;
mod proofs;
#[cfg(test)]
mod prose;
mod python;
mod report;
mod roots;
mod run_agent;
mod setup;
mod space;
mod steps;
mod suite;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use build::Profile;
use steps::Steps;

const HELP: &str = "\
cargo xtask COMMAND

  run-agent [-- ARGS]   build, and record: the demo, or what ARGS of `ft-agent record` say
  test [GROUP]…         run the quick tests, which install nothing, or the groups of others that are named: quick, checks,
                        programs, truth, hostile, readers, page, fleet, kernels, papers, packages (--list says what they are), or
                        --all of them (`--within MINUTES`: what has not begun by then is named, and does not run); what they
                        install is asked for on a terminal. `-- ARGS` go to `cargo test`
  cases [NAME]…         record programs that know why they are slow, and see if the first screen says it (tests/cases; --agent FILE)
  bench [ROW]…          measure the cost table beside other tracers; a whole run writes it (--quick)
  paper [ID]…           run the papers' experiments again, and write papers/README.md (--list, --scale)
  kernels [VERSION]…    download, boot and test other kernels, in QEMU (5.10 6.1 6.1-rt 6.12 7 7-rt; --cpus N)
  roots [NAME]…         do what a newcomer does, in other releases of Debian and Ubuntu, by debootstrap, as root (bullseye
                        bookworm trixie sid jammy noble resolute)
  truths [TEST]…        what the subjects know of themselves against the tables, in 50 rounds (FT_ROUNDS)
  stress                run the stress tests at full length, some minutes (FT_STRESS)
  sanitize              run the tests of shared memory under AddressSanitizer and valgrind
  compare-rates         measure how often `compare` errs and what it finds, with hundreds of recordings
  miri                  run the tests of the rings under Miri, where it is installed
  fuzz [TARGET]…        run the fuzz targets, ten minutes each (FT_FUZZ_SECONDS)
  damage                read 10,000 damaged libraries and maps of compilers for their names, and damaged spools (FT_DAMAGED)
  package               package the crates and, for Debian, the agent, and try that (--quick: of a debug build)
  setup                 install what building and testing need, and say so first (--dry-run: only say it)
  build                 set up, then build the BPF object and the agent
  bpf                   set up, then build the BPF object alone: what a kernel test that is run by hand needs (--packaged: and
                        the one that is checked in, for machines without a compiler for BPF)
  help                  print this";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<ExitCode> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    match command {
        "run-agent" => return run_agent::run(after_dashes(rest)),
        "test" => test::main(rest)?,
        "cases" => cases::run(rest)?,
        "bench" => bench::run(rest)?,
        "paper" => paper::run(rest)?,
        "kernels" => kernels::run(rest)?,
        "roots" => roots::run(rest)?,
        "truths" => test::truths(rest)?,
        "stress" => {
            no_arguments(command, rest)?;
            proofs::stress()?;
        }
        "sanitize" => {
            no_arguments(command, rest)?;
            proofs::sanitize()?;
        }
        "compare-rates" => {
            no_arguments(command, rest)?;
            proofs::compare_rates()?;
        }
        "miri" => {
            no_arguments(command, rest)?;
            proofs::miri()?;
        }
        "fuzz" => proofs::fuzz(rest)?,
        "damage" => {
            no_arguments(command, rest)?;
            proofs::damage()?;
        }
        "package" => {
            setup::run(setup::PACKAGING);
            match rest {
                [] => package::run()?,
                [quick] if quick == "--quick" => println!("{}", package::check()?),
                _ => bail!("`package` takes --quick or nothing"),
            }
        }
        "setup" => {
            let all = [groups::packages(), setup::BENCHMARKS.to_vec()].concat();
            match rest {
                [] => drop(setup::run(&all)),
                [only] if only == "--dry-run" => setup::say(&all),
                _ => bail!("`setup` takes --dry-run or nothing"),
            }
        }
        "build" => {
            no_arguments(command, rest)?;
            let mut steps = Steps::new(3);
            steps.next("tools for the BPF programs", None);
            setup::run(&[]);
            build::bpf(&mut steps);
            println!("{}", build::agent(&mut steps, Profile::Release, false)?.display());
        }
        "bpf" => {
            setup::run(&[]);
            let object = match rest {
                [] => build_ebpf::run()?,
                [packaged] if packaged == "--packaged" => packaged::make()?,
                _ => bail!("`bpf` takes --packaged or nothing"),
            };
            println!("{}", object.display());
        }
        "help" | "-h" | "--help" => {
            println!("{HELP}");
        }
        _ => bail!("there is no command `{command}`; `cargo xtask help` lists them"),
    }
    Ok(ExitCode::SUCCESS)
}

/// What stands behind a `--`, which may be left out.
fn after_dashes(args: &[String]) -> &[String] {
    match args.split_first() {
        Some((first, rest)) if first == "--" => rest,
        _ => args,
    }
}

fn no_arguments(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(extra) => bail!("`{command}` takes no arguments, and `{extra}` is one; leave it out"),
        None => Ok(()),
    }
}
