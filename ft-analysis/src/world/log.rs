//! What is settled of threads and CPUs, piece by piece: for analyses that draw it ([`Analysis::DRAWS`]), or want it for a
//! while ([`Analysis::follows`]).
//!
//! The accounts know sums, and forget what they are made of. Whoever draws a thread wants the pieces, as the
//! account attributes them: so the pieces of a thread sum to its rows of `thread_time`, to the nanosecond. (But one
//! kind: what a polling thread says later, that it did not run although it had the CPU, is in its gaps, and
//! `thread_time` moves that from *running* to *unexplained*.)
//!
//! [`Analysis::DRAWS`]: crate::Analysis::DRAWS
//! [`Analysis::follows`]: crate::Analysis::follows

use super::account::Stretches;
use super::cpus::{Occupant, Shares};
use super::culprit::{Culprit, Unknown};
use super::spent::Spent;
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Name, ThreadKey};
use ft_trace::tables::Part;

/// A piece of an observed thread's time, `from .. to` in CLOCK_MONOTONIC ns. The next one begins where it ends; two
/// neighbours may differ in nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The thread.
    pub thread: ThreadKey,
    /// Its begin.
    pub from: i64,
    /// Its end, behind the begin.
    pub to: i64,
    /// What the thread did, or what was done to it.
    pub part: Part,
    /// Whose doing that was: of time without a CPU, whoever had the CPU longest meanwhile.
    pub culprit: Culprit,
    /// How far it can be believed: `lower bound` where records are missing.
    pub mark: Mark,
}

impl Stretch {
    /// Takes in the next piece of its thread if that goes on where this one ends and is the same; the worse mark is that of
    /// both. Returns whether it does.
    pub fn extend(&mut self, next: &Stretch) -> bool {
        let goes_on =
            self.to == next.from && self.part == next.part && self.culprit == next.culprit;
        if goes_on {
            self.to = next.to;
            self.mark = self.mark.max(next.mark);
        }
        goes_on
    }
}

/// A thread, observed or not, had a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    /// The CPU.
    pub cpu: Cpu,
    /// The thread; 0: idle.
    pub who: Occupant,
    /// The switch to it, CLOCK_MONOTONIC ns.
    pub from: i64,
    /// The switch away from it; or, where that was not recorded, the last record that shows it there.
    pub to: i64,
    /// The switch away was recorded.
    pub seen: bool,
}

/// Stretches that were not handed to the analyses yet.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) on: bool,
    pub(super) stretches: Vec<Stretch>,
}

impl Log {
    /// A log that keeps what it gets, or does not.
    pub(super) fn new(on: bool) -> Log {
        Log { on, stretches: Vec::new() }
    }

    fn push(&mut self, thread: ThreadKey, from: i64, to: i64, part: Part, culprit: Culprit) {
        if from < to {
            let mark = Mark::Exact;
            self.stretches.push(Stretch { thread, from, to, part, culprit, mark });
        }
    }

    /// A thread waits for a CPU no longer; who had it meanwhile is in `shares`.
    pub(super) fn waited(&mut self, thread: ThreadKey, spent: &Spent, shares: &Shares) {
        if let Some((from, ns, part)) = spent.to_draw()
            && self.on
        {
            let culprit = match shares.longest() {
                Some(share) => Culprit::Thread(share.who.clone()),
                None => Culprit::Unknown(Unknown::Occupant),
            };
            self.push(thread, from, from + ns, part, culprit);
        }
    }
}

/// The sums of a thread, and the log of what goes into them.
pub(super) struct Logged<'a> {
    pub(super) thread: ThreadKey,
    pub(super) spent: &'a mut Spent,
    pub(super) log: &'a mut Log,
}

impl Stretches for Logged<'_> {
    fn stretch(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>) {
        if self.log.on {
            self.keep(start, end, part, which);
        }
        self.spent.stretch(start, end, part, which);
    }
}

impl Logged<'_> {
    fn keep(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>) {
        let thread = self.thread;
        let culprit = match part {
            // When it is over: `Log::waited`.
            Part::Preempted | Part::Dispatch => return,
            _ if self.spent.to_draw().is_some() => {
                // It is over, and nothing showed how.
                self.log.waited(thread, self.spent, &Shares::default());
                self.spent.drawn = true;
                return self.keep(start, end, part, which);
            }
            Part::Blocked => {
                let mut at = start;
                while at < end {
                    let ((on, name), until) = self.spent.waits.cause(at);
                    let culprit = Culprit::Blocked(on, name.cloned());
                    let until = until.min(end);
                    self.log.push(thread, at, until, part, culprit);
                    at = until;
                }
                return;
            }
            Part::Running => Culprit::Nobody,
            Part::Hardirq | Part::Softirq | Part::Vector => {
                which.map_or(Culprit::Nobody, |name| Culprit::Interrupt(name.clone()))
            }
            Part::Unexplained => Culprit::Unknown(Unknown::NoRecord),
        };
        self.log.push(thread, start, end, part, culprit);
    }
}
