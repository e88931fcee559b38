//! What threads are called: each by its newest name, and with its number where others have that name, too.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::role::Role;
use crate::render::columns::named;
use ft_trace::ids::Name;
use ft_trace::tables::{Blame, ThreadTime};

/// The newest names of threads: one that had another before it named itself is one thread.
#[derive(Debug, Default)]
pub(super) struct Newest {
    names: HashMap<(i32, i32), Name>,
    /// Of those whose process a row does not say.
    by_tid: HashMap<i32, Name>,
}

impl Newest {
    pub(super) fn add(&mut self, pid: i32, tid: i32, name: Name) {
        self.by_tid.insert(tid, name.clone());
        self.names.insert((pid, tid), name);
    }

    /// The one of a thread.
    pub(super) fn rename(&self, pid: i32, tid: i32, comm: &mut Name) {
        if let Some(name) = self.names.get(&(pid, tid)) {
            *comm = name.clone();
        }
    }

    /// Those of all threads of a row that have numbers.
    pub(super) fn rename_all(&self, row: &mut Blame) {
        self.rename(row.pid.0, row.tid.0, &mut row.comm);
        for (pid, tid, comm) in [
            (row.behind_pid, row.behind_tid, &mut row.behind_comm),
            (row.waker_pid, row.waker_tid, &mut row.waker_comm),
        ] {
            if let (Some(pid), Some(tid), Some(comm)) = (pid, tid, comm) {
                self.rename(pid, tid, comm);
            }
        }
        let culprit = row.culprit_tid.filter(|tid| *tid != 0);
        let newest = culprit.and_then(|tid| self.by_tid.get(&tid));
        if let (Some(newest), Some(culprit)) = (newest, &mut row.culprit) {
            *culprit = newest.clone();
        }
    }
}

/// Threads that have one name, and those that a process has.
#[derive(Debug, Default)]
pub(super) struct Census {
    names: HashMap<Name, HashSet<i32>>,
    processes: HashMap<i32, HashSet<i32>>,
}

impl Census {
    pub(super) fn add(&mut self, row: &ThreadTime) {
        self.names.entry(row.comm.clone()).or_default().insert(row.tid.0);
        self.processes.entry(row.pid.0).or_default().insert(row.tid.0);
    }

    /// Whether it is the only thread of its process.
    fn is_process(&self, tid: i32) -> bool {
        self.processes.get(&tid).is_some_and(|threads| threads.len() == 1)
    }

    /// A thread with its number.
    pub(super) fn numbered(&self, comm: &str, tid: i32) -> String {
        let word = if self.is_process(tid) { "pid" } else { "thread" };
        format!("{} ({word} {tid})", named(comm))
    }

    /// Says which thread it is, if there is one of several of its name; and of processes, that these are.
    pub(super) fn tell(&self, who: &mut Role) {
        if let Some((comm, tid)) = who.only() {
            if self.names.get(comm).is_some_and(|threads| threads.len() > 1) {
                who.name = self.numbered(comm, tid);
            }
            return;
        }
        let are_processes = |tids: &BTreeSet<i32>| tids.iter().all(|tid| self.is_process(*tid));
        if !who.tids.is_empty() && are_processes(&who.tids) {
            who.name = who.name.replace(" threads)", " processes)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::time;
    use super::*;

    #[test]
    fn a_thread_has_its_number_where_others_have_its_name() {
        let mut census = Census::default();
        for (pid, tid, comm) in
            [(1, 1, "main"), (1, 7, "worker"), (1, 8, "worker"), (20, 20, "web"), (30, 30, "web")]
        {
            census.add(&time(pid, tid, comm));
        }
        let told = |threads: &[(i32, i32, &str)]| {
            let mut who = Role::default();
            threads.iter().for_each(|(pid, tid, comm)| who.add(comm, Some(*pid), Some(*tid)));
            census.tell(&mut who);
            who.name
        };
        assert_eq!(told(&[(1, 1, "main")]), "main");
        assert_eq!(told(&[(1, 7, "worker")]), "worker (thread 7)");
        assert_eq!(told(&[(1, 7, "worker"), (1, 8, "worker")]), "worker (2 threads)");
        assert_eq!(told(&[(20, 20, "web")]), "web (pid 20)");
        assert_eq!(told(&[(20, 20, "web"), (30, 30, "web")]), "web (2 processes)");
        assert_eq!(told(&[(9, 9, "other")]), "other", "of which nothing is known");
        assert_eq!(census.numbered("main", 1), "main (thread 1)");
    }
}
