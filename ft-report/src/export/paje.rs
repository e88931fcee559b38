//! Pajé (*Pajé trace file*, version 1.2.5, Schnorr 2014), as the multilevel paper's `sigmund` writes for its viewer.
//!
//! The machine contains CPUs and processes, a process its threads, its async tasks and its locks. Times are seconds from the begin of the
//! recording (of its first event, where that is older), or of the part of it that is written.
//!
//! | container | has |
//! |---|---|
//! | CPU | state `running`: who has it; state `interrupt` |
//! | thread | state `state`: running, preempted, … , with its culprit; states `scope` and `gap`; event `event`; link `wake-up` from its waker |
//! | async task | state `task`: polled (by which thread), or queued before that (woken by which); else it waits |
//! | lock | state `holder` of a lock that one thread holds at a time; variables `holders` and `waiters` |
//! | machine | event `loss` |
//!
//! What goes on at the end of the window ends there. A name cannot hold a quotation mark in this format: it becomes `'`.
//!
//! Memory: a name for each thread, task and lock, and what [`Sorted`] holds, since all has to come in the order of time.

mod format;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{self, Write};

use ft_trace::Mark;
use ft_trace::ids::{Cpu, Name, Pid, Tid};
use ft_trace::store::Trace;
use ft_trace::tables::{AsyncSwitch, DispatchLatency, GapCause, LockKind, SiteKind, ThreadRow};

use super::sorted::Sorted;
use super::text::thread;
use super::{Job, Result};
use crate::tracks::{Args, Item, What};
use format::{Kind, TYPES, color, declare, write_line};

/// Writes a trace.
///
/// # Errors
///
/// When it cannot be read, or `out` or `TMPDIR` cannot be written to.
pub(super) fn write(job: &mut Job<'_>, out: &mut dyn Write) -> Result<()> {
    let mut paje = Paje::new(job.trace, job.begin()?)?;
    for item in job.items()? {
        paje.item(&item?)?;
    }
    paje.finish(out)
}

/// A container.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Machine,
    Cpu(Cpu),
    Process(Pid),
    Thread(Pid, Tid),
    /// By its number.
    Task(Pid, i64),
    /// By its address.
    Lock(Pid, i64),
}

impl Row {
    fn ty(self) -> &'static str {
        match self {
            Row::Machine => "M",
            Row::Cpu(_) => "C",
            Row::Process(_) => "P",
            Row::Thread(..) => "T",
            Row::Task(..) => "A",
            Row::Lock(..) => "L",
        }
    }

    /// What contains it.
    fn parent(self) -> Option<Row> {
        match self {
            Row::Machine => None,
            Row::Cpu(_) | Row::Process(_) => Some(Row::Machine),
            Row::Thread(pid, _) | Row::Task(pid, _) | Row::Lock(pid, _) => Some(Row::Process(pid)),
        }
    }
}

impl fmt::Display for Row {
    /// Its alias.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Row::Machine => f.write_str("m"),
            Row::Cpu(cpu) => write!(f, "c{cpu}"),
            Row::Process(pid) => write!(f, "p{pid}"),
            Row::Thread(pid, tid) => write!(f, "t{pid}_{tid}"),
            Row::Task(pid, task) => write!(f, "a{pid}_{task}"),
            Row::Lock(pid, lock) => write!(f, "l{pid}_{lock:x}"),
        }
    }
}

struct Paje {
    args: Args,
    processes: HashMap<Pid, Name>,
    /// Of threads that the kernel knows, whose process a waking does not tell; the newest of a number.
    threads: HashMap<Tid, Pid>,
    /// Time 0 of the file.
    begin: i64,
    end: i64,
    /// What they are called.
    rows: BTreeMap<Row, String>,
    /// Values of states that have no colour of their own, by their type.
    values: BTreeMap<&'static str, BTreeSet<String>>,
    links: u64,
    lines: Sorted,
    line: String,
}

