//! From TSC to CLOCK_MONOTONIC, with a bound of the error.
//!
//! **Map.** A line from each sample to the next. Beyond the first and the last sample goes on the line
//! from there to the nearest sample that is at least 100 ms away (two that are close give no rate).
//!
//! **Bound.** Let `b` be half of the widest bracket involved. A sample is wrong by at most `b`, and so
//! is the line between two exact places. What else can be wrong is that the rate of CLOCK_MONOTONIC
//! changed between the two (NTP slews it). A change of the rate by `d` at the fraction `f` of an
//! interval of length `h` bends the true curve away from the line by `d·h·f(1-f)`. The samples on
//! either side show it: the left end of the interval lies `d·h·(1-f)/2` off the line between its own
//! neighbours, the right end `d·h·f/2`, and the larger of these two *residuals* is never smaller than
//! the bend. But the residuals are measured between samples that are wrong by up to `b` themselves,
//! which can hide as much as `b` of the larger one (where neighbours are equally far; `s` times that
//! where a neighbour is nearer than the interval is long, as the residual is then scaled up by `s`).
//! So between two samples that have neighbours on both sides
//!
//! ```text
//! bound = b + s·b + larger residual + step of the TSC + 1 ns for rounding
//! ```
//!
//! With a neighbour on one side only, its residual may be half of the bend, and the bound is
//! `b + 2·(residual + 2·s·b) + …`; without any, the rate is taken to have changed by as much as NTP may.
//! Beyond the ends the bound grows with the distance, as the error of a line does. All this holds while
//! the rate changes at most once in three neighbouring intervals; the kernel changes it once a second
//! (`second_overflow`, kernel/time/ntp.c), and samples are taken every 100 ms.

use super::check::{self, ClockError, Finding};
use crate::ids::{Nanos, Tsc};
use crate::spool::frame::ClockSample;

/// Largest change of the rate by NTP, as a fraction (`MAXFREQ`, include/linux/timex.h: 500 ppm).
///
/// Limit: part of the clock's stated error (samples come from all CPUs), or the machine is refused.
/// Shown by: `the_true_error_never_exceeds_the_bound`.
const MAX_SLEW: f64 = 500e-6;

/// Shortest distance of two samples whose rate is carried on beyond the ends, ns.
const BASELINE_NS: i64 = 100_000_000;

/// A sample in the model, and the line from it to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The sample.
    pub sample: ClockSample,
    /// Nanoseconds for one cycle of the TSC from here on.
    pub ns_per_cycle: f64,
    /// Distance of the sample from the line between its neighbours, ns; 0 at the ends.
    pub residual_ns: f64,
    /// Largest error from here to the next sample; at the last sample as before it.
    pub bound_ns: i64,
}

/// The map.
#[derive(Clone, Debug)]
pub struct ClockModel {
    /// At least two, ascending in both clocks.
    nodes: Vec<Node>,
    /// How the line goes on before the first node, and behind the last.
    before: End,
    after: End,
    findings: Vec<Finding>,
}

/// The line beyond one end.
#[derive(Clone, Copy, Debug)]
struct End {
    ns_per_cycle: f64,
    /// Distance of the samples that it goes through, ns.
    baseline_ns: i64,
    /// Largest error between them.
    bound_ns: i64,
}

