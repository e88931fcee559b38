//! `ft-agent events`.

use std::io::{self, BufWriter};
use std::process::ExitCode;

use ft_report::listing::{self, Form, Selection, TimeStyle};
use ft_report::units;
use ft_trace::store::Row as _;
use ft_trace::tables::UserEvent;

use super::trace_arg::TraceArg;
use super::{Result, output};

/// Lists the events of a trace in words, one a line, in the order of time.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    trace: TraceArg,

    /// Only these threads: an id, or a glob over names; may be given more than once.
    #[arg(short, long, value_name = "TID|GLOB")]
    thread: Vec<String>,

    /// Only this process; may be given more than once.
    #[arg(short, long, value_name = "PID")]
    pid: Vec<i32>,

    /// Only in polls of these async tasks, and events about them: a number, or a glob over names; may be given more than once.
    #[arg(long, value_name = "NUMBER|GLOB")]
    task: Vec<String>,

    /// Only what happened on this CPU; may be given more than once.
    #[arg(short, long, value_name = "CPU")]
    cpu: Vec<i32>,

    /// Only events whose name matches; may be given more than once.
    #[arg(short, long, value_name = "GLOB")]
    event: Vec<String>,

    /// Only from this time after the start on (1.5s, 200ms).
    #[arg(long, value_name = "TIME", value_parser = units::offset_ns)]
    from: Option<i64>,

    /// Only before this time after the start.
    #[arg(long, value_name = "TIME", value_parser = units::offset_ns)]
    to: Option<i64>,

    /// The kernel's events, too: switches, wake-ups, interrupts and what else was recorded.
    #[arg(short, long)]
    kernel: bool,

    /// Print times as CLOCK_MONOTONIC, not from the start of the recording.
    #[arg(long, conflicts_with_all = ["utc", "json"])]
    absolute: bool,

    /// Print times as date and time in UTC.
    #[arg(long, conflicts_with = "json")]
    utc: bool,

    /// Print one JSON object a line, times in ns of CLOCK_MONOTONIC.
    #[arg(long)]
    json: bool,

    /// Stop after so many lines.
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,

    /// Print which events there are, how many, and where their sites are.
    #[arg(long, conflicts_with_all = ["limit", "absolute", "utc", "active_time"])]
    list_events: bool,

    /// Print how long each thread was really on the CPU, by the kernel's account.
    #[arg(long, conflicts_with_all = ["event", "task", "kernel", "absolute", "utc"])]
    active_time: bool,
}

const EXAMPLES: &str = "\
Filters of one kind are alternatives; filters of different kinds must all match. A loss is always \
listed where it can concern what is selected.

Examples:
  ft-agent events trace                       what the application recorded
  ft-agent events trace -e 'order.*' -t 'trader*' --from 1.5s --to 1.6s
                                              some of it
  ft-agent events trace -k -t 4711            one thread, and what the kernel did with it
  ft-agent events trace -k --task 'request*'  what happened in the polls of some async tasks
  ft-agent events trace --list-events         which events there are
  ft-agent events trace --active-time         who had the CPU for how long
  ft-agent events trace --json | jq .args     for other programs";

/// Text collected before it is written.
const BUFFER_BYTES: usize = 1 << 16;

pub(crate) fn run(args: Args) -> Result {
    let trace = args.trace.open()?;
    let selection = Selection {
        threads: args.thread,
        pids: args.pid,
        tasks: args.task,
        cpus: args.cpu,
        events: args.event,
        from: args.from,
        to: args.to,
        kernel: args.kernel,
    };
    if args.list_events {
        output::print(args.json, &listing::event_counts(&trace, &selection)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.active_time {
        output::print(args.json, &listing::active_time(&trace, &selection, args.limit)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let times = match (args.absolute, args.utc) {
        (true, _) => TimeStyle::Absolute,
        (_, true) => TimeStyle::Utc,
        _ => TimeStyle::Relative,
    };
    let form = Form { times, json: args.json, limit: args.limit };
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
    listing::list(&trace, &selection, form, &mut out)?;
    let of_programs = trace.meta().tables.get(UserEvent::TABLE).map_or(0, |table| table.rows);
    if of_programs == 0 && !selection.kernel {
        eprintln!("note: no program has recorded an event; -k lists what the kernel did");
    }
    Ok(ExitCode::SUCCESS)
}
