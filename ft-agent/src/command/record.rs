//! `ft-agent record`.

mod values;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::collect::kernel::{self, Group};
use ft_agent::inherited;
use ft_agent::record::{
    self, Behind, Notice, Options, Outcome, Reader, RecordError, Segments, StartAt,
};
use ft_agent::status_line::{self, StatusLine};
use ft_analysis::{Deadline, RequestKind, Tally};
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
use super::{Result, flight, named, numbered, output, page, report};
use values::{Cpus, OnFull, counter, list_of_cpus, on_full, reader};

/// Records a command, running processes or the whole system, then analyses what was recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = FIRST_EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the trace; must be empty or not exist [default: trace, then trace-2, trace-3, …].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Stop after this time (500ms, 10s, 2m, 1h).
    #[arg(short, long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Record a process that already runs: its number, or its name.
    ///
    /// May be given more than once. A name must be that of one process.
    #[arg(short, long, value_name = "PROCESS", value_parser = named::process)]
    pid: Vec<i32>,

    /// Record every thread of the system.
    #[arg(short, long)]
    all: bool,

    #[arg(short, long, value_name = "GROUPS", default_value = "default", help = kernel_help())]
    kernel: String,

    /// Record the pthread locks of the command, without a change to it.
    ///
    /// By libft_preload.so, which stands beside this program, or where FT_PRELOAD says.
    #[arg(long)]
    preload: bool,

    /// Record each call of a function as a request, of a program that is not changed.
    ///
    /// FILE is a path, a program on the PATH or a library; FUNCTION is a name or a glob: `redis-server:processCommand`,
    /// `libssl.so.3:SSL_read`. `FILE:usdt:PROVIDER:BEGIN,END` is the time between two marks. May be given more than once. A call costs
    /// half a microsecond to some, and 16 in some virtual machines, in every process that runs the file. The report `requests` has the
    /// cost on this machine.
    #[arg(long, value_name = "FILE:FUNCTION")]
    probe: Vec<String>,

    /// Judge each cycle of the threads of this name that sleep until times: rt-loop=1ms; status 3 if one took longer.
    ///
    /// A cycle lasts from the time until which its thread slept until it does so again. The screen at the end says which were met, and
    /// why others were not. The exit status is 3 unless the command itself has failed. May be given more than once.
    #[arg(long, value_name = "THREAD=TIME", value_parser = report::deadline, conflicts_with_all = ["no_convert", "flight_recorder"])]
    deadline: Vec<RequestKind>,

    /// Also write the report as one HTML page.
    #[arg(long, value_name = "FILE", conflicts_with = "no_convert")]
    html: Option<PathBuf>,

    /// Record the processes of this cgroup (version 2) and of those below it.
    ///
    /// Those that run, and those that come. PATH is a directory, or a name as in /proc/PID/cgroup.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "all", "command"], hide_short_help = true, help_heading = PROCESSES)]
    cgroup: Option<PathBuf>,

    /// Leave out what the command and the processes of -p start, and have started.
    #[arg(long, conflicts_with_all = ["cgroup", "all"], hide_short_help = true, help_heading = PROCESSES)]
    no_children: bool,

    /// Record all other programs that embed ft-user and start meanwhile, too.
    ///
    /// Without it, only the command, the processes of -p, and the processes that they start or have started are recorded.
    #[arg(long, conflicts_with_all = ["cgroup", "all"], hide_short_help = true, help_heading = PROCESSES)]
    any: bool,

    /// Keep the agent to these CPUs, such as 0,2-3, away from those of a real-time thread.
    ///
    /// The command may use all CPUs that it could use without this.
    #[arg(long, value_name = "CPUS", value_parser = list_of_cpus, hide_short_help = true, help_heading = TRACE)]
    agent_cpus: Option<Cpus>,

    /// Leave the command running when the recording ends.
    ///
    /// Otherwise the command and all that it has started end with the recording: by SIGTERM, and 2 s later by SIGKILL. So the agent, not
    /// process 1, becomes the parent of a process whose parent has ended.
    #[arg(long, hide_short_help = true, help_heading = PROCESSES)]
    no_kill: bool,

    /// Record the call chains of threads that were off the CPU for at least this long, and of their wakers (group `stack`).
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = units::duration, hide_short_help = true, help_heading = KERNEL)]
    stack_min: Duration,

    /// Samples per second and CPU (group `profile`; 1 to 20000).
    ///
    /// Choose a rate that no period of the program divides.
    #[arg(long, value_name = "HZ", default_value = "97", hide_short_help = true, help_heading = KERNEL)]
    sample_rate: u32,

    /// Count these events, two at most, whenever a thread leaves a CPU: instructions,cache-misses or page-faults.
    ///
    /// In user space, of any program (table `cpu_counts`, report `time`). A switch takes some tenths of a microsecond more.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = counter, hide_short_help = true, help_heading = KERNEL)]
    switch_counter: Vec<&'static Counter>,

    /// Size of the ring buffers of the kernel's records, of all CPUs together.
    ///
    /// 4K to 1G; 16M, or 1M for each CPU where there are more than 16. The memory is taken at the start.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, hide_short_help = true, help_heading = KERNEL)]
    kernel_buffer: Option<u64>,

    /// Enable the sites whose names match this glob; may be given more than once.
    #[arg(short, long, value_name = "GLOB", default_value = "*", hide_short_help = true, help_heading = EMBEDDED)]
    event: Vec<String>,

    /// Size of a thread's ring in the processes of the command.
    ///
    /// 128K to 128M; 8M unless the program says otherwise. The memory is taken as it is written, and kept.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, hide_short_help = true, help_heading = EMBEDDED)]
    ring_size: Option<u64>,

    /// Action of a thread whose ring is full: `discard`, `wait` or `wait=TIME`.
    ///
    /// `discard` loses the event, which is counted and placed. `wait` waits for room first, 10ms at most, or TIME (1ms to 1s): that
    /// delays the program, is recorded, and marks the intervals that it touches.
    #[arg(long, value_name = "ACTION", default_value = "discard", value_parser = on_full, hide_short_help = true, help_heading = EMBEDDED)]
    on_full: OnFull,

    /// Counters of the processor that threads read with each event, two at most: instructions,cache-misses.
    ///
    /// Holds, scopes, polls and functions then have counts. In user space, where the processor has counters and lets programs read them
    /// (`ft-agent doctor`). An event takes a tenth of a microsecond or more in addition, and 64 bytes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = counter, hide_short_help = true, help_heading = EMBEDDED)]
    counter: Vec<&'static Counter>,

    /// Read counters by system calls, also those of the kernel: task-clock, page-faults, major-faults.
    ///
    /// A counter costs an event a third of a microsecond or more, and each thread a descriptor.
    #[arg(long, requires = "counter", hide_short_help = true, help_heading = EMBEDDED)]
    counter_calls: bool,

    /// How often the agent reads the rings: `adaptive`, `timed=TIME`, `active` or `waking`.
    ///
    /// `adaptive` reads them every 0.1 to 1 ms, as fast as they fill. The others are for measurements: `timed=TIME` (10us to 100ms),
    /// `active`, without a pause, which takes a CPU, and `waking`, when the command writes to the eventfd whose number is in FT_WAKE.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = reader, hide_short_help = true, help_heading = EMBEDDED)]
    reader: Reader,

    /// Begin at this time of this host's clock: 2026-11-21T10:45:00Z, +10s, or next=1m.
    ///
    /// So the recordings of several hosts coincide. An RFC 3339 time has an offset or is UTC. next=1m is the next full minute of UTC that
    /// is at least 5 s away. The command is started then, and -d counts from then on.
    #[arg(long, value_name = "TIME", value_parser = StartAt::parse, hide_short_help = true, help_heading = TRACE)]
    start_at: Option<StartAt>,

    /// Size at which a segment of the recording is closed and converted.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = units::bytes, hide_short_help = true, help_heading = TRACE)]
    segment_size: u64,

    /// Age at which a segment of the recording is closed and converted.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration, hide_short_help = true, help_heading = TRACE)]
    segment_time: Duration,

    /// Leave the recording unconverted.
    ///
    /// `ft-agent convert DIR` makes the tables, `ft-agent report DIR` the report. For programs that need the CPU of the conversion.
    #[arg(long, conflicts_with_all = ["flight_recorder", "to"], hide_short_help = true, help_heading = TRACE)]
    no_convert: bool,

    /// Print the end of the recording as a line of JSON, instead of the findings.
    ///
    /// To standard output, behind what a command has written there: on the same line, if the command has not ended its last one.
    #[arg(long, hide_short_help = true, help_heading = TRACE)]
    json: bool,

    /// Command to run and record, after `--`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    to: ToArgs,

    #[command(flatten)]
    flight: flight::FlightArgs,
}

