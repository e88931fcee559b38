//! Perfetto's own format (<https://perfetto.dev/docs/reference/trace-packet-proto>), for <https://ui.perfetto.dev> and
//! its trace processor.
//!
//! Switches, wakings, interrupts of lines and softirqs are written as events of ftrace, from which the trace processor makes CPUs
//! and the states of all threads. What it cannot know of stands in tracks beside them: why a thread does not run, locks
//! with their holders and waiters, wake-ups with a flow from the waker to the switch, scopes, polls, events, gaps and losses. Times are
//! CLOCK_MONOTONIC, and so those of the tables. What is a row of a table has the columns that explain it as arguments, and its mark, unless
//! it is exact.
//!
//! A thread that was being woken while it went to sleep (`sched_switch.prev_woken`) is written as one that can run, which it
//! is; else its time until it runs again would look like sleep.
//!
//! Switches that nobody recorded are made up in two places: to whoever has a CPU when the window begins, and away from
//! one that was not seen to leave it, to the idle task, when a record last shows it there, or at the end.
//!
//! Memory: a bundle of events for each CPU, a track for each row, and the arguments of the scopes that go on.

mod kernel;
mod notes;
mod packets;
mod proto;
mod rows;

use std::collections::HashMap;
use std::io::Write;

use ft_analysis::world::{Culprit, Stretch};
use ft_trace::ids::{Nanos, Pid, ThreadKey, Tid};
use ft_trace::tables::{DispatchLatency, IrqKind, Part, Scope, SiteKind, ThreadRow, UserEvent};

use super::{Job, Result};
use crate::tracks::{Args, Item, What};
use kernel::Bundles;
use packets::{Flow, Notes, Packets, Shape, clean};
use proto::{Clock, ClockSnapshot, ProcessTree, SystemInfo, TracePacket, Utsname, clock};
use rows::{Row, Rows};

/// Scopes in which one thread is whose arguments are kept.
///
/// Limit: the outermost are shown without.
/// Shown by: no figure: arguments in one viewer.
const MAX_SCOPES: usize = 256;

/// Threads of one packet, which is made in memory.
///
/// Limit: further ones are in further packets.
/// Shown by: no figure depends.
const THREADS_AT_ONCE: usize = 4096;

/// Writes a trace.
pub(super) fn write(job: &mut Job<'_>, out: &mut dyn Write) -> Result<()> {
    let args = Args::read(job.trace)?;
    let mut out = Packets::new(out);
    let offset_ns = head(job, &mut out)?;
    let mut writer = Writer {
        args: &args,
        rows: Rows::new(&args),
        bundles: Bundles::new(offset_ns),
        scopes: HashMap::new(),
        flows: 0,
        out,
    };
    for item in job.items()? {
        writer.item(&item?)?;
    }
    let Writer { bundles, mut out, .. } = writer;
    bundles.finish(&mut out)
}

/// Writes what is known before the first event; CLOCK_BOOTTIME minus CLOCK_MONOTONIC.
fn head(job: &Job<'_>, out: &mut Packets<'_>) -> Result<i64> {
    let meta = job.trace.meta();
    let now = meta.start.start_ns.max(job.window.start).max(0);
    let clock = |clock_id, offset_ns: i64| Clock {
        clock_id: Some(clock_id),
        timestamp: Some(now.saturating_add(offset_ns).max(0) as u64),
    };
    let boottime_ns = meta.clock.boottime_offset_ns;
    let clocks = vec![
        clock(clock::MONOTONIC, 0),
        clock(clock::BOOTTIME, boottime_ns),
        clock(clock::REALTIME, meta.clock.realtime_offset_ns),
    ];
    let primary_trace_clock = Some(clock::MONOTONIC);
    out.write(TracePacket {
        clock_snapshot: Some(ClockSnapshot { clocks, primary_trace_clock }),
        ..TracePacket::default()
    })?;
    let utsname = Utsname {
        sysname: Some("Linux".into()),
        release: Some(clean(&meta.start.kernel)),
        machine: Some("x86_64".into()),
    };
    out.write(TracePacket {
        system_info: Some(SystemInfo { utsname: Some(utsname) }),
        ..TracePacket::default()
    })?;
    let tree = |tree| TracePacket {
        timestamp: Some(now.saturating_add(boottime_ns).max(0) as u64),
        process_tree: Some(tree),
        ..TracePacket::default()
    };
    let mut part = ProcessTree::default();
    for thread in job.trace.rows::<ThreadRow>() {
        let thread = thread?;
        if part.threads.len() == THREADS_AT_ONCE {
            out.write(tree(std::mem::take(&mut part)))?;
        }
        if thread.tid.0 == thread.pid.0 {
            part.processes.push(proto::Process {
                pid: Some(thread.pid.0),
                ppid: None,
                cmdline: vec![clean(&thread.process)],
            });
        }
        part.threads.push(proto::Thread {
            tid: Some(thread.tid.0),
            tgid: Some(thread.pid.0),
            name: Some(clean(&thread.name)),
        });
    }
    out.write(tree(part))?;
    Ok(boottime_ns)
}

