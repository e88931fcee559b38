//! How long the passes of each loop took, by the program's own histogram.

use std::collections::BTreeMap;

use serde::Serialize;

use ft_analysis::Mark;
use ft_trace::ids::{Pid, Tid};
use ft_trace::tables::LoopBin;

/// Loops that are kept; a recording has one or two.
///
/// Limit: bins of further ones are in the histogram of all loops but in no loop's figures, and counted (`left_out`).
/// Shown by: `bins_and_loops_that_do_not_fit_are_counted`.
const MAX_LOOPS: usize = 4096;

/// Bins of loops that ended at one time; a loop of `ft-load` has at most 56,320.
///
/// Limit: as `MAX_LOOPS`.
const MAX_LOOP_BINS: usize = 65_536;

/// Lower edges of the coarse bins within a decade.
const STEPS: [u64; 3] = [1, 2, 5];

/// The passes of one loop.
#[derive(Clone, Debug, Serialize)]
pub struct LoopSum {
    /// End of the loop, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Passes, by the program's count.
    pub passes: u64,
    /// Of these, those in the histogram; all, unless events were lost.
    pub in_histogram: u64,
    /// Their lengths; not known where the program reported no frequency of its counter.
    pub lengths: Option<Lengths>,
    /// `lower bound` where a part of the histogram was lost.
    pub mark: Mark,
}

/// Lengths of passes, ns. Beyond 2048 cycles those of the histogram are at most 0.1 % too long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// Shortest.
    pub min_ns: f64,
    /// Average.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 99 % are not longer; null of fewer than 100 passes.
    pub p99_ns: Option<f64>,
    /// 99.9 % are not longer; null of fewer than 1000 passes.
    pub p999_ns: Option<f64>,
    /// 99.99 % are not longer; null of fewer than 10,000 passes.
    pub p9999_ns: Option<f64>,
    /// Longest.
    pub max_ns: f64,
}

type Key = (i64, Pid, Tid);

/// Makes the sums, in memory that does not grow with the number of rows.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Those whose rows may still come: of the newest time.
    open: BTreeMap<Key, Vec<LoopBin>>,
    bins: usize,
    done: Vec<LoopSum>,
    /// All passes, by the lower edge of a coarse bin, ns.
    coarse: BTreeMap<u64, u64>,
    left_out: u64,
}

/// What became of the loops.
pub(super) struct Told {
    pub(super) loops: Vec<LoopSum>,
    pub(super) coarse: Vec<(u64, u64)>,
    pub(super) left_out: u64,
}

impl Loops {
    /// Counts a row; they come in the order of time.
    pub(super) fn add(&mut self, bin: LoopBin) {
        let key = (bin.ts.0, bin.pid, bin.tid);
        if self.open.keys().next().is_some_and(|(ts, ..)| *ts != key.0) {
            self.close();
        }
        if let (Some(from), true) = (bin.from_ns, bin.passes > 0) {
            let passes = self.coarse.entry(edge(from)).or_default();
            *passes = passes.saturating_add(bin.passes as u64);
        }
        if self.bins < MAX_LOOP_BINS {
            self.bins += 1;
            self.open.entry(key).or_default().push(bin);
        } else {
            self.left_out += 1;
        }
    }

    fn close(&mut self) {
        self.bins = 0;
        for (_, mut bins) in std::mem::take(&mut self.open) {
            if self.done.len() == MAX_LOOPS {
                self.left_out += bins.len() as u64;
                continue;
            }
            bins.sort_by_key(|bin| bin.from_cycles);
            self.done.extend(sum(&bins));
        }
    }

    pub(super) fn finish(mut self) -> Told {
        self.close();
        let coarse = self.coarse.into_iter().collect();
        Told { loops: self.done, coarse, left_out: self.left_out }
    }
}

/// Where a coarse bin ends that begins there.
pub(super) fn next_edge(from: u64) -> u64 {
    let decades = (0..=u64::MAX.ilog10()).map(|decade| 10u64.pow(decade));
    let mut edges = decades.flat_map(|decade| STEPS.map(|step| decade.saturating_mul(step)));
    edges.find(|edge| *edge > from).unwrap_or(u64::MAX)
}

/// The coarse bin of a length: its lower edge.
fn edge(ns: f64) -> u64 {
    let ns = ns.max(0.0) as u64;
    let decade = 10u64.pow(ns.max(1).ilog10());
    let steps = STEPS.iter().map(|step| step.saturating_mul(decade));
    steps.rev().find(|edge| *edge <= ns).unwrap_or(0)
}

