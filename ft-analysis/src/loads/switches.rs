//! What lies between neighbouring runs of the workers of one load on one CPU: by inference, and by the kernel's account.
//!
//! **Inference** (Hourglass, section 4), from the runs and what ended them alone. What is certain:
//! - between runs of two workers there was a context switch, if the second was ready all the time: *voluntary* if the first
//!   yielded or slept, *involuntary* if it did nothing, so that an interrupt came, too;
//! - if the first slept and the second had slept as well, or was still running elsewhere, nobody knows how much of it was
//!   a switch: *wait*;
//! - nothing but an interrupt takes the CPU from a real-time worker above which there is none: *interruption*.
//!
//! What is likely: a gap within another worker that is shorter than two of the shortest switches so far had no room for
//! another thread, and is an interruption, too; a longer one is *either*.
//!
//! **The kernel's account**: the switches of the CPU since the first worker left it. It judges the inference: a switch that
//! was inferred must be one switch, an interruption none; *either* and *wait* claim neither.
//!
//! A run's end is recorded when its worker has the CPU again. Until then, whose run began behind it waits with the first.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Moment;
use ft_trace::ids::{Cpu, Nanos, Tid};
use ft_trace::tables::{LoadSwitch, Policy, RunEnd, SwitchKind, SwitchSeen};

/// How often one inferred kind met what the kernel recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchCell {
    /// [`SwitchKind`].
    pub inferred: String,
    /// [`SwitchSeen`].
    pub kernel: String,
    /// How many.
    pub switches: u64,
}

/// When a worker left its CPU first since its run began, which CPU, and the how manieth switch of it that was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) cpu: Cpu,
    pub(super) at: i64,
    pub(super) nth: u64,
}

/// What the kernel recorded between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// When the first worker left, and when the CPU was switched last.
    first: i64,
    last: i64,
    switches: u64,
}

impl Seen {
    /// Until a run begins on a CPU.
    fn until(begin: Begin, left: Left) -> Option<Seen> {
        let switches = begin.switches.checked_sub(left.nth)? + 1;
        (left.cpu == begin.cpu).then_some(Seen { first: left.at, last: begin.switched, switches })
    }
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) at: i64,
    pub(super) how: RunEnd,
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin {
    pub(super) tid: Tid,
    pub(super) worker: i32,
    pub(super) cpu: Cpu,
    pub(super) at: i64,
    /// The run of the same worker before.
    pub(super) own: Option<End>,
    /// How often its CPU was switched so far, and when last.
    pub(super) switches: u64,
    pub(super) switched: i64,
}

/// Whose run was the last on a CPU.
#[derive(Clone, Copy, Debug)]
struct Last {
    tid: Tid,
    worker: i32,
    /// Once it is recorded; and when that worker left.
    end: Option<(End, Option<Left>)>,
}

/// The workers of one process.
#[derive(Debug, Default)]
pub(super) struct Process {
    last: HashMap<Cpu, Last>,
    /// By the worker whose run goes on: its number, and the run that has begun behind it.
    waiting: HashMap<Tid, (i32, Begin)>,
    shortest: Option<i64>,
    /// The highest real-time priority, whose it is, and whether of that one alone.
    top: Option<(i32, Tid, bool)>,
    /// Workers that are not over.
    pub(super) workers: u64,
}

impl Process {
    /// A worker says how it is scheduled.
    pub(super) fn scheduled(&mut self, tid: Tid, policy: Policy, priority: i32) {
        let rank = match policy {
            Policy::Fifo | Policy::RoundRobin => priority,
            // Above all others; but its amount is a limit, at which it is stopped itself.
            Policy::Deadline => i32::MAX,
            _ => return,
        };
        self.top = match self.top {
            Some((most, whose, alone)) if most > rank => Some((most, whose, alone)),
            Some((most, whose, _)) if most == rank => Some((most, whose, whose == tid)),
            _ => Some((rank, tid, rank < i32::MAX)),
        };
    }

    /// A run begins; the row of what lies before it, if the end of the run before is known.
    pub(super) fn begins(&mut self, begin: Begin, moment: Moment<'_>) -> Option<LoadSwitch> {
        let new = Last { tid: begin.tid, worker: begin.worker, end: None };
        let last = self.last.insert(begin.cpu, new)?;
        match last.end {
            Some((end, left)) => {
                let seen = left.and_then(|left| Seen::until(begin, left));
                self.row((last.tid, last.worker), end, begin, seen, moment)
            }
            None => {
                self.waiting.entry(last.tid).or_insert((last.worker, begin));
                None
            }
        }
    }

