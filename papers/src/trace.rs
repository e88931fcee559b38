//! What an execution trace says beyond its single runs.

use ft_load::hourglass::Outcome;

use crate::plot::lanes::Lane;

/// A turn: from a thread's first run to its last before another thread of the load has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) thread: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

/// The turns on the one CPU of this trace. A gap that is longer than `longest_gap_ns` ends one, too: then a program from
/// elsewhere had the CPU.
pub(crate) fn turns(outcome: &Outcome, longest_gap_ns: i64) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for run in &outcome.runs {
        let (start_ns, end_ns) = (outcome.ns(run.start_tsc), outcome.ns(run.end_tsc));
        match turns.last_mut() {
            Some(turn) if turn.thread == run.thread && start_ns - turn.end_ns <= longest_gap_ns => {
                turn.end_ns = end_ns;
            }
            _ => turns.push(Turn { thread: run.thread, start_ns, end_ns }),
        }
    }
    turns
}

/// The lanes of all threads, by number; times in ms after the run's zero.
pub(crate) fn lanes(outcome: &Outcome, name: impl Fn(usize) -> String) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = (0..outcome.threads.len())
        .map(|thread| Lane { name: name(thread), runs: Vec::new() })
        .collect();
    for run in &outcome.runs {
        let ms = |tsc| outcome.ns(tsc) as f64 / 1e6;
        lanes[run.thread as usize].runs.push((ms(run.start_tsc), ms(run.end_tsc)));
    }
    lanes
}

/// The frequency of the clock interrupt: of the usual ones the one by whose grid gaps come most often.
///
/// Starts of gaps are folded by each period. A grid has a gap in the same place of nearly every period; one that is a
/// multiple of it, too, so of those that fit equally well the highest frequency is the one. `None` where no grid is met
/// by half of its ticks.
pub(crate) fn clock_hz(outcome: &Outcome) -> Option<u32> {
    const BIN_NS: i64 = 50_000;
    let gaps: Vec<i64> = outcome.runs.iter().map(|run| outcome.ns(run.end_tsc)).collect();
    let span_ns = gaps.last()? - gaps.first()?;
    let share = |hz: u32| {
        let period_ns = 1_000_000_000 / i64::from(hz);
        let mut bins = vec![0u64; (period_ns / BIN_NS + 1) as usize];
        gaps.iter().for_each(|gap| bins[(gap.rem_euclid(period_ns) / BIN_NS) as usize] += 1);
        // A tick may come at the border of two.
        let most = (0..bins.len()).map(|n| bins[n] + bins[(n + 1) % bins.len()]).max();
        most.unwrap_or(0) as f64 / (span_ns as f64 / period_ns as f64)
    };
    let shares = [1000, 300, 250, 100].map(|hz| (hz, share(hz).min(1.0)));
    let best = shares.iter().map(|(_, share)| *share).fold(0.5, f64::max);
    shares.iter().find(|(_, share)| *share >= 0.9 * best).map(|(hz, _)| *hz)
}
