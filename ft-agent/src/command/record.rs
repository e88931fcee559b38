//! `ft-agent record`.

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use ft_agent::collect::kernel::Group;
use ft_agent::record::{self, Behind, Notice, Options, Outcome, RecordError, Segments};
use ft_agent::status_line::{self, StatusLine};
use ft_report::report::{self, Head, Summary};
use ft_report::{analyze, units};
use ft_trace::convert;
use ft_trace::spool::Limits;
use ft_trace::store::Trace;

use super::flight;
use super::watch::Watch;
use super::width::columns;

/// Records a command, running processes or the whole system, then analyses what was recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the trace; must not exist or be empty.
    #[arg(short, long, value_name = "DIR", default_value = "trace")]
    output: PathBuf,

    /// Stop after this time (500ms, 10s, 2m, 1h).
    #[arg(short, long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Kernel groups, separated by commas: sched, irq, task, lock, syscall, fault, all or none.
    #[arg(short, long, value_name = "GROUPS", default_value = "sched,irq,task")]
    kernel: String,

    /// Sites to enable, a glob over their names; may be given more than once.
    #[arg(short, long, value_name = "GLOB", default_value = "*")]
    event: Vec<String>,

    /// Record a process that already runs; may be given more than once.
    #[arg(short, long, value_name = "PID")]
    pid: Vec<i32>,

    /// Record the processes of this cgroup (version 2) and of those below it: those that run, and those
    /// that come; a directory, or a name as in /proc/PID/cgroup.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "all", "command"])]
    cgroup: Option<PathBuf>,

    /// Observe every thread of the system.
    #[arg(short, long)]
    all: bool,

    /// Size of one thread's ring in the command's processes (128K to 128M; 8M unless they say otherwise).
    /// Memory is taken as it is written, and kept.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    ring_size: Option<u64>,

    /// Size at which a segment of the recording is closed and converted.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = units::bytes)]
    segment_size: u64,

    /// Age at which a segment of the recording is closed and converted.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration)]
    segment_time: Duration,

    /// Trace the pthread locks of the command, without a change to it (libft_preload.so beside this
    /// program, or where FT_PRELOAD says).
    #[arg(long)]
    preload: bool,

    /// Leave the recording unconverted: `ft-agent convert DIR` makes the tables, `ft-agent report DIR`
    /// the summary. For rates at which the conversion would take a CPU that the program needs.
    #[arg(long, conflicts_with = "flight_recorder")]
    no_convert: bool,

    /// Command to run and record, after `--`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,

    #[command(flatten)]
    flight: flight::FlightArgs,
}

const EXAMPLES: &str = "\
Without a command, -p and --cgroup, processes that embed ft-user are recorded as they register.
The exit status is that of the command, if there is one and it ended by itself.

Examples:
  ft-agent record -- ./server --port 8080     run it and record it until it ends or Ctrl-C
  ft-agent record -d 10s -p 4711 -o slow      ten seconds of process 4711 into ./slow
  ft-agent record --cgroup system.slice/nginx.service
                                              a service with all its processes
  ft-agent record -e 'lock.*' -e 'db.*' -- ./server
                                              only the sites that match
  ft-agent record -k none -- ./server         without the kernel: needs no rights
  ft-agent record --preload -- memcached      the locks of a program that knows nothing of tracing
  ft-agent record --flight-recorder 10s --when 'hold > 1ms' -- ./server
                                              the last ten seconds, each time a lock is held too long
  sudo ft-agent record -a -d 5s               every thread of the system";

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let flight = args.flight.options();
    let segment = Limits { bytes: args.segment_size, age: args.segment_time };
    let options = Options {
        kernel: Group::parse_list(&args.kernel)?,
        duration: args.duration,
        events: args.event,
        pids: args.pid,
        cgroup: args.cgroup,
        system_wide: args.all,
        ring_bytes: args.ring_size,
        segment: flight.as_ref().map_or(segment, |flight| flight.limits()),
        snapshots: flight.is_some(),
        command: args.command,
        preload: args.preload,
        progress: io::stderr().is_terminal(),
        output: args.output,
    };
    if let Some(flight) = flight {
        return Ok(exit_code(&flight::run(&options, &flight)?));
    }
    let trace = options.output.clone();
    if args.no_convert {
        let outcome = record::record(&options, Segments::unused(), &mut warn)?;
        let (bytes, lost) = (units::short_bytes(outcome.bytes), outcome.lost);
        let dir = trace.display();
        writeln!(io::stdout(), "recorded  {bytes}, {lost} events lost")?;
        writeln!(io::stdout(), "spool     {dir}; `ft-agent convert {dir}` makes the tables")?;
        return Ok(exit_code(&outcome));
    }
    let (behind, segments) = Behind::spawn(trace.clone()).context("cannot start a thread")?;
    let recorded = record::record(&options, segments, &mut warn);
    let mut line = options.progress.then(|| StatusLine);
    let converted = behind.finish(|bytes| {
        if let Some(line) = &mut line {
            line.draw(&format!("{} to convert", units::short_bytes(bytes)));
        }
    });
    drop(line);
    match recorded {
        Ok(outcome) => {
            converted.and_then(|()| convert::convert(&trace, |_, _| {})).with_context(|| {
                format!("the recording is complete, but not its conversion; repeat `ft-agent convert {}`", trace.display())
            })?;
            summarise(&trace)?;
            Ok(exit_code(&outcome))
        }
        // There may be room for the conversion of what was recorded until then.
        Err(RecordError::Spool(error)) if convert::convert(&trace, |_, _| {}).is_ok() => {
            summarise(&trace)?;
            bail!("{error}; the trace ends there: {} before you record again", error.remedy())
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints what the user should know while a recording runs.
pub(super) fn warn(notice: &Notice) {
    status_line::say(&format!("ft-agent: warning: {notice}"));
}

/// Analyses a trace and prints the short report.
pub(super) fn summarise(dir: &Path) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let mut watch = Watch::begin();
    let tally = analyze::analyze_watched(&trace, &mut |progress| watch.look(progress))?;
    drop(watch);
    let (head, reports) = (Head::new(&trace, &tally)?, report::all(&trace, &tally)?);
    let mut out = io::stdout().lock();
    let w = columns();
    writeln!(out, "{:w$}", Summary(&head, &reports))?;
    writeln!(out, "trace     {} (`ft-agent report {0}`)", dir.display())?;
    Ok(())
}

/// The command's own status, 128 and the signal when it was killed, as a shell tells it. A command that
/// this recording ended did nothing wrong.
fn exit_code(outcome: &Outcome) -> ExitCode {
    let Some(status) = outcome.status.filter(|_| !outcome.interrupted) else {
        return ExitCode::SUCCESS;
    };
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    if code != 0 {
        let _ = writeln!(io::stderr(), "ft-agent: warning: the recorded command failed: {status}");
    }
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
