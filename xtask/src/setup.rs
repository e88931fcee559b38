//! `cargo xtask setup`, and the first thing of every other command: installs what is missing, and says what
//! before it does.
//!
//! Nothing here is needed to build the agent: what cannot be installed is a warning that says what will
//! be left out, and the rest goes on.

use std::{collections::HashSet, fmt::Write, path::Path};

use crate::{
    apt::{self, Apt, installation},
    linker::{self, Lack},
    packages::{
        COMPILERS, Group, JUDGES, KERNEL_SIDE, LLVMS, LOADS, LTTNG, PACKAGERS, PEERS, PLAYERS,
        PROGRAMS, Package,
    },
    workspace::{in_path, is_root},
};

/// For what is published, beside the kernel side.
pub(crate) const PACKAGING: &[Group] = &[PACKAGERS];

/// For the papers' experiments.
pub(crate) const EXPERIMENTS: &[Group] = &[JUDGES, LOADS, PLAYERS, LTTNG, PEERS, COMPILERS];

/// For the benchmarks, beside the kernel side.
pub(crate) const BENCHMARKS: &[Group] = &[LTTNG, PEERS, PROGRAMS];

/// What of a group is missing.
type Gap<'g> = (&'g Group, Vec<&'static Package>);

/// Installs what is missing of the kernel side's toolchain and of `more`. What cannot be installed is
/// printed as a warning; what this system does not offer is returned.
pub(crate) fn run(more: &[Group]) -> Vec<&'static str> {
    let lack = Lack::find();
    let gaps = gaps(packages_for(&lack).into_iter().chain(more), Path::new("/"));
    let not_offered = install(&gaps, false);
    if lack != Lack::Nothing
        && let Lack::Linker(llvm) = Lack::find()
        && let Err(error) = linker::install(&llvm)
    {
        eprintln!("warning: {error:#}; without it {}", KERNEL_SIDE.without);
    }
    not_offered
}

/// The packages that are missing of `more`, and of the kernel side's toolchain, with its linker, if it is wanted.
pub(crate) fn missing(more: &[Group], bpf: bool) -> Vec<&'static str> {
    let lack = bpf.then(Lack::find);
    let toolchain = lack.as_ref().and_then(packages_for);
    let gaps = gaps(toolchain.into_iter().chain(more), Path::new("/"));
    let packages = gaps.iter().flat_map(|(_, missing)| missing).map(|package| package.name);
    let linker = matches!(lack, Some(Lack::Linker(_))).then_some("bpf-linker");
    packages.chain(linker).collect()
}

/// Installs what is missing of `more` alone, as [`run`] does.
pub(crate) fn run_without_bpf(more: &[Group]) -> Vec<&'static str> {
    install(&gaps(more, Path::new("/")), false)
}

/// Says what [`run`] would install, and what cannot be had here.
pub(crate) fn say(more: &[Group]) {
    let lack = Lack::find();
    let gaps = gaps(packages_for(&lack).into_iter().chain(more), Path::new("/"));
    if let Lack::Linker(llvm) = &lack {
        println!("setup: missing is {}", linker::what(llvm));
    } else if gaps.is_empty() {
        println!("setup: nothing is missing");
    }
    install(&gaps, true);
}

/// The packages that bring what the kernel side lacks. A compiler that is there is as good as Debian's.
fn packages_for(lack: &Lack) -> Option<&'static Group> {
    match lack {
        Lack::Nothing | Lack::Linker(_) => None,
        Lack::Compiler => Some(&KERNEL_SIDE),
        Lack::Llvm(needed) => {
            LLVMS.iter().find(|(version, _)| version >= needed).map(|(_, group)| group)
        }
    }
}

/// What is missing below `root`, each package once: several groups may want it.
fn gaps<'g>(groups: impl IntoIterator<Item = &'g Group>, root: &Path) -> Vec<Gap<'g>> {
    let mut named = HashSet::new();
    let gap = |group: &'g Group| {
        let mut missing = group.missing(root);
        missing.retain(|package| named.insert(package.name));
        (group, missing)
    };
    groups.into_iter().map(gap).filter(|(_, missing)| !missing.is_empty()).collect()
}

