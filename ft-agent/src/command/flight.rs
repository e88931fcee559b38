//! `ft-agent record --flight-recorder`.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::time::Duration;

use ft_agent::collect::kernel::Group;
use ft_agent::control;
use ft_agent::flight::{Flight, FlightOptions, Message, Trigger};
use ft_agent::record::{self, Options, RecordError};
use ft_agent::status_line;
use ft_report::units;
use tokio::task::spawn_blocking;

use super::Result;
use super::error::CommandError;
use super::record::Recording;

/// Flags of the flight recorder.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Flight recorder")]
pub(crate) struct FlightArgs {
    /// Record without end and keep this much (10s), for snapshots.
    ///
    /// `ft-agent snapshot`, --when and the end of the recording make a trace of it.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    flight_recorder: Option<Duration>,

    /// Take a snapshot when an interval is too long: 'hold > 1ms', 'blocked rt-loop > 2ms'.
    ///
    /// Of locks: hold, wait; of threads: dispatch (woken, and no CPU yet), preempted, blocked, gap, missed (a cycle of a
    /// periodic thread, and its deadline). A name or a glob of locks or threads may follow. May be given more than once.
    /// The snapshot is taken an eighth of the window later.
    #[arg(long, value_name = "TRIGGER", requires = "flight_recorder")]
    when: Vec<Trigger>,

    /// End the recording with the first snapshot by --when.
    #[arg(long, requires = "when", hide_short_help = true)]
    pub(super) stop_on_trigger: bool,

    /// Least time between two snapshots by --when [default: the window].
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "flight_recorder", hide_short_help = true)]
    snapshot_distance: Option<Duration>,

    /// Largest number of snapshots by --when.
    #[arg(long, value_name = "N", default_value_t = 10, hide_short_help = true)]
    snapshots: u32,

    /// Largest size to keep; the window is shortened if need be.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = units::bytes, hide_short_help = true)]
    flight_size: u64,
}

impl FlightArgs {
    /// What was asked for, if anything.
    pub(crate) fn options(self) -> Option<FlightOptions> {
        let window = self.flight_recorder?;
        Some(FlightOptions {
            window,
            budget_bytes: self.flight_size,
            triggers: self.when,
            distance: self.snapshot_distance.unwrap_or(window),
            most: self.snapshots,
        })
    }
}

/// Records until the end; a snapshot is taken then, whatever happened.
pub(crate) fn run(options: &Options, flight: &FlightOptions) -> Result<Recording> {
    let of_kernel = flight.triggers.iter().any(|trigger| trigger.interval.is_of_kernel());
    if of_kernel && !options.kernel.contains(&Group::Sched) {
        return Err(CommandError::TriggerWithoutSwitches);
    }
    if options.kernel.contains(&Group::Section) {
        return Err(CommandError::SectionsOfWindow);
    }
    let dir = options.output.clone();
    let spawned = Flight::spawn(dir.clone(), flight, tell);
    let (recorder, segments) = spawned.map_err(RecordError::system("start a thread"))?;
    // In one runtime: who has asked for a snapshot is answered when it is made, which may be after the recording.
    let (recorded, finished) = control::run(async {
        let recorded = record::record_within(options, segments, &mut super::record::warn).await;
        (recorded, spawn_blocking(|| recorder.finish()).await)
    })
    .map_err(RecordError::system("start the control plane"))?;
    let outcome = recorded?;
    let finished = finished.unwrap_or_else(|error| resume_unwind(error.into_panic()))?;
    if finished.ignored > 0 {
        let _ = writeln!(
            io::stderr(),
            "ft-agent: {} more intervals were too long, soon after a snapshot or after the last one",
            finished.ignored
        );
    }
    if finished.missed > 0 {
        let _ = writeln!(
            io::stderr(),
            "ft-agent: warning: --when did not look at {} segments, which were gone too soon; choose a \
             longer window, or record fewer events",
            finished.missed
        );
    }
    let last = finished.snapshots.last().filter(|_| finished.ended);
    let last = last.ok_or_else(|| CommandError::NoLastSnapshot(dir.clone()))?;
    let count = finished.snapshots.len();
    let plural = if count == 1 { "" } else { "s" };
    let title = format!("{count} snapshot{plural} in {}, the last:\n", dir.display());
    Ok(Recording { trace: last.clone(), outcome, title, is_converted: true })
}

fn tell(message: &Message) {
    status_line::say(&match message {
        Message::Taken { dir, reason } => format!("ft-agent: {}: {reason}", dir.display()),
        Message::Failed(error) => format!("ft-agent: warning: a snapshot failed: {error}"),
    });
}