impl Paje {
    fn new(trace: &Trace, begin: i64) -> Result<Paje> {
        let mut paje = Paje {
            args: Args::read(trace)?,
            processes: HashMap::new(),
            threads: HashMap::new(),
            begin,
            end: begin,
            rows: BTreeMap::new(),
            values: BTreeMap::new(),
            links: 0,
            lines: Sorted::new(),
            line: String::new(),
        };
        for thread in trace.rows::<ThreadRow>() {
            let ThreadRow { pid, tid, process, prio, .. } = thread?;
            paje.processes.insert(pid, process);
            if prio.is_some() {
                paje.threads.insert(tid, pid);
            }
        }
        paje.row(Row::Machine);
        Ok(paje)
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        let exact = Mark::Exact;
        match &item.what {
            What::Occupied(o) => {
                let who = &o.who.thread;
                let who = thread(who.tid, self.args.thread(Some(who.pid), who.tid));
                let mark = if o.seen { exact } else { Mark::Censored };
                self.state(item, "running", Row::Cpu(o.cpu), &who, "", mark)
            }
            What::Interrupt(e) => {
                self.state(item, "interrupt", Row::Cpu(e.cpu), &e.name, e.kind.word(), exact)
            }
            What::State(s) => {
                let cause = s.culprit.name().unwrap_or_default();
                let row = Row::Thread(s.thread.pid, s.thread.tid);
                self.state(item, "state", row, s.part.word(), &cause, s.mark)
            }
            What::Scope(s) => {
                self.state(item, "scope", Row::Thread(s.pid, s.tid), &s.event, "", s.mark)
            }
            What::Poll(p) => self.poll(item, p),
            What::Gap(g) => {
                let cause = g.cause.map_or("", GapCause::word);
                let culprit = g.culprit.as_deref().unwrap_or_default();
                self.state(item, "gap", Row::Thread(g.pid, g.tid), cause, culprit, g.mark)
            }
            What::Hold(h) => {
                let lock = self.lock(h.pid, h.lock, &h.lock_name);
                self.count(item, "holders", lock)?;
                // Readers hold it together.
                if h.lock_kind() == LockKind::RwlockRead {
                    return Ok(());
                }
                let who = thread(h.tid, self.args.thread(Some(h.pid), h.tid));
                self.state(item, "holder", lock, &who, &h.place, h.mark)
            }
            What::Wait(w) => {
                let lock = self.lock(w.pid, w.lock, &w.lock_name);
                self.count(item, "waiters", lock)
            }
            What::Unmet(w) => {
                let lock = self.lock(w.thread.pid, w.lock, &w.lock_name);
                self.count(item, "waiters", lock)
            }
            What::Dispatch(d) => self.link(item, d),
            What::Event(e) if e.kind == SiteKind::Event => {
                let mut text = String::new();
                self.args.write_words(e, &mut text);
                self.event(item, "event", Row::Thread(e.pid, e.tid), &e.event, &text)
            }
            What::Task(e) => {
                let name = format!("task.{}", e.kind);
                self.event(item, "event", Row::Thread(e.pid, e.tid), &name, &e.comm)
            }
            What::Loss(e) => {
                let text = format!("{} lost: {}", e.count, e.what);
                self.event(item, "loss", Row::Machine, e.origin.word(), &text)
            }
            // Of other events there is what came of them.
            _ => Ok(()),
        }
    }

    /// The alias of a container, which is there from now on.
    fn row(&mut self, row: Row) -> String {
        if !self.rows.contains_key(&row) {
            let name = match row {
                Row::Machine => "machine".into(),
                Row::Cpu(cpu) => format!("CPU {cpu}"),
                Row::Process(pid) => {
                    format!("{} {pid}", self.processes.get(&pid).map_or("", |name| name))
                }
                Row::Thread(pid, tid) => thread(tid, self.args.thread(Some(pid), tid)),
                Row::Task(_, task) => task.to_string(),
                Row::Lock(_, address) => format!("{address:#x}"),
            };
            self.insert(row, name);
        }
        row.to_string()
    }

    fn insert(&mut self, row: Row, name: String) {
        self.rows.insert(row, name);
        if let Some(parent) = row.parent() {
            self.row(parent);
        }
    }

    /// A container, whose name a row tells.
    fn named(&mut self, row: Row, name: impl FnOnce() -> String) -> Row {
        if !self.rows.contains_key(&row) {
            self.insert(row, name());
        }
        row
    }

    /// A lock, whose name a row tells.
    fn lock(&mut self, pid: Pid, address: i64, name: &str) -> Row {
        self.named(Row::Lock(pid, address), || format!("{name} {address:#x}"))
    }

