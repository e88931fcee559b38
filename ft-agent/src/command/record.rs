//! `ft-agent record`.

mod values;

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::collect::kernel::Group;
use ft_agent::record::{
    self, Behind, Notice, Options, Outcome, Reader, RecordError, Segments, StartAt,
};
use ft_agent::status_line::{self, StatusLine};
use ft_analysis::Tally;
use ft_report::document::Document;
use ft_report::sections::{self, Asked};
use ft_report::{analyze, units};
use ft_trace::convert;
use ft_trace::number::count;
use ft_trace::spool::Limits;
use ft_trace::store::Trace;
use ft_user::layout::Counter;
use serde::Serialize;

use super::error::CommandError;
use super::to::ToArgs;
use super::watch::Watch;
use super::{Result, flight, output, page, report};
use values::{OnFull, counter, on_full, reader};

/// Records a command, running processes or the whole system, then analyses what was recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the trace; must be empty or not exist.
    #[arg(short, long, value_name = "DIR", default_value = "trace")]
    output: PathBuf,

    /// Stop after this time (500ms, 10s, 2m, 1h).
    #[arg(short, long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Begin at this time by the clock of this host, so that the windows of several hosts coincide: 2026-11-21T10:45:00Z
    /// (RFC 3339, in UTC or with an offset), +10s, or next=1m, the next full minute (of a time since 1970, in UTC) that is
    /// at least 5 s away. The command is started then, and -d counts from then on.
    #[arg(long, value_name = "TIME", value_parser = StartAt::parse)]
    start_at: Option<StartAt>,

    #[arg(short, long, value_name = "GROUPS", default_value = "sched,irq,task", help = kernel_help())]
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

    /// Size of the ring buffers of the kernel's records, those of all CPUs together (4K to 1G; 16M, or 1M for each CPU where
    /// there are more than 16). Memory is taken at the start.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    kernel_buffer: Option<u64>,

    /// Record the call chains of threads that were off the CPU for at least this long, and of who woke them (group
    /// `stack`).
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = units::duration)]
    stack_min: Duration,

    /// Samples per second and CPU (group `profile`; 1 to 20000). A rate that nothing else has does not run in step with
    /// what the program does periodically.
    #[arg(long, value_name = "HZ", default_value = "997")]
    sample_rate: u32,

    /// Each call of a function of a program that is not changed is a request: `redis-server:processCommand`, with a path, a
    /// program on the PATH or a library (`libssl.so.3:SSL_read`), and a function by its name or a glob; or what lies between two
    /// marks of it, `FILE:usdt:PROVIDER:BEGIN,END`. May be given more than once. Every process that runs the file pays for it,
    /// half a microsecond to some for each call, and 16 in some virtual machines; the report `requests` says what it is here. Those
    /// that are observed are recorded.
    #[arg(long, value_name = "FILE:FUNCTION")]
    probe: Vec<String>,

    /// What a thread does when its ring is full: `discard` the event, which is counted and placed, or `wait` for room first,
    /// 10ms at most, or `wait=TIME` (1ms to 1s). A wait delays the program; it is recorded, and marks what it touches.
    #[arg(long, value_name = "WHAT", default_value = "discard", value_parser = on_full)]
    on_full: OnFull,

    /// Counters that threads read with each of their events, two at most, such as instructions,cache-misses: so holds, scopes,
    /// polls and functions say what was counted in them. Of the processor's, in user space, where it has some and lets programs
    /// read them (`ft-agent doctor`). Each event then takes a tenth of a microsecond or more beyond its usual time, and 64 bytes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = counter)]
    counter: Vec<&'static Counter>,

    /// Read counters that the processor does not show by two system calls with each event: those of the kernel (task-clock,
    /// page-faults, major-faults), too. It costs a program a third of a microsecond or more for each counter and event, and a
    /// descriptor for each counter and thread.
    #[arg(long, requires = "counter")]
    counter_calls: bool,

    /// Counters that the kernel reads whenever an observed thread leaves a CPU, two at most, such as instructions,cache-misses or
    /// page-faults: so each stretch of each thread on a CPU says what was counted in it, of any program, without a change to it
    /// (table `cpu_counts`, report `time`). In user space. Each switch takes some tenths of a microsecond more.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = counter)]
    switch_counter: Vec<&'static Counter>,

    /// When the agent looks at the rings: `adaptive`, every 0.1 to 1 ms, as fast as they fill; `timed=TIME` (10us to 100ms);
    /// `active`, without a pause, which takes a CPU; `waking`, when the command writes to the eventfd whose number is in
    /// FT_WAKE. The last three are for measurements.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = reader)]
    reader: Reader,

    /// Size at which a segment of the recording is closed and converted.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = units::bytes)]
    segment_size: u64,

    /// Age at which a segment of the recording is closed and converted.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration)]
    segment_time: Duration,

    /// Leave the command, and what it has started, to itself when the recording ends. Else all of it ends with the recording: by
    /// SIGTERM, and 2 s later by SIGKILL. For that, what loses its parent meanwhile gets the agent as its parent, not process 1.
    #[arg(long)]
    no_kill: bool,

    /// Trace the pthread locks of the command, without a change to it (libft_preload.so beside this
    /// program, or where FT_PRELOAD says).
    #[arg(long)]
    preload: bool,

    /// Leave the recording unconverted: `ft-agent convert DIR` makes the tables, `ft-agent report DIR`
    /// the report. For rates at which the conversion would take a CPU that the program needs.
    #[arg(long, conflicts_with_all = ["flight_recorder", "to"])]
    no_convert: bool,

    /// Also write the report as one self-contained HTML page.
    #[arg(long, value_name = "FILE", conflicts_with = "no_convert")]
    html: Option<PathBuf>,

    /// Print how the recording ended as a line of JSON, instead of the summary.
    #[arg(long)]
    json: bool,

    /// Command to run and record, after `--`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,

    #[command(flatten)]
    to: ToArgs,

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
  ft-agent record --html slow.html -- ./server
                                              a report for a browser at the end
  ft-agent record -k default,stack,profile -- ./server
                                              where in its code it waits, and where it runs
  ft-agent record --probe redis-server:processCommand -- redis-server
                                              each command of a program that knows nothing of tracing
  ft-agent record --counter instructions,cache-misses -- ./server
                                              which lock's holds miss the cache
  ft-agent record --preload -- memcached      the locks of a program that knows nothing of tracing
  ft-agent record --flight-recorder 10s --when 'hold > 1ms' -- ./server
                                              the last ten seconds, each time a lock is held too long
  ft-agent record -d 10s --start-at 2026-11-21T10:45:00Z -p 4711
                                              the same ten seconds on each host that is told so
  sudo ft-agent record -a -d 5s               every thread of the system";

