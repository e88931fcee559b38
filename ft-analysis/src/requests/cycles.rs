//! Cycles: what a thread does each time that it has slept until a time, as requests with a deadline.
//!
//! **Rule.** A cycle begins at the time until which its thread sleeps (`nanosleep`, `clock_nanosleep`), and ends when that thread
//! goes to sleep until a time again. So a late timer, its interrupt and the wait for a CPU lie within it. Who reads a timer of
//! `timerfd` does not say its time: that cycle begins with the interrupt in which the thread is woken, and is counted as such.
//! Threads are meant by their newest name.
//!
//! **Situations.**
//! - *Woken before its time*, by a signal, and asleep again before it: no cycle.
//! - *A sleep that is over as it begins*, since its time has passed: the thread does not leave its CPU, and the cycle goes on. So
//!   one that catches up without a sleep has one long cycle.
//! - *The thread or the trace ends* within a cycle: it was not over, and is counted as such; also whether it had missed its deadline
//!   by then, as that of a thread that hangs.
//! - *Lost records*: two cycles may be one, which is a `lower bound`.

use super::kinds::NoRequest;
use super::{Open, RequestKind, Requests};
use crate::Rows;
use crate::world::{Thread, World};
use ft_trace::Mark;
use ft_trace::ids::Cpu;
use ft_trace::tables::Sleep;
use ft_user::glob;
use serde::{Deserialize, Serialize};

/// Cycles of one deadline that missed it and whose path is stored, beside the slowest.
///
/// Limit: of further ones that are not among the 100 slowest, the cause is not known, which the report says; all are
/// counted.
/// Shown by: `the_paths_of_missed_cycles_are_stored_up_to_a_bound`.
pub(super) const MAX_MISSED_PATHS: u64 = if cfg!(test) { 120 } else { 10_000 };

/// What became of one deadline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Deadline {
    /// As the column `kind` of `requests` says.
    pub kind: String,
    /// How long a cycle may take, ns.
    pub deadline_ns: i64,
    /// Cycles: each has a row.
    pub cycles: u64,
    /// Of these, those that took longer.
    pub missed: u64,
    /// Of these, those in which records are missing: they may be several.
    pub doubtful: u64,
    /// Of `cycles`, those that begin with an interrupt, since nobody said the time of the timer.
    pub by_interrupt: u64,
    /// Cycles that had begun when their thread or the recording ended.
    pub not_over: u64,
    /// Of `not_over`, those that had taken longer by then.
    pub not_over_missed: u64,
    /// Of `not_over_missed`, those of threads that lived when the recording ended: what a thread does behind its last cycle, before
    /// it exits, is no miss.
    pub not_over_alive: u64,
    /// How long the longest of `not_over_missed` had taken, ns.
    pub not_over_ns: i64,
}

/// A cycle that goes on, or will begin.
#[derive(Debug)]
pub(super) struct Cycle {
    open: Open,
    /// Its begin is that of an interrupt, or will be.
    by_interrupt: bool,
    /// Its begin is known.
    is_known: bool,
}

impl RequestKind {
    /// Cycles of threads of this name, a glob, each of which may take so long.
    ///
    /// # Errors
    ///
    /// When there is no name, or no time.
    pub fn deadline(threads: &str, ns: i64) -> Result<RequestKind, NoRequest> {
        if threads.is_empty() || ns <= 0 {
            return Err(NoRequest::Deadline(threads.to_owned()));
        }
        Ok(RequestKind {
            begin: threads.to_owned(),
            end: None,
            key: None,
            cause: None,
            deadline_ns: Some(ns),
        })
    }
}

/// A time as people write it in options: `1ms`, `250us`.
pub(super) fn written(ns: i64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let unit = units.into_iter().find(|(_, unit)| ns % unit == 0);
    unit.map_or_else(|| format!("{ns}ns"), |(word, unit)| format!("{}{word}", ns / unit))
}

