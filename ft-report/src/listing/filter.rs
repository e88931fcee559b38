//! Which events are listed.
//!
//! What is asked for is resolved to ids before the first event: a name that matches nothing is an error,
//! not an empty listing. Losses pass the filter of events, since they explain what is missing there.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use ft_user::glob;

use super::entry::{Entry, of_kernel};
use super::names::Names;
use super::tasks::Tasks;
use super::{ListingError, Result};
use crate::render::number::dur;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::{Cpu, Pid, SiteId, Tid};
use ft_trace::store::Trace;
use ft_trace::stream::Timed;

/// What is asked for. Each list that is not empty must be met, by any of its items.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Thread ids, or globs over the newest names of threads.
    pub threads: Vec<String>,
    /// Processes.
    pub pids: Vec<i32>,
    /// Numbers of async tasks, or globs over their names, and over the places of those without one: what threads did in
    /// their polls, and what else concerns them.
    pub tasks: Vec<String>,
    /// CPUs.
    pub cpus: Vec<i32>,
    /// Globs over names of events.
    pub events: Vec<String>,
    /// Nanoseconds after the start of the recording; none: whatever is there.
    pub from: Option<i64>,
    /// Nanoseconds after the start, not included.
    pub to: Option<i64>,
    /// The kernel's events, too.
    pub kernel: bool,
}

/// A selection, resolved for one trace. `None` lets everything pass.
#[derive(Debug)]
pub(super) struct Filter {
    threads: Option<Threads>,
    pids: Option<BTreeSet<Pid>>,
    tasks: Option<Tasks>,
    cpus: Option<BTreeSet<Cpu>>,
    events: Option<Globs>,
    window: Range<i64>,
}

/// Threads that were asked for. A number is whoever has it; a name belongs to a thread of one process, and several
/// processes can have a thread of that number.
#[derive(Debug, Default)]
struct Threads {
    numbers: BTreeSet<Tid>,
    named: BTreeSet<(Pid, Tid)>,
    /// The named ones whose number is theirs where an event has no process.
    alone: BTreeSet<Tid>,
}

impl Threads {
    fn contains(&self, pid: Option<Pid>, tid: Tid) -> bool {
        let is_named = match pid {
            Some(pid) => self.named.contains(&(pid, tid)),
            None => self.alone.contains(&tid),
        };
        is_named || self.numbers.contains(&tid)
    }
}

#[derive(Debug)]
struct Globs {
    globs: Vec<String>,
    sites: HashMap<SiteId, bool>,
}

impl Globs {
    fn matches(&self, name: &str) -> bool {
        self.globs.iter().any(|glob| glob::matches(glob, name))
    }
}

impl Filter {
    /// Resolves a selection.
    ///
    /// # Errors
    ///
    /// When it names what the trace does not have, or its window is empty.
    pub(super) fn new(trace: &Trace, names: &Names, selection: &Selection) -> Result<Filter> {
        let meta = trace.meta();
        let window = window(trace, selection.from, selection.to)?;
        let last = i32::try_from(meta.start.cpus).unwrap_or(i32::MAX).saturating_sub(1);
        if let Some(&cpu) = selection.cpus.iter().find(|cpu| !(0..=last).contains(*cpu)) {
            return Err(ListingError::NoCpu { cpu, last });
        }
        let cpus = selection.cpus.iter().map(|&cpu| Cpu(cpu));
        Ok(Filter {
            threads: some(&selection.threads, || threads(names, &selection.threads))?,
            pids: some(&selection.pids, || pids(names, &selection.pids))?,
            tasks: some(&selection.tasks, || Tasks::new(trace, names, &selection.tasks))?,
            cpus: some(&selection.cpus, || Ok(cpus.collect()))?,
            events: some(&selection.events, || globs(names, selection))?,
            window,
        })
    }

    /// Times (CLOCK_MONOTONIC, ns) of the events that can pass; the reader looks only there.
    pub(super) fn window(&self) -> Range<i64> {
        self.window.clone()
    }

    /// Whether an event is listed; it is one of [`Filter::window`].
    pub(super) fn selects(&self, entry: &Entry) -> bool {
        if let Entry::User(e) = entry {
            let first = e.arg[0].unwrap_or(0);
            return self.selects_cpu(e.cpu)
                && self.selects_site(e.site)
                && self.selects_thread(e.pid, e.tid)
                && self.selects_task_of((e.pid, e.tid, e.ts.0), e.site, first);
        }
        if let Entry::Loss(e) = entry {
            // -1: it may concern any.
            return (e.cpu.0 < 0 || self.selects_cpu(e.cpu))
                && (e.tid.0 < 0 || self.selects_tid(Some(e.pid).filter(|pid| pid.0 >= 0), e.tid))
                && (e.pid.0 < 0 || self.selects_pid(e.pid))
                && (e.tid.0 < 0 || self.has_polled(e.tid));
        }
        let ts = entry.ts().0;
        let selects = |pid, tid| self.selects_thread(pid, tid) && self.is_in_a_poll(tid, ts);
        let (pid, tid) = entry.subject();
        let selects_subject = match pid {
            Some(pid) => selects(pid, tid),
            // The process of a waker is not recorded.
            None => {
                self.pids.is_none() && self.selects_tid(None, tid) && self.is_in_a_poll(tid, ts)
            }
        };
        let selects_object = || entry.object().is_some_and(|(pid, tid)| selects(pid, tid));
        self.selects_cpu(entry.cpu())
            && (selects_subject || selects_object())
            && self.selects_event(&entry.name())
    }

