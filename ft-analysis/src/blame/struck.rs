//! The interrupts of each CPU, as pieces that do not overlap: what the time of those went to that had it.

use std::collections::{HashMap, VecDeque};

use crate::world::PerCpu;
use ft_trace::ids::{Cpu, Name, Tid};
use ft_trace::tables::Irq;

/// Pieces of interrupts that are kept of a CPU: of more, the oldest are forgotten, and their time is that of the thread that they struck.
///
/// Limit: the oldest are forgotten: their time is that of the thread that they struck; more that nest cannot be.
/// Shown by: `what_is_kept_is_bounded_whatever_comes`.
const MAX_STRUCK: usize = 1 << 13;

/// Interrupts that go on around another one; there are more in damaged data only.
///
/// Limit: as `MAX_STRUCK`.
const MAX_NESTED: usize = 16;

/// A piece of an interrupt.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    from: i64,
    to: i64,
    /// The thread that has the CPU.
    tid: Tid,
    name: Name,
}

/// Those of all CPUs, the newest.
#[derive(Debug, Default)]
pub(super) struct Struck(PerCpu<VecDeque<Piece>>);

impl Struck {
    /// An interrupt begins, on top of those that go on.
    pub(super) fn add(&mut self, irq: &Irq) {
        let Some(pieces) = self.0.of(irq.cpu) else { return };
        let (from, to) = (irq.ts.0, irq.ts.0.saturating_add(irq.dur.max(0)));
        let mut later = Vec::new();
        while let Some(around) = pieces.pop_back_if(|piece| piece.to > from) {
            if around.to > to && later.len() < MAX_NESTED {
                later.push(Piece { from: around.from.max(to), ..around.clone() });
            }
            if around.from < from {
                pieces.push_back(Piece { to: from, ..around });
                break;
            }
        }
        pieces.push_back(Piece { from, to, tid: irq.tid, name: irq.name.clone() });
        pieces.extend(later.into_iter().rev());
        while pieces.len() > MAX_STRUCK {
            pieces.pop_front();
        }
    }

    /// Which interrupts struck whom on this CPU, and for how long.
    pub(super) fn within(&self, cpu: Cpu, (from, to): (i64, i64)) -> Vec<(Tid, Name, i64)> {
        let mut sums: HashMap<(Tid, &Name), i64> = HashMap::new();
        let newest_first = self.0.get(cpu).into_iter().flat_map(|pieces| pieces.iter().rev());
        for piece in newest_first.take_while(|piece| piece.to > from) {
            let ns = piece.to.min(to) - piece.from.max(from);
            if ns > 0 {
                *sums.entry((piece.tid, &piece.name)).or_default() += ns;
            }
        }
        let mut sums: Vec<_> =
            sums.into_iter().map(|((tid, name), ns)| (tid, name.clone(), ns)).collect();
        sums.sort();
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Nanos, Pid};
    use ft_trace::tables::IrqKind;

    fn struck(of: &[(i64, i64, &str, i32)]) -> Struck {
        let mut struck = Struck::default();
        for (ts, dur, name, tid) in of {
            struck.add(&Irq {
                ts: Nanos(*ts),
                dur: *dur,
                cpu: Cpu(1),
                kind: IrqKind::Soft,
                number: 3,
                name: (*name).into(),
                tid: Tid(*tid),
                pid: Pid(0),
            });
        }
        struck
    }

    fn within(struck: &Struck, from: i64, to: i64, tid: i32) -> Vec<(String, i64)> {
        let found = struck.within(Cpu(1), (from, to)).into_iter();
        let of_thread = found.filter(|(struck, ..)| *struck == Tid(tid));
        of_thread.map(|(_, name, ns)| (name.to_string(), ns)).collect()
    }

    #[test]
    fn what_lies_on_top_of_another_one_counts_once() {
        // rx     10-----------------------40
        // timer       20--25    30-35
        // irq            22-23
        let of = [(10, 30, "rx", 7), (20, 5, "timer", 7), (22, 1, "irq", 7), (30, 5, "timer", 7)];
        let struck = struck(&of);
        let is = |found: Vec<(String, i64)>, expected: &[(&str, i64)]| {
            let expected: Vec<_> =
                expected.iter().map(|(name, ns)| (name.to_string(), *ns)).collect();
            assert_eq!(found, expected);
        };
        is(within(&struck, 0, 100, 7), &[("irq", 1), ("rx", 20), ("timer", 9)]);
        is(within(&struck, 24, 32, 7), &[("rx", 5), ("timer", 3)]);
        is(within(&struck, 0, 100, 8), &[]);
        is(within(&struck, 40, 100, 7), &[]);
        assert_eq!(struck.within(Cpu(0), (0, 100)), []);
    }

    #[test]
    fn what_is_kept_is_bounded_whatever_comes() {
        let of: Vec<_> = (0..3 * MAX_STRUCK as i64).map(|ts| (ts, 1_000_000, "rx", 7)).collect();
        let struck = struck(&of);
        assert_eq!(struck.0.get(Cpu(1)).map(VecDeque::len), Some(MAX_STRUCK));
    }
}
