//! What a worker says of itself before it begins to work.

use crate::world::LoadEvent;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::Cpu;
use ft_trace::tables::{LoadTimer, Policy, Workload};
use ft_trace::words::Word;

/// What a worker is to do. Times are not negative, lengths positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) number: i32,
    pub(super) workload: Workload,
    pub(super) timer: LoadTimer,
    pub(super) policy: Policy,
    pub(super) priority: i32,
    /// Amount and period.
    pub(super) reserved: Option<(i64, i64)>,
    pub(super) only_cpu: Option<Cpu>,
    pub(super) start: i64,
    /// Not before its start.
    pub(super) finish: i64,
    pub(super) amount_ns: Option<i64>,
    pub(super) period_ns: Option<i64>,
    pub(super) bound_ns: Option<i64>,
}

/// A length of time; none is told as 0, and what cannot be is as good as none.
fn length(ns: i64) -> Option<i64> {
    (ns > 0).then_some(ns)
}

/// The word with this number.
fn word<W: Word>(number: i64, unknown: W) -> W {
    usize::try_from(number).ok().and_then(|i| W::ALL.get(i).copied()).unwrap_or(unknown)
}

impl Plan {
    /// A worker announces itself at `now`.
    pub(super) fn new(e: &LeanUserEvent, now: i64) -> Plan {
        let [number, workload, timer] = e.arg;
        Plan {
            number: number as i32,
            workload: word(workload, Workload::Cpu),
            timer: word(timer, LoadTimer::Native),
            policy: Policy::Unknown,
            priority: 0,
            reserved: None,
            only_cpu: None,
            start: now,
            finish: now,
            amount_ns: None,
            period_ns: None,
            bound_ns: None,
        }
    }

    /// It says more of itself.
    pub(super) fn told(&mut self, what: LoadEvent, [first, second, third]: [i64; 3]) {
        match what {
            LoadEvent::Class => {
                // SCHED_NORMAL … SCHED_DEADLINE (include/uapi/linux/sched.h).
                self.policy = match first {
                    0 => Policy::Other,
                    1 => Policy::Fifo,
                    2 => Policy::RoundRobin,
                    3 => Policy::Batch,
                    5 => Policy::Idle,
                    6 => Policy::Deadline,
                    _ => Policy::Unknown,
                };
                self.priority = second as i32;
            }
            LoadEvent::Reserved => self.reserved = length(first).zip(length(second)),
            LoadEvent::Span => {
                self.start = first.max(0);
                self.finish = second.max(self.start);
                self.only_cpu = i32::try_from(third).ok().filter(|cpu| *cpu >= 0).map(Cpu);
            }
            LoadEvent::Demand => {
                (self.amount_ns, self.period_ns) = (length(first), length(second));
            }
            LoadEvent::Bound => self.bound_ns = length(first),
            _ => {}
        }
    }

    /// Whole periods between its start and its finish.
    pub(super) fn periods(&self) -> i64 {
        self.period_ns.map_or(0, |period| (self.finish - self.start) / period)
    }
}
