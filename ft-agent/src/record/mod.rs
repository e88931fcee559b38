//! The recording session: from the options to a complete spool.
//!
//! ```text
//! registrations, control socket ─┐
//! signals, child, timers ────────┴─> instructions ─> collecting thread ─> spool
//!                                                         └─> closed segments ─> conversion behind the recording
//! ```
//!
//! The control plane ([`crate::control`]) runs on this thread; the collecting thread does all the copying and
//! never waits for it.

mod asleep;
mod behind;
mod child;
mod collector;
mod cost;
mod ended;
mod error;
mod host;
mod limits;
mod notice;
mod notices;
mod options;
mod output;
mod pace;
mod preload;
mod prepare;
mod program;
mod progress;
mod reader;
mod segments;
mod session;
mod sockets;
mod start_at;
mod tree;
mod wait;

pub use asleep::Sleeper;
pub use behind::Behind;
pub use error::{CutShort, RecordError};
pub use notice::Notice;
pub use options::Options;
pub use reader::Reader;
pub use segments::{Closed, Segments, Wish};
pub use start_at::StartAt;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use asleep::Asleep;
use child::{Child, Gated};
use collector::{Attached, Collector, Scope, Wanted};
use prepare::Prepared;
use progress::{Counters, Line};
use session::{Collecting, Session};
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tree::Before;

use crate::clock;
use crate::collect::arrivals::Intake;
use crate::collect::attach::{Memory, Refusal};
use crate::collect::cgroup::Cgroup;
use crate::collect::discover::{self, Identity};
use crate::collect::kernel::{self, Group, Kernel, ProbeCost};
use crate::collect::probe::{self, Probe};
use crate::control::registration::Server;
use crate::control::socket::Control;
use crate::control::{self, Signals};
use crate::status_line::Aside;
use crate::threads::{self, Bell, Pause};
use ft_trace::look;
use ft_trace::spool::Writer;
use ft_trace::spool::frame::{self, MissingTracepoint, Start};
use ft_trace::warning::Warning;

/// What begins later than asked for by more than this is reported, ns.
const LATE_NS: i64 = 100_000_000;

/// Looks for what a process had started before. A program that starts others without end is not followed for ever.
///
/// Limit: what it has started since is recorded only where the kernel follows it.
/// Shown by: not shown: a look is shorter than the start of a process.
const MAX_LOOKS: u32 = 8;

/// How long the comparison of the CPUs' clocks may delay a recording.
const PROBE_PATIENCE: Duration = Duration::from_millis(100);

/// How long the command may take to begin once a signal has come.
const EXECUTION: Duration = Duration::from_secs(2);

/// How a recording ended.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status of the command; `None` when there was none or it goes on.
    pub status: Option<ExitStatus>,
    /// The recording was ended by a signal or its duration, before its command.
    pub interrupted: bool,
    /// Bytes of the spool.
    pub bytes: u64,
    /// Events of applications and records of the kernel that were lost.
    pub lost: u64,
    /// Processes that were recorded through their rings.
    pub processes: u32,
}

/// Records into the spool of `options.output`, and reports each segment that is closed. `report` is called with
/// everything the user should know meanwhile.
///
/// # Errors
///
/// A [`RecordError`]: nothing was recorded, or, for [`RecordError::Spool`], what was recorded until then
/// is complete.
///
/// # Panics
///
/// Within an asynchronous runtime: it has one of its own.
pub fn record(
    options: &Options,
    segments: Segments,
    report: &mut dyn FnMut(&Notice),
) -> Result<Outcome, RecordError> {
    let recording = record_within(options, segments, report);
    control::run(recording).map_err(RecordError::system("start the control plane"))?
}

