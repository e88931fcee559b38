//! `cargo xtask …`: what a contributor runs. Each subcommand is a file; this one only picks it.

mod build;
mod build_ebpf;
mod setup;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  setup      install what building and testing need, and say so first
  build      set up, then build the BPF object and the agent
  help       print this";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    match command {
        "setup" => {
            no_arguments(command, rest)?;
            setup::run()
        }
        "build" => {
            no_arguments(command, rest)?;
            setup::run()?;
            build::bpf();
            build::agent().map(|path| println!("{}", path.display()))
        }
        "help" | "-h" | "--help" => {
            println!("{HELP}");
            Ok(())
        }
        _ => bail!("there is no command `{command}`; `cargo xtask help` lists them"),
    }
}

fn no_arguments(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(extra) => bail!("`{command}` takes no arguments, and `{extra}` is one; leave it out"),
        None => Ok(()),
    }
}