impl ClockModel {
    /// Makes the model from samples in the order in which they were taken.
    ///
    /// # Errors
    ///
    /// A [`ClockError`] when there are fewer than two samples, or when the TSC is no clock: it went
    /// backwards, its rate changed by more than NTP explains, or CPUs disagree.
    pub fn new(samples: &[ClockSample]) -> Result<ClockModel, ClockError> {
        let (samples, findings) = check::check(samples)?;
        let mut nodes: Vec<Node> = samples
            .iter()
            .map(|&sample| Node { sample, ns_per_cycle: 0.0, residual_ns: 0.0, bound_ns: 0 })
            .collect();
        let last = nodes.len() - 1;
        for i in 0..last {
            nodes[i].ns_per_cycle = rate(&samples[i], &samples[i + 1]);
            nodes[i].bound_ns = bound(&samples, i);
        }
        for i in 1..last {
            nodes[i].residual_ns = off_line(&samples[i - 1], &samples[i], &samples[i + 1]);
        }
        let far =
            |s: &ClockSample, end: &ClockSample| since(end, s).saturating_abs() >= BASELINE_NS;
        let first_far = samples.iter().position(|s| far(s, &samples[0])).unwrap_or(last);
        let last_far = samples.iter().rposition(|s| far(s, &samples[last])).unwrap_or(0);
        let before = end(&nodes[..=first_far]);
        let after = end(&nodes[last_far..]);
        nodes[last].ns_per_cycle = after.ns_per_cycle;
        nodes[last].bound_ns = nodes[last - 1].bound_ns;
        Ok(ClockModel { nodes, before, after, findings })
    }

    /// Samples that are used.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What was noticed and did not forbid the model.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Largest error between the first sample and the last, ns.
    pub fn bound_ns(&self) -> i64 {
        self.nodes.iter().map(|n| n.bound_ns).max().unwrap_or(0)
    }

    /// TSC cycles per second over all samples.
    pub fn tsc_hz(&self) -> f64 {
        1e9 / rate(&self.nodes[0].sample, &self.nodes[self.nodes.len() - 1].sample)
    }

    /// Step of the TSC, ns, rounded up.
    pub fn step_ns(&self) -> i64 {
        self.nodes.iter().map(|n| step_ns(&n.sample, n.ns_per_cycle)).max().unwrap_or(0)
    }

    /// Converts one time. For many, use a [`Cursor`].
    pub fn to_ns(&self, tsc: Tsc) -> Nanos {
        self.cursor().to_ns(tsc)
    }

    /// Largest error of [`ClockModel::to_ns`] at this TSC, ns.
    pub fn bound_at(&self, tsc: Tsc) -> i64 {
        let end = match self.segment(tsc) {
            0 if tsc.0 < self.nodes[0].sample.tsc => self.before,
            at if at + 1 == self.nodes.len() => self.after,
            at => return self.nodes[at].bound_ns,
        };
        let growth = 1.0 + 2.0 * self.beyond_ns(tsc) as f64 / end.baseline_ns as f64;
        (end.bound_ns as f64 * growth).ceil() as i64
    }

    /// How far outside the samples this TSC lies, ns; 0 between them.
    pub fn beyond_ns(&self, tsc: Tsc) -> i64 {
        let (first, last) = (&self.nodes[0].sample, &self.nodes[self.nodes.len() - 1].sample);
        let ns = self.to_ns(tsc).0;
        (first.mono_ns.saturating_sub(ns)).max(ns.saturating_sub(last.mono_ns)).max(0)
    }

    /// Whether the samples cover this time: its error is at most [`ClockModel::bound_ns`].
    pub fn covers(&self, ts: Nanos) -> bool {
        let (first, last) = (&self.nodes[0].sample, &self.nodes[self.nodes.len() - 1].sample);
        (first.mono_ns..=last.mono_ns).contains(&ts.0)
    }

    /// TSC readings less than `margin_ns` outside the samples.
    pub fn range(&self, margin_ns: i64) -> std::ops::Range<u64> {
        let (first, last) = (&self.nodes[0], &self.nodes[self.nodes.len() - 1]);
        let margin = |node: &Node| (margin_ns as f64 / node.ns_per_cycle) as u64;
        first.sample.tsc.saturating_sub(margin(first))..last.sample.tsc.saturating_add(margin(last))
    }

    /// Converts many times; fast while they stay in one interval.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { model: self, at: 0 }
    }

    /// Number of the node whose line holds at this TSC.
    fn segment(&self, tsc: Tsc) -> usize {
        self.nodes.partition_point(|n| n.sample.tsc <= tsc.0).saturating_sub(1)
    }
}

/// Converts times with the interval of the last one at hand.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    model: &'a ClockModel,
    at: usize,
}

