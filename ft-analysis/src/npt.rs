//! Loops that nothing should interrupt (`ft-load npt`): how long their passes took, and why some took long.
//!
//! **Goal.** A row for each bin of a loop's own histogram, and one for each *peak*: a pass that took longer than the loop's
//! threshold, what of it the pass takes by itself, and the parts and the culprit of the rest, its *excess*.
//!
//! **Rule.** A loop is announced by its thread, with the length of a pass that nothing disturbs. A peak is a gap of the
//! thread's poller ([`crate::Gaps`]) that began in the loop; the event behind it names the pass. Of the time on the CPU
//! outside interrupts the pass takes its own, and the rest is unexplained; of the time in which others had the CPU the
//! threads of the agent make the *tracer*'s part, and so does a wait for room in the ring. The parts sum to the excess by
//! construction. The *cause* is the largest part, unless too much is unexplained, which is judged as of a gap.
//!
//! When a loop is over, it reports its histogram, bin by bin.
//!
//! **Situations.** All of it is reported by a program, which may report anything: bins of no loop or of lengths and counts that cannot be, and
//! peaks without a gap, are counted ([`LoopCounts`]). A gap whose pass is not reported is a peak all the same.
//!
//! Memory: one loop for each thread that lives.

use crate::analysis::Analysis;
use crate::gaps::is_explained;
use crate::world::{
    BlockedOn, Change, Interval, LoadEvent, LoopEvent, Past, PerThread, Thread, World,
};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Name, Nanos};
use ft_trace::tables::{LoopBin, LoopPeak, PeakCause};
use serde::{Deserialize, Serialize};

/// What loops reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopCounts {
    /// Loops that began.
    pub begun: u64,
    /// Of these, those that reported their end.
    pub ended: u64,
    /// Peaks with a row.
    pub peaks: u64,
    /// Peaks that loops reported, with or without a row; of those that ended.
    pub told_peaks: u64,
    /// Peaks of which no gap was recorded.
    pub without_gap: u64,
    /// Bins of a loop that has not ended, or with lengths or counts that cannot be.
    pub impossible: u64,
}

impl LoopCounts {
    /// There was no loop.
    pub fn is_none(&self) -> bool {
        *self == LoopCounts::default()
    }
}

/// The loop in which a thread is, or was.
#[derive(Debug, Default)]
struct Loop {
    /// It goes on, since then.
    since: Option<i64>,
    /// It is over, since then, and had so many passes.
    ended: Option<(i64, i64)>,
    /// Cycles of a pass that nothing disturbs.
    own_cycles: i64,
    /// Frequency of the counter; 0 where none was reported that can be.
    hz: i64,
    /// A gap whose pass comes with the next event.
    peak: Option<LoopPeak>,
}

/// Makes the tables `loop_histogram` and `loop_peaks`.
#[derive(Debug, Default)]
pub struct Npt {
    loops: PerThread<Loop>,
    counts: LoopCounts,
}

impl Analysis for Npt {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Own { thread, event, site } => {
                let Some(LoadEvent::Loop(what)) = site.load else { return };
                match what {
                    LoopEvent::Begin => self.begin(thread, event.arg, world, rows),
                    LoopEvent::Peak => self.told(thread, event.arg, rows),
                    LoopEvent::End => self.over(thread, event.arg, world, rows),
                    LoopEvent::Bin => self.bin(thread, event.arg, world, rows),
                }
            }
            Change::Gap { thread, cpu, interval, past } => {
                self.gap(thread, cpu, interval, past, world, rows);
            }
            Change::Dropping { thread, .. } => {
                if let Some(of) = self.loops.get(thread) {
                    self.counts.peaks += push(&mut of.peak, None, rows);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.loops = self.counts;
    }
}

impl Npt {
    fn begin(&mut self, thread: &Thread, arg: [i64; 3], world: &World, rows: &mut Rows) {
        let [_, own_cycles, hz] = arg;
        let of = self.loops.of(thread);
        self.counts.peaks += push(&mut of.peak, None, rows);
        self.counts.begun += 1;
        *of = Loop {
            since: Some(world.now()),
            own_cycles: own_cycles.max(0),
            hz: hz.max(0),
            ..Loop::default()
        };
    }

