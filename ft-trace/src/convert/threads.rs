//! Which threads were seen, and under what name.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::registry::Registry;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::store::Row;
use crate::tables::ThreadRow;
use crate::tables::listed::Listed;

/// One thread, as a ledger keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sighting {
    pid: i32,
    tid: i32,
    /// First time, ns.
    first: i64,
    /// When the name was seen last, ns.
    named: i64,
    name: Option<String>,
    /// When the priority was seen last, ns.
    #[serde(default)]
    ranked: i64,
    prio: Option<i32>,
    observed: bool,
}

/// What is known of one thread.
struct Thread {
    first: Nanos,
    named: Nanos,
    name: Option<Name>,
    ranked: Nanos,
    prio: Option<i32>,
    observed: bool,
}

/// Threads by process and id. The newest name and the newest priority count, in whatever order they come: the ring buffers of
/// CPUs are copied one after the other.
#[derive(Default)]
pub(crate) struct Threads {
    threads: HashMap<(Pid, Tid), Thread>,
    /// The newest subject of a record, and its time: most records are of the same thread as the one before.
    newest: Option<(Pid, Tid, Nanos)>,
}

impl Threads {
    /// A thread was seen.
    pub(crate) fn seen(
        &mut self,
        pid: Pid,
        tid: Tid,
        ts: Nanos,
        name: Option<&Name>,
        prio: Option<i32>,
    ) {
        let (first, named, ranked) = (ts, ts, ts);
        let new = || Thread { first, named, name: None, ranked, prio: None, observed: false };
        let thread = self.threads.entry((pid, tid)).or_insert_with(new);
        thread.first = thread.first.min(ts);
        if let Some(name) = name
            && (ts >= thread.named || thread.name.is_none())
        {
            thread.named = ts;
            // Most sightings repeat the name, and comparing pointers is cheaper than counting references.
            if !thread.name.as_ref().is_some_and(|known| Name::ptr_eq(known, name)) {
                thread.name = Some(name.clone());
            }
        }
        if prio.is_some() && (ts >= thread.ranked || thread.prio.is_none()) {
            (thread.ranked, thread.prio) = (ts, prio);
        }
    }

    /// The thread that a row is of was seen, whatever the row is: where records are missing, an interrupt may be all
    /// that shows it.
    pub(crate) fn subject_of<R: Row + Listed>(&mut self, row: &R) {
        let (Some(pid), tid) = row.subject() else { return };
        let ts = Nanos(row.key());
        let again = self.newest.is_some_and(|(p, t, since)| (p, t) == (pid, tid) && since <= ts);
        if tid.0 != 0 && !again {
            self.seen(pid, tid, ts, None, None);
            self.newest = Some((pid, tid, ts));
        }
    }

    /// The kernel recorded a wake-up of the thread, which it does of those alone that are observed: a child
    /// without rings is, or a process of an observed cgroup.
    pub(crate) fn woken(&mut self, pid: Pid, tid: Tid, ts: Nanos, prio: i32) {
        self.seen(pid, tid, ts, None, Some(prio));
        self.observe(pid, tid);
    }

    /// The kernel recorded something else that it does of those alone that are observed: a probe that is hit, a program that is
    /// executed. A thread that always runs is never woken.
    pub(crate) fn recorded(&mut self, pid: Pid, tid: Tid, ts: Nanos, name: Option<&Name>) {
        self.seen(pid, tid, ts, name, None);
        self.observe(pid, tid);
    }