const PROCESSES: &str = "Processes";
const KERNEL: &str = "Kernel";
const EMBEDDED: &str = "Programs that embed ft-user";
const TRACE: &str = "The trace";

const FIRST_EXAMPLES: &str = "\
Examples:
  ft-agent record -- ./server --port 8080     a command, until it ends or Ctrl-C
  ft-agent record -d 10s -p 4711 -o slow      ten seconds of process 4711, into ./slow
  sudo ft-agent record -a -d 5s               every thread of the system
All options: ft-agent record --help";

const EXAMPLES: &str = "\
Without a command, -p and --cgroup, processes that embed ft-user are recorded as they register.
Standard output is the command's: the findings go to standard error, unless it is a terminal, or there is no command.
The exit status is that of the command, if there is one and it ended by itself, unless the recording itself fails: 1, and the
error says how the command ended. A command that signal N ended gives 128+N. It is 3 if the command's is 0 and a --deadline was
missed; 126 if it cannot be executed, 127 if it is not found.

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
    /// What became of the deadlines, if any was asked for.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    deadlines: &'a [Deadline],
    /// The page, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<&'a Path>,
}

fn kernel_help() -> String {
    let usual = Group::DEFAULT.map(Group::name).join(",");
    format!(
        "Kernel groups, separated by commas: {}, default ({usual}), all or none",
        Group::names()
    )
}