/// The same within [`control::run`], where more can follow: who has asked for a snapshot is answered then.
///
/// # Errors
///
/// As [`record`].
pub async fn record_within(
    options: &Options,
    mut segments: Segments,
    report: &mut dyn FnMut(&Notice),
) -> Result<Outcome, RecordError> {
    let _aside = Aside::begin();
    options.check()?;
    // Before anything takes some.
    let descriptors = limits::raise_descriptors();
    discover::check_proc()?;
    clock::probe(PROBE_PATIENCE)?;
    if let Some(at) = &options.start_at {
        put_off(at, options).await?;
    }
    let Prepared {
        attached,
        cgroup,
        probes,
        mut kernel,
        mut signals,
        output,
        pauses,
        mut environment,
    } = Prepared::new(options, report)?;

    let has = |group| options.kernel.contains(&group);
    let (facts, first) = host::facts(Start {
        stack_min_ns: has(Group::Stack)
            .then(|| options.stack_min.as_nanos().try_into().unwrap_or(i64::MAX)),
        sample_hz: has(Group::Profile).then_some(options.sample_hz),
        counters: names(&options.counters),
        switch_counters: names(&options.switch_counters),
        counter_calls: options.counter_calls,
        command: options.words(),
        build_id: program::build_id(options.command.first().map(OsString::as_os_str), &attached),
        kernel_groups: options.kernel.iter().map(|g| g.name().to_owned()).collect(),
        events: options.events.clone(),
        system_wide: options.system_wide,
        preload: options.preload,
        missing: kernel.as_ref().map(missing).unwrap_or_default(),
        probes: kernel.as_ref().map(|kernel| noted(&probes, kernel)).unwrap_or_default(),
        ..Start::default()
    });
    if let Some(start_at) = &options.start_at {
        wait::until(start_at, Duration::ZERO, options, &mut signals, kernel.as_mut()).await?;
    }
    let mut sockets = sockets::open(options, output.dir())?;
    environment.extend(sockets.environment(options));
    // Of programs that do not embed it, nothing is missing.
    let embeds = attached.iter().any(|process| process.memory.is_some());
    let unreachable = sockets.unreachable.take().filter(|_| embeds);
    let facts = Start { unreachable, ..facts };
    let (start, clock) = host::begin(facts, first, options.start_at.as_ref());
    let from = start.start_at.as_ref().and_then(|at| late(at, report));
    Warning::of_start(&start).into_iter().for_each(|w| report(&Notice::Quality(w)));
    for probe in probes.into_iter().filter(|probe| probe.unwinds) {
        report(&Notice::Unwinds { probe: probe.name });
    }
    if let Some(kernel) = &mut kernel {
        kernel.begin(start.start_ns.unsigned_abs());
    }
    let writer = Writer::create(output.spool(), options.segment, start, clock);
    let writer = writer.map_err(RecordError::NotBegun)?;
    let before = (options.ends_command && !options.command.is_empty()).then(Before::look);
    let before =
        before.transpose().map_err(RecordError::system("take care of what the command leaves"))?;
    let child = match options.command.as_slice() {
        [] => None,
        command => Some(run(command, &environment, &mut kernel, &mut signals).await?),
    };
    let tree = child.as_ref().and_then(|child| Some(before?.command(child.pid)));
    let control = Control::open(output.dir());
    let control =
        control.inspect_err(|e| report(&Notice::NoControl { reason: e.to_string() })).ok();
    output.keep();

    let intake = Intake::new(descriptors, Handle::current());
    let counters = Arc::new(Counters::default());
    let (notices, heard) = notices::notices();
    let triggers = std::mem::replace(&mut segments.triggers, unbounded_channel().1);
    let wanted = Wanted {
        globs: options.events.clone(),
        scope: Scope::of(options, cgroup.as_ref()),
        full_wait: options.full_wait,
        counting: options.counting(),
    };
    let bell = Bell::new().map_err(RecordError::system("wake the collection thread"))?;
    let buffers = kernel.iter().flat_map(Kernel::ring_buffers);
    let pause = Pause::new(bell.clone(), buffers)
        .map_err(RecordError::system("wait for what the kernel records"))?;
    let mut collector =
        Collector::new(writer, kernel, wanted, counters.clone(), notices, segments, intake.clone());
    let plain = attached.iter().filter(|process| process.memory.is_none());
    let plain: Vec<i32> = plain.map(|process| process.identity.pid).collect();
    // Programs of others never embed it: who records the kernel alone need not be told.
    if !plain.is_empty() && (options.kernel.is_empty() || options.events != ["*"]) {
        report(&Notice::NotEmbedded { pids: plain });
    }
    let mut named: Vec<i32> = attached.iter().map(|process| process.identity.pid).collect();
    for process in attached {
        collector.attach(process)?;
    }
    if !options.system_wide && !options.alone {
        attach_older(&mut named, &mut collector, report)?;
    }
    let asleep = Asleep::begin(&named);
    for pid in cgroup.iter().flat_map(Cgroup::processes) {
        if let Some(source) = attach_one_of_many(pid, &mut collector, report)? {
            return Err(RecordError::Inspect { pid, source });
        }
    }
    collector.enable_attached()?;
    // A command that has ended already is in the kernel's records alone.
    if let Some(Ok(identity)) = child.as_ref().map(|child| Identity::of(child.pid)) {
        collector.attach(Attached { identity, memory: None })?;
    }

    let (commands, inbox) = mpsc::channel();
    let (running, over) = oneshot::channel();
    let collect = move || {
        let _running: oneshot::Sender<()> = running;
        collector.run(&inbox, pauses, pause)
    };
    let thread = threads::spawn("ft-collect", collect)
        .map_err(RecordError::system("start the collection thread"))?;
    intake.wake(bell.clone());
    // Before whatever keeps the CPUs busy: processes wait for their registration. What was started above has the priority
    // that the agent was started with.
    let _raised = threads::raise();
    let listeners = sockets.take_listeners();
    let server = (!listeners.is_empty()).then(|| Server::new(listeners, intake)).transpose();
    let server = server.map_err(RecordError::system("serve registrations"))?;
    let collecting = Collecting { thread: Some(thread), commands, bell, over };
    let line = (options.progress && io::stderr().is_terminal()).then(Line::new);
    let session = Session {
        options,
        began: Instant::now(),
        from,
        collecting,
        collected: None,
        server,
        sockets: Some(sockets),
        control,
        counters,
        line,
        signals,
        notices: heard,
        triggers,
        ended_by: None,
        tree,
        asleep,
        report,
    };
    session.run(child).await
}

