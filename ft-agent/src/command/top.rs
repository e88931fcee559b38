//! `ft-agent top`.

mod recorder;
mod terminal;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::control::{self, ENDING, Signals};
use ft_agent::top::Top;
use ft_report::units;
use tokio::time::{MissedTickBehavior, interval};

use super::error::CommandError;
use super::{Result, output};
use recorder::Recording;

/// Shows who waits for which lock, whose holder lost the CPU and who was woken late, while it happens.
///
/// Watches a recording that runs, or starts one: a flight recorder, of which a key takes a snapshot.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of a recording that runs.
    #[arg(value_name = "DIR", conflicts_with_all = ["pid", "cgroup", "all", "command"])]
    recording: Option<PathBuf>,

    /// Record a process that already runs: its number, or its name; may be given more than once.
    #[arg(short, long, value_name = "PROCESS", value_parser = super::named::process)]
    pid: Vec<i32>,

    /// Record the processes of this cgroup, as `ft-agent record` does.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "all", "command"])]
    cgroup: Option<PathBuf>,

    /// Observe every thread of the system.
    #[arg(short, long)]
    all: bool,

    /// Kernel groups, as for `ft-agent record`.
    #[arg(short, long, value_name = "GROUPS", default_value = "sched,irq,task")]
    kernel: String,

    /// Sites to enable, a glob over their names; may be given more than once.
    #[arg(short, long, value_name = "GLOB", default_value = "*")]
    event: Vec<String>,

    /// Trace the pthread locks of the command, without a change to it.
    #[arg(long)]
    preload: bool,

    /// Where snapshots go; a directory that is empty or does not exist [default: one that is removed again if there is no snapshot; the last ten seconds of a program that ends are one].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// How far a snapshot reaches back.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    window: Duration,

    /// Time between two looks.
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    interval: Duration,

    /// Percentage of one CPU that watching may take: of a recording that writes more than that allows, the newest part is
    /// looked at, and the rest skipped.
    #[arg(long, value_name = "PERCENT", default_value = "0.9", value_parser = percent)]
    share: f64,

    /// Print a line of JSON for each look, instead of drawing.
    #[arg(long)]
    json: bool,

    /// Command to run and record, after `--`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Keys: space freezes and goes on, s takes a snapshot, q quits.
Figures are of the last ten looks; waited/s and held/s are those of all threads, per second that was \
looked at. A star marks a lower bound. What spans a part that was skipped is not seen.

Examples:
  ft-agent top -p 4711                a process that already runs
  ft-agent top -- ./server --port 8080
                                      a command; what it prints goes nowhere
  ft-agent top trace                  of `ft-agent record -o trace`, which runs elsewhere
  ft-agent top --json trace           for other programs";

/// Reads a share of one CPU.
fn percent(text: &str) -> std::result::Result<f64, String> {
    let share = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let share = share.filter(|share| (0.1..=100.0).contains(share));
    share.map(|share| share / 100.0).ok_or(format!("'{text}' is no percentage from 0.1 to 100"))
}

pub(crate) fn run(args: Args) -> Result {
    let has_terminal = || io::stdin().is_terminal() && io::stdout().is_terminal();
    if !args.json && !has_terminal() {
        return Err(CommandError::NoTerminal);
    }
    let json = args.json;
    let (ended, signal) = control::run(watch(args))?;
    match signal {
        // Of a terminal that goes away, calls fail before the signal comes that says so.
        None if json || has_terminal() => ended,
        signal => {
            // Where the terminal is gone, nothing can be written any more.
            let signal = signal.unwrap_or(libc::SIGHUP);
            Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)))
        }
    }
}

/// Watches until the user quits, what is watched is over, or a signal comes, which is returned.
async fn watch(args: Args) -> (Result, Option<libc::c_int>) {
    let (json, interval, share) = (args.json, args.interval, args.share);
    let mut signals = match Signals::take(&ENDING) {
        Ok(signals) => signals,
        Err(error) => return (Err(error.into()), None),
    };
    let mut recording = match Recording::of(args) {
        Ok(recording) => recording,
        Err(error) => return (Err(error), None),
    };
    let watched = async {
        match recording.wait(share).await? {
            Some(top) if json => lines(top, &mut recording, interval).await,
            Some(top) => terminal::watch(top, &mut recording, interval).await,
            // The recorder has said why.
            None => Ok(()),
        }
    };
    let (watched, signal) = tokio::select! {
        watched = watched => (watched, None),
        signal = signals.next() => (Ok(()), Some(signal)),
    };
    // A second signal ends it at once.
    drop(signals);
    let ended = recording.end().await;
    (watched.and(ended), signal)
}

/// Prints a line for each look.
async fn lines(mut top: Top, recording: &mut Recording, distance: Duration) -> Result<()> {
    let mut looks = interval(distance);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => {
                let view = top.refresh()?;
                output::print_json_line(&view)?;
                if view.is_over {
                    return Ok(());
                }
            }
            _ = recording.message() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        assert_eq!(percent("1"), Ok(0.01));
        assert_eq!(percent("2.5%"), Ok(0.025));
        for wrong in ["", "0", "-1", "101", "x", "NaN"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