struct Writer<'a> {
    args: &'a Args,
    rows: Rows<'a>,
    bundles: Bundles,
    /// The begins of the scopes in which each thread is: they have the arguments.
    scopes: HashMap<ThreadKey, Vec<UserEvent>>,
    flows: u64,
    out: Packets<'a>,
}

impl Writer<'_> {
    fn item(&mut self, item: &Item) -> Result<()> {
        match &item.what {
            What::Switch(e) => self.bundles.switch(e, &mut self.out),
            What::Waking(e) => {
                let comm = self.args.thread(Some(e.pid), e.tid);
                self.bundles.waking(e, comm, &mut self.out)
            }
            What::Interrupt(e) if e.kind != IrqKind::Vector => {
                self.bundles.interrupt(item, e, &mut self.out)
            }
            What::Interrupt(e) => {
                self.slice(item, Row::Vectors(e.cpu), "", "irq", &e.name, Notes::default())
            }
            What::State(s) if s.part == Part::Running => Ok(()),
            What::State(s) => {
                self.slice(item, Row::Why(s.thread), "", "state", &why(s), notes::state(s))
            }
            What::Hold(h) => {
                let row = self.rows.of_lock(h.pid, h.lock, false);
                let name = self.thread(h.pid, h.tid);
                self.slice(item, row, &h.lock_name, "hold", &name, notes::hold(h))
            }
            What::Wait(w) => {
                let row = self.rows.of_lock(w.pid, w.lock, true);
                let name = thread_name(&w.comm, w.tid);
                self.slice(item, row, &w.lock_name, "wait", &name, notes::wait(w))
            }
            What::Unmet(w) => {
                let row = self.rows.of_lock(w.thread.pid, w.lock, true);
                let name = thread_name(&w.comm, w.thread.tid);
                self.slice(item, row, &w.lock_name, "unmet wait", &name, notes::unmet(w))
            }
            What::Dispatch(d) => self.wake_up(item, d),
            What::Scope(s) => {
                let notes = self.scope(s);
                let row = Row::Scopes(ThreadKey { pid: s.pid, tid: s.tid });
                self.slice(item, row, "", "scope", &s.event, notes)
            }
            What::Poll(p) => {
                let row = Row::Polls(ThreadKey { pid: p.pid, tid: p.tid });
                self.slice(item, row, "", "poll", p.label(), notes::poll(p))
            }
            What::Gap(g) => {
                let row = Row::Gaps(ThreadKey { pid: g.pid, tid: g.tid });
                let name = g.cause.map_or("no account", |cause| cause.word());
                self.slice(item, row, "", "gap", name, notes::gap(g))
            }
            What::Event(e) => self.event(e),
            What::Syscall(e) => {
                let row = Row::Syscalls(ThreadKey { pid: e.pid, tid: e.tid });
                self.slice(item, row, "", "syscall", &e.name, Notes::default())
            }
            What::Contention(e) => {
                let row = Row::KernelLocks(ThreadKey { pid: e.pid, tid: e.tid });
                self.slice(item, row, "", "kernel lock", &e.kind, Notes::default())
            }
            What::Fault(e) => self.mark(
                e.ts,
                ThreadKey { pid: e.pid, tid: e.tid },
                "fault",
                "page fault",
                Notes::default(),
                None,
            ),
            What::Loss(e) => self.slice(
                item,
                Row::Losses,
                "",
                "loss",
                &format!("{}: {}", e.origin, e.what),
                notes::loss(e),
            ),
            What::Occupied(o) => self.bundles.occupied(item, o, &mut self.out),
            // Runs are what lies between the gaps of a thread.
            What::Run(_) | What::Migrate(_) | What::Task(_) | What::Signal(_) => Ok(()),
        }
    }

    fn slice(
        &mut self,
        item: &Item,
        row: Row,
        lock: &str,
        category: &str,
        name: &str,
        mut notes: Notes,
    ) -> Result<()> {
        let track = self.rows.lane(row, item.from, item.to, lock, &mut self.out)?;
        if !item.begun {
            notes.text("begun", "before");
        }
        if !item.over {
            notes.text("over", "later, or not known");
        }
        self.out.slice(item.from, item.to, Shape { category, track, name, notes })
    }

    fn mark(
        &mut self,
        at: Nanos,
        thread: ThreadKey,
        category: &str,
        name: &str,
        notes: Notes,
        flow: Option<Flow>,
    ) -> Result<()> {
        let track = self.rows.track(Row::Thread(thread), &mut self.out)?;
        self.out.instant(at.0, Shape { category, track, name, notes }, flow)
    }

    /// `name/tid` of a thread of an observed process.
    fn thread(&self, pid: Pid, tid: Tid) -> String {
        thread_name(self.args.thread(Some(pid), tid), tid)
    }

    /// An arrow from whoever woke to the switch.
    fn wake_up(&mut self, item: &Item, d: &DispatchLatency) -> Result<()> {
        let woken = ThreadKey { pid: d.pid, tid: d.tid };
        let waker = match d.waker_tid {
            Tid(0) => ThreadKey { pid: Pid(0), tid: Tid(0) },
            tid => self.args.newest(tid).unwrap_or(ThreadKey { pid: Pid(tid.0), tid }),
        };
        self.flows += 1;
        // A flow needs both of its ends.
        let flow = |end: fn(u64) -> Flow| item.begun.then(|| end(self.flows));
        let (begins, ends) = (flow(Flow::Begins), flow(Flow::Ends));
        if item.begun {
            let name = format!("wakes {}", thread_name(&d.comm, d.tid));
            self.mark(d.ts, waker, "waking", &name, Notes::default(), begins)?;
        }
        // An interrupt may have done it.
        let name = format!("woken where {} was current", thread_name(&d.waker_comm, d.waker_tid));
        self.mark(Nanos(item.to), woken, "wake-up", &name, notes::dispatch(d), ends)
    }

    /// An event of the application; those that make holds, waits, scopes and gaps are shown as these.
    fn event(&mut self, e: &UserEvent) -> Result<()> {
        let thread = ThreadKey { pid: e.pid, tid: e.tid };
        match self.args.site(e).map_or(e.kind, |site| site.kind) {
            SiteKind::Event => {
                let name =
                    self.args.site(e).map_or_else(|| e.event.clone(), |site| site.event.clone());
                let notes = notes::event(self.args, e);
                self.mark(e.ts, thread, "event", &name, notes, None)
            }
            SiteKind::ScopeBegin => {
                let open = self.scopes.entry(thread).or_default();
                if open.len() == MAX_SCOPES {
                    open.remove(0);
                }
                open.push(e.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The arguments of a scope: those of the event that began it, and where its time went.
    fn scope(&mut self, s: &Scope) -> Notes {
        let mut notes = Notes::default();
        if let Some(open) = self.scopes.get_mut(&ThreadKey { pid: s.pid, tid: s.tid }) {
            let is = |e: &UserEvent| (e.ts, e.site) == (s.ts, s.site);
            if let Some(i) = open.iter().rposition(is) {
                notes = notes::event(self.args, &open.remove(i));
            }
        }
        notes::scope(s, notes)
    }
}

/// `name/tid`; idle for the idle task.
fn thread_name(name: &str, tid: Tid) -> String {
    if tid.0 == 0 { "idle".into() } else { format!("{name}/{tid}") }
}

/// Why a thread does not run, or not for itself.
fn why(s: &Stretch) -> String {
    let culprit = match &s.culprit {
        Culprit::Thread(o) => thread_name(&o.comm, o.thread.tid),
        other => other.name().as_deref().unwrap_or("nobody known").to_owned(),
    };
    match s.part {
        Part::Preempted => format!("preempted by {culprit}"),
        Part::Dispatch => format!("woken, behind {culprit}"),
        Part::Hardirq | Part::Softirq | Part::Vector => format!("{} {culprit}", s.part),
        Part::Running | Part::Blocked | Part::Unexplained => culprit,
    }
}