    /// [`Filter::selects`] of a row without names.
    pub(super) fn selects_lean(&self, e: &LeanUserEvent) -> bool {
        self.selects_cpu(e.cpu)
            && self.selects_site(e.site)
            && self.selects_thread(e.pid, e.tid)
            && self.selects_task_of((e.pid, e.tid, e.ts.0), e.site, e.arg[0])
    }

    /// Whether the events of a CPU are listed.
    pub(super) fn selects_cpu(&self, cpu: Cpu) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Whether the events of a thread are listed.
    pub(super) fn selects_thread(&self, pid: Pid, tid: Tid) -> bool {
        self.selects_pid(pid) && self.selects_tid(Some(pid), tid)
    }

    /// Whether events of this name are listed.
    pub(super) fn selects_event(&self, name: &str) -> bool {
        self.events.as_ref().is_none_or(|globs| globs.matches(name))
    }

    /// Whether an event lies within a poll of a task that is asked for, or tells of one.
    fn selects_task_of(&self, (pid, tid, ts): (Pid, Tid, i64), site: SiteId, first: i64) -> bool {
        let tells = |tasks: &Tasks| tasks.are_told(pid, site, first);
        self.is_in_a_poll(tid, ts) || self.tasks.as_ref().is_some_and(tells)
    }

    fn is_in_a_poll(&self, tid: Tid, ts: i64) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| tasks.polls(tid, ts))
    }

    fn has_polled(&self, tid: Tid) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| tasks.has_thread(tid))
    }

    fn selects_site(&self, site: SiteId) -> bool {
        self.events.as_ref().is_none_or(|globs| globs.sites.get(&site).copied().unwrap_or(false))
    }

    fn selects_pid(&self, pid: Pid) -> bool {
        self.pids.as_ref().is_none_or(|pids| pids.contains(&pid))
    }

    fn selects_tid(&self, pid: Option<Pid>, tid: Tid) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(pid, tid))
    }
}

/// The times from `from` to before `to`, ns after the start of the recording, as CLOCK_MONOTONIC ns; what is not given has
/// no bound.
///
/// # Errors
///
/// When nothing lies between them, or the recording had ended before.
pub fn window(trace: &Trace, from: Option<i64>, to: Option<i64>) -> Result<Range<i64>> {
    let meta = trace.meta();
    let start = meta.start.start_ns;
    let at = |offset: Option<i64>, default| offset.map_or(default, |ns| start.saturating_add(ns));
    let window = at(from, i64::MIN)..at(to, i64::MAX);
    if window.is_empty() {
        return Err(ListingError::EmptyWindow);
    }
    // What lies behind the end of a recording that was killed is not known.
    if let Some(end) = meta.end.as_ref().map(|end| end.ts).filter(|&end| end < window.start) {
        return Err(ListingError::AfterEnd(dur(end - start)));
    }
    Ok(window)
}

/// The filter of a list, if the list asks for anything.
fn some<T, U>(list: &[T], resolve: impl FnOnce() -> Result<U>) -> Result<Option<U>> {
    if list.is_empty() { Ok(None) } else { resolve().map(Some) }
}

fn threads(names: &Names, wanted: &[String]) -> Result<Threads> {
    let mut threads = Threads::default();
    for wanted in wanted {
        let found = match wanted.parse().map(Tid) {
            Ok(tid) => {
                threads.numbers.insert(tid);
                names.threads.iter().any(|t| t.tid == tid)
            }
            Err(_) => {
                let matches = |name: &str| glob::matches(wanted, name);
                let named: Vec<_> = names.threads.iter().filter(|t| matches(&t.name)).collect();
                let alone = named.iter().filter(|t| matches(names.thread(None, t.tid)));
                threads.alone.extend(alone.map(|t| t.tid));
                threads.named.extend(named.iter().map(|t| (t.pid, t.tid)));
                !named.is_empty()
            }
        };
        if !found {
            return Err(ListingError::NoThread(wanted.clone()));
        }
    }
    Ok(threads)
}

fn pids(names: &Names, wanted: &[i32]) -> Result<BTreeSet<Pid>> {
    let known = |pid| names.threads.iter().any(|t| t.pid == pid);
    let resolve = |&pid| match Pid(pid) {
        pid if known(pid) => Ok(pid),
        _ => Err(ListingError::NoProcess(pid)),
    };
    wanted.iter().map(resolve).collect()
}

fn globs(names: &Names, selection: &Selection) -> Result<Globs> {
    for glob in &selection.events {
        if names.sites().any(|site| glob::matches(glob, &site.row.event)) {
            continue;
        }
        match (of_kernel(&|name| glob::matches(glob, name)), selection.kernel) {
            (true, true) => {}
            (true, false) => return Err(ListingError::KernelEvent(glob.clone())),
            (false, _) => return Err(ListingError::NoEvent(glob.clone())),
        }
    }
    let mut globs = Globs { globs: selection.events.clone(), sites: HashMap::new() };
    globs.sites =
        names.sites().map(|site| (site.row.site, globs.matches(&site.row.event))).collect();
    Ok(globs)
}
