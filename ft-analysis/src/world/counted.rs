//! How often something happened to a thread.

use ft_trace::ids::Cpu;
use ft_trace::tables::{Counts, FaultKind};

/// Since its first sight. The difference of two is what happened in between; it is right where a sum goes round, too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    sleeps: u32,
    switches: u32,
    moves: u32,
    faults: [u32; 2],
    /// The CPU that it had last, as far as is known.
    cpu: Option<Cpu>,
}

impl Counted {
    /// It leaves a CPU, and could run or not.
    pub(super) fn leaves(&mut self, cpu: Cpu, could_run: bool) {
        let sum = if could_run { &mut self.switches } else { &mut self.sleeps };
        *sum = sum.wrapping_add(1);
        self.cpu = Some(cpu);
    }

    /// It comes to a CPU.
    pub(super) fn comes(&mut self, cpu: Cpu) {
        let moved = self.cpu.replace(cpu).is_some_and(|before| before != cpu);
        self.moves = self.moves.wrapping_add(u32::from(moved));
    }

    /// It takes a page fault.
    pub(super) fn faults(&mut self, kind: Option<FaultKind>) {
        let [all, major] = &mut self.faults;
        *all = all.wrapping_add(1);
        *major = major.wrapping_add(u32::from(kind == Some(FaultKind::Major)));
    }

    /// What happened since then; page faults are known or not.
    pub(super) fn since(&self, then: &Counted, knows_faults: bool) -> Counts {
        let between = |now: u32, then: u32| i64::from(now.wrapping_sub(then));
        let faults = std::array::from_fn(|i| between(self.faults[i], then.faults[i]));
        Counts {
            sleeps: between(self.sleeps, then.sleeps),
            switches: between(self.switches, then.switches),
            moves: between(self.moves, then.moves),
            faults: knows_faults.then_some(faults),
        }
    }
}
