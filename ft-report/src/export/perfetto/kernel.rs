//! Switches, wakings and interrupts as the kernel's own tracer would have recorded them: bundles of events by CPU, from
//! which the trace processor makes CPUs and the states of all threads.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::packets::{Packets, clean};
use super::proto::{
    CompactSched, FtraceEvent, FtraceEventBundle, IrqHandlerEntry, IrqHandlerExit, SchedSwitch,
    Softirq, TracePacket,
};
use crate::export::Result;
use crate::tracks::Item;
use ft_analysis::world::Occupancy;
use ft_trace::ids::{Cpu, Name, Tid};
use ft_trace::tables::{self, Irq, IrqKind, SchedWaking, TaskState};

/// Events of one CPU in one bundle; how many is a matter of size alone.
const BUNDLE: usize = 1 << 12;

/// The bundles that are not written yet.
#[derive(Default)]
pub(super) struct Bundles {
    cpus: BTreeMap<Cpu, Bundle>,
    /// Threads that were woken since they got their CPU.
    woken: HashSet<Tid>,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, ns.
    boottime_offset_ns: i64,
}

#[derive(Default)]
struct Bundle {
    events: Vec<FtraceEvent>,
    sched: CompactSched,
    comms: HashMap<Name, u32>,
    /// Times of the last switch and of the last waking in `sched`.
    last: [u64; 2],
    /// Who has the CPU; known from the first switch on.
    current: Option<Tid>,
}

/// A thread of a switch: name, number, priority.
type Who<'a> = (&'a Name, Tid, i32);

/// Bits of `prev_state` as `sched_switch` prints them since Linux 4.14 (include/trace/events/sched.h).
fn prev_state(state: TaskState) -> i64 {
    match state {
        TaskState::Runnable => 0,
        TaskState::Sleeping => 1,
        TaskState::Uninterruptible => 2,
        TaskState::Stopped => 4,
        TaskState::Traced => 8,
        TaskState::Dead => 0x10,
        TaskState::Zombie => 0x20,
        TaskState::Parked => 0x40,
        TaskState::Idle => 0x80,
        TaskState::Preempted => 0x100,
    }
}

impl Bundles {
    /// Of a trace whose CLOCK_BOOTTIME is so far ahead of CLOCK_MONOTONIC.
    pub(super) fn new(boottime_offset_ns: i64) -> Bundles {
        Bundles { boottime_offset_ns, ..Bundles::default() }
    }

    fn time(&self, ts: i64) -> u64 {
        ts.saturating_add(self.boottime_offset_ns).max(0) as u64
    }

    /// Adds a switch. Where the thread that leaves is not the one that came, it is written in full.
    pub(super) fn switch(&mut self, e: &tables::SchedSwitch, out: &mut Packets<'_>) -> Result<()> {
        let at = self.time(e.ts.0);
        let bundle = self.cpus.entry(e.cpu).or_default();
        let woken = self.woken.remove(&e.prev_tid) && e.prev_woken;
        self.woken.remove(&e.next_tid);
        // Then it can run from now on, whatever it wanted.
        let state = if woken { 0 } else { prev_state(e.prev_state) };
        let known = bundle.current == Some(e.prev_tid);
        bundle.current = Some(e.next_tid);
        let next = (&e.next_comm, e.next_tid, e.next_prio);
        if known {
            bundle.short_switch(at, next, state);
        } else {
            bundle.whole_switch(at, (&e.prev_comm, e.prev_tid, e.prev_prio), next, state);
        }
        self.flush_full(e.cpu, out)
    }

    /// Adds the ends of a thread's time on a CPU for which there is no switch in the window.
    pub(super) fn occupied(
        &mut self,
        item: &Item,
        o: &Occupancy,
        out: &mut Packets<'_>,
    ) -> Result<()> {
        let (from, to) = (self.time(item.from), self.time(item.to));
        let bundle = self.cpus.entry(o.cpu).or_default();
        let who = (&o.who.comm, o.who.thread.tid, o.who.prio);
        let idle: Name = "idle".into();
        let idle = (&idle, Tid(0), 120);
        if !item.begun {
            bundle.whole_switch(from, idle, who, 0);
            bundle.current = Some(who.1);
        }
        if !item.over {
            bundle.short_switch(to, idle, 0);
            bundle.current = Some(idle.1);
        }
        self.flush_full(o.cpu, out)
    }

