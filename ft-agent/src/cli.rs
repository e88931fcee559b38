//! What can be typed. Each subcommand's flags stand beside the code that runs it, in
//! [`command`](crate::command); this is the list.

use clap::{Parser, Subcommand};

use crate::command::{completions, convert, doctor, events, live, record, report, snapshot, study};

/// Records applications and the kernel on one clock, and says why something was slow.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent doctor                     what this machine can record, and what is missing
  ft-agent record -- ./server --port 8080
                                      run a program that embeds ft-user, until it ends
  ft-agent record -d 10s -p 4711      ten seconds of a process that already runs
  ft-agent report trace               the reports of a trace again
  ft-agent events trace               every event of a trace in words";

/// One subcommand: its flags are the `Args` of the module of its name in `command`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(Box<record::Args>),
    Snapshot(snapshot::Args),
    /// Lists the sites of a running process, and which are on.
    Sites(live::SitesArgs),
    /// Switches sites of a running process on.
    Enable(live::SwitchArgs),
    /// Switches sites of a running process off.
    Disable(live::SwitchArgs),
    Convert(convert::Args),
    /// Computes all results of a trace anew.
    Analyze(report::AnalyzeArgs),
    /// Prints all reports of a trace.
    Report(report::Args),
    /// Prints who held which lock, how deep and for how long, and what happened meanwhile.
    Locks(report::Args),
    /// Prints who waited for which lock and who made it wait; lock order and deadlocks.
    Waits(report::Args),
    /// Prints which holders of locks were preempted, by whom, and whom that delayed.
    Preempted(report::Args),
    /// Prints how long woken threads waited for a CPU, and behind whom.
    Dispatch(report::Args),
    /// Prints why polling threads did not run.
    Gaps(report::Args),
    /// Prints how often the causes of gaps that are inferred without the kernel are right.
    Agreement(report::Args),
    /// Prints where all the time of each thread went, and who or what took it.
    Time(report::Args),
    Study(study::Args),
    Events(events::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
}
