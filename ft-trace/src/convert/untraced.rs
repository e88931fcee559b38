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

use crate::reach::{Loading, Unreachable};
use crate::spool::mapping::{Mapping, Mappings};
use crate::warning::UntracedProgram;

/// Name of the library.
const LIBRARY: &str = "libft_preload.so";

/// Why a program may not be traced that could have the library. Somebody may have looked before that was loaded.
const NOT_THERE: &str = "perhaps it ended before the library was loaded, had its environment cleared, as by `env -i`, or had no descriptor, \
                         memory or file size left for the library's buffer; let it keep LD_PRELOAD, or raise its limits (`ulimit -a`)";

/// What hinders the library that is there.
const NO_ROOM: &str = "the library was loaded, and did not begin: perhaps there was no descriptor, memory or file size left for its buffer, \
                       or the agent's socket is not seen there; raise the program's limits (`ulimit -a`), or show it the socket";

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

/// What a look at a process has shown of the program that it executed then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pid: i32,
    /// CLOCK_MONOTONIC, ns.
    ts: i64,
    loading: Loading,
    /// The library was mapped.
    has_library: bool,
}

impl Look {
    pub(super) fn of(told: &Mappings) -> Option<Look> {
        let name = |mapping: &Mapping| mapping.path.rsplit('/').next() == Some(LIBRARY);
        let (pid, ts, has_library) = (told.pid, told.ts, told.mappings.iter().any(name));
        Some(Look { pid, ts, loading: told.loading?, has_library })
    }
}

/// Why a run was not traced, as far as somebody has looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// Nobody has.
    Nothing,
    /// The library could be loaded, and was not there yet.
    Loading,
    /// The library was there.
    Library,
    Unreachable(Unreachable),
}

impl Seen {
    fn of(look: &Look) -> Seen {
        match look.loading {
            Loading::Not(why) => Seen::Unreachable(why),
            Loading::Done if look.has_library => Seen::Library,
            Loading::Done => Seen::Loading,
        }
    }

    fn reason(self) -> Option<String> {
        match self {
            Seen::Nothing => None,
            Seen::Loading => Some(NOT_THERE.into()),
            Seen::Library => Some(NO_ROOM.into()),
            Seen::Unreachable(why) => Some(why.to_string()),
        }
    }
}

/// Programs, how often each ran to its end without a registration, by what was seen of it.
type Untraced = BTreeMap<(String, Seen), u64>;

/// The programs without a registration (`(pid, ts)`), and how many runs there were in all.
pub(super) fn find(
    executions: &[Execution],
    registrations: impl Iterator<Item = (i32, i64)>,
    looks: &[Look],
) -> (Untraced, u64) {
    let mut registered: HashMap<i32, Vec<i64>> = HashMap::new();
    registrations.for_each(|(pid, ts)| registered.entry(pid).or_default().push(ts));
    let mut looked_at: HashMap<i32, Vec<&Look>> = HashMap::new();
    looks.iter().for_each(|look| looked_at.entry(look.pid).or_default().push(look));
    let mut of_process: BTreeMap<i32, Vec<&Execution>> = BTreeMap::new();
    executions.iter().for_each(|e| of_process.entry(e.pid).or_default().push(e));
    let (mut untraced, mut all) = (BTreeMap::new(), 0);
    for (pid, mut executions) in of_process {
        executions.sort_by_key(|e| e.ts);
        let registered = registered.get(&pid).map_or(&[][..], Vec::as_slice);
        let looks = looked_at.get(&pid).map_or(&[][..], Vec::as_slice);
        for run in executions.windows(2).filter_map(run) {
            all += 1;
            let during = |ts: i64| (run.from..run.until).contains(&ts);
            if !registered.iter().any(|&ts| during(ts)) {
                let looks = looks.iter().filter(|look| during(look.ts));
                let seen = looks.map(|look| Seen::of(look)).max().unwrap_or(Seen::Nothing);
                *untraced.entry((run.program.to_owned(), seen)).or_default() += 1;
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

/// The most frequent first, with the reason as far as it was seen. The name says nothing of the file that was executed.
pub(super) fn explain(untraced: Untraced) -> Vec<UntracedProgram> {
    let program = |((name, seen), runs): ((String, Seen), u64)| UntracedProgram {
        reason: seen.reason(),
        name,
        runs,
    };
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

    fn look(pid: i32, ts: i64, loading: Loading, has_library: bool) -> Look {
        Look { pid, ts, loading, has_library }
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
        let (untraced, all) = find(&executions, registrations.into_iter(), &[]);
        assert_eq!((untraced, all), ([(("sudo".to_owned(), Seen::Nothing), 1)].into(), 4));
        let (untraced, _) = find(&executions, [].into_iter(), &[]);
        assert_eq!(untraced.len(), 4);
        assert_eq!(find(&[], [(1, 1)].into_iter(), &[]), (BTreeMap::new(), 0));
    }

    /// A program's name is that of any file, which is no reason to read one.
    #[test]
    fn a_reason_is_of_the_program_that_ran() {
        let fixed = Loading::Not(Unreachable::Static);
        // One number, and one name, for three programs.
        let executions =
            [begins(1, 10, "sh"), begins(1, 20, "sh"), begins(1, 30, "sh"), ends(1, 40)];
        let looks = [
            look(1, 9, fixed, false),
            look(1, 20, Loading::Done, false),
            look(1, 21, Loading::Done, true),
            look(1, 30, Loading::Done, false),
            look(1, 40, fixed, false),
            look(2, 15, fixed, false),
        ];
        let (untraced, _) = find(&executions, [].into_iter(), &looks);
        let seen: Vec<Seen> = untraced.keys().map(|(_, seen)| *seen).collect();
        assert_eq!(seen, [Seen::Nothing, Seen::Loading, Seen::Library]);
        let (untraced, _) = find(&executions, [].into_iter(), &[look(1, 35, fixed, false)]);
        let told = explain(untraced);
        let told: Vec<_> = told.iter().map(|p| (p.runs, p.reason.as_deref())).collect();
        let why = Unreachable::Static.to_string();
        assert_eq!(told, [(2, None), (1, Some(&*why))]);
        // Who looked too early has not seen that there was no room.
        let early = Seen::Loading.reason().unwrap();
        assert!(early.starts_with("perhaps ") && early.contains("file size left"), "{early}");
    }

    #[test]
    fn a_look_shows_the_library() {
        let of = |path: &str, loading| {
            let mapping = Mapping { path: path.into(), ..Mapping::default() };
            let mappings = Mappings { loading, mappings: vec![mapping], ..Mappings::default() };
            Look::of(&mappings).map(|look| Seen::of(&look))
        };
        assert_eq!(of("/usr/lib/libft_preload.so", Some(Loading::Done)), Some(Seen::Library));
        assert_eq!(of("/usr/lib/libc.so.6", Some(Loading::Done)), Some(Seen::Loading));
        assert_eq!(of("/usr/lib/libft_preload.so", None), None, "it was another program by then");
    }
}