    /// A run on `cpu` has ended, and its worker left then; the row of what lies behind it, if another began there
    /// meanwhile.
    pub(super) fn ends(
        &mut self,
        cpu: Cpu,
        tid: Tid,
        end: End,
        left: Option<Left>,
        moment: Moment<'_>,
    ) -> Option<LoadSwitch> {
        if let Some((worker, begin)) = self.waiting.remove(&tid) {
            let seen = left.and_then(|left| Seen::until(begin, left));
            return self.row((tid, worker), end, begin, seen, moment);
        }
        if let Some(last) = self.last.get_mut(&cpu).filter(|last| last.tid == tid) {
            last.end = Some((end, left));
        }
        None
    }

    /// Of this worker's run no end will be recorded, or nothing comes behind it.
    pub(super) fn loses(&mut self, tid: Tid) {
        self.waiting.remove(&tid);
        self.last.retain(|_, last| last.tid != tid);
    }

    fn row(
        &mut self,
        (from_tid, from_worker): (Tid, i32),
        end: End,
        begin: Begin,
        seen: Option<Seen>,
        moment: Moment<'_>,
    ) -> Option<LoadSwitch> {
        let dur = begin.at - end.at;
        if dur < 0 {
            // Of another CPU than it says.
            return None;
        }
        let inferred = self.infer(from_tid == begin.tid, end, begin, dur);
        if matches!(inferred, SwitchKind::Voluntary | SwitchKind::Involuntary) {
            self.shortest = Some(self.shortest.map_or(dur, |shortest| shortest.min(dur)));
        }
        let kernel = moment.world.context().kernel;
        let seen = seen.filter(|_| kernel);
        let kind = match seen {
            Some(Seen { switches: 1, .. }) => Some(SwitchSeen::Switch),
            Some(_) => Some(SwitchSeen::Others),
            // Who had the CPU must have left it.
            None if from_tid == begin.tid && kernel => Some(SwitchSeen::None),
            None => None,
        };
        let out_ns = seen.map(|seen| (seen.first - end.at).clamp(0, dur));
        let in_ns = seen.zip(out_ns).map(|(seen, out)| (begin.at - seen.last).clamp(0, dur - out));
        let lost = kernel
            && (kind.is_none()
                || moment.world.losses().scheduling_since(end.at)
                || moment.thread.doubtful_since(end.at));
        Some(LoadSwitch {
            ts: Nanos(end.at),
            dur,
            pid: moment.thread.key.pid,
            tid: begin.tid,
            worker: begin.worker,
            from_tid,
            from_worker,
            cpu: begin.cpu,
            ended: end.how,
            inferred,
            kernel: kind,
            out_ns,
            others_ns: out_ns.zip(in_ns).map(|(out, back)| dur - out - back),
            in_ns,
            mark: moment.mark(end.at, lost),
        })
    }

    fn infer(&self, same: bool, end: End, begin: Begin, dur: i64) -> SwitchKind {
        let elsewhere = begin.own.is_some_and(|own| own.at > end.at);
        let slept = begin.own.is_none_or(|own| matches!(own.how, RunEnd::Slept | RunEnd::Finished));
        match (same, end.how) {
            _ if elsewhere => SwitchKind::Wait,
            (true, RunEnd::Unasked) => {
                let no_room =
                    self.shortest.is_some_and(|shortest| dur < shortest.saturating_mul(2));
                match self.top {
                    Some((_, whose, true)) if whose == begin.tid => SwitchKind::Interruption,
                    _ if no_room => SwitchKind::Interruption,
                    _ => SwitchKind::Either,
                }
            }
            (false, RunEnd::Unasked) => SwitchKind::Involuntary,
            (false, RunEnd::Yielded) => SwitchKind::Voluntary,
            (false, RunEnd::Slept) if !slept => SwitchKind::Voluntary,
            // With the end of a worker comes work that is no switch.
            _ => SwitchKind::Wait,
        }
    }
}

/// Switches, counted by what was inferred and what the kernel recorded: a confusion matrix.
#[derive(Debug, Default)]
pub(super) struct SwitchMatrix([[u64; SwitchSeen::ALL.len()]; SwitchKind::ALL.len()]);

impl SwitchMatrix {
    /// Counts a switch that the kernel recorded all of.
    pub(super) fn add(&mut self, switch: &LoadSwitch) {
        if let Some(kernel) = switch.kernel.filter(|_| switch.mark < ft_trace::Mark::LowerBound) {
            self.0[switch.inferred as usize][kernel as usize] += 1;
        }
    }

    /// For the tally.
    pub(super) fn finish(&self) -> Vec<SwitchCell> {
        let all = SwitchKind::ALL
            .iter()
            .flat_map(|inferred| SwitchSeen::ALL.iter().map(|seen| (*inferred, *seen)));
        all.map(|(inferred, kernel)| SwitchCell {
            inferred: inferred.word().into(),
            kernel: kernel.word().into(),
            switches: self.0[inferred as usize][kernel as usize],
        })
        .filter(|cell| cell.switches > 0)
        .collect()
    }
}