/// What was recorded, where a summary of it can be had.
pub(super) struct Recording {
    /// Directory of the trace.
    pub(super) trace: PathBuf,
    pub(super) outcome: Outcome,
    /// What stands before the summary.
    pub(super) title: String,
    pub(super) is_converted: bool,
}

/// `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    /// Of the command; none when it was ended by a signal, or goes on.
    exit_code: Option<i32>,
    interrupted: bool,
    is_converted: bool,
    spool_bytes: u64,
    lost: u64,
    processes: u32,
    /// The page, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<&'a Path>,
}

fn kernel_help() -> String {
    format!("Kernel groups, separated by commas: {}, default, all or none", Group::names())
}

pub(crate) fn run(args: Args) -> Result {
    let html = args.html;
    // A directory of the trace itself there is when it is recorded.
    if let Some(file) = html.as_ref().filter(|file| !file.starts_with(&args.output)) {
        page::check(file)?;
    }
    let to = args.to.open_later()?;
    let flight = args.flight.options();
    let segment = Limits { bytes: args.segment_size, age: args.segment_time };
    let usual = Options::default();
    let options = Options {
        kernel: Group::parse_list(&args.kernel)?,
        start_at: args.start_at,
        duration: args.duration,
        events: args.event,
        pids: args.pid,
        cgroup: args.cgroup,
        system_wide: args.all,
        ring_bytes: args.ring_size,
        kernel_buffer_bytes: args.kernel_buffer.unwrap_or(usual.kernel_buffer_bytes),
        stack_min: args.stack_min,
        sample_hz: args.sample_rate,
        probes: args.probe,
        full_wait: args.on_full.0,
        counters: args.counter,
        counter_calls: args.counter_calls,
        switch_counters: args.switch_counter,
        reader: args.reader,
        segment: flight.as_ref().map_or(segment, |flight| flight.limits()),
        snapshots: flight.is_some(),
        command: args.command,
        ends_command: !args.no_kill,
        preload: args.preload,
        progress: io::stderr().is_terminal(),
        output: args.output,
    };
    let recording = match flight {
        Some(flight) => flight::run(&options, &flight)?,
        None if args.no_convert => unconverted(&options)?,
        None => converted(&options)?,
    };
    let shown = recording.show(args.json, html.as_deref());
    // Whoever reads what is printed does not decide about the trace.
    let put = to.map(|to| to.put(&recording.trace)).transpose();
    let code = exit_code(&recording.outcome);
    match shown.and(put.map(|_| ())) {
        Ok(()) => Ok(code),
        Err(error) if code == ExitCode::SUCCESS => Err(error),
        Err(error) => {
            error.say();
            Ok(code)
        }
    }
}

