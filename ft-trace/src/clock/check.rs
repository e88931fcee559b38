//! Whether the TSC is a clock.
//!
//! Rules, for samples in the order in which they were taken:
//! - A sample whose bracket is more than eight times the median was interrupted; it is left out.
//! - Both clocks must advance from sample to sample, or the TSC went backwards (or was reset).
//! - From sample to sample the rate must stay within 0.1 % of the median rate (NTP slews by 0.05 % at
//!   most), give or take the brackets. If CLOCK_BOOTTIME ran ahead meanwhile, the machine was
//!   suspended; otherwise the TSC does not run at one rate.
//! - Samples of one CPU must not lie off the line between samples of others by more than the brackets
//!   and a microsecond, or the CPUs disagree. It is the median that counts: a change of the rate by NTP
//!   moves single samples.

use super::model::{off_line, rate, since};
use crate::spool::frame::ClockSample;

/// A bracket this many times the median is too wide.
const WIDE: u64 = 8;

/// Change of the rate that is not NTP's, as a fraction.
///
/// Limit: as `MAX_SLEW` of `model.rs`.
const MAX_RATE_CHANGE: f64 = 1e-3;

/// Disagreement of CPUs that is put up with, ns.
///
/// Limit: as `MAX_SLEW` of `model.rs`.
const CPU_TOLERANCE_NS: f64 = 1000.0;

/// Samples of one CPU that make a median.
const CPU_SAMPLES: usize = 3;

/// Change of CLOCK_BOOTTIME or CLOCK_REALTIME against CLOCK_MONOTONIC that is a step, ns.
///
/// Limit: less is not told, and part of what the time of day says; what is beyond is a warning.
/// Shown by: `what_does_not_forbid_the_model_is_a_finding`.
const STEP_NS: i64 = 1_000_000;

/// Why there is no model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClockError {
    /// Nothing to draw a line through.
    #[error(
        "{0} usable clock samples are too few to place user events in time; record for longer, \
         or check that the spool is complete"
    )]
    TooFewSamples(usize),
    /// A later sample has an earlier TSC.
    #[error(
        "the TSC went backwards by {cycles} cycles from CPU {from_cpu} to CPU {to_cpu}: it is no clock \
         here; use a machine whose clock source is tsc \
         (/sys/devices/system/clocksource/clocksource0/current_clocksource)"
    )]
    Backwards {
        /// How far.
        cycles: u64,
        /// CPU of the earlier sample.
        from_cpu: u32,
        /// CPU of the later sample.
        to_cpu: u32,
    },
    /// The rate changed.
    #[error(
        "the rate of the TSC changed by {ppm:.0} ppm at {at_ns} ns: it is not invariant; use a machine \
         whose CPUs have constant_tsc and nonstop_tsc (/proc/cpuinfo)"
    )]
    NotInvariant {
        /// By how much.
        ppm: f64,
        /// Since when, CLOCK_MONOTONIC.
        at_ns: i64,
    },
    /// CPUs disagree.
    #[error(
        "the TSC of CPU {cpu} differs from that of the others by {offset_ns:.0} ns: they are not \
         synchronised; use a machine whose clock source is tsc, or keep the program off that CPU"
    )]
    Unsynchronised {
        /// The CPU.
        cpu: u32,
        /// How far it is ahead in time.
        offset_ns: f64,
    },
}

/// Something that does not forbid the model but should be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Samples left out because they were interrupted.
    Wide(usize),
    /// CLOCK_REALTIME was set, by so many ns.
    RealtimeSet(i64),
    /// The machine slept, for so many ns.
    Suspended(i64),
}

/// The samples that can be used, and what was noticed.
pub(super) fn check(
    samples: &[ClockSample],
) -> Result<(Vec<ClockSample>, Vec<Finding>), ClockError> {
    let mut findings = Vec::new();
    let mut kept = usable(samples);
    if kept.len() < samples.len() {
        findings.push(Finding::Wide(samples.len() - kept.len()));
    }
    kept.dedup_by_key(|s| (s.tsc, s.mono_ns));
    if kept.len() < 2 {
        return Err(ClockError::TooFewSamples(kept.len()));
    }
    advance(&kept)?;
    steps(&kept, &mut findings);
    // First the CPUs: where they disagree, a sample on another one looks like a change of the rate.
    cpus(&kept)?;
    rates(&kept)?;
    Ok((kept, findings))
}

