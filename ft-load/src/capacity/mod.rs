//! `ft-load capacity`: the highest rate of events at which a recording loses nothing on this machine.
//!
//! Beamonte and Dagenais ("Linux Low-Latency Tracing for Multicore Hard Real-Time Systems", 2015, section 6 and table 4)
//! limit the rate of npt's trace point and find by binary search the highest at which none is discarded, with the kernel
//! traced as well. Here `ft-agent record` records [`crate::events`], run after run, into memory; what was lost is its own
//! account. The conversion, which may come later on another machine, is not part of it.
//!
//! The threads are pinned, from the last CPU down, and the agent has what they leave: with as many threads as CPUs it shares
//! one with a thread that never sleeps.

mod options;
mod print;
mod search;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use options::Plan;
pub use search::{CONFIRMED, Capacity, Limit, Range, Trial, highest};

use crate::agent::{self, Stage};
use crate::{Error, Output, cpus};

/// Where recordings are made unless it is said: in memory, because a disk would be measured otherwise.
const MEMORY: &str = "/dev/shm";

/// Bytes that the record of an event has at least; fewer were not of these events.
///
/// Limit: the search is refused, with the remedy.
/// Shown by: not shown: it takes an agent of another version.
const LEAST_BYTES: u64 = 16;

/// Bytes of memory that are made ready for each event before a run: what its record takes, and half as much again.
const READY: f64 = 48.0;

/// Most bytes that are made ready.
///
/// Limit: beyond it, the host of a virtual machine may have to provide memory while events are written: the rate that
/// is found is lower.
/// Shown by: not shown: it takes a host with less memory than it promises.
const MOST_READY: f64 = 4e9;

/// The length of a run that only shows whether the agent records so.
const TRY_NS: u64 = 10_000_000;

/// One row: how it was recorded, and the highest rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    threads: usize,
    /// Kernel groups, as the agent's `-k` has them.
    kernel: String,
    ring_size: String,
    /// Null where events were lost at the least rate, too.
    capacity: Option<Capacity>,
}

/// What the load tells of itself.
#[derive(Deserialize)]
struct Load {
    events: u64,
    rate: f64,
}

/// Runs `ft-load capacity` with these words behind its name.
///
/// # Errors
///
/// A sentence for what the command line gets wrong, or the machine or the agent refuses; then nothing runs any more.
pub fn run(words: &[String]) -> Result<Output, Error> {
    let cpus = cpus::allowed().len();
    let Some((plan, json)) = options::read(words, cpus)? else {
        return Ok(Output::new(format!("{}\n", options::HELP)));
    };
    let temporary = std::env::temp_dir();
    let memory = Path::new(MEMORY);
    let dir = plan.dir.as_deref().unwrap_or(if memory.is_dir() { memory } else { &temporary });
    let stage = Stage::new(agent::find(plan.agent.as_deref())?, dir)?;
    let row = |threads: &usize, kernel: &String, ring_size: &String| Row {
        threads: *threads,
        kernel: kernel.clone(),
        ring_size: ring_size.clone(),
        capacity: None,
    };
    let recorded = plan.rings.iter().flat_map(|ring| plan.kernel.iter().map(move |k| (k, ring)));
    // Whatever the agent refuses, it refuses now, and not after minutes.
    for (kernel, ring) in recorded.clone() {
        once(&stage, &Plan { time_ns: TRY_NS, ..plan.clone() }, &row(&1, kernel, ring), 1e3)?;
    }
    let mut rows: Vec<Row> = recorded
        .flat_map(|(kernel, ring)| plan.threads.iter().map(move |n| row(n, kernel, ring)))
        .collect();
    for row in &mut rows {
        row.capacity = highest(Range::default(), |asked| {
            let trial = once(&stage, &plan, row, asked)?;
            if io::stderr().is_terminal() {
                // Where nobody can read it any more it does not matter.
                let _ = writeln!(io::stderr(), "{}", print::trial(row, &trial));
            }
            Ok(trial)
        })?;
    }
    Ok(Output::new(if json { crate::json(&rows) } else { print::text(&rows, plan.time_ns) }))
}

/// Records the load once.
fn once(stage: &Stage, plan: &Plan, row: &Row, asked: f64) -> Result<Trial, Error> {
    let Row { threads, kernel, ring_size, .. } = row;
    make_ready(stage, asked * *threads as f64 * plan.time_ns as f64 / 1e9)?;
    // Nothing is closed, which would cost more at some rates than at others.
    let mut options =
        vec!["-e", "load.*", "-k", kernel, "--ring-size", ring_size, "--segment-size", "1G"];
    options.extend(plan.kernel_buffer.iter().flat_map(|size| ["--kernel-buffer", size.as_str()]));
    let (threads, rate) = (threads.to_string(), (asked as u64).to_string());
    let time = format!("{}ns", plan.time_ns);
    let load = ["events", "--json", "--threads", &threads, "--rate", &rate, "--time", &time];
    let told = stage.record::<Load>(&options, &load, Duration::from_nanos(plan.time_ns))?;
    if told.bytes < told.load.events.saturating_sub(told.lost) * LEAST_BYTES {
        return Err(Error::refused(
            "the agent has recorded something other than the events; use the ft-agent that was built with this program",
        ));
    }
    Ok(Trial { asked, reached: told.load.rate, lost: told.lost })
}

/// Has the machine back as much memory as the recording will take. The host of a virtual machine takes back what lies free
/// for some seconds, and giving it again costs several times what writing to it does: that is no tracer's cost.
fn make_ready(stage: &Stage, events: f64) -> Result<(), Error> {
    let path = stage.path("memory");
    let refused = |error: io::Error| {
        Error::refused(format!(
            "{} cannot be written ({error}); choose another --dir",
            path.display()
        ))
    };
    let mut file = File::create(&path).map_err(refused)?;
    let bytes =
        free_memory(&file).map_or(0.0, |free| (READY * events).min(MOST_READY).min(free / 2.0));
    let chunk = vec![1; 1 << 20];
    let written = (0..bytes as usize / chunk.len()).try_for_each(|_| file.write_all(&chunk));
    std::fs::remove_file(&path).and(written).map_err(refused)
}

/// Bytes that are free where the file is, if that is memory.
fn free_memory(file: &File) -> Option<f64> {
    // SAFETY: zeroes are a value, and the call writes to it alone.
    let system = unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &raw mut system) == 0).then_some(system)
    }?;
    (system.f_type == libc::TMPFS_MAGIC).then_some(system.f_bavail as f64 * system.f_bsize as f64)
}