impl Cursor<'_> {
    /// Converts one time.
    #[inline]
    pub fn to_ns(&mut self, tsc: Tsc) -> Nanos {
        let nodes = &self.model.nodes;
        let here = nodes[self.at].sample.tsc <= tsc.0
            && nodes.get(self.at + 1).is_none_or(|next| tsc.0 < next.sample.tsc);
        if !here {
            self.at = self.model.segment(tsc);
        }
        let node = &nodes[self.at];
        // The difference of two readings fits i64 as long as they are less than a century apart.
        let cycles = tsc.0.wrapping_sub(node.sample.tsc) as i64;
        let rate = if cycles < 0 { self.model.before.ns_per_cycle } else { node.ns_per_cycle };
        Nanos(node.sample.mono_ns.saturating_add((cycles as f64 * rate).round() as i64))
    }
}

/// Nanoseconds from one sample to another. Samples come from files, which say what they like.
pub(super) fn since(a: &ClockSample, b: &ClockSample) -> i64 {
    b.mono_ns.saturating_sub(a.mono_ns)
}

/// Nanoseconds for one cycle from one sample to another.
pub(super) fn rate(a: &ClockSample, b: &ClockSample) -> f64 {
    since(a, b) as f64 / (b.tsc - a.tsc) as f64
}

/// Distance of `middle` from the line through the other two, ns.
pub(super) fn off_line(a: &ClockSample, middle: &ClockSample, b: &ClockSample) -> f64 {
    let line = (middle.tsc - a.tsc) as f64 * rate(a, b);
    since(a, middle) as f64 - line
}

/// The line through the first and the last of these nodes, as it goes on beyond them.
fn end(nodes: &[Node]) -> End {
    let (a, b) = (&nodes[0].sample, &nodes[nodes.len() - 1].sample);
    let bounds = nodes[..nodes.len() - 1].iter().map(|n| n.bound_ns);
    End { ns_per_cycle: rate(a, b), baseline_ns: since(a, b), bound_ns: bounds.max().unwrap_or(0) }
}

fn step_ns(sample: &ClockSample, ns_per_cycle: f64) -> i64 {
    (f64::from(sample.step_tsc) * ns_per_cycle).ceil() as i64
}

/// The bound from sample `i` to the next, by the rule of the module.
fn bound(samples: &[ClockSample], i: usize) -> i64 {
    let (left, right) = (&samples[i], &samples[i + 1]);
    let length = right.tsc - left.tsc;
    // The nearest neighbour that is at least half an interval away: a nearer one shows too little.
    let before = samples[..i].iter().rev().find(|s| left.tsc - s.tsc >= length / 2);
    let after = samples[i + 2..].iter().find(|s| s.tsc - right.tsc >= length / 2);
    let scale = |distance: u64| ((distance + length) as f64 / (2.0 * distance as f64)).max(1.0);

    let ns_per_cycle = rate(left, right);
    let widest = [Some(left), Some(right), before, after].into_iter().flatten();
    let widest = widest.map(|s| s.bracket_tsc).max().unwrap_or(0);
    let b = widest as f64 * ns_per_cycle / 2.0;

    let at_left = before.map(|n| {
        let s = scale(left.tsc - n.tsc);
        (s, s * off_line(n, left, right).abs())
    });
    let at_right = after.map(|n| {
        let s = scale(n.tsc - right.tsc);
        (s, s * off_line(left, right, n).abs())
    });
    let bend = match (at_left, at_right) {
        (Some((s, residual)), Some((t, other))) => s.max(t) * b + residual.max(other),
        (Some((s, residual)), None) | (None, Some((s, residual))) => 2.0 * (residual + 2.0 * s * b),
        (None, None) => MAX_SLEW * length as f64 * ns_per_cycle / 4.0,
    };
    ((b + bend).ceil() as i64).saturating_add(step_ns(left, ns_per_cycle)).saturating_add(1)
}

#[cfg(test)]
mod tests;
