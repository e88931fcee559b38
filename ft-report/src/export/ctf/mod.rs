//! Common Trace Format 1.8 (<https://diamon.org/ctf/v1.8.3/>): a directory with the file `metadata` and a stream of packets
//! for each CPU, one for the kernel's events and one for those of applications.
//!
//! The kernel's events have the names and fields that LTTng gives them (`kernel.rs`), and the environment says, as
//! LTTng's does, that the trace is one of the kernel: by that Trace Compass chooses its views of threads and CPUs (not
//! tried). Every event of the tables is there: what took time as two, at its begin and at its end, unless that lies
//! behind the end of the window. Times are those of the tables. A loss is in the `events_discarded` of the packets, where it was; and as an event, which says whose.
//!
//! Before the first event, each thread that was there has a `lttng_statedump_process_state`, by its newest name.
//!
//! Memory: a packet for each stream, and whatever has begun and not ended.

mod kernel;
mod packet;
mod running;
mod tsdl;
mod user;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::io::{self, Write};
use std::ops::Range;

use ft_trace::dir::Dir;
use ft_trace::ids::{Cpu, Name, Nanos, Pid, ThreadKey, Tid};
use ft_trace::row;
use ft_trace::store::Trace;
use ft_trace::stream::Timed;
use ft_trace::tables::*;

use super::{Job, Result};
use crate::listing::entry::{Entry, Streams as Tables, entries};
use crate::listing::names::Names;
use kernel::{Field, Payload};
use packet::Streams;
use running::Running;
use tsdl::{Channel, Metadata};

/// Writes the events of the window into an empty directory.
///
/// # Errors
///
/// When the trace cannot be read, the directory cannot be written to, or whoever watches has seen enough.
pub(super) fn write(job: &mut Job<'_>, dir: &Dir) -> Result<()> {
    let (trace, window) = (job.trace, job.window.clone());
    let names = Names::read(trace)?;
    let mut writer = Writer::new(trace, &names, window.clone(), dir);
    let mut entries = entries(trace, Tables::Both, window).peekable();
    if let Some(Ok(first)) = entries.peek() {
        writer.see_switches_before(trace)?;
        writer.dump_threads(trace, first.ts())?;
    }
    for (entry, seen) in entries.zip(1..) {
        let entry = entry?;
        writer.end_until(entry.ts())?;
        writer.entry(&entry)?;
        job.seen(seen)?;
    }
    writer.finish(trace, dir)
}

/// The end of something that takes time, whose begin is written.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    /// What began last ends first.
    key: (Reverse<Nanos>, u64),
    cpu: Cpu,
    id: u32,
    fields: Vec<u8>,
}

/// Classes of begin and end of what has a name that only the rows tell.
type Pairs = HashMap<Name, [u32; 2]>;

struct Writer<'a> {
    names: &'a Names,
    window: Range<i64>,
    /// Numbers above are no CPU of this machine: a program can tell any.
    cpus: i32,
    streams: Streams<'a>,
    metadata: Metadata,
    classes: user::Classes<'a>,
    syscalls: Pairs,
    vectors: Pairs,
    loss: u32,
    running: Running,
    open: BinaryHeap<Open>,
    opened: u64,
}