/// Records, and leaves the spool.
fn unconverted(options: &Options) -> Result<Recording> {
    let outcome = record::record(options, Segments::unused(), &mut warn)?;
    let trace = options.output.clone();
    Ok(Recording { trace, outcome, title: String::new(), is_converted: false })
}

/// Records, and converts meanwhile.
pub(super) fn converted(options: &Options) -> Result<Recording> {
    let trace = options.output.clone();
    let spawned = Behind::spawn(trace.clone());
    let (behind, segments) = spawned.map_err(RecordError::system("start a thread"))?;
    let recorded = record::record(options, segments, &mut warn);
    let mut line = options.progress.then(|| StatusLine);
    let converted = behind.finish(|bytes| {
        if let Some(line) = &mut line {
            line.draw(&format!("{} to convert", units::short_bytes(bytes)));
        }
    });
    drop(line);
    match recorded {
        Ok(outcome) => {
            let converted = converted.and_then(|()| convert::convert(&trace, |_, _| {}));
            match converted {
                Ok(_) => Ok(Recording { trace, outcome, title: String::new(), is_converted: true }),
                Err(source) => Err(CommandError::Unconverted { trace, source }),
            }
        }
        // There may be room for the conversion of what was recorded until then.
        Err(RecordError::Spool(error)) if convert::convert(&trace, |_, _| {}).is_ok() => {
            summarise(&trace, None)?;
            Err(CommandError::CutShort(error))
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints what the user should know while a recording runs.
pub(super) fn warn(notice: &Notice) {
    status_line::say(&format!("ft-agent: warning: {notice}"));
}

impl Recording {
    /// Analyses it if there are tables, prints what it has, and writes a page.
    pub(super) fn show(&self, json: bool, html: Option<&Path>) -> Result<()> {
        let Recording { trace, outcome, .. } = self;
        if json {
            if self.is_converted {
                let trace = Trace::open(trace)?;
                let tally = analyze(&trace)?;
                html.map(|file| {
                    page::of_trace(&trace, &tally, sections::all(), None, Asked::default(), file)
                })
                .transpose()?;
            }
            return output::print_json_line(&Answer {
                trace,
                exit_code: outcome.status.and_then(|status| status.code()),
                interrupted: outcome.interrupted,
                is_converted: self.is_converted,
                spool_bytes: outcome.bytes,
                lost: outcome.lost,
                processes: outcome.processes,
                html,
            });
        }
        if self.is_converted {
            write!(io::stdout(), "{}", self.title)?;
            return summarise(trace, html);
        }
        let (bytes, dir) = (units::short_bytes(outcome.bytes), trace.display());
        writeln!(io::stdout(), "recorded  {bytes}, {} events lost", count(outcome.lost))?;
        writeln!(io::stdout(), "spool     {dir}; `ft-agent convert {dir}` makes the tables")?;
        Ok(())
    }
}

fn analyze(trace: &Trace) -> Result<Tally> {
    let mut watch = Watch::begin("analysis");
    Ok(analyze::analyze_watched(trace, &mut |progress| watch.look(progress))?)
}

/// Analyses a trace, prints the short report, and writes a page.
fn summarise(dir: &Path, html: Option<&Path>) -> Result<()> {
    let trace = Trace::open(dir)?;
    let tally = analyze(&trace)?;
    report::print(
        &Document::of(&trace, &tally, sections::find("summary"), Asked::default())?,
        false,
    )?;
    writeln!(io::stdout(), "\nFor all of it: `ft-agent report {}`", dir.display())?;
    if let Some(file) = html {
        let (_, bytes) =
            page::of_trace(&trace, &tally, sections::all(), None, Asked::default(), file)?;
        page::say(file, bytes)?;
    }
    Ok(())
}

/// The command's own status, 128 and the signal when it was killed, as a shell tells it. A command that
/// this recording ended did nothing wrong.
pub(super) fn exit_code(outcome: &Outcome) -> ExitCode {
    let Some(status) = outcome.status.filter(|_| !outcome.interrupted) else {
        return ExitCode::SUCCESS;
    };
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    if code != 0 {
        let _ = writeln!(io::stderr(), "ft-agent: warning: the recorded command failed: {status}");
    }
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