/// Whether the CPUs agree, by samples that are too close in time for a rate.
pub fn synchronised(samples: &[ClockSample]) -> Result<(), ClockError> {
    let kept = usable(samples);
    advance(&kept)?;
    cpus(&kept)
}

/// Samples that were not interrupted.
fn usable(samples: &[ClockSample]) -> Vec<ClockSample> {
    let brackets = samples.iter().map(|s| s.bracket_tsc);
    let widest = median(brackets).map_or(0, |m: u64| m.saturating_mul(WIDE));
    samples.iter().filter(|s| s.bracket_tsc <= widest).copied().collect()
}

fn advance(samples: &[ClockSample]) -> Result<(), ClockError> {
    for pair in samples.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        if b.tsc <= a.tsc || b.mono_ns <= a.mono_ns {
            let cycles = a.tsc.saturating_sub(b.tsc);
            return Err(ClockError::Backwards { cycles, from_cpu: a.cpu, to_cpu: b.cpu });
        }
    }
    Ok(())
}

fn steps(samples: &[ClockSample], findings: &mut Vec<Finding>) {
    for pair in samples.windows(2) {
        let realtime = pair[1].realtime_offset_ns.saturating_sub(pair[0].realtime_offset_ns);
        let asleep = asleep_ns(&pair[0], &pair[1]);
        if asleep > STEP_NS {
            findings.push(Finding::Suspended(asleep));
        } else if realtime.saturating_abs() > STEP_NS {
            findings.push(Finding::RealtimeSet(realtime));
        }
    }
}

fn asleep_ns(a: &ClockSample, b: &ClockSample) -> i64 {
    b.boottime_offset_ns.saturating_sub(a.boottime_offset_ns)
}

fn rates(samples: &[ClockSample]) -> Result<(), ClockError> {
    let Some(typical) = median(samples.windows(2).map(|p| rate(&p[0], &p[1]))) else {
        return Ok(());
    };
    for pair in samples.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        let real = since(a, b) as f64;
        let expected = (b.tsc - a.tsc) as f64 * typical;
        let noise = a.bracket_tsc.saturating_add(b.bracket_tsc) as f64 * typical;
        let changed = (expected - real).abs() > MAX_RATE_CHANGE * expected + noise;
        if changed && asleep_ns(a, b) <= STEP_NS {
            return Err(ClockError::NotInvariant {
                ppm: (expected / real - 1.0) * 1e6,
                at_ns: a.mono_ns,
            });
        }
    }
    Ok(())
}

fn cpus(samples: &[ClockSample]) -> Result<(), ClockError> {
    let mut seen: Vec<u32> = samples.iter().map(|s| s.cpu).collect();
    seen.sort_unstable();
    seen.dedup();
    // One that is far off pulls the line for its neighbours: the farthest is reported.
    let mut worst: Option<(u32, f64)> = None;
    for cpu in seen {
        let mine = samples.iter().enumerate().filter(|(_, s)| s.cpu == cpu);
        let offsets: Vec<f64> = mine
            .filter_map(|(i, sample)| {
                let before = samples[..i].iter().rev().find(|s| s.cpu != cpu)?;
                let after = samples[i + 1..].iter().find(|s| s.cpu != cpu)?;
                let brackets = [before, sample, sample, after].map(|s| s.bracket_tsc);
                let noise = brackets.into_iter().fold(0, u64::saturating_add) / 2;
                let off = off_line(before, sample, after);
                let allowed = noise as f64 * rate(before, after);
                Some(off.signum() * (off.abs() - allowed).max(0.0))
            })
            .collect();
        if offsets.len() >= CPU_SAMPLES
            && let Some(offset_ns) = median(offsets.into_iter())
            && offset_ns.abs() > worst.map_or(CPU_TOLERANCE_NS, |(_, ns)| ns.abs())
        {
            worst = Some((cpu, offset_ns));
        }
    }
    match worst {
        None => Ok(()),
        Some((cpu, offset_ns)) => Err(ClockError::Unsynchronised { cpu, offset_ns }),
    }
}

fn median<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied()
}