    fn gap(
        &mut self,
        thread: &Thread,
        cpu: Cpu,
        interval: Interval,
        past: Option<&Past>,
        world: &World,
        rows: &mut Rows,
    ) {
        let Some(of) = self.loops.get(thread) else { return };
        // The gap that reaches over the begin belongs to no pass.
        if of.since.is_some_and(|since| interval.before() >= since) {
            self.counts.peaks += push(&mut of.peak, None, rows);
            let own_ns = i128::from(of.own_cycles) * 1_000_000_000 / i128::from(of.hz.max(1));
            let own_ns = if of.hz > 0 { own_ns } else { 0 };
            let own_ns = own_ns.min(interval.len_ns().into()) as i64;
            of.peak = Some(peak(thread, cpu, interval, past, own_ns, world));
        }
    }

    fn told(&mut self, thread: &Thread, [pass, ..]: [i64; 3], rows: &mut Rows) {
        let peak = self.loops.get(thread).map(|of| &mut of.peak).filter(|peak| peak.is_some());
        match peak {
            Some(peak) => self.counts.peaks += push(peak, Some(pass).filter(|n| *n >= 0), rows),
            None => self.counts.without_gap += 1,
        }
    }

    fn over(&mut self, thread: &Thread, arg: [i64; 3], world: &World, rows: &mut Rows) {
        let [passes, peaks, _] = arg;
        let of = self.loops.of(thread);
        self.counts.peaks += push(&mut of.peak, None, rows);
        if of.since.take().is_some() && passes >= 0 && peaks >= 0 {
            of.ended = Some((world.now(), passes));
            self.counts.ended += 1;
            self.counts.told_peaks = self.counts.told_peaks.saturating_add(peaks as u64);
        }
    }

    fn bin(&mut self, thread: &Thread, arg: [i64; 3], world: &World, rows: &mut Rows) {
        let [from_cycles, to_cycles, passes] = arg;
        let of = self.loops.get(thread);
        let ended = of.and_then(|of| of.ended.map(|(end, all)| (end, all, of.hz)));
        let Some((end, of_passes, hz)) = ended.filter(|(_, all, _)| {
            0 <= from_cycles && from_cycles < to_cycles && (1..=*all).contains(&passes)
        }) else {
            self.counts.impossible += 1;
            return;
        };
        let ns = |cycles: i64| (hz > 0).then(|| cycles as f64 * 1e9 / hz as f64);
        let lost = world.losses().of_events(thread.key, end);
        rows.loop_histogram.push(LoopBin {
            ts: Nanos(end),
            pid: thread.key.pid,
            tid: thread.key.tid,
            comm: thread.comm.clone(),
            from_cycles,
            to_cycles,
            from_ns: ns(from_cycles),
            to_ns: ns(to_cycles),
            passes,
            of_passes,
            mark: Mark::lower_bound_if(lost),
        });
    }
}

/// Hands over the row of a peak, if there is one; how many that are.
fn push(peak: &mut Option<LoopPeak>, pass: Option<i64>, rows: &mut Rows) -> u64 {
    let Some(peak) = peak.take() else { return 0 };
    rows.loop_peaks.push(LoopPeak { pass, ..peak });
    1
}

/// The row of a peak whose pass is not known yet; `own_ns` of a pass are its own.
fn peak(
    thread: &Thread,
    cpu: Cpu,
    interval: Interval,
    past: Option<&Past>,
    own_ns: i64,
    world: &World,
) -> LoopPeak {
    let (key, ts) = (thread.key, interval.before());
    let disturbed = thread.disturbed.mark(ts);
    let excess = past.map(|past| Excess::of(past, own_ns, disturbed != Mark::Exact, world));
    let own_ns = excess.as_ref().map_or(own_ns, |excess| excess.own_ns);
    let lost = world.losses().any_since(key, ts) || thread.doubtful_since(ts);
    let lost = lost || past.is_some_and(|past| past.hidden || !past.shares.is_exact());
    let (cause, culprit) = excess.as_ref().map(|excess| excess.cause()).unzip();
    let culprit = culprit.flatten();
    let part = |ns: fn(&Excess<'_>) -> i64| excess.as_ref().map(ns);
    LoopPeak {
        ts: Nanos(ts),
        dur: interval.len_ns(),
        pid: key.pid,
        tid: key.tid,
        comm: thread.comm.clone(),
        cpu,
        pass: None,
        own_ns,
        excess_ns: interval.len_ns() - own_ns,
        cause,
        culprit_tid: culprit.as_ref().and_then(|c| c.tid),
        culprit_ns: culprit.as_ref().map(|c| c.ns),
        culprit: culprit.map(|c| c.name),
        interrupt_ns: part(|e| e.interrupt_ns),
        preempted_ns: part(|e| e.preempted_ns),
        blocked_ns: part(|e| e.blocked_ns),
        tracer_ns: part(|e| e.agent_ns + e.full_ring_ns),
        unexplained_ns: part(|e| e.unexplained_ns),
        mark: Mark::lower_bound_if(lost).max(disturbed),
    }
}

/// What a pass took beyond its own time.
struct Excess<'a> {
    past: &'a Past,
    world: &'a World,
    own_ns: i64,
    interrupt_ns: i64,
    preempted_ns: i64,
    blocked_ns: i64,
    agent_ns: i64,
    full_ring_ns: i64,
    unexplained_ns: i64,
}

/// Who or what had most of a part.
struct Most {
    name: Name,
    tid: Option<i32>,
    ns: i64,
}

impl<'a> Excess<'a> {
    fn of(past: &'a Past, own_ns: i64, waited_for_room: bool, world: &'a World) -> Excess<'a> {
        let parts = &past.parts;
        let own_ns = own_ns.min(parts.running_ns);
        let off_cpu_ns = parts.runnable_ns();
        // What others had of a wait that the pass has only a part of may be more than that part.
        let agent_ns = world.agent_share(&past.shares).unwrap_or(0).clamp(0, off_cpu_ns);
        let full_ring_ns = if waited_for_room { parts.blocked_ns } else { 0 };
        Excess {
            past,
            world,
            own_ns,
            interrupt_ns: parts.interrupts_ns(),
            preempted_ns: off_cpu_ns - agent_ns,
            blocked_ns: parts.blocked_ns - full_ring_ns,
            agent_ns,
            full_ring_ns,
            unexplained_ns: parts.unexplained_ns + parts.running_ns - own_ns,
        }
    }

