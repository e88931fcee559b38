//! Threads of one role: those of the same name, up to its last number.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::render::columns::named;

/// Threads of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Role {
    /// What they are called together: `worker-0…3`.
    pub name: String,
    /// Their numbers.
    pub tids: BTreeSet<i32>,
    /// Those of their processes.
    pub pids: BTreeSet<i32>,
    /// Their names.
    #[serde(skip)]
    names: BTreeSet<String>,
    #[serde(skip)]
    several: bool,
    #[serde(skip)]
    stem: String,
}

impl Role {
    /// Takes in those of another one.
    pub(super) fn merge(&mut self, other: Role) {
        self.several |= other.several;
        if self.stem.is_empty() {
            self.stem = other.stem;
        }
        self.tids.extend(other.tids);
        self.pids.extend(other.pids);
        self.names.extend(other.names);
        self.call();
    }

    /// Whether the other one has the same name but for numbers.
    pub(super) fn is_like(&self, other: &Role) -> bool {
        self.stem == other.stem
    }

    /// Whether some of them are among the others, as far as that is known.
    pub(super) fn is_among(&self, others: &Role) -> bool {
        self.is_like(others) && (self.several || !self.tids.is_disjoint(&others.tids))
    }

    /// Whether they are of this role.
    pub(super) fn is_of(&self, role: &str) -> bool {
        self.stem == role
    }

    /// What they are called but for numbers.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    /// Adds a name; how many threads have it does not matter.
    pub(super) fn add_name(&mut self, comm: &str) {
        let several = self.several;
        self.add(comm, None, None);
        self.several = several;
        self.call();
    }

    /// Its name and number, if it is one thread.
    pub(super) fn only(&self) -> Option<(&str, i32)> {
        let (tid, name) = (self.tids.first()?, self.names.first()?);
        let is_one = self.tids.len() == 1 && self.names.len() == 1 && !self.several;
        is_one.then_some((name, *tid))
    }

    /// Adds a thread; or several of one name, whose numbers are not known.
    pub(super) fn add(&mut self, comm: &str, pid: Option<i32>, tid: Option<i32>) {
        let before = (self.several, self.tids.len(), self.names.len());
        self.several |= tid.is_none();
        self.tids.extend(tid);
        self.pids.extend(pid);
        if self.names.len() < MAX_NAMES && !self.names.contains(comm) {
            self.names.insert(comm.to_owned());
        }
        if self.stem.is_empty() {
            role(comm).clone_into(&mut self.stem);
        }
        if before != (self.several, self.tids.len(), self.names.len()) {
            self.call();
        }
    }

    fn call(&mut self) {
        let threads = self.tids.len() + if self.several { 2 } else { 0 };
        self.name = match together(&self.names, threads) {
            name if self.several => {
                name.replace(&format!(" ({threads} threads)"), " (several threads)")
            }
            name => name,
        };
    }
}

/// Names of a role that are looked at to say what it is called.
///
/// Limit: as `MAX_FOUND` of `group.rs`.
const MAX_NAMES: usize = 1024;

/// What threads of one role have in common: their name without its last number.
pub(super) fn role(comm: &str) -> &str {
    let stem = comm.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.is_empty() { comm } else { stem }
}

/// One name for all: `worker-0…3`, `eater (16 threads)`, `logger`.
fn together(names: &BTreeSet<String>, threads: usize) -> String {
    let Some(first) = names.first() else { return String::new() };
    if names.len() == 1 {
        return match threads {
            0 | 1 => named(first).into_owned(),
            n => format!("{} ({n} threads)", named(first)),
        };
    }
    let stem = role(first);
    let numbers = || names.iter().filter_map(|name| name.strip_prefix(stem)?.parse::<u64>().ok());
    match (numbers().min(), numbers().max()) {
        (Some(least), Some(most)) if numbers().count() == names.len() => {
            format!("{stem}{least}…{most}")
        }
        _ => format!("{stem} ({threads} threads)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_role_have_one_name() {
        let name = |names: &[&str]| {
            let mut role = Role::default();
            names.iter().zip(1..).for_each(|(name, tid)| role.add(name, None, Some(tid)));
            role.name
        };
        assert_eq!(name(&["worker-3", "worker-0", "worker-10"]), "worker-0…10");
        assert_eq!(name(&["eater", "eater"]), "eater (2 threads)");
        assert_eq!(name(&["logger"]), "logger");
        assert_eq!(name(&["each other"]), "'each other'", "no word of ours");
        assert_eq!(name(&["unknown", "unknown"]), "'unknown' (2 threads)");
        assert_eq!(name(&["web", "web1"]), "web (2 threads)");
        assert_eq!((role("worker-12"), role("42"), role("a1b")), ("worker-", "42", "a1b"));
    }
}
