//! The tiers of tests: the quick one, which needs what a Rust developer has, and the groups of all others, each with what it
//! installs.

use std::{fmt::Write as _, path::Path};

use crate::{
    kernels,
    packages::{
        self, BROWSER, COMPILERS, GUESTS, JUDGES, LOADS, LTTNG, PACKAGERS, PLAYERS, READERS,
        RECORDED, SPARK,
    },
    tools::Tool,
};

/// What a group does beside its programs of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Besides {
    Nothing,
    /// Formatting, lints, documentation, features.
    Checks,
    /// Other kernels, in QEMU.
    Kernels,
    /// What is published.
    Packages,
}

/// Tests that are run together: `cargo xtask test NAME`.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// For the help.
    pub(crate) what: &'static str,
    /// Its programs of tests: the folder of the package and the name of the target.
    pub(crate) programs: &'static [&'static str],
    /// Packages of Debian that it installs.
    pub(crate) packages: &'static [packages::Group],
    /// What it downloads into the target folder.
    pub(crate) tools: &'static [Tool],
    /// Whether it wants a compiler for BPF.
    pub(crate) bpf: bool,
    /// What its tests and checks download themselves, and fail without.
    pub(crate) downloads: &'static [&'static str],
    pub(crate) besides: Besides,
}

const NOTHING: Group = Group {
    name: "",
    what: "",
    programs: &[],
    packages: &[],
    tools: &[],
    bpf: false,
    downloads: &[],
    besides: Besides::Nothing,
};

/// All groups, in the order in which a whole run takes them.
pub(crate) const GROUPS: [Group; 10] = [
    Group {
        name: "checks",
        what: "formatting, lints, documentation and its examples, every choice of features, the packaged BPF object",
        bpf: true,
        downloads: &["cargo-hack (crates.io)"],
        besides: Besides::Checks,
        ..NOTHING
    },
    Group {
        name: "programs",
        what: "programs in C, C++ and Rust that are traced, as compiled, with the preload library, and switched from outside",
        programs: &[
            "ft-user c_header",
            "ft-user disassembly",
            "ft-user off",
            "ft-user plugin",
            "preload behaviour",
            "preload files",
            "preload real_programs",
            "tests c_program",
            "tests everything_on",
            "tests live",
            "tests preload",
        ],
        packages: &[COMPILERS, RECORDED],
        downloads: &["the source of sqlite (crates.io)"],
        ..NOTHING
    },
    Group {
        name: "truth",
        what: "recordings of programs that know what they did, and loads of known truth",
        programs: &[
            "ft-load events",
            "ft-load npt",
            "ft-load paper",
            "ft-load refusals",
            "ft-load schedule",
            "ft-user unwind",
            "preload unwind",
            "tests chains",
            "tests compare",
            "tests end_to_end",
            "tests framehop",
            "tests profilers",
            "tests truths",
        ],
        packages: &[READERS, COMPILERS, RECORDED, JUDGES, LOADS],
        tools: &[Tool::Python, Tool::FramedPython, Tool::Node],
        ..NOTHING
    },
    Group {
        name: "hostile",
        what: "attacks on an agent that is root, by programs of another user",
        programs: &["tests hostile"],
        packages: &[JUDGES],
        ..NOTHING
    },
    Group {
        name: "readers",
        what: "other projects' readers of Parquet and of exports",
        programs: &["tests exports", "tests readers", "tests stored"],
        packages: &[READERS, SPARK, JUDGES, BROWSER],
        tools: &[Tool::Python, Tool::Spark, Tool::Sail, Tool::Node],
        ..NOTHING
    },
    Group {
        name: "page",
        what: "the page of a report, in a browser",
        programs: &["tests page"],
        packages: &[READERS, BROWSER],
        tools: &[Tool::Python, Tool::Node],
        ..NOTHING
    },
    Group {
        name: "fleet",
        what: "catalogues of many hosts, in a directory and in an object store",
        programs: &["tests bench fleet", "tests catalogue", "tests store"],
        packages: &[READERS, SPARK, JUDGES],
        tools: &[Tool::Python, Tool::Spark, Tool::Sail, Tool::Store],
        ..NOTHING
    },
    Group {
        name: "kernels",
        what: "the agent on the oldest and the newest kernel, in QEMU",
        packages: &[GUESTS, READERS],
        tools: &[Tool::Python],
        bpf: true,
        downloads: &["virtiofsd, where QEMU has none", "Linux 5.10 and 7 (Debian's archive)"],
        besides: Besides::Kernels,
        ..NOTHING
    },
    Group {
        name: "papers",
        what: "the papers' experiments, in their short form",
        programs: &["papers short"],
        packages: &[JUDGES, LOADS, PLAYERS, LTTNG],
        ..NOTHING
    },
    Group {
        name: "packages",
        what: "the crates and the Debian package, which is installed, used and removed in a copy of this system",
        packages: &[PACKAGERS],
        besides: Besides::Packages,
        ..NOTHING
    },
];