pub(crate) fn run(args: Args) -> Result {
    if let Some(Cpus(cpus)) = &args.agent_cpus {
        let fail = |source| CommandError::AgentCpus { cpus: cpus.clone(), source };
        inherited::keep_to(cpus).map_err(fail)?;
    }
    let output = args.output.unwrap_or_else(numbered::next);
    let html = args.html;
    // A directory of the trace itself there is when it is recorded.
    if let Some(file) = html.as_ref().filter(|file| !file.starts_with(&output)) {
        page::check(file)?;
    }
    let to = args.to.open_later()?;
    let ends_with_trigger = args.flight.stop_on_trigger;
    let flight = args.flight.options();
    let segment = Limits { bytes: args.segment_size, age: args.segment_time };
    let deadlines = report::each_once(args.deadline);
    let usual = Options::default();
    let options = Options {
        // A command has the terminal for itself: it draws on it, and waits for answers.
        progress: args.command.is_empty() && io::stderr().is_terminal(),
        kernel: match &*args.kernel {
            "default" => kernel::usual_groups(),
            list => Group::parse_list(list)?,
        },
        start_at: args.start_at,
        duration: args.duration,
        events: args.event,
        pids: args.pid,
        alone: args.no_children,
        cgroup: args.cgroup,
        system_wide: args.all,
        any: args.any,
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
        ends_with_trigger,
        command: args.command,
        ends_command: !args.no_kill,
        preload: args.preload,
        output,
    };
    if !deadlines.is_empty() && !options.kernel.contains(&Group::Sched) {
        return Err(CommandError::DeadlineWithoutSwitches);
    }
    let recording = match flight {
        Some(flight) => flight::run(&options, &flight)?,
        None if args.no_convert => unconverted(&options)?,
        None => converted(&options)?,
    };
    let judges = !deadlines.is_empty();
    let shown = recording.show(&mut *out(&options), args.json, html.as_deref(), deadlines);
    // Whoever reads what is printed does not decide about the trace.
    let put = to.map(|to| to.put(&recording.trace)).transpose();
    let code = exit_code(&recording.outcome);
    match shown.and_then(|tally| put.map(|_| tally)) {
        Ok(Some(tally)) if judges && code == ExitCode::SUCCESS => report::judged(&tally),
        Ok(_) => Ok(code),
        Err(error) if code == ExitCode::SUCCESS => Err(error),
        Err(error) => {
            error.say();
            Ok(code)
        }
    }
}