/// Installs these, or only says so. Returns what this system does not offer, as far as is known.
fn install(gaps: &[Gap<'_>], only_say: bool) -> Vec<&'static str> {
    if gaps.is_empty() {
        return Vec::new();
    }
    let way = Way::find();
    let apt = way.prefix().map(Apt::with);
    let mut knows = false;
    if let Some(apt) = apt {
        println!("{}", way.question());
        // Without a network this fails, and what apt has in its cache may still do.
        match apt.update() {
            Ok(()) => knows = true,
            Err(error) => eprintln!("warning: {error:#}"),
        }
    }
    let offered = if way == Way::NotDebian { None } else { apt::offered(&all_names(gaps)) };
    // An apt that knows none of them has not been told yet what there is.
    let offered = offered.filter(|offered| knows || !offered.is_empty());
    let plans: Vec<_> = gaps.iter().map(|gap| Plan::of(gap, offered.as_ref())).collect();
    for text in plans.iter().filter_map(Plan::lacks) {
        eprintln!("warning: {text}");
    }
    let not_offered = gaps.iter().zip(&plans).flat_map(|(gap, plan)| plan.not_offered(gap));
    let not_offered: Vec<_> = match (way, knows) {
        (Way::NotDebian, _) => all_names(gaps),
        (_, true) => not_offered.collect(),
        (_, false) => Vec::new(),
    };
    if plans.iter().all(|plan| plan.install.is_empty()) {
        return not_offered;
    }
    println!("{}", way.announcement(&plans));
    if only_say {
        println!("setup: nothing was installed");
        return not_offered;
    }
    for Plan { group, install, .. } in plans.iter().filter(|plan| !plan.install.is_empty()) {
        let Some(apt) = apt else {
            eprintln!("warning: without them {}", group.without);
            continue;
        };
        if let Err(error) = apt.install(&names(install)) {
            eprintln!(
                "warning: {error:#}; check the network and repeat; without it {}",
                group.without
            );
        }
    }
    not_offered
}

fn all_names(gaps: &[Gap<'_>]) -> Vec<&'static str> {
    let missing = gaps.iter().flat_map(|(_, missing)| missing);
    missing.flat_map(|package| package.names()).collect()
}

/// What becomes of a gap on this release of the distribution.
struct Plan<'g> {
    group: &'g Group,
    /// What is installed, by the name that it has here.
    install: Vec<(&'static str, &'static Package)>,
    /// What there is not.
    lacking: Vec<&'static str>,
}

impl Plan<'_> {
    /// Of what is not known, by the names that Debian 12 has.
    fn of<'g>((group, missing): &Gap<'g>, offered: Option<&HashSet<String>>) -> Plan<'g> {
        let mut plan = Plan { group, install: Vec::new(), lacking: Vec::new() };
        for package in missing {
            let is_there = |name: &&str| offered.is_none_or(|offered| offered.contains(*name));
            match package.names().find(is_there) {
                Some(name) => plan.install.push((name, package)),
                None => plan.lacking.push(package.name),
            }
        }
        if group.together && !plan.lacking.is_empty() {
            plan.install.clear();
        }
        plan
    }

    /// Those of its gap that are not installed, because this release does not have them, or not all that they need.
    fn not_offered(&self, (_, missing): &Gap<'_>) -> Vec<&'static str> {
        let planned = |name: &&str| self.install.iter().any(|(_, package)| package.name == *name);
        missing.iter().map(|package| package.name).filter(|name| !planned(name)).collect()
    }

    /// What is said of packages that this release does not have.
    fn lacks(&self) -> Option<String> {
        let Plan { group, lacking, .. } = self;
        let them = if lacking.len() == 1 { "it" } else { "them" };
        let without = group.without;
        (!lacking.is_empty()).then(|| {
            format!("this release has no package {}; without {them} {without}", lacking.join(", "))
        })
    }
}

/// How packages can be installed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Root,
    Sudo,
    /// Somebody else must.
    ByHand,
    /// There is no apt.
    NotDebian,
}

impl Way {
    fn find() -> Way {
        Way::of(in_path("apt-get"), is_root(), in_path("sudo"))
    }

    /// Debian, and what is made of it, have `apt-get`; Fedora, Arch and others have not, whatever else they have.
    fn of(apt: bool, root: bool, sudo: bool) -> Way {
        match (apt, root, sudo) {
            (false, _, _) => Way::NotDebian,
            (true, true, _) => Way::Root,
            (true, false, true) => Way::Sudo,
            (true, false, false) => Way::ByHand,
        }
    }

