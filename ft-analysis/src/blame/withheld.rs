//! Why a thread that can run has no CPU, where nobody is to blame who had it.
//!
//! **Rule**, for the time in which a thread could run and did not:
//! - *quota*: what `throttles` says of it. Who had the CPU in that time had it for other reasons, and the idle task first of all.
//! - *real-time share*: it is a real-time thread, had to leave its CPU, and an ordinary one or none had it instead. The scheduler does that
//!   only when real-time threads have used up their share. From then on until a real-time thread has that CPU again the same
//!   holds for those that are woken. An ordinary thread that had the CPU before one was woken is no such case: it
//!   may be where the kernel lets nobody take its CPU.
//! - *deadline budget*, *next period*: it is a thread of SCHED_DEADLINE, and another one, or none, had its CPU. It yields until its next
//!   period by a call; else it has used up its budget.
//! - *way to an idle CPU*: whatever else goes on while its CPU is idle.

use super::sums::Taker;
use crate::world::{Culprit, Occupant, PerCpu, Stretch, Thread, World};
use ft_ebpf::FIRST_ORDINARY;
use ft_trace::ids::{Cpu, Name};
use ft_trace::tables::{Part, Sleep, Throttle, Withheld};

/// A time in which a group had no CPU time left.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    from: i64,
    to: i64,
    /// Which group, and how much it has.
    pub(super) whose: Name,
}

impl Kept {
    pub(super) fn of(row: &Throttle) -> Kept {
        let ms = |ns: i64| {
            let text = format!("{:.3}", ns as f64 / 1e6);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let mut whose = match &row.cgroup {
            Some(name) => format!("cgroup {name}"),
            None => "a cgroup".to_owned(),
        };
        if let (Some(quota), Some(period)) = (row.quota_ns, row.period_ns) {
            whose += &format!(", {} ms of each {} ms", ms(quota), ms(period));
        }
        let to = row.ts.0.saturating_add(row.dur.max(0));
        Kept { from: row.ts.0, to, whose: whose.into() }
    }

    /// How much of a stretch it is.
    pub(super) fn within(&self, stretch: &Stretch) -> i64 {
        (self.to.min(stretch.to) - self.from.max(stretch.from)).max(0)
    }
}

/// The times in which each CPU is kept from real-time threads: the newest.
#[derive(Debug, Default)]
pub(super) struct Denied(PerCpu<Option<(i64, i64)>>);

impl Denied {
    /// A CPU has gone from a thread, if that is observed, to another one.
    pub(super) fn switched(&mut self, cpu: Cpu, prev: Option<&Thread>, world: &World) {
        let next = world.occupant(cpu);
        let Some(denied) = self.0.of(cpu) else { return };
        let goes_on = denied.is_some_and(|(_, to)| to == i64::MAX);
        let is_real_time = next.is_none_or(|next| next.prio < FIRST_ORDINARY);
        if is_real_time {
            if let Some((_, to)) = denied.as_mut().filter(|_| goes_on) {
                *to = world.now();
            }
            return;
        }
        let had_to_leave = |thread: &Thread| {
            thread.is_preempted()
                && thread.prio.is_some_and(|prio| (0..FIRST_ORDINARY).contains(&prio))
        };
        if !goes_on && prev.is_some_and(had_to_leave) {
            *denied = Some((world.now(), i64::MAX));
        }
    }

    /// For how long it was in a stretch.
    fn within(&self, cpu: Cpu, stretch: &Stretch) -> i64 {
        let newest = self.0.get(cpu).copied().flatten();
        newest.map_or(0, |(from, to)| (to.min(stretch.to) - from.max(stretch.from)).max(0))
    }
}

/// What kept a thread from the CPU that another one had for so long; for how long of that.
pub(super) fn withheld(
    thread: &Thread,
    asleep: Option<&Sleep>,
    (stretch, cpu): (&Stretch, Cpu),
    (who, ns): (&Occupant, i64),
    denied: &Denied,
) -> Option<(Withheld, i64)> {
    let prio = thread.prio.unwrap_or(FIRST_ORDINARY);
    let is_idle = who.thread.tid.0 == 0;
    let is_lower = is_idle || who.prio >= FIRST_ORDINARY;
    // The thread that moves others has the highest priority of all, and shows 0.
    if prio < 0 && stretch.part == Part::Preempted && (is_lower || who.prio > 0) {
        let yields = asleep.and_then(|sleep| sleep.call.as_deref()) == Some("sched_yield");
        return Some((if yields { Withheld::Period } else { Withheld::Budget }, ns));
    }
    if (0..FIRST_ORDINARY).contains(&prio) && is_lower {
        let denied = match stretch.part {
            Part::Preempted => ns,
            _ => denied.within(cpu, stretch).min(ns),
        };
        if denied > 0 {
            return Some((Withheld::Share, denied));
        }
    }
    (is_idle && stretch.part == Part::Preempted).then_some((Withheld::Way, ns))
}

/// Whether a sleep ended late: since when it should have been over, if an interrupt of a timer has ended it.
pub(super) fn late(
    asleep: Option<&Sleep>,
    culprit: Option<&Culprit>,
    (from, to): (i64, i64),
) -> Option<i64> {
    let until = asleep?.until?;
    let by_interrupt = matches!(culprit, Some(Culprit::Interrupt(_)));
    (by_interrupt && until < to).then_some(until.max(from))
}

/// Takes so much from what each had: from the idle task first, from the others by their shares.
pub(super) fn without(shares: &mut [(Taker, i64)], mut ns: i64) {
    for (_, idle) in shares.iter_mut().filter(|(taker, _)| *taker == Taker::Idle) {
        let taken = ns.min(*idle);
        (*idle, ns) = (*idle - taken, ns - taken);
    }
    let mut all: i64 =
        shares.iter().filter(|(taker, _)| *taker != Taker::Idle).map(|(_, ns)| ns).sum();
    for (_, had) in shares.iter_mut().filter(|(taker, _)| *taker != Taker::Idle) {
        if all <= 0 {
            break;
        }
        let part = (i128::from(*had) * i128::from(ns.min(all)) / i128::from(all)) as i64;
        all -= *had;
        let taken = part.min(*had);
        (*had, ns) = (*had - taken, ns - taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_quota_has_is_taken_from_the_idle_task_first() {
        let cut = |mut shares: Vec<(Taker, i64)>, ns| {
            without(&mut shares, ns);
            shares.into_iter().map(|(_, ns)| ns).collect::<Vec<_>>()
        };
        let shares = || vec![(Taker::Other, 30), (Taker::Idle, 50), (Taker::Recording, 10)];
        assert_eq!(cut(shares(), 40), [30, 10, 10]);
        assert_eq!(cut(shares(), 70), [15, 0, 5]);
        assert_eq!(cut(shares(), 90), [0, 0, 0]);
        assert_eq!(cut(shares(), 500), [0, 0, 0]);
        assert_eq!(cut(vec![], 5), [0; 0]);
    }
}
