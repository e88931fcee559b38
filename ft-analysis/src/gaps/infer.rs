//! What a gap was, inferred from user time stamps alone (Hourglass, section 4).
//!
//! **Goal.** Infer the cause of a gap without the kernel, so that the inference can be held against what the
//! kernel saw, and trusted or not where there is no kernel stream.
//!
//! **Rule**, the first that fits:
//! 1. `switch-to-sibling`: another polling thread of the process showed itself on the same CPU inside the gap
//!    (its own gap ended there, or it began to poll). It ran, so the CPU was switched.
//! 2. `tick`: the gap is shorter than [`INTERRUPT_NS`] and begins on a [`Grid`] with such gaps of that CPU before it,
//!    within 2 % of its period. Gaps at random times hit one phase with probability 4 % each, so six of 32 with about
//!    0.2 %.
//! 3. `interrupt`: shorter than [`INTERRUPT_NS`].
//! 4. `long`: anything else; most likely a switch to a thread that does not poll.
//!
//! Where the CPU was not recorded, only length decides.

use std::collections::{HashMap, VecDeque};

use super::grid::Grid;
use crate::world::{Interval, cpu_index};
use ft_trace::ids::{Cpu, Pid, Tid};
use ft_trace::tables::InferredCause;

/// A gap below this is the size of an interrupt; a switch away and back takes longer in almost all cases,
/// because the other thread does something in between.
///
/// Limit: as `KEPT` of `grid.rs`.
const INTERRUPT_NS: i64 = 50_000;

/// Times at which pollers of one process were seen, kept per process.
///
/// Limit: as `KEPT` of `grid.rs`.
const SEEN_KEPT: usize = 64;

/// A gap, as the poller saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    /// CPU of the first poll after.
    pub(crate) cpu: Cpu,
    pub(crate) interval: Interval,
}

/// Remembers what earlier gaps say about later ones of the same process: what another one reports may be false.
#[derive(Debug, Default)]
pub(crate) struct Inference(HashMap<Pid, Process>);

#[derive(Debug, Default)]
struct Process {
    /// Per CPU, when the last interrupt-sized gaps began.
    grids: HashMap<Cpu, Grid>,
    /// Where and when its pollers were last seen to run.
    pollers: VecDeque<(Tid, Cpu, i64)>,
}

impl Inference {
    /// A polling thread is running on `cpu` at `ts`.
    pub(crate) fn polls(&mut self, pid: Pid, tid: Tid, cpu: Cpu, ts: i64) {
        keep(&mut self.0.entry(pid).or_default().pollers, (tid, cpu, ts), SEEN_KEPT);
    }

    /// A process has polled, and what it reported is remembered.
    pub(crate) fn knows(&self, pid: Pid) -> bool {
        self.0.contains_key(&pid)
    }

    /// A process has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.0.remove(&pid);
    }

    /// Names the cause of a gap. Gaps come in the order of their ends.
    pub(crate) fn gap(&mut self, gap: Seen) -> InferredCause {
        let known = cpu_index(gap.cpu).is_some();
        let (before, after) = (gap.interval.before(), gap.interval.after());
        let process = self.0.entry(gap.pid).or_default();
        let switched = process.pollers.iter().any(|&(tid, cpu, ts)| {
            tid != gap.tid && cpu == gap.cpu && known && (before..after).contains(&ts)
        });
        keep(&mut process.pollers, (gap.tid, gap.cpu, after), SEEN_KEPT);
        if switched {
            return InferredCause::SwitchToSibling;
        }
        if gap.interval.len_ns() >= INTERRUPT_NS {
            return InferredCause::Long;
        }
        if !known {
            return InferredCause::Interrupt;
        }
        let grid = process.grids.entry(gap.cpu).or_default();
        let tick = grid.period(before, |period| period / 50).is_some();
        if tick { InferredCause::Tick } else { InferredCause::Interrupt }
    }
}

fn keep<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaps::grid::HITS;

    fn gap(tid: i32, cpu: i32, before: i64, after: i64) -> Seen {
        let interval = Interval::told(before, after, after).expect("a gap");
        Seen { pid: Pid(1), tid: Tid(tid), cpu: Cpu(cpu), interval }
    }

    /// Gaps as (tid, cpu, before, after, expected).
    fn check(gaps: &[(i32, i32, i64, i64, &str)]) {
        let mut inference = Inference::default();
        for &(tid, cpu, before, after, expected) in gaps {
            assert_eq!(
                inference.gap(gap(tid, cpu, before, after)).word(),
                expected,
                "{before}..{after}"
            );
        }
    }

    #[test]
    fn two_pollers_that_take_turns_are_siblings() {
        // cpu 0:  1111|2222222|1111111|2222
        //   gaps of 1:  |....... |
        //   gaps of 2: ..|       |.......|
        check(&[
            (2, 0, 0, 1_000_100, "long"),
            (1, 0, 1_000_000, 2_000_100, "switch-to-sibling"),
            (2, 0, 2_000_000, 3_000_100, "switch-to-sibling"),
        ]);
    }

    #[test]
    fn a_sibling_on_another_cpu_says_nothing() {
        check(&[(2, 1, 0, 1_000_100, "long"), (1, 0, 1_000_000, 2_000_100, "long")]);
        check(&[(2, -1, 0, 1_000_100, "long"), (1, -1, 1_000_000, 2_000_100, "long")]);
    }

    #[test]
    fn gaps_on_the_grid_are_ticks_once_the_grid_is_known() {
        let mut inference = Inference::default();
        let found: Vec<_> = (0..10)
            .map(|i| {
                // 250 Hz, with up to 40 us of jitter: within 2 % of 4 ms.
                let start = 17_000 + i * 4_000_000 + (i * 7919) % 40_000;
                inference.gap(gap(1, 0, start, start + 3_000))
            })
            .collect();
        assert!(found[..HITS].iter().all(|f| *f == InferredCause::Interrupt), "{found:?}");
        assert!(found[HITS..].iter().all(|f| *f == InferredCause::Tick), "{found:?}");
        // Off the grid, and on the grid of a CPU about which nothing is known.
        assert_eq!(inference.gap(gap(1, 0, 41_500_000, 41_503_000)), InferredCause::Interrupt);
        assert_eq!(inference.gap(gap(1, 1, 44_017_000, 44_020_000)), InferredCause::Interrupt);
    }

    #[test]
    fn gaps_at_random_times_are_seldom_called_ticks() {
        let mut inference = Inference::default();
        let (mut t, mut state, mut ticks) = (0, 1u64, 0);
        for _ in 0..5_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            t += 100_000 + (state >> 40) as i64 % 9_000_000;
            ticks += i32::from(inference.gap(gap(1, 0, t, t + 2_000)) == InferredCause::Tick);
        }
        assert!(ticks < 100, "{ticks} of 5000 random gaps taken for ticks");
    }

    #[test]
    fn length_decides_the_rest() {
        check(&[
            (1, 0, 0, INTERRUPT_NS - 1, "interrupt"),
            (1, 0, 1 << 40, (1 << 40) + INTERRUPT_NS, "long"),
        ]);
    }
}
