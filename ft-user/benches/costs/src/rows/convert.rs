//! From the spool to Parquet: time, memory, bytes.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::bench::Bench;
use crate::figures::Samples;
use crate::table::{Row, number};

/// Million events of a recording: four segments.
const EVENTS: f64 = 8.0;

/// A second recording is so many times as long (and in a quick run).
const LONGER: (f64, f64) = (16.0, 4.0);

/// The most memory of the longer one, as a multiple of that of the short one.
const MARGIN: f64 = 1.1;

/// Million events a second that are recorded. The rings have room for a quarter of a second of them, so that
/// none is lost on a machine that stands still for a moment.
const RATE: f64 = 4.0;
const RING: &str = "32M";

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(3) {
        convert(bench, EVENTS, "short", &mut samples)?;
        if let Some(lttng) = bench.lttng()? {
            let seconds = (EVENTS / RATE).to_string();
            let traced = lttng.subject(&[], &["rate", "1", &RATE.to_string(), &seconds])?;
            let produced = traced.figures.get("produced")?;
            samples.add("lttng.bytes", traced.bytes as f64 / (produced - traced.lost as f64));
        }
    }
    let longer = if bench.quick { LONGER.1 } else { LONGER.0 };
    convert(bench, longer * EVENTS, "long", &mut samples)?;

    let (bytes, rate) = (samples.must("short.bytes")?, samples.must("short.rate")?);
    let (short, long) = (samples.must("short.memory")?, samples.must("long.memory")?);
    let beside = format!("of {} million events", number(samples.must("long.events")?));
    let recorded = format!("{} million events", number(samples.must("short.events")?));
    Ok(vec![
        Row::new("bytes per event in Parquet, one of 16 addresses and a counter", number(bytes))
            .goal("< 10", bytes < 10.0)
            .beside([("LTTng-UST's CTF", samples.median("lttng.bytes"))]),
        Row::new(format!("conversion of {recorded} on one core; millions a second"), number(rate))
            .goal("≥ 4", rate >= 4.0)
            .beside([(beside.as_str(), samples.median("long.rate"))]),
        Row::new("the same, most memory; MiB", number(short))
            .goal(format!("with more events ≤ {MARGIN:.2} ×"), long <= MARGIN * short)
            .beside([(beside.as_str(), Some(long))]),
    ])
}

/// Records and converts; adds `NAME.events` and `NAME.rate` (millions), `NAME.memory` (MiB), `NAME.bytes`.
fn convert(bench: &Bench, events: f64, name: &str, samples: &mut Samples) -> Result<()> {
    let dir = bench.path("convert");
    let seconds = (events / RATE).to_string();
    let subject = ["rate", "1", &RATE.to_string(), &seconds];
    let options = ["-k", "none", "-e", "costs.*", "--ring-size", RING];
    let recorded = bench.record_into(&dir, &options, &subject)?;
    let produced = recorded.figures.get("produced")?;
    let events = produced - recorded.lost as f64;
    // The figures are of those that were recorded.
    ensure!(events >= 0.9 * produced, "{} events of {produced} were lost", recorded.lost);
    let start = Instant::now();
    let path = dir.to_string_lossy().into_owned();
    let mut command = bench.agent(&["convert", &path]);
    let child = command.stdout(Stdio::null()).spawn().context("the agent does not start")?;
    let memory = most_memory(child)?;
    samples.add(&format!("{name}.events"), events / 1e6);
    samples.add(&format!("{name}.rate"), events / start.elapsed().as_secs_f64() / 1e6);
    samples.add(&format!("{name}.memory"), memory);
    samples.add(&format!("{name}.bytes"), size(&dir.join("user_events"))? as f64 / events);
    fs::remove_dir_all(&dir).context("the trace cannot be removed")
}

/// Waits for the end of a process; MiB of the most memory that it had.
fn most_memory(child: Child) -> Result<f64> {
    // SAFETY: both places are valid, and the child is not waited for elsewhere.
    let (waited, status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        (libc::wait4(child.id() as i32, &mut status, 0, &mut usage), status, usage)
    };
    ensure!(waited == child.id() as i32 && status == 0, "the conversion failed ({status})");
    Ok(usage.ru_maxrss as f64 / 1024.0)
}

fn size(dir: &Path) -> Result<u64> {
    let parts = fs::read_dir(dir).with_context(|| format!("no {}", dir.display()))?;
    Ok(parts.flatten().filter_map(|part| part.metadata().ok()).map(|part| part.len()).sum())
}
