//! How often something happened to a thread.

use ft_trace::ids::Cpu;
use ft_trace::tables::{Counts, FaultKind};
use ft_user::layout::{COUNTERS_AT_ONCE, NOT_COUNTED};

/// What the counters of a thread showed at an event of its own.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ts: i64,
    /// The same as that of another reading: they counted all the time in between.
    stretch: i64,
    values: [i64; COUNTERS_AT_ONCE],
}

/// Since its first sight. The difference of two is what happened in between; it is right where a sum goes round, too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    sleeps: u32,
    switches: u32,
    moves: u32,
    faults: [u32; 2],
    /// What its counters showed when they were read last.
    reading: Option<Reading>,
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

    /// Its counters show this at `ts`; whether it is the first time.
    pub(super) fn reads(
        &mut self,
        ts: i64,
        [stretch, values @ ..]: [i64; 1 + COUNTERS_AT_ONCE],
    ) -> bool {
        self.reading.replace(Reading { ts, stretch, values }).is_none()
    }

    /// What its counters counted from `from`, of which `then` is, to `to`; known where they were read at both.
    pub(super) fn counted(
        &self,
        to: i64,
        then: &Counted,
        from: i64,
    ) -> [Option<i64>; COUNTERS_AT_ONCE] {
        let at = |reading: Option<Reading>, ts| reading.filter(|reading| reading.ts == ts);
        let known = at(then.reading, from).zip(at(self.reading, to));
        std::array::from_fn(|i| {
            let (before, after) =
                known.filter(|(before, after)| before.stretch == after.stretch)?;
            let [before, after] = [before, after].map(|reading| reading.values[i]);
            let is_read = before as u64 != NOT_COUNTED && after as u64 != NOT_COUNTED;
            // A program may tell anything.
            after.checked_sub(before).filter(|count| is_read && *count >= 0)
        })
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