impl Requests {
    /// A thread has left its CPU, to wait or not.
    pub(super) fn left_cpu(&mut self, thread: &Thread, world: &World, rows: &mut Rows) {
        if !world.context().asked().iter().any(|kind| kind.deadline_ns.is_some()) {
            return;
        }
        let asleep = thread.asleep.as_ref().filter(|sleep| sleep.ts.0 == world.now());
        let Some(due) = asleep.and_then(Sleep::due) else { return };
        for Cycle { open, by_interrupt, is_known } in std::mem::take(self.cycles.of(thread)) {
            if is_known && open.ts < world.now() {
                self.cycle(thread, open, by_interrupt, world, rows);
            } else {
                self.forget(&open);
            }
        }
        let name = world.context().comm(thread.key);
        for (i, kind) in world.context().asked().iter().enumerate() {
            if kind.deadline_ns.is_some() && glob::matches(&kind.begin, &name) {
                // It begins at another time, which its thread sees from within a sleep.
                let open = self.begins(thread, &name, Some(i), world);
                let open = Open { in_task: false, began: None, ..open };
                let open = moved(open, due.unwrap_or(world.now()));
                self.goes_on(&open, world);
                let cycle = Cycle { open, by_interrupt: due.is_none(), is_known: due.is_some() };
                self.cycles.of(thread).push(cycle);
            }
        }
    }

    /// A thread is woken on this CPU: where the time of its timer is not known, its cycle begins.
    pub(super) fn timer_comes(&mut self, thread: &Thread, cpu: Cpu, world: &World) {
        let Some(cycles) = self.cycles.get(thread) else { return };
        if cycles.iter().all(|cycle| cycle.is_known) {
            return;
        }
        let interrupt = world.interrupts().innermost(cpu, world.now());
        let begin = interrupt.map_or(world.now(), |irq| irq.entry);
        for cycle in std::mem::take(cycles) {
            let Cycle { open, by_interrupt, is_known } = cycle;
            let open = if is_known { open } else { self.begins_at(open, begin, world) };
            self.cycles.of(thread).push(Cycle { open, by_interrupt, is_known: true });
        }
    }

    /// The same that goes on, with another begin.
    fn begins_at(&mut self, open: Open, ts: i64, world: &World) -> Open {
        self.open.remove(&(open.ts, open.nth));
        let open = moved(open, ts);
        self.goes_on(&open, world);
        open
    }

    /// A cycle is over.
    fn cycle(
        &mut self,
        thread: &Thread,
        open: Open,
        by_interrupt: bool,
        world: &World,
        rows: &mut Rows,
    ) {
        let Some(kind) = open.asked else { return };
        let took = world.now() - open.ts;
        let deadline_ns = world.context().asked()[kind].deadline_ns.unwrap_or(i64::MAX);
        let counts = self.deadlines.entry(kind).or_default();
        counts.cycles += 1;
        counts.by_interrupt += u64::from(by_interrupt);
        let missed = took > deadline_ns;
        counts.missed += u64::from(missed);
        let whole = missed && counts.missed <= MAX_MISSED_PATHS;
        self.over_with(thread, (open, None), whole, world, rows);
        let doubtful = rows.requests.last().is_some_and(|row| row.mark >= Mark::LowerBound);
        if let Some(counts) = self.deadlines.get_mut(&kind).filter(|_| missed && doubtful) {
            counts.doubtful += 1;
        }
    }

    /// A thread, or the trace, has ended; `exited`: the thread.
    pub(super) fn cycles_end(&mut self, thread: &Thread, exited: bool, world: &World) {
        let Some(cycles) = self.cycles.get(thread) else { return };
        for Cycle { open, is_known, .. } in std::mem::take(cycles) {
            let begun = is_known && open.ts < world.now();
            if let Some(kind) = open.asked.filter(|_| begun) {
                let took = world.now() - open.ts;
                let deadline_ns = world.context().asked()[kind].deadline_ns.unwrap_or(i64::MAX);
                let counts = self.deadlines.entry(kind).or_default();
                counts.not_over += 1;
                if took > deadline_ns {
                    counts.not_over_missed += 1;
                    counts.not_over_alive += u64::from(!exited);
                    counts.not_over_ns = took.max(counts.not_over_ns);
                }
            }
            self.forget(&open);
        }
    }

    /// What became of each deadline that was asked for.
    pub(super) fn deadlines(&mut self, world: &World) -> Vec<Deadline> {
        let asked = world.context().asked().iter().enumerate();
        let of = |(i, kind): (usize, &RequestKind)| {
            let deadline_ns = kind.deadline_ns?;
            let counts = self.deadlines.remove(&i).unwrap_or_default();
            Some(Deadline { kind: kind.name(), deadline_ns, ..counts })
        };
        asked.filter_map(of).collect()
    }
}

/// The same with another begin.
fn moved(open: Open, ts: i64) -> Open {
    Open { ts, oldest_since: ts, ..open }
}