/// Programs of the quick tier that are not the unit tests of a package: those of which every user has all that they need.
pub(crate) const QUICK: &[&str] = &[
    "ft-catalogue catalogue",
    "ft-tokio hooks",
    "ft-tracing first",
    "ft-tracing global",
    "ft-tracing layer",
    "ft-tracing room",
    "ft-user counters",
    "ft-user dropped_rights",
    "ft-user dynamic",
    "ft-user dynamic_full",
    "ft-user faults",
    "ft-user forbid_unsafe",
    "ft-user forbidden_tsc",
    "ft-user fork",
    "ft-user fork_anywhere",
    "ft-user full_ring",
    "ft-user functions",
    "ft-user gone_threads",
    "ft-user habits",
    "ft-user lease",
    "ft-user left_event",
    "ft-user left_reading",
    "ft-user lock_api",
    "ft-user lock_api_0_4",
    "ft-user lock_order",
    "ft-user locks",
    "ft-user loss_begins",
    "ft-user many_names",
    "ft-user memfd",
    "ft-user placement",
    "ft-user registration",
    "ft-user signals",
    "ft-user sites",
    "ft-user sleds",
    "ft-user sleds_unasked",
    "ft-user slice",
    "ft-user stack",
    "ft-user stress",
    "ft-user tasks",
    "ft-user text_and_scopes",
    "ft-user threads",
    "ft-user toggle",
    "tests changed_sites",
    "tests cli",
    "tests dependencies",
    "tests directories",
    "tests interrupted",
    "tests kernel_programs",
    "tests limits",
    "tests signals",
    "tests start_at",
];

/// Programs of groups that the quick tier runs, too: the name, and arguments that choose some of its tests. What these want of
/// other projects is left out there.
pub(crate) const QUICK_PARTS: [(&str, &[&str]); 2] = [
    // Recordings whose truth is known, with nothing but the subject.
    ("tests end_to_end", &kernels::TRUTHS),
    // Without the second implementation of the analyses, which is in Python.
    ("tests stored", &[]),
];

/// A model, which is built in its own way.
#[cfg(test)]
const ELSEWHERE: [&str; 1] = ["ft-user loom"];

/// Kernel tests that the quick tier runs at least, where it may: less is a failure.
pub(crate) const LEAST_KERNEL_TESTS: usize = 35;

/// All groups, each with what it installs.
pub(crate) fn list() -> String {
    let mut text = String::from(
        "quick     what every developer of Rust can run; alone where no group is named; installs nothing",
    );
    for group in &GROUPS {
        let Group { name, what, packages, tools, bpf, downloads, .. } = group;
        let mut installs: Vec<&str> = Vec::new();
        for group in *packages {
            installs
                .extend(group.missing(Path::new("/nowhere")).iter().map(|package| package.name));
        }
        installs.extend(tools.iter().map(|tool| tool.what()));
        installs.extend(bpf.then_some("a compiler for BPF, with bpf-linker (crates.io)"));
        installs.extend(*downloads);
        let installs = if installs.is_empty() { "nothing".into() } else { installs.join(", ") };
        let _ = write!(text, "\n{name:9} {what}; installs {installs}");
    }
    text
}