/// Of the bins of one loop, the shortest lengths first.
fn sum(bins: &[LoopBin]) -> Option<LoopSum> {
    let first = bins.first()?;
    let in_histogram = bins.iter().fold(0u64, |sum, bin| sum.saturating_add(bin.passes as u64));
    Some(LoopSum {
        ts: first.ts.0,
        pid: first.pid.0,
        tid: first.tid.0,
        comm: first.comm.to_string(),
        passes: first.of_passes.max(0) as u64,
        in_histogram,
        lengths: lengths(bins, in_histogram),
        mark: bins.iter().map(|bin| bin.mark).max().unwrap_or(Mark::Exact),
    })
}

fn lengths(bins: &[LoopBin], passes: u64) -> Option<Lengths> {
    let (first, last) = (bins.first()?, bins.last()?);
    let min_ns = first.from_ns?;
    // The longest length of a bin, which is a cycle shorter than the next one.
    let longest = |bin: &LoopBin| {
        let to_ns = bin.to_ns.unwrap_or(min_ns);
        to_ns * (bin.to_cycles - 1) as f64 / bin.to_cycles as f64
    };
    let middle = |bin: &LoopBin| (bin.from_ns.unwrap_or(min_ns) + longest(bin)) / 2.0;
    let total: f64 = bins.iter().map(|bin| bin.passes as f64 * middle(bin)).sum();
    let percentile = |percent: f64| {
        let rank = ((percent / 100.0 * passes as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        let found = bins.iter().find(|bin| {
            seen = seen.saturating_add(bin.passes as u64);
            seen >= rank
        });
        longest(found.unwrap_or(last))
    };
    let supported = |percent: f64, least: u64| (passes >= least).then(|| percentile(percent));
    Some(Lengths {
        min_ns,
        mean_ns: total / passes.max(1) as f64,
        p50_ns: percentile(50.0),
        p99_ns: supported(99.0, 100),
        p999_ns: supported(99.9, 1_000),
        p9999_ns: supported(99.99, 10_000),
        max_ns: longest(last),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::run;

    #[test]
    fn figures_are_those_of_the_passes() {
        // 98 passes of 10 cycles, one of 12, and one of 5000 or 5001; at 1 GHz.
        let (rows, _) = run(
            false,
            "1 loop a 100 9 1000000000
             5 looped a 100 1 3
             6 bin a 5000 5002 1
             7 bin a 10 11 98
             8 bin a 12 13 1
             20 loop a 1 9 0
             30 looped a 1 0 1
             31 bin a 7 8 1",
        );
        let mut loops = Loops::default();
        rows.loop_histogram.into_iter().for_each(|bin| loops.add(bin));
        let told = loops.finish();
        assert_eq!((told.loops.len(), told.left_out), (2, 0));
        assert_eq!((told.loops[0].passes, told.loops[0].in_histogram), (100, 100));
        let found = told.loops[0].lengths.expect("a frequency was told");
        assert_eq!((found.min_ns, found.p50_ns, found.p99_ns), (10.0, 10.0, Some(12.0)));
        assert_eq!([0, 1, 5, 20_000, u64::MAX].map(next_edge), [1, 2, 10, 50_000, u64::MAX]);
        assert_eq!((found.p999_ns, found.max_ns), (None, 5001.0));
        assert!((found.mean_ns - (980.0 + 12.0 + 5000.5) / 100.0).abs() < 1e-9);
        assert_eq!(told.loops[1].lengths, None);
        assert_eq!(told.coarse, [(10, 99), (5000, 1)]);
    }

    #[test]
    fn every_length_has_its_coarse_bin() {
        for (ns, expected) in [
            (0.0, 0),
            (0.9, 0),
            (1.0, 1),
            (4.9, 2),
            (5.0, 5),
            (99.0, 50),
            (100.0, 100),
            (2e4, 20_000),
        ] {
            assert_eq!(edge(ns), expected, "{ns}");
        }
        assert!(edge(f64::MAX) > 1 << 62 && edge(f64::NAN) == 0);
    }

    #[test]
    fn bins_and_loops_that_do_not_fit_are_counted() {
        let (rows, _) = run(false, "1 loop a 1 9 1\n5 looped a 9 1 3\n6 bin a 1 2 3");
        let bin = &rows.loop_histogram[0];
        let mut loops = Loops::default();
        (0..MAX_LOOP_BINS + 5).for_each(|_| loops.add(bin.clone()));
        assert_eq!(loops.finish().left_out, 5);
        let mut loops = Loops::default();
        for ts in 0..MAX_LOOPS as i64 + 2 {
            loops.add(LoopBin { ts: ft_trace::ids::Nanos(ts), ..bin.clone() });
        }
        let told = loops.finish();
        assert_eq!((told.loops.len(), told.left_out), (MAX_LOOPS, 2));
    }
}