/// Waits until a moment before the time at which the recording is to begin. What would fail then is reported now.
async fn put_off(start_at: &StartAt, options: &Options) -> Result<(), RecordError> {
    if start_at.left() > 2 * wait::READY {
        let Prepared { mut signals, output, .. } = Prepared::new(options, &mut |_| ())?;
        drop(sockets::open(options, output.dir())?);
        drop(output);
        wait::until(start_at, wait::READY, options, &mut signals, None).await?;
    }
    Ok(())
}

/// When it was to begin, as the duration counts; reported if that is not now.
fn late(at: &frame::StartAt, report: &mut dyn FnMut(&Notice)) -> Option<Instant> {
    let late_ns = at.began_ns.saturating_sub(at.asked_ns);
    if late_ns > LATE_NS {
        report(&Notice::Late { late_ns });
    }
    Instant::now().checked_sub(Duration::from_nanos(u64::try_from(late_ns).unwrap_or(0)))
}

/// Starts the command, observed from before its first instruction. Where it registers is listened to
/// already, and served a moment later. A command on a file system that does not answer is not waited for any longer than the
/// user likes.
async fn run(
    command: &[OsString],
    environment: &[(&'static str, OsString)],
    kernel: &mut Option<Kernel>,
    signals: &mut Signals,
) -> Result<Child, RecordError> {
    let gated = Gated::fork(command, environment)?;
    if let Some(kernel) = kernel {
        kernel.observe(gated.pid() as u32);
    }
    let released = gated.release();
    tokio::pin!(released);
    let signal = tokio::select! {
        child = &mut released => return child,
        signal = signals.next() => signal,
    };
    // It may run by now: then the signal ends a recording.
    let child = timeout(EXECUTION, released).await.map_err(|_| RecordError::CalledOff)??;
    signals.put_back(signal);
    Ok(child)
}

/// Takes hold of a running process and its rings: once for each memfd, and once if it has none.
fn attach(pid: i32) -> Result<Vec<Attached>, RecordError> {
    let identify = || {
        let identity = Identity::of(pid).map_err(|_| RecordError::NoSuchProcess(pid))?;
        // A process that has ended keeps its number until its parent has waited for it.
        if identity.has_ended() {
            return Err(RecordError::NoSuchProcess(pid));
        }
        Ok(identity)
    };
    let identity = identify()?;
    let memfds = look::at(pid, move || discover::memfds(pid));
    let memfds = memfds.ok_or(RecordError::Attach { pid, reason: Refusal::Unanswered })?;
    let memfds = memfds.map_err(|source| RecordError::Inspect { pid, source })?;
    if memfds.is_empty() {
        return Ok(vec![Attached { identity, memory: None }]);
    }
    let hold = |file: std::fs::File| {
        let memory = Memory::attach(file.as_fd());
        let memory = memory.map_err(|reason| RecordError::Attach { pid, reason })?;
        Ok(Attached { identity: identify()?, memory: Some(memory) })
    };
    memfds.into_iter().map(hold).collect()
}

/// Attaches what these have started before, and adds it to them. What they start from now on follows by itself; what they have started
/// while somebody looked, the next look finds.
fn attach_older(
    named: &mut Vec<i32>,
    collector: &mut Collector,
    report: &mut dyn FnMut(&Notice),
) -> Result<(), RecordError> {
    let mut who = Vec::new();
    for _ in 0..MAX_LOOKS {
        let mut older = tree::older(named);
        older.retain(|(pid, _)| !collector.observes(*pid));
        if older.is_empty() {
            break;
        }
        for (pid, name) in older {
            named.push(pid);
            if attach_one_of_many(pid, collector, report)?.is_some() {
                who.push((pid, name));
            }
        }
    }
    if !who.is_empty() {
        report(&Notice::Older { who });
    }
    Ok(())
}

/// Attaches a process that can have ended, or be refused, without the recording's end; what the kernel said, if it may not be looked at.
fn attach_one_of_many(
    pid: i32,
    collector: &mut Collector,
    report: &mut dyn FnMut(&Notice),
) -> Result<Option<io::Error>, RecordError> {
    match attach(pid) {
        Ok(member) => member.into_iter().try_for_each(|process| collector.attach(process))?,
        Err(RecordError::Attach { pid, reason }) => report(&Notice::Refused { pid, reason }),
        Err(RecordError::Inspect { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            return Ok(Some(source));
        }
        // It has ended meanwhile.
        Err(_) => {}
    }
    Ok(None)
}

fn missing(kernel: &Kernel) -> Vec<MissingTracepoint> {
    let told = kernel.missing().iter().map(|missing| MissingTracepoint {
        group: missing.group.name().to_owned(),
        tracepoint: missing.tracepoint.to_owned(),
    });
    told.collect()
}

/// The probes, as the trace keeps them.
fn noted(probes: &[Probe], kernel: &Kernel) -> Vec<frame::Probe> {
    let noted = |(probe, cost): (&Probe, &Option<ProbeCost>)| frame::Probe {
        name: probe.name.clone(),
        path: probe.binary.path.to_string_lossy().into_owned(),
        marks: probe.end != probe::End::Return,
        cost_ns: cost.map(|cost| cost.ns),
        within_ns: cost.map(|cost| cost.within_ns),
    };
    probes.iter().zip(kernel.probe_costs()).map(noted).collect()
}

/// Those of counters.
fn names(counters: &[&'static ft_user::layout::Counter]) -> Vec<String> {
    counters.iter().map(|counter| counter.name.to_owned()).collect()
}

fn load_kernel(
    options: &Options,
    cgroup: Option<Cgroup>,
    probes: &[Probe],
) -> Result<Option<Kernel>, RecordError> {
    if options.kernel.is_empty() && probes.is_empty() {
        return Ok(None);
    }
    let kernel = kernel::KernelOptions {
        groups: options.kernel.clone(),
        system_wide: options.system_wide,
        alone: options.alone,
        cgroup,
        ring_bytes: options.kernel_ring_bytes().ok_or(RecordError::KernelBuffer)?,
        stack_min_ns: options.stack_min.as_nanos().try_into().unwrap_or(u64::MAX),
        sample_hz: options.sample_hz,
        counters: options.switch_counters.clone(),
        probes: probes.to_vec(),
        ..kernel::KernelOptions::default()
    };
    Ok(Some(Kernel::load(&kernel)?))
}