    fn cause(&self) -> (PeakCause, Option<Most>) {
        let tracer_ns = self.agent_ns + self.full_ring_ns;
        let recorded = [
            (PeakCause::Tracer, tracer_ns),
            (PeakCause::Preempted, self.preempted_ns),
            (PeakCause::Blocked, self.blocked_ns),
            (PeakCause::Interrupt, self.interrupt_ns),
        ];
        let sum = recorded.iter().map(|(_, ns)| ns).sum();
        let most = recorded.into_iter().rev().max_by_key(|(_, ns)| *ns);
        let Some((cause, ns)) = most.filter(|(_, ns)| *ns > 0) else {
            return (PeakCause::Unexplained, None);
        };
        if !is_explained(sum, self.unexplained_ns) {
            return (PeakCause::Unexplained, None);
        }
        let culprit = match cause {
            PeakCause::Interrupt => self.interrupt(),
            PeakCause::Preempted => self.thread(false, ns),
            PeakCause::Tracer if self.full_ring_ns > self.agent_ns => Some(Most {
                name: BlockedOn::FullRing.word().into(),
                tid: None,
                ns: self.full_ring_ns,
            }),
            PeakCause::Tracer => self.thread(true, ns),
            PeakCause::Blocked | PeakCause::Unexplained => None,
        };
        (cause, culprit)
    }

    fn interrupt(&self) -> Option<Most> {
        let most = self.past.interrupts.iter().max_by_key(|(_, _, ns)| *ns);
        most.map(|(_, name, ns)| Most { name: name.clone(), tid: None, ns: *ns })
    }

    /// Who had the CPU longest, of the threads of the agent or of all others; at most `ns` of the pass.
    fn thread(&self, agents: bool, ns: i64) -> Option<Most> {
        let shares = self.past.shares.iter();
        let meant = shares.filter(|share| self.world.is_agents(share.who.thread) == agents);
        let most = meant.max_by_key(|share| share.ns)?;
        Some(Most {
            name: most.who.comm.clone(),
            tid: Some(most.who.thread.tid.0),
            ns: most.ns.min(ns),
        })
    }
}

#[cfg(test)]
mod tests;