    /// A poll of a task, and how long that was queued before it.
    fn poll(&mut self, item: &Item, poll: &AsyncSwitch) -> io::Result<()> {
        let name = || format!("{} {}", poll.label(), poll.task);
        let row = self.named(Row::Task(poll.pid, poll.task), name);
        if let Some(queued_ns) = poll.queued_ns.filter(|ns| item.begun && *ns > 0) {
            let since = item.from.saturating_sub(queued_ns).max(self.begin);
            let queued = Item { from: since, to: item.from, ..item.clone() };
            let by = poll.waker_comm.as_deref().unwrap_or_default();
            self.state(&queued, "task", row, "queued", by, poll.mark)?;
        }
        let by = thread(poll.tid, self.args.thread(Some(poll.pid), poll.tid));
        self.state(item, "task", row, "polled", &by, poll.mark)
    }

    fn state(
        &mut self,
        item: &Item,
        ty: &'static str,
        row: Row,
        value: &str,
        cause: &str,
        mark: Mark,
    ) -> io::Result<()> {
        let row = self.row(row);
        let values = self.values.entry(ty).or_default();
        if !matches!(ty, "state" | "task") && !values.contains(value) {
            values.insert(value.to_owned());
        }
        self.line(item.from, Kind::PushState, &[ty, &row, value, cause, mark.word()])?;
        self.line(item.to, Kind::PopState, &[ty, &row])
    }

    fn count(&mut self, item: &Item, ty: &str, row: Row) -> io::Result<()> {
        let row = self.row(row);
        self.line(item.from, Kind::AddVariable, &[ty, &row, "1"])?;
        self.line(item.to, Kind::SubVariable, &[ty, &row, "1"])
    }

    fn event(
        &mut self,
        item: &Item,
        ty: &str,
        row: Row,
        value: &str,
        text: &str,
    ) -> io::Result<()> {
        let row = self.row(row);
        self.line(item.from, Kind::NewEvent, &[ty, &row, value, text])
    }

    /// A wake-up, from the thread that was current on the waker's CPU; from the machine when that was idle, or is not
    /// known.
    fn link(&mut self, item: &Item, wake: &DispatchLatency) -> io::Result<()> {
        // Readers refuse a link that has only one end.
        if !(item.begun && item.over) {
            return Ok(());
        }
        let (ty, waker) = match self.threads.get(&wake.waker_tid) {
            Some(&pid) if wake.waker_tid.0 != 0 => ("wakeup", Row::Thread(pid, wake.waker_tid)),
            _ => ("started", Row::Machine),
        };
        let (waker, woken) = (self.row(waker), self.row(Row::Thread(wake.pid, wake.tid)));
        self.links += 1;
        let (key, value) = (self.links.to_string(), wake.mark.word());
        self.line(item.from, Kind::StartLink, &[ty, "m", &waker, value, &key])?;
        self.line(item.to, Kind::EndLink, &[ty, "m", &woken, value, &key])
    }

    /// Adds a line of something that happened at a time.
    fn line(&mut self, at: i64, event: Kind, fields: &[&str]) -> io::Result<()> {
        self.end = self.end.max(at);
        let ns = at.saturating_sub(self.begin).max(0) as u64;
        self.line.clear();
        write_line(&mut self.line, event, Some(ns), fields);
        self.lines.push(ns, self.line.as_bytes())
    }

    fn finish(self, out: &mut dyn Write) -> Result<()> {
        let mut text = String::new();
        declare(&mut text);
        for (event, fields) in TYPES {
            write_line(&mut text, *event, None, fields);
        }
        for (ty, values) in &self.values {
            for value in values {
                let fields = [&**value, *ty, value, &color(value)];
                write_line(&mut text, Kind::DefineEntityValue, None, &fields);
            }
        }
        // What contains comes first, and goes last.
        for (row, name) in &self.rows {
            let parent = row.parent().map_or("0".into(), |parent| parent.to_string());
            let alias = row.to_string();
            let fields = [&alias, row.ty(), &parent, name];
            write_line(&mut text, Kind::CreateContainer, Some(0), &fields);
            if let Row::Lock(..) = row {
                for variable in ["holders", "waiters"] {
                    write_line(&mut text, Kind::SetVariable, Some(0), &[variable, &alias, "0"]);
                }
            }
            out.write_all(text.as_bytes())?;
            text.clear();
        }
        self.lines.each(|_, line| out.write_all(line))?;
        for row in self.rows.keys().rev() {
            let (ns, alias) = ((self.end - self.begin).unsigned_abs(), row.to_string());
            write_line(&mut text, Kind::DestroyContainer, Some(ns), &[row.ty(), &alias]);
            out.write_all(text.as_bytes())?;
            text.clear();
        }
        Ok(())
    }
}
