//! Programs of a run with `--preload` into which the library was not loaded.
//!
//! The kernel records each execution in the recorded processes. A program that has the library registers and waits for
//! the answer before its own code runs: so what was executed and did not register was not traced, unless it ended before. The
//! registration of a forked child, which does not wait, says nothing of what the child executes a moment later; it does
//! not count.
//!
//! Not shown: programs that ran when the recording ended, as their registration may still have been under way; anything when the
//! kernel is not recorded, or all of the system is.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::warning::UntracedProgram;

/// Something that the kernel says of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Execution {
    pub(super) pid: i32,
    /// CLOCK_MONOTONIC, ns.
    pub(super) ts: i64,
    /// Name of the program that it begins; `None`: it ends.
    pub(super) program: Option<String>,
}

/// A program that ran in a process, from one time to another.
struct Run<'a> {
    program: &'a str,
    from: i64,
    until: i64,
}

/// How often which program ran to its end without a registration (`(pid, ts)`), and how many runs there were in all.
pub(super) fn find(
    executions: &[Execution],
    registrations: impl Iterator<Item = (i32, i64)>,
) -> (BTreeMap<String, u64>, u64) {
    let mut registered: HashMap<i32, Vec<i64>> = HashMap::new();
    registrations.for_each(|(pid, ts)| registered.entry(pid).or_default().push(ts));
    let mut of_process: BTreeMap<i32, Vec<&Execution>> = BTreeMap::new();
    executions.iter().for_each(|e| of_process.entry(e.pid).or_default().push(e));
    let (mut untraced, mut all) = (BTreeMap::new(), 0);
    for (pid, mut executions) in of_process {
        executions.sort_by_key(|e| e.ts);
        let registered = registered.get(&pid).map_or(&[][..], Vec::as_slice);
        for run in executions.windows(2).filter_map(run) {
            all += 1;
            if !registered.iter().any(|ts| (run.from..run.until).contains(ts)) {
                *untraced.entry(run.program.to_owned()).or_default() += 1;
            }
        }
    }
    (untraced, all)
}

/// From one execution to the next or to the end.
fn run<'a>(pair: &[&'a Execution]) -> Option<Run<'a>> {
    let [begin, end] = pair else { return None };
    Some(Run { program: begin.program.as_deref()?, from: begin.ts, until: end.ts })
}

/// The most frequent first, with the reason as far as it can be seen now.
pub(super) fn explain(untraced: BTreeMap<String, u64>) -> Vec<UntracedProgram> {
    let why = |name: &str| crate::reach::why_not(name).map(|reason| reason.to_string());
    let program = |(name, runs): (String, u64)| UntracedProgram { reason: why(&name), name, runs };
    let mut programs: Vec<UntracedProgram> = untraced.into_iter().map(program).collect();
    programs.sort_by_key(|program| std::cmp::Reverse(program.runs));
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(pid: i32, ts: i64, program: &str) -> Execution {
        Execution { pid, ts, program: Some(program.into()) }
    }

    fn ends(pid: i32, ts: i64) -> Execution {
        Execution { pid, ts, program: None }
    }

    #[test]
    fn what_ran_without_a_registration_is_found() {
        // 1  sh ·r·················)
        // 2     sudo ··· id ·r· )       sudo does not load the library
        // 2                       ls ·r)   the number again
        // 3     su ···               runs on
        let executions = [
            begins(1, 10, "sh"),
            begins(2, 20, "sudo"),
            begins(3, 20, "su"),
            begins(2, 30, "id"),
            ends(2, 40),
            begins(2, 50, "ls"),
            ends(2, 60),
            ends(1, 70),
        ];
        let registrations = [(1, 11), (2, 31), (2, 51)];
        let (untraced, all) = find(&executions, registrations.into_iter());
        assert_eq!((untraced, all), ([("sudo".to_owned(), 1)].into(), 4));
        let (untraced, _) = find(&executions, [].into_iter());
        assert_eq!(untraced.len(), 4);
        assert_eq!(find(&[], [(1, 1)].into_iter()), (BTreeMap::new(), 0));
    }

    #[test]
    fn reasons_are_told_where_they_can_be_seen() {
        let programs = explain([("sh".to_owned(), 1), ("ft-no-such-program".to_owned(), 7)].into());
        let told: Vec<_> = programs.iter().map(|p| (&*p.name, p.runs, &p.reason)).collect();
        assert_eq!(told, [("ft-no-such-program", 7, &None), ("sh", 1, &None)]);
    }
}
