//! Whether the TSCs of all CPUs agree: a thread visits each CPU in turn and takes samples.
//!
//! The samples of a recording come from wherever its thread runs, which may be one CPU for all its time. So the
//! question is asked once before, on every CPU that this process may use.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::sample::sample;
use crate::inherited;
use crate::threads;
use ft_trace::clock::{ClockError, check};
use ft_trace::spool::frame::ClockSample;

/// Visits to each CPU: the first and the last have samples of other CPUs on one side only, and a median wants
/// three.
const VISITS: usize = 5;

/// What a visit of all CPUs found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// So many CPUs agree, within a microsecond beyond the brackets.
    Agree(usize),
    /// Some CPU was not to be had in time, or there is only one.
    NotKnown,
}

/// Visits all CPUs that this process may use, for at most `patience`: a real-time thread may keep one of them
/// to itself.
///
/// # Errors
///
/// [`ClockError::Backwards`] or [`ClockError::Unsynchronised`].
pub fn probe(patience: Duration) -> Result<Agreement, ClockError> {
    let allowed = inherited::cpus().map_or_else(|| sched_getaffinity(None), Ok);
    let Ok(allowed) = allowed else { return Ok(Agreement::NotKnown) };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let count = cpus.len();
    let (sender, samples) = mpsc::channel();
    // It may be kept waiting for a CPU for longer than anybody wants to know; then it is left behind.
    let visit = move || {
        for _ in 0..VISITS {
            for &cpu in &cpus {
                let mut one = CpuSet::new();
                one.set(cpu);
                if sched_setaffinity(None, &one).is_err() || sender.send(sample()).is_err() {
                    return;
                }
            }
        }
    };
    if threads::spawn("ft-probe", visit).is_err() {
        return Ok(Agreement::NotKnown);
    }
    let until = Instant::now() + patience;
    let mut found: Vec<ClockSample> = Vec::new();
    while found.len() < VISITS * count {
        match samples.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(sample) => found.push(sample),
            Err(_) => break,
        }
    }
    judge(&found, count)
}

/// Judges samples in the order in which they were taken, of visits to `cpus` CPUs.
fn judge(samples: &[ClockSample], cpus: usize) -> Result<Agreement, ClockError> {
    check::synchronised(samples)?;
    let whole = cpus > 1 && samples.len() == VISITS * cpus;
    Ok(if whole { Agreement::Agree(cpus) } else { Agreement::NotKnown })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits of CPUs, 50 µs apart, whose TSCs (2 cycles a ns) are ahead by so many ns.
    fn visits(ahead_ns: &[i64], bracket_ns: u64) -> Vec<ClockSample> {
        let visit = |i: usize| {
            let (cpu, ns) = (i % ahead_ns.len(), 1_000_000_000 + 50_000 * i as i64);
            ClockSample {
                tsc: (2 * (ns + ahead_ns[cpu])) as u64,
                mono_ns: ns,
                bracket_tsc: 2 * bracket_ns,
                cpu: cpu as u32,
                ..ClockSample::default()
            }
        };
        (0..VISITS * ahead_ns.len()).map(visit).collect()
    }

    #[test]
    fn cpus_that_disagree_are_found() {
        let check = |ahead_ns: &[i64], expected: Result<Agreement, u32>| {
            let found = judge(&visits(ahead_ns, 30), ahead_ns.len());
            let found = found.map_err(|error| match error {
                ClockError::Unsynchronised { cpu, .. } => cpu,
                ClockError::Backwards { to_cpu, .. } => to_cpu,
                other => panic!("{other}"),
            });
            assert_eq!(found, expected, "{ahead_ns:?}");
        };
        check(&[0, 0], Ok(Agreement::Agree(2)));
        check(&[0, 500, -300], Ok(Agreement::Agree(3)));
        check(&[0, 0, 0, 9_000], Err(3));
        check(&[0, 0, -9_000, 0], Err(2));
        // So far apart that the second reads less than the first did before.
        check(&[0, -80_000], Err(1));
        check(&[0], Ok(Agreement::NotKnown));
    }

    #[test]
    fn what_the_brackets_explain_is_no_disagreement() {
        assert!(judge(&visits(&[0, 9_000], 20_000), 2).is_ok());
    }

    #[test]
    fn visits_that_were_cut_short_tell_nothing() {
        let samples = visits(&[0, 0, 0], 30);
        assert_eq!(judge(&samples[..7], 3), Ok(Agreement::NotKnown));
        assert_eq!(judge(&[], 3), Ok(Agreement::NotKnown));
        assert_eq!(probe(Duration::ZERO), Ok(Agreement::NotKnown));
    }
}
