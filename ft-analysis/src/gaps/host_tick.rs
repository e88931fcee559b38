//! The tick of the machine below: a hypervisor that takes the CPU for its own timer.
//!
//! **Goal.** A gap in which the kernel recorded nothing at all has a cause outside the kernel. When such gaps of one process on one
//! CPU begin on a strict [`Grid`], something below the kernel runs with a period: the timer tick of the host. The gap is
//! *stolen* time, and its culprit is that tick.
//!
//! **Rule.** Only gaps in which nothing was recorded and nothing was lost are looked at. They must lie on the grid within
//! [`TOLERANCE_NS`], where an inferred *tick* may be off by 2 % of its period: the begins of such gaps scatter by some
//! microseconds, and the clocks of host and guest drift apart by some parts in a million. Random gaps meet a grid of
//! 10 ms with a probability of 0.4 % each, one of 1 ms with 4 %, so six of 32 of that with 0.2 %.
//!
//! **Limits.** A grid is known after six gaps: those before it stay `unexplained`. What the host does at other
//! times does too. An interrupt of the kernel's own for which it has no tracepoint (Hyper-V's synthetic timer) looks like
//! the host's. Where no interrupts are recorded nothing is named.

use std::collections::HashMap;

use super::Explanation;
use super::grid::Grid;
use super::infer::Seen;
use crate::world::{Culprit, cpu_index};
use ft_trace::ids::{Cpu, Pid};
use ft_trace::tables::GapCause;

/// How far from the grid a gap may begin.
///
/// Limit: part of the definition of *steal*; a gap further off is *unexplained*.
/// Shown by: the tests of `host_tick.rs`.
const TOLERANCE_NS: i64 = 20_000;

/// The gaps without a record so far.
#[derive(Debug, Default)]
pub(crate) struct HostTick {
    /// By process and CPU: what another process tells may be false.
    grids: HashMap<Pid, HashMap<Cpu, Grid>>,
}

impl HostTick {
    /// A process has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.grids.remove(&pid);
    }

    /// Names the cause of a gap of which every record is there, if it is the host's tick. Interrupts are recorded, so the
    /// kernel's own ticks have records.
    pub(crate) fn look(&mut self, gap: Seen, explanation: &mut Explanation) {
        let nothing_recorded = explanation.parts.unexplained_ns == gap.interval.len_ns();
        if !nothing_recorded || cpu_index(gap.cpu).is_none() {
            return;
        }
        let grid = self.grids.entry(gap.pid).or_default().entry(gap.cpu).or_default();
        if let Some(period) = grid.period(gap.interval.before(), |_| TOLERANCE_NS) {
            explanation.cause = GapCause::Steal;
            explanation.culprit = Some(Culprit::HostTick(period));
        }
    }
}