impl<'a> Writer<'a> {
    fn new(trace: &Trace, names: &'a Names, window: Range<i64>, dir: &'a Dir) -> Writer<'a> {
        let mut metadata = Metadata::default();
        kernel::declare(&mut metadata);
        let loss = [
            ("origin", <&str>::TYPE),
            ("what", <&str>::TYPE),
            ("count", i64::TYPE),
            ("duration_ns", i64::TYPE),
        ];
        Writer {
            names,
            window,
            cpus: trace.meta().start.cpus.try_into().unwrap_or(i32::MAX),
            streams: Streams::new(dir),
            loss: metadata.event(Channel::User, "loss", loss),
            metadata,
            classes: user::Classes::new(names),
            syscalls: Pairs::new(),
            vectors: Pairs::new(),
            running: Running::default(),
            open: BinaryHeap::new(),
            opened: 0,
        }
    }

    /// Says of each thread that lives at the begin who it is.
    fn dump_threads(&mut self, trace: &Trace, begin: Nanos) -> Result<()> {
        row!("task_events", Task { ts: Nanos, kind: TaskKind, tid: Tid, pid: Pid });
        struct Task {
            ts: Nanos,
            kind: TaskKind,
            tid: Tid,
            pid: Pid,
        }
        // Born later, or dead already.
        let mut absent = HashSet::new();
        for task in trace.rows_within::<Task>(i64::MIN..self.window.end) {
            let Task { ts, kind, tid, pid } = task?;
            match kind {
                TaskKind::Fork if ts >= begin => absent.insert((pid, tid)),
                TaskKind::Exit if ts < begin => absent.insert((pid, tid)),
                _ => false,
            };
        }
        let threads = self.names.threads.iter();
        for thread in threads.filter(|t| t.tid.0 > 0 && !absent.contains(&(t.pid, t.tid))) {
            let state = kernel::ProcessState {
                tid: thread.tid.0,
                pid: thread.pid.0,
                ppid: kernel::NO_PROCESS,
                name: &thread.name,
                status: kernel::UNKNOWN_STATUS,
            };
            self.put(Cpu(0), begin, &state)?;
        }
        Ok(())
    }

    /// Who has the CPUs when the window begins was decided before.
    fn see_switches_before(&mut self, trace: &Trace) -> Result<()> {
        row!("sched_switch", Switch { ts: Nanos, cpu: Cpu, next_tid: Tid, next_pid: Pid });
        struct Switch {
            ts: Nanos,
            cpu: Cpu,
            next_tid: Tid,
            next_pid: Pid,
        }
        for switch in trace.rows_within::<Switch>(i64::MIN..self.window.start) {
            let Switch { cpu, next_tid: tid, next_pid: pid, .. } = switch?;
            self.running.switch(cpu, ThreadKey { pid, tid });
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        match entry {
            Entry::Loss(e) => self.lost(e),
            Entry::Task(e) => self.task(e),
            Entry::Waking(e) => self.waking(e),
            Entry::Migrate(e) => {
                let comm = self.names.thread(Some(e.pid), e.tid);
                let (tid, orig_cpu, dest_cpu) = (e.tid.0, e.from_cpu.0, e.to_cpu.0);
                self.put(e.cpu, e.ts, &kernel::Migrate { comm, tid, orig_cpu, dest_cpu })
            }
            Entry::Syscall(e) => {
                let cpu = self.running.cpu_of(e.tid).unwrap_or(e.cpu);
                let [entry, exit] = self.syscall(&e.name);
                self.write(cpu, e.ts, entry, |_| {})?;
                self.ends(e.cpu, after(e.ts, e.dur), exit, |out| e.ret.put(out));
                Ok(())
            }
            Entry::Contention(e) => {
                let cpu = self.running.cpu_of(e.tid).unwrap_or(e.cpu);
                let (lock_addr, flags, kind) = (e.lock as u64, e.flags, &*e.kind);
                self.put(cpu, e.ts, &kernel::ContentionBegin { lock_addr, flags, kind })?;
                self.ends_with(e.cpu, after(e.ts, e.dur), &kernel::ContentionEnd { lock_addr });
                Ok(())
            }
            Entry::Fault(e) => {
                let (address, error_code) = (e.address as u64, e.error);
                self.put(e.cpu, e.ts, &kernel::PageFault { address, error_code })
            }
            Entry::Switch(e) => self.switch(e),
            Entry::Irq(e) => self.irq(e),
            Entry::Signal(e) => self.signal(e),
            // Numbers of chains mean nothing without their table, for which there is no event; LTTng has futexes among the
            // system calls alone, and names each of its probes as the user does, by an event of its own. Counts are no events,
            // nor is what a switch says of its thread.
            Entry::Chain(_)
            | Entry::Sample(_)
            | Entry::Futex(_)
            | Entry::Sleep(_)
            | Entry::Throttle(_)
            | Entry::Probe(_)
            | Entry::Section(_)
            | Entry::CpuCount(_) => Ok(()),
            Entry::User(e) => {
                let class = self.classes.of(e, &mut self.metadata);
                let cpu = if (0..self.cpus).contains(&e.cpu.0) { e.cpu } else { Cpu::UNKNOWN };
                let stream = self.streams.of(Channel::User, cpu)?;
                stream.event(e.ts, class.id, |out| class.put(e, out))
            }
        }
    }

    fn switch(&mut self, e: &SchedSwitch) -> io::Result<()> {
        self.running.switch(e.cpu, e.next());
        let switch = kernel::Switch {
            prev_comm: &e.prev_comm,
            prev_tid: e.prev_tid.0,
            prev_prio: e.prev_prio,
            prev_state: kernel::prev_state(e.prev_state),
            next_comm: &e.next_comm,
            next_tid: e.next_tid.0,
            next_prio: e.next_prio,
            preempted: e.prev_state == TaskState::Preempted,
            woken: e.prev_woken,
        };
        self.put(e.cpu, e.ts, &switch)
    }

    fn waking(&mut self, e: &SchedWaking) -> io::Result<()> {
        let comm = self.names.thread(Some(e.pid), e.tid);
        let (tid, prio, target_cpu) = (e.tid.0, e.prio, e.target_cpu.0);
        match e.is_new {
            true => self.put(e.cpu, e.ts, &kernel::WakeupNew { comm, tid, prio, target_cpu }),
            false => self.put(e.cpu, e.ts, &kernel::Waking { comm, tid, prio, target_cpu }),
        }
    }

    fn task(&mut self, e: &TaskEvent) -> io::Result<()> {
        let (tid, comm) = (e.tid.0, &*e.comm);
        match e.kind {
            TaskKind::Fork => {
                // A parent whose switch was not seen is known as a process only.
                let parent_pid = e.parent_pid.unwrap_or(kernel::NO_PROCESS);
                let parent = self.running.thread_of(e.cpu, Pid(parent_pid));
                let fork = kernel::Fork {
                    parent_tid: parent.map_or(parent_pid, |tid| tid.0),
                    parent_pid,
                    child_comm: comm,
                    child_tid: tid,
                    child_pid: e.pid.0,
                };
                self.put(e.cpu, e.ts, &fork)
            }
            TaskKind::Exec => self.put(e.cpu, e.ts, &kernel::Exec { filename: comm, tid }),
            TaskKind::Exit => self.put(e.cpu, e.ts, &kernel::Exit { comm, tid }),
            TaskKind::Rename => self.put(e.cpu, e.ts, &kernel::Rename { tid, newcomm: comm }),
        }
    }

    fn irq(&mut self, e: &Irq) -> io::Result<()> {
        let (end, number) = (after(e.ts, e.dur), e.number);
        match e.kind {
            IrqKind::Hard => {
                self.put(e.cpu, e.ts, &kernel::IrqEntry { irq: number, name: &e.name })?;
                self.ends_with(e.cpu, end, &kernel::IrqExit { irq: number });
            }
            IrqKind::Soft => {
                self.put(e.cpu, e.ts, &kernel::SoftirqEntry { vec: number })?;
                self.ends_with(e.cpu, end, &kernel::SoftirqExit { vec: number });
            }
            IrqKind::Vector => {
                let vector = kernel::vector(&e.name, number);
                let [entry, exit] = self.vector(&e.name);
                self.write(e.cpu, e.ts, entry, |out| vector.put(out))?;
                self.ends(e.cpu, end, exit, |out| vector.put(out));
            }
        }
        Ok(())
    }

    fn signal(&mut self, e: &Signal) -> io::Result<()> {
        match e.kind {
            SignalKind::Generate => {
                let generated = kernel::SignalGenerate {
                    sig: e.number,
                    comm: self.names.thread(Some(e.pid), e.tid),
                    pid: e.tid.0,
                    group: e.to_process.into(),
                    result: kernel::signal_result(e.result),
                };
                self.put(e.cpu, e.ts, &generated)
            }
            SignalKind::Deliver => self.put(e.cpu, e.ts, &kernel::SignalDeliver { sig: e.number }),
        }
    }

    fn lost(&mut self, e: &LossRow) -> io::Result<()> {
        let channel = if e.origin.is_kernel() { Channel::Kernel } else { Channel::User };
        let cpu = if (0..self.cpus).contains(&e.cpu.0) { e.cpu } else { Cpu::UNKNOWN };
        let count = e.count.max(0);
        self.streams.of(channel, cpu)?.lost(e.ts, after(e.ts, e.dur), count as u64)?;
        let stream = self.streams.of(Channel::User, Cpu::UNKNOWN)?;
        stream.event(e.ts, self.loss, |out| {
            e.pid.0.put(out);
            e.tid.0.put(out);
            e.origin.word().put(out);
            (&*e.what).put(out);
            count.put(out);
            e.dur.put(out);
        })
    }

    fn syscall(&mut self, name: &Name) -> [u32; 2] {
        pair(&mut self.syscalls, name, |name| {
            let (entry, exit) = (format!("syscall_entry_{name}"), format!("syscall_exit_{name}"));
            let ret = [("ret", i64::TYPE)];
            [
                self.metadata.event(Channel::Kernel, &entry, []),
                self.metadata.event(Channel::Kernel, &exit, ret),
            ]
        })
    }

    fn vector(&mut self, name: &Name) -> [u32; 2] {
        pair(&mut self.vectors, name, |name| {
            ["entry", "exit"].map(|end| {
                let name = format!("x86_irq_vectors_{name}_{end}");
                self.metadata.event(Channel::Kernel, &name, [("vector", i32::TYPE)])
            })
        })
    }

    fn put<P: Payload>(&mut self, cpu: Cpu, ts: Nanos, payload: &P) -> io::Result<()> {
        self.write(cpu, ts, P::ID, |out| payload.put(out))
    }

    fn write(
        &mut self,
        cpu: Cpu,
        ts: Nanos,
        id: u32,
        put: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        self.streams.of(Channel::Kernel, cpu)?.event(ts, id, put)
    }

    fn ends_with<P: Payload>(&mut self, cpu: Cpu, ts: Nanos, payload: &P) {
        self.ends(cpu, ts, P::ID, |out| payload.put(out));
    }

    /// Notes an event of later.
    fn ends(&mut self, cpu: Cpu, ts: Nanos, id: u32, put: impl FnOnce(&mut Vec<u8>)) {
        let mut fields = Vec::new();
        put(&mut fields);
        self.opened += 1;
        self.open.push(Open { key: (Reverse(ts), self.opened), cpu, id, fields });
    }

    /// Writes the ends that are due.
    fn end_until(&mut self, ts: Nanos) -> io::Result<()> {
        while self.open.peek().is_some_and(|next| next.key.0.0 <= ts)
            && let Some(Open { key: (Reverse(ts), _), cpu, id, fields }) = self.open.pop()
        {
            self.write(cpu, ts, id, |out| out.extend_from_slice(&fields))?;
        }
        Ok(())
    }

    fn finish(mut self, trace: &Trace, dir: &Dir) -> Result<()> {
        self.end_until(Nanos(self.window.end.saturating_sub(1)))?;
        self.streams.finish()?;
        let mut file = dir.create_file("metadata")?;
        file.write_all(self.metadata.text(trace.meta()).as_bytes())?;
        Ok(file.sync_all()?)
    }
}

/// The pair of a name, declared if it is the first of it.
fn pair(pairs: &mut Pairs, name: &Name, declare: impl FnOnce(&str) -> [u32; 2]) -> [u32; 2] {
    if let Some(&pair) = pairs.get(name) {
        return pair;
    }
    let pair = declare(name);
    pairs.insert(name.clone(), pair);
    pair
}

/// When what takes time ends.
fn after(ts: Nanos, dur: i64) -> Nanos {
    Nanos(ts.0.saturating_add(dur))
}