    /// What to put before a command that needs root; `None` when there is no way.
    fn prefix(self) -> Option<&'static [&'static str]> {
        match self {
            Way::Root => Some(&[]),
            Way::Sudo => Some(&["sudo"]),
            Way::ByHand | Way::NotDebian => None,
        }
    }

    /// What is said before apt is asked.
    fn question(self) -> String {
        let sudo =
            if self == Way::Sudo { ", with sudo, which may ask for your password" } else { "" };
        format!("setup: programs are missing; asking apt what there is of them{sudo}")
    }

    /// What is said before anything is installed.
    fn announcement(self, plans: &[Plan<'_>]) -> String {
        let mut text = String::from(match self {
            Way::Root | Way::Sudo => {
                "setup: installing these Debian packages, which may take minutes:"
            }
            Way::ByHand => "setup: these Debian packages are missing:",
            Way::NotDebian => {
                "setup: this is not a Debian system; install what it has for these packages:"
            }
        });
        let all: Vec<_> = plans.iter().flat_map(|plan| &plan.install).copied().collect();
        for (name, package) in &all {
            write!(text, "\n  {name:24} {}", package.what_for).expect("a string takes all");
        }
        if self == Way::ByHand {
            let words = installation(&names(&all)).join(" ");
            write!(
                text,
                "\nsetup: that needs root, and there is no sudo; run as root:\n  apt-get update && apt-get {words}"
            )
            .expect("a string takes all");
        }
        text
    }
}

