//! Which programs of tests run in turn, and which beside others.

use super::Program;
use crate::groups::QUICK;

/// Programs whose loads take whole CPUs at real-time priorities: each would be in the way of the next one, so one lane runs
/// them in turn.
pub(super) const REAL_TIME: [&str; 7] = [
    "tests end_to_end",
    "tests kernel_programs",
    "ft-load lib ft_load",
    "ft-load npt",
    "ft-load refusals",
    "ft-load schedule",
    "papers short",
];

/// Of the others the quick tier begins first, which a run without much time must not leave out; the longest of it before the rest.
const FIRST: [&str; 2] = ["ft-user loom", "ft-user stress"];

/// What takes long, and waits meanwhile for what other programs do: a third lane runs it from the begin on.
const BESIDE: [&str; 1] = ["tests hostile"];

/// What asks programs of other projects and takes long: it begins last, and not at all in a run that has no time left.
const LAST: [&str; 5] =
    ["tests page", "tests compare", "tests exports", "tests store", "tests readers"];

/// Programs in the order in which they begin.
pub(super) struct Lanes {
    /// One after another, and then from `others`.
    pub(super) real_time: Vec<Program>,
    /// One after another beside the two lanes.
    pub(super) beside: Vec<Program>,
    /// Whichever of the two lanes is free takes the next one.
    pub(super) others: Vec<Program>,
}

pub(super) fn lanes(programs: Vec<Program>) -> Lanes {
    let place =
        |list: &[&str], program: &Program| list.iter().position(|name| *name == program.name);
    let (mut real_time, mut others): (Vec<Program>, Vec<Program>) =
        programs.into_iter().partition(|program| place(&REAL_TIME, program).is_some());
    real_time.sort_by_key(|program| place(&REAL_TIME, program));
    let beside = others.extract_if(.., |program| place(&BESIDE, program).is_some()).collect();
    others.sort_by_key(|program| {
        let is_quick = program.is_of_units() || QUICK.contains(&&*program.name);
        let of_lists = [(0, &FIRST[..]), (3, &LAST[..])];
        let in_list = of_lists.iter().find_map(|(rank, list)| Some((*rank, place(list, program)?)));
        in_list.unwrap_or(if is_quick { (1, 0) } else { (2, 0) })
    });
    Lanes { real_time, beside, others }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::workspace::root;

    #[test]
    fn the_names_of_the_lanes_are_those_of_programs() {
        let manifest = |folder: &str| fs::read_to_string(root().join(folder).join("Cargo.toml"));
        for name in REAL_TIME.iter().chain(&FIRST).chain(&BESIDE).chain(&LAST) {
            let words: Vec<&str> = name.split(' ').collect();
            let folder = root().join(words[0]);
            assert!(manifest(words[0]).is_ok(), "{name}");
            let tests = if words[0] == "tests" { folder.clone() } else { folder.join("tests") };
            let test = tests.join(words[words.len() - 1]);
            let is_there = test.join("main.rs").is_file() || test.with_extension("rs").is_file();
            assert!(words[1] == "lib" || is_there, "{name}");
        }
    }

    #[test]
    fn the_quick_tier_begins_first_and_what_may_be_left_out_last() {
        let program = |name: &str| Program {
            name: name.into(),
            executable: PathBuf::new(),
            package: PathBuf::new(),
            arguments: Vec::new(),
        };
        let names = [
            "tests readers",
            "x",
            "papers short",
            "tests hostile",
            "tests compare",
            "tests cli",
            "tests page",
            "ft-trace lib ft_trace",
            "ft-user stress",
            "tests end_to_end",
        ];
        let Lanes { real_time, beside, others } = lanes(names.map(program).to_vec());
        let names =
            |programs: &[Program]| programs.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&real_time), ["tests end_to_end", "papers short"]);
        assert_eq!(names(&beside), ["tests hostile"]);
        let expected = ["ft-user stress", "tests cli", "ft-trace lib ft_trace", "x"];
        assert_eq!(names(&others)[..4], expected);
        assert_eq!(names(&others)[4..], ["tests page", "tests compare", "tests readers"]);
    }
}