    /// Adds a waking, which the thread that has the CPU does.
    pub(super) fn waking(
        &mut self,
        e: &SchedWaking,
        comm: &str,
        out: &mut Packets<'_>,
    ) -> Result<()> {
        let at = self.time(e.ts.0);
        let bundle = self.cpus.entry(e.cpu).or_default();
        self.woken.insert(e.tid);
        let comm = bundle.comm(comm);
        let sched = &mut bundle.sched;
        sched.waking_timestamp.push(at - std::mem::replace(&mut bundle.last[1], at));
        sched.waking_pid.push(e.tid.0);
        sched.waking_target_cpu.push(e.target_cpu.0);
        sched.waking_prio.push(e.prio);
        sched.waking_comm_index.push(comm);
        sched.waking_common_flags.push(0);
        self.flush_full(e.cpu, out)
    }

    /// Adds an interrupt of a line, or a softirq.
    pub(super) fn interrupt(&mut self, item: &Item, e: &Irq, out: &mut Packets<'_>) -> Result<()> {
        let (from, to) = (self.time(item.from), self.time(item.to));
        let bundle = self.cpus.entry(e.cpu).or_default();
        let number = e.number;
        if e.kind == IrqKind::Soft {
            let softirq = Some(Softirq { vec: Some(number.max(0) as u32) });
            bundle.event(from, e.tid, |event| event.softirq_entry = softirq.clone());
            bundle.event(to, e.tid, |event| event.softirq_exit = softirq);
        } else {
            let entry = IrqHandlerEntry { irq: Some(number), name: Some(clean(&e.name)) };
            let exit = IrqHandlerExit { irq: Some(number), ret: Some(1) };
            bundle.event(from, e.tid, |event| event.irq_handler_entry = Some(entry));
            bundle.event(to, e.tid, |event| event.irq_handler_exit = Some(exit));
        }
        self.flush_full(e.cpu, out)
    }

    fn flush_full(&mut self, cpu: Cpu, out: &mut Packets<'_>) -> Result<()> {
        match self.cpus.get_mut(&cpu).filter(|bundle| bundle.len() >= BUNDLE) {
            Some(bundle) => bundle.flush(cpu, out),
            None => Ok(()),
        }
    }

    /// Writes what is left.
    pub(super) fn finish(mut self, out: &mut Packets<'_>) -> Result<()> {
        self.cpus.iter_mut().try_for_each(|(&cpu, bundle)| bundle.flush(cpu, out))
    }
}

impl Bundle {
    fn len(&self) -> usize {
        let sched = &self.sched;
        self.events.len() + sched.switch_timestamp.len() + sched.waking_timestamp.len()
    }

    fn comm(&mut self, comm: &str) -> u32 {
        if let Some(&number) = self.comms.get(comm) {
            return number;
        }
        let number = self.comms.len() as u32;
        self.comms.insert(comm.into(), number);
        self.sched.intern_table.push(clean(comm));
        number
    }

    /// A switch away from the thread that has the CPU.
    fn short_switch(&mut self, at: u64, next: Who<'_>, state: i64) {
        let comm = self.comm(next.0);
        let sched = &mut self.sched;
        sched.switch_timestamp.push(at - std::mem::replace(&mut self.last[0], at));
        sched.switch_prev_state.push(state);
        sched.switch_next_pid.push(next.1.0);
        sched.switch_next_prio.push(next.2);
        sched.switch_next_comm_index.push(comm);
    }

    /// A switch that tells all of both threads.
    fn whole_switch(&mut self, at: u64, prev: Who<'_>, next: Who<'_>, state: i64) {
        let sched_switch = SchedSwitch {
            prev_comm: Some(clean(prev.0)),
            prev_pid: Some(prev.1.0),
            prev_prio: Some(prev.2),
            prev_state: Some(state),
            next_comm: Some(clean(next.0)),
            next_pid: Some(next.1.0),
            next_prio: Some(next.2),
        };
        self.event(at, prev.1, |event| event.sched_switch = Some(sched_switch));
    }

    fn event(&mut self, at: u64, tid: Tid, fill: impl FnOnce(&mut FtraceEvent)) {
        let mut event = FtraceEvent {
            timestamp: Some(at),
            pid: Some(tid.0.max(0) as u32),
            ..FtraceEvent::default()
        };
        fill(&mut event);
        self.events.push(event);
    }

    fn flush(&mut self, cpu: Cpu, out: &mut Packets<'_>) -> Result<()> {
        if self.len() == 0 {
            return Ok(());
        }
        self.comms.clear();
        self.last = [0, 0];
        let bundle = FtraceEventBundle {
            cpu: Some(cpu.0.max(0) as u32),
            event: std::mem::take(&mut self.events),
            compact_sched: Some(std::mem::take(&mut self.sched)),
        };
        out.write(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() })
    }
}