fn names<'p>(packages: &[(&'p str, &Package)]) -> Vec<&'p str> {
    packages.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::READERS;

    /// A plan for a system that has nothing of a group; of all names, unless some are given.
    fn plan(group: &'static Group, offered: Option<&[&str]>) -> Plan<'static> {
        let offered = offered.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Plan::of(&(group, group.missing(Path::new("/nowhere"))), offered.as_ref())
    }

    fn said(way: Way) -> String {
        way.announcement(&[plan(&READERS, None), plan(&COMPILERS, None)])
    }

    #[test]
    fn every_package_is_named_with_its_use_before_it_is_installed() {
        for way in [Way::Root, Way::Sudo, Way::ByHand, Way::NotDebian] {
            for package in READERS.missing(Path::new("/nowhere")) {
                let text = said(way);
                let line = text.lines().find(|line| line.trim_start().starts_with(package.name));
                assert!(line.is_some_and(|line| line.ends_with(package.what_for)), "{text}");
            }
        }
    }

    #[test]
    fn what_several_groups_want_is_installed_once() {
        let all = [crate::groups::packages(), BENCHMARKS.to_vec()].concat();
        let gaps = gaps(&all, Path::new("/nowhere"));
        let mut names: Vec<&str> = gaps
            .iter()
            .flat_map(|(_, missing)| missing.iter().map(|package| package.name))
            .collect();
        let listed = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed, "{names:?}");
        assert!(names.contains(&"memcached") && names.contains(&"postgresql"));
    }

    #[test]
    fn what_a_release_lacks_is_said_and_the_rest_installed() {
        let bullseye = ["linux-perf", "bpftrace"];
        let plan_of_all = plan(&PEERS, None);
        assert_eq!(plan_of_all.install.len(), bullseye.len() + 2);
        assert_eq!(plan_of_all.lacks(), None, "who cannot be asked may have all");
        let plan = plan(&PEERS, Some(&bullseye));
        assert_eq!(names(&plan.install), bullseye);
        let said = plan.lacks().expect("something is lacking");
        let expected = "no package libbpf-tools, uftrace; without them the benchmarks leave out";
        assert!(said.contains(expected), "{said}");
        let gap = (&PEERS, PEERS.missing(Path::new("/nowhere")));
        assert_eq!(plan.not_offered(&gap), ["libbpf-tools", "uftrace"]);
        assert!(plan_of_all.not_offered(&gap).is_empty());
    }

    #[test]
    fn a_compiler_without_its_library_is_not_installed() {
        // All that a Debian 11 without its security updates has of it.
        let alone = plan(&KERNEL_SIDE, Some(&["rustc-web"]));
        assert!(alone.install.is_empty(), "{:?}", names(&alone.install));
        let gap = (&KERNEL_SIDE, KERNEL_SIDE.missing(Path::new("/nowhere")));
        assert_eq!(alone.not_offered(&gap).len(), 3, "one is of no use without the others");
        let said = alone.lacks().expect("something is lacking");
        assert!(said.contains("no package libstd-rust-web-dev-bpf, llvm-22-dev"), "{said}");
        assert!(said.contains("the one that is packaged"), "{said}");
    }

    #[test]
    fn the_compiler_of_the_kernel_side_has_other_names_in_other_releases() {
        let of_12 = ["rustc-web", "libstd-rust-web-dev-bpf", "llvm-22-dev"];
        let of_sid = ["rustc", "libstd-rust-dev-bpf", "llvm-22-dev"];
        for release in [&of_12[..], &of_sid, &[of_12, of_sid].concat()] {
            let plan = plan(&KERNEL_SIDE, Some(release));
            assert_eq!(names(&plan.install), release[..3]);
            assert_eq!(plan.lacks(), None);
        }
    }

    #[test]
    fn ubuntu_has_a_compiler_whose_library_for_bpf_is_missing() {
        let of_26_04 = plan(&KERNEL_SIDE, Some(&["rustc", "rustc-1.93", "llvm-22-dev"]));
        assert!(of_26_04.install.is_empty(), "{:?}", names(&of_26_04.install));
        let said = of_26_04.lacks().expect("something is lacking");
        assert!(said.contains("no package libstd-rust-web-dev-bpf;"), "{said}");
    }

    #[test]
    fn a_nightly_of_rustup_needs_no_other_compiler() {
        let nowhere = Path::new("/nowhere");
        let wanted = |lack| -> Vec<&str> {
            let missing = packages_for(&lack).map(|group| group.missing(nowhere));
            missing.iter().flatten().map(|package| package.name).collect()
        };
        assert_eq!(wanted(Lack::Llvm(22)), ["llvm-22-dev"]);
        assert_eq!(wanted(Lack::Llvm(23)), ["llvm-23-dev"]);
        assert_eq!(
            wanted(Lack::Llvm(19)),
            ["llvm-21-dev"],
            "the oldest that a linker is built with"
        );
        assert_eq!(wanted(Lack::Compiler).len(), 3);
        assert!(wanted(Lack::Nothing).is_empty());
        // Fedora and Arch are told its name, and what happens without it.
        let llvm = packages_for(&Lack::Llvm(22)).expect("it is packaged");
        let text = Way::NotDebian.announcement(&[plan(llvm, None)]);
        assert!(text.contains("not a Debian system") && text.contains("  llvm-22-dev "), "{text}");
        assert!(llvm.without.contains("bpf-linker"), "{}", llvm.without);
    }

    #[test]
    fn without_sudo_one_exact_command_is_told() {
        let text = said(Way::ByHand);
        let command = "\n  apt-get update && apt-get install -y --no-install-recommends \
                       python3-venv g++ clang pkg-config";
        assert!(text.ends_with(command), "{text}");
        assert_eq!(Way::ByHand.prefix(), None);
        assert!(!said(Way::Root).contains("apt-get"));
        assert!(Way::Sudo.question().contains("sudo") && !Way::Root.question().contains("sudo"));
    }

    #[test]
    fn what_is_run_with_whose_rights_depends_on_what_the_system_has() {
        // A root needs no sudo, be there one or not; and no right helps where there is no apt.
        let with_apt = [(true, false), (true, true), (false, true), (false, false)];
        let ways = with_apt.map(|(root, sudo)| Way::of(true, root, sudo));
        assert_eq!(ways, [Way::Root, Way::Root, Way::Sudo, Way::ByHand]);
        for (root, sudo) in with_apt {
            assert_eq!(Way::of(false, root, sudo), Way::NotDebian, "root {root}, sudo {sudo}");
        }
        let prefixes = ways.map(Way::prefix);
        let nothing: &[&str] = &[];
        assert_eq!(prefixes, [Some(nothing), Some(nothing), Some(&["sudo"][..]), None]);
    }

    #[test]
    fn another_distribution_is_told_what_it_needs_and_no_command_that_it_lacks() {
        let text = said(Way::NotDebian);
        assert_eq!(Way::NotDebian.prefix(), None, "nothing is run");
        assert!(text.contains("not a Debian system"), "{text}");
        assert!(!text.contains("apt-get") && !text.contains("sudo"), "{text}");
    }
}