    fn observe(&mut self, pid: Pid, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&(pid, tid)) {
            thread.observed = true;
        }
    }

    /// For a ledger, in the order of process and thread.
    pub(super) fn sightings(&self) -> Vec<Sighting> {
        let mut list: Vec<_> = self
            .threads
            .iter()
            .map(|(&(pid, tid), thread)| Sighting {
                pid: pid.0,
                tid: tid.0,
                first: thread.first.0,
                named: thread.named.0,
                name: thread.name.as_deref().map(str::to_owned),
                ranked: thread.ranked.0,
                prio: thread.prio,
                observed: thread.observed,
            })
            .collect();
        list.sort_by_key(|s| (s.pid, s.tid));
        list
    }

    /// Adds what a ledger kept.
    pub(super) fn add(&mut self, sightings: &[Sighting]) {
        for s in sightings {
            let name = s.name.as_deref().map(Name::from);
            self.seen(Pid(s.pid), Tid(s.tid), Nanos(s.named), name.as_ref(), None);
            self.seen(Pid(s.pid), Tid(s.tid), Nanos(s.ranked), None, s.prio);
            self.seen(Pid(s.pid), Tid(s.tid), Nanos(s.first), None, None);
            if s.observed {
                self.observe(Pid(s.pid), Tid(s.tid));
            }
        }
    }

    /// Whether this thread was seen.
    pub(super) fn has(&self, pid: Pid, tid: Tid) -> bool {
        self.threads.contains_key(&(pid, tid))
    }

    /// How many have no number in the agent's PID namespace.
    pub(super) fn unnumbered(&self) -> u64 {
        self.threads.keys().filter(|(_, tid)| tid.0 < 0).count() as u64
    }

    /// Rows of the table `threads`, by the first time that they were seen.
    pub(super) fn rows(&self, registry: &Registry) -> Vec<ThreadRow> {
        let mut processes: HashMap<Pid, Name> = HashMap::new();
        for (&(pid, tid), thread) in &self.threads {
            if let Some(name) = thread.name.as_ref().filter(|_| pid.0 == tid.0) {
                processes.insert(pid, name.clone());
            }
        }
        // What was read at the registration, unless the kernel has recorded a name: it may have executed a program since.
        for process in registry.processes.iter().rev() {
            processes.entry(Pid(process.pid)).or_insert_with(|| process.comm.as_str().into());
        }
        let woken = self.threads.iter().filter(|(_, thread)| thread.observed);
        let observed: HashSet<Pid> = woken.map(|(&(pid, _), _)| pid).collect();
        let idle: Name = "swapper".into();
        let mut rows: Vec<_> = self
            .threads
            .iter()
            .map(|(&(pid, tid), thread)| ThreadRow {
                ts: thread.first,
                tid,
                pid,
                // The idle task has one name on each CPU.
                name: if tid.0 == 0 {
                    idle.clone()
                } else {
                    thread.name.clone().unwrap_or_default()
                },
                process: if pid.0 == 0 {
                    idle.clone()
                } else {
                    processes.get(&pid).cloned().unwrap_or_default()
                },
                prio: thread.prio,
                observed: registry.observes(pid) || observed.contains(&pid),
            })
            .collect();
        rows.sort_by_key(|row| (row.ts, row.pid, row.tid));
        rows
    }
}

#[cfg(test)]
mod tests {
    use ft_ebpf::kind;

    use super::super::kernel::{KernelRows, test_bytes};
    use super::*;
    use crate::tables::record::Decoder;

    #[test]
    fn who_executes_or_ends_is_observed_though_nobody_has_woken_it() {
        for (kind, expected) in
            [(kind::EXEC, true), (kind::EXIT, true), (kind::RENAME, true), (kind::FORK, false)]
        {
            let header = ft_ebpf::Header { ts: 1000, kind, cpu: 1, tid: 7 };
            let task = ft_ebpf::Task { header, tid: 7, tgid: 7, ..Default::default() };
            let mut decoder = Decoder::new(&[]);
            KernelRows::default().decode(&test_bytes(&task), &mut decoder);
            let found = decoder.threads.sightings();
            let found: Vec<_> = found.iter().map(|s| (s.pid, s.tid, s.observed)).collect();
            assert_eq!(found, [(7, 7, expected)], "kind {kind}");
        }
    }

    #[test]
    fn what_an_interrupt_alone_shows_is_a_thread_of_its_process() {
        let record = |ts, tid, tgid| {
            let header = ft_ebpf::Header { ts: ts + 50, kind: kind::VECTOR, cpu: 1, tid };
            test_bytes(&ft_ebpf::Irq { header, entry_ts: ts, tgid, ..Default::default() })
        };
        let records = [record(2000, 7, 6), record(1000, 7, 6), record(3000, 8, 6), record(1, 0, 0)];
        let mut decoder = Decoder::new(&[]);
        KernelRows::default().decode(&records.concat(), &mut decoder);
        let found = decoder.threads.sightings();
        let found: Vec<_> = found.iter().map(|s| (s.pid, s.tid, s.first, s.observed)).collect();
        assert_eq!(found, [(6, 7, 1000, false), (6, 8, 3000, false)]);
    }

    #[test]
    fn the_newest_name_and_priority_count_in_whatever_order_they_come() {
        let name = |name: &str| Some(Name::from(name));
        let sightings = [
            (30, None, Some(110)),
            (10, name("first"), Some(120)),
            (20, name("second"), None),
            (25, None, Some(98)),
        ];
        let mut orders: Vec<Vec<usize>> = vec![vec![]];
        for n in 0..sightings.len() {
            let put = |order: &Vec<usize>, at| [&order[..at], &[n], &order[at..]].concat();
            orders = orders.iter().flat_map(|o| (0..=o.len()).map(move |at| put(o, at))).collect();
        }
        assert_eq!(orders.len(), 24);
        for order in orders {
            let mut threads = Threads::default();
            for &at in &order {
                let (ts, name, prio) = &sightings[at];
                threads.seen(Pid(1), Tid(1), Nanos(*ts), name.as_ref(), *prio);
            }
            // And by way of a ledger.
            let mut again = Threads::default();
            again.add(&threads.sightings());
            for threads in [threads, again] {
                let found = &threads.sightings()[0];
                let told = (found.first, found.name.as_deref(), found.prio);
                assert_eq!(told, (10, Some("second"), Some(110)), "{order:?}");
            }
        }
    }
}
