//! The cycles that are to be explained, by thread and time, and what the tables say of them.

use std::collections::{BTreeMap, HashMap};

use super::cycle::{Class, Cycle, MissCause};
use crate::sections::Input;
use ft_trace::ids::{Cpu, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{DispatchLatency, Irq, PageFault, PathPiece, Sleep, Throttle};

/// Cycles of which it is said why they took so long; of further ones that missed their deadline, that is not known.
///
/// Limit: further ones have no cause and are counted (`unexplained`); further waits are whole *behind* who had the CPU.
/// Shown by: `cycles_beyond_those_that_are_explained_are_counted`.
pub(super) const MAX_EXPLAINED: usize = 10_000;

/// Waits for a CPU in such cycles in which interrupts are looked for; others are one part.
///
/// Limit: as `MAX_EXPLAINED`.
const MAX_WAITS: usize = 1 << 18;

/// Cycles by their number.
#[derive(Debug, Default)]
pub(super) struct Kept {
    cycles: HashMap<i64, Cycle>,
    /// By thread and end; one thread has several cycles at once if several deadlines are its own.
    by_thread: HashMap<(Pid, Tid), BTreeMap<(i64, i64), i64>>,
}

/// A wait for a CPU in a cycle.
#[derive(Debug)]
struct OnItsWay {
    from: i64,
    to: i64,
    cycle: i64,
}

impl Kept {
    /// One of a thread, with its number, is to be explained; whether there is room.
    pub(super) fn keep(
        &mut self,
        request: i64,
        thread: (Pid, Tid),
        (from, dur): (i64, i64),
    ) -> bool {
        if self.cycles.len() >= MAX_EXPLAINED && !self.cycles.contains_key(&request) {
            return false;
        }
        let to = from.saturating_add(dur);
        self.cycles.insert(request, Cycle::new(from, to));
        self.by_thread.entry(thread).or_default().insert((to, request), request);
        true
    }

    /// What the time of each went to.
    pub(super) fn into_parts(self) -> HashMap<i64, Vec<(MissCause, i64)>> {
        self.cycles.into_iter().map(|(request, cycle)| (request, cycle.parts())).collect()
    }

    /// Shows the cycles of a thread that overlap with a time, and for how long.
    fn overlapping(
        &mut self,
        thread: (Pid, Tid),
        (from, to): (i64, i64),
        mut each: impl FnMut(i64, &mut Cycle, i64),
    ) {
        let Some(of_thread) = self.by_thread.get(&thread) else { return };
        // A thread's cycles of one deadline follow one another, so those that begin behind it are the last.
        for request in
            of_thread.range((from.saturating_add(1), i64::MIN)..).map(|(_, request)| request)
        {
            let Some(cycle) = self.cycles.get_mut(request) else { continue };
            let ns = to.min(cycle.to).saturating_sub(from.max(cycle.from));
            if ns < 0 {
                break;
            }
            each(*request, cycle, ns);
        }
    }

    /// Reads what they are made of.
    pub(super) fn read(&mut self, input: Input<'_>) -> Result<()> {
        if self.cycles.is_empty() {
            return Ok(());
        }
        input.rows(|s: Sleep| {
            let at = (s.ts.0, s.ts.0);
            self.overlapping((s.pid, s.tid), at, |_, cycle, _| cycle.sleeps(&s));
        })?;
        input.rows(|p: PathPiece| {
            if let Some(cycle) = self.cycles.get_mut(&p.request) {
                cycle.piece(&p);
            }
        })?;
        input.rows(|f: PageFault| {
            let time = (f.ts.0, f.ts.0.saturating_add(f.dur.unwrap_or(0).max(0)));
            self.overlapping((f.pid, f.tid), time, |_, cycle, ns| {
                cycle.takes(&[Class::Own], ns, MissCause::plain(Class::Faults));
            });
        })?;
        input.rows(|t: Throttle| {
            let time = (t.ts.0, t.ts.0.saturating_add(t.dur.max(0)));
            let cause = MissCause::by(Class::Throttled, t.cgroup.clone());
            self.overlapping((t.pid, t.tid), time, |_, cycle, ns| {
                cycle.takes(&[Class::Preempted, Class::Dispatch], ns, cause.clone());
            });
        })?;
        self.interrupts(input)
    }

    /// Reads which interrupts had the CPU for which a thread waited that had been woken.
    fn interrupts(&mut self, input: Input<'_>) -> Result<()> {
        let (mut waits, mut count) = (HashMap::<Cpu, Vec<OnItsWay>>::new(), 0);
        input.rows(|w: DispatchLatency| {
            let (from, to) = (w.ts.0, w.ts.0.saturating_add(w.dur));
            self.overlapping((w.pid, w.tid), (from, to), |cycle, _, ns| {
                if ns > 0 && count < MAX_WAITS {
                    count += 1;
                    waits.entry(w.cpu).or_default().push(OnItsWay { from, to, cycle });
                }
            });
        })?;
        let longest = waits
            .values()
            .flatten()
            .map(|wait| wait.to.saturating_sub(wait.from))
            .max()
            .unwrap_or(0);
        input.rows(|irq: Irq| {
            let Some(waits) = waits.get(&irq.cpu) else { return };
            let (from, to) = (irq.ts.0, irq.ts.0.saturating_add(irq.dur.max(0)));
            let before = waits.partition_point(|wait| wait.from < to);
            let newest_first = waits[..before].iter().rev();
            for wait in newest_first.take_while(|wait| wait.from.saturating_add(longest) > from) {
                let ns = to.min(wait.to).saturating_sub(from.max(wait.from));
                if let Some(cycle) = self.cycles.get_mut(&wait.cycle).filter(|_| ns > 0) {
                    let cause = MissCause::by(Class::Interrupt, Some(irq.name.clone()));
                    cycle.takes(&[Class::Dispatch], ns, cause);
                }
            }
        })
    }
}