/// What all groups install.
pub(crate) fn packages() -> Vec<packages::Group> {
    GROUPS.iter().flat_map(|group| group.packages).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;
    use crate::workspace::root;

    /// The text between quotation marks behind `key = ` of a manifest.
    fn value<'m>(lines: &[&'m str], key: &str) -> Option<&'m str> {
        let line = lines.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line?.strip_suffix('"')
    }

    /// All programs of tests of a package that are not unit tests, as cargo finds them: by its manifest, and by its folder `tests`.
    fn programs(package: &Path) -> Vec<String> {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).expect("a manifest");
        let mut tables: Vec<Vec<&str>> = Vec::new();
        for line in manifest.lines() {
            match line.starts_with('[') {
                true => tables.push(vec![line]),
                false => tables.last_mut().expect("a table begins").push(line),
            }
        }
        let of = |kind: &'static str| tables.iter().filter(move |table| table[0] == kind);
        let benches = of("[[bench]]").filter(|table| table.contains(&"test = true"));
        let benches =
            benches.map(|table| format!("bench {}", value(table, "name").expect("a name")));
        let tests = of("[[test]]").map(|table| value(table, "name").expect("a name").to_owned());
        let mut names: BTreeSet<String> = benches.chain(tests).collect();
        if !manifest.contains("\nautotests = false\n") {
            for entry in fs::read_dir(package.join("tests")).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").is_file() {
                    names.insert(path.file_stem().expect("a name").to_string_lossy().into_owned());
                }
            }
        }
        let folder = package.file_name().expect("a name").to_string_lossy();
        names.into_iter().map(|name| format!("{folder} {name}")).collect()
    }

    fn all_programs() -> Vec<String> {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
        let members = manifest.lines().find_map(|line| line.strip_prefix("members = "));
        let members = members.expect("a workspace").split('"').skip(1).step_by(2);
        members.flat_map(|member| programs(&root().join(member))).collect()
    }

    #[test]
    fn each_program_of_tests_is_in_one_place() {
        let groups = GROUPS.iter().flat_map(|group| group.programs);
        let mut placed: Vec<&str> = groups.chain(QUICK).chain(&ELSEWHERE).copied().collect();
        placed.sort_unstable();
        let mut all = all_programs();
        all.sort_unstable();
        assert!(all.len() > 50, "{all:?}");
        assert_eq!(placed, all, "each is in one group, in the quick tier, or built in its own way");
    }

    #[test]
    fn every_test_of_the_package_of_tests_has_an_entry_in_its_manifest() {
        let named = programs(&root().join("tests"));
        for entry in fs::read_dir(root().join("tests")).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").is_file() {
                let name = format!("tests {}", path.file_stem().expect("a name").to_string_lossy());
                assert!(named.contains(&name), "{name} has no [[test]] in tests/Cargo.toml");
            }
        }
    }

    #[test]
    fn names_are_those_of_the_help_and_what_is_beside_has_one_group() {
        let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        let list = list();
        let listed: Vec<&str> = list.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(listed, [&["quick"], &names[..]].concat());
        assert!(list.contains("browser; installs python3-venv, chromium, nodejs, npm, "), "{list}");
        let kernels: Vec<&str> = kernels::ENDS.iter().map(|release| release.name).collect();
        let kernels = format!(", Linux {} (Debian's archive)\n", kernels.join(" and "));
        assert!(list.contains(&kernels), "{list}");
        assert!(
            crate::HELP
                .replace('\n', " ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(&names.join(", "))
        );
        for besides in [Besides::Checks, Besides::Kernels, Besides::Packages] {
            assert_eq!(GROUPS.iter().filter(|group| group.besides == besides).count(), 1);
        }
        for (name, _) in QUICK_PARTS {
            assert!(GROUPS.iter().any(|group| group.programs.contains(&name)), "{name}");
        }
    }
}
