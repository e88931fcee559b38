//! Which of the processes that register are recorded.
//!
//! All where nothing was named, or all are asked for; else those of a cgroup; else the command, processes that were named, and what
//! these have started. The command and what it starts have a socket of their own ([`Door`]). Of others the kernel side says whether
//! they descend from those that are recorded, since it follows each fork; without it, `/proc` does, as long as no process between the two
//! has ended.

use std::collections::{BTreeSet, HashMap};

use crate::collect::cgroup::Cgroup;
use crate::collect::discover::{parent, read};
use crate::collect::kernel::Kernel;
use crate::control::registration::{Door, Registration};
use crate::record::Options;
use crate::record::notice::SHOWN;

/// Generations that are followed upwards: the collecting thread reads a file of `/proc` for each, and whoever registers decides how
/// many there are.
///
/// Limit: one that is farther below is not recorded; a line says that.
/// Shown by: `who_descends_from_a_root_has_it_among_its_ancestors`.
const MAX_GENERATIONS: usize = 64;

/// Which of the processes that register are recorded.
#[derive(Clone, Debug)]
pub(in crate::record) enum Scope {
    /// All.
    Anybody,
    /// Those of a cgroup.
    Cgroup(Cgroup),
    /// Those that descend from these.
    Below {
        /// Process ids: the agent, whose child the command is, and those that were named.
        roots: Vec<i32>,
        /// But not these that the command and the named ones start.
        alone: bool,
        /// And all others.
        any: bool,
    },
}

/// Processes that nobody has named, and that have registered.
#[derive(Debug, Default)]
pub(in crate::record) struct Strangers {
    /// How many.
    pub(in crate::record) count: u64,
    /// Names of some of them.
    pub(in crate::record) names: BTreeSet<String>,
}

impl Scope {
    /// What these options ask for.
    pub(in crate::record) fn of(options: &Options, cgroup: Option<&Cgroup>) -> Scope {
        let names_some = !options.command.is_empty() || !options.pids.is_empty();
        match cgroup {
            Some(cgroup) => Scope::Cgroup(cgroup.clone()),
            None if names_some && !options.system_wide => {
                let own = std::process::id().cast_signed();
                let roots = [&[own], &*options.pids].concat();
                Scope::Below { roots, alone: options.alone, any: options.any }
            }
            None => Scope::Anybody,
        }
    }

    /// Whether what a recorded process starts is recorded because of that.
    pub(super) fn follows(&self) -> bool {
        matches!(self, Scope::Below { alone: false, .. })
    }

    /// Whether it is recorded. One that nobody has named is added to `strangers`, also where it is.
    pub(super) fn takes(
        &self,
        registration: &Registration,
        kernel: Option<&Kernel>,
        strangers: &mut Strangers,
    ) -> bool {
        let identity = &registration.identity;
        let pid = identity.pid;
        match self {
            Scope::Anybody => true,
            Scope::Cgroup(cgroup) => cgroup.contains(pid) && identity.has_number(),
            Scope::Below { roots, alone, any } => {
                let is_observed = || kernel.is_some_and(|kernel| kernel.is_observed(pid as u32));
                let above = |pid| parent(&read(&format!("/proc/{pid}/status")));
                let is_own = match alone {
                    true => identity.has_number() && is_named(pid, roots, above),
                    false => {
                        registration.door == Door::Command
                            || identity.has_number()
                                && (is_observed()
                                    || descends(pid, |pid| roots.contains(&pid), above))
                    }
                };
                if !is_own {
                    strangers.add(&identity.comm);
                }
                is_own || *any
            }
        }
    }
}

impl Strangers {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.names.len() < SHOWN {
            self.names.insert(name.to_owned());
        }
    }
}

/// Whether a process was named, or is the command: the first of `roots` is its parent.
fn is_named(pid: i32, roots: &[i32], parent: impl Fn(i32) -> Option<i32>) -> bool {
    roots.contains(&pid) || parent(pid).is_some_and(|parent| roots.first() == Some(&parent))
}

/// Whether a process is a root, or has one among its ancestors.
fn descends(pid: i32, is_root: impl Fn(i32) -> bool, parent: impl Fn(i32) -> Option<i32>) -> bool {
    let mut line = std::iter::successors(Some(pid), |pid| parent(*pid)).take(MAX_GENERATIONS);
    line.any(is_root)
}

/// Those of these processes, each with its parent, that descend from one that is observed and are not observed.
pub(super) fn overlooked(all: &[(i32, i32)], is_observed: impl Fn(i32) -> bool) -> Vec<i32> {
    let parents: HashMap<i32, i32> = all.iter().copied().collect();
    let parent = |pid| parents.get(&pid).copied();
    let others = all.iter().map(|(pid, _)| *pid).filter(|pid| !is_observed(*pid));
    others.filter(|pid| descends(*pid, &is_observed, parent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_descends_from_a_root_has_it_among_its_ancestors() {
        let parent = |pid| match pid {
            30 => Some(20),
            20 => Some(10),
            10 => Some(1),
            // Numbers that were given anew while somebody looked.
            7 => Some(8),
            8 => Some(7),
            _ => None,
        };
        let descends = |pid, root| descends(pid, |pid| pid == root, parent);
        assert!(descends(30, 10) && descends(30, 30));
        assert!(!descends(20, 30), "a parent is no child");
        assert!(!descends(7, 10), "it ends");
        let is_named = |pid| is_named(pid, &[10, 7], parent);
        assert_eq!([7, 20, 30].map(is_named), [true, true, false], "named, the command, its child");
    }

    #[test]
    fn whoever_descends_from_one_that_is_observed_and_is_not_is_found() {
        let all = [(1, 0), (10, 1), (20, 10), (30, 20), (31, 20), (40, 1), (7, 8), (8, 7)];
        let find = |observed: &[i32]| overlooked(&all, |pid| observed.contains(&pid));
        assert_eq!(find(&[10]), [20, 30, 31]);
        assert_eq!(find(&[10, 20, 30]), [31]);
        assert!(find(&[30, 40]).is_empty() && find(&[]).is_empty());
    }

    #[test]
    fn only_what_was_named_is_recorded_where_something_was() {
        let command = || vec!["true".into()];
        let scope = |options: Options| Scope::of(&options, None);
        let of_command = scope(Options { command: command(), ..Options::default() });
        assert!(matches!(of_command, Scope::Below { any: false, roots, .. } if roots.len() == 1));
        let of_pid = scope(Options { pids: vec![7], any: true, ..Options::default() });
        assert!(matches!(of_pid, Scope::Below { any: true, roots, .. } if roots[1] == 7));
        let all = Options { command: command(), system_wide: true, ..Options::default() };
        assert!(matches!(scope(all), Scope::Anybody));
        assert!(matches!(scope(Options::default()), Scope::Anybody));
    }

    #[test]
    fn some_strangers_are_named_and_all_are_counted() {
        let mut strangers = Strangers::default();
        (0..20).for_each(|i| strangers.add(&format!("s{}", i / 2)));
        assert_eq!((strangers.count, strangers.names.len()), (20, SHOWN));
    }
}