/// Where the summary goes: not into what a command writes to standard output, unless that is read on a terminal.
fn out(options: &Options) -> Box<dyn Write> {
    match options.command.is_empty() || io::stdout().is_terminal() {
        true => Box::new(io::stdout()),
        false => Box::new(io::LineWriter::new(io::stderr())),
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
    let goes_on = !options.command.is_empty() && !options.ends_command;
    let mut line = (!goes_on && io::stderr().is_terminal()).then(|| StatusLine);
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
            summarise(&mut *out(options), &trace, None, Vec::new())?;
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
    /// Analyses it if there are tables, prints what it has, and writes a page; the counts of the analysis.
    pub(super) fn show(
        &self,
        out: &mut dyn Write,
        json: bool,
        html: Option<&Path>,
        deadlines: Vec<RequestKind>,
    ) -> Result<Option<Tally>> {
        let Recording { trace, outcome, .. } = self;
        if json {
            let mut tally = None;
            if self.is_converted {
                let trace = Trace::open(trace)?;
                let tally = tally.insert(analyze(&trace, deadlines)?);
                html.map(|file| {
                    page::of_trace(&trace, tally, sections::all(), None, Asked::default(), file)
                })
                .transpose()?;
            }
            output::print_json_line(&Answer {
                trace,
                exit_code: outcome.status.and_then(|status| status.code()),
                interrupted: outcome.interrupted,
                is_converted: self.is_converted,
                spool_bytes: outcome.bytes,
                lost: outcome.lost,
                processes: outcome.processes,
                deadlines: tally.as_ref().map_or(&[][..], |tally| &tally.requests.deadlines[..]),
                html,
            })?;
            return Ok(tally);
        }
        if self.is_converted {
            write!(out, "{}", self.title)?;
            return summarise(out, trace, html, deadlines).map(Some);
        }
        let (bytes, dir) = (units::short_bytes(outcome.bytes), trace.display());
        writeln!(out, "recorded  {bytes}, {} events lost", count(outcome.lost))?;
        writeln!(out, "spool     {dir}; `ft-agent convert {dir}` makes the tables")?;
        Ok(None)
    }
}

fn analyze(trace: &Trace, deadlines: Vec<RequestKind>) -> Result<Tally> {
    if !deadlines.is_empty() {
        return report::analyzed(trace, deadlines);
    }
    let mut watch = Watch::begin("analysis");
    Ok(analyze::analyze_watched(trace, &mut |progress| watch.look(progress))?)
}

/// Analyses a trace, prints the short report, and writes a page.
fn summarise(
    out: &mut dyn Write,
    dir: &Path,
    html: Option<&Path>,
    deadlines: Vec<RequestKind>,
) -> Result<Tally> {
    let trace = Trace::open(dir)?;
    let shown =
        ["findings", "deadlines"].into_iter().take(if deadlines.is_empty() { 1 } else { 2 });
    let tally = analyze(&trace, deadlines)?;
    let findings =
        Document::of(&trace, &tally, shown.filter_map(sections::find), Asked::default())?;
    report::print_sections(out, &findings)?;
    if let Some(file) = html {
        let (_, bytes) =
            page::of_trace(&trace, &tally, sections::all(), None, Asked::default(), file)?;
        page::say(out, file, bytes)?;
    }
    Ok(tally)
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
