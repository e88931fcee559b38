//! `cargo xtask setup`, and the first thing of every other command: installs what is missing, and says what
//! before it does.
//!
//! Nothing here is needed to build the agent: what cannot be installed is a warning that says what will
//! be left out, and the rest goes on.

use std::{
    collections::HashSet,
    fmt::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    build_ebpf::Toolchain,
    packages::{
        BROWSER, COMPILERS, Group, JUDGES, KERNEL_SIDE, LOADS, PACKAGERS, PEERS, PLAYERS, PROGRAMS,
        Package, READERS, RECORDED, SPARK,
    },
    workspace::{cargo, find_in_path, in_path, is_root, line, run as run_command},
};

/// For the tests, beside the kernel side.
pub(crate) const TESTS: &[Group] =
    &[READERS, SPARK, BROWSER, RECORDED, JUDGES, LOADS, PLAYERS, COMPILERS, PACKAGERS];

/// For what is published, beside the kernel side.
pub(crate) const PACKAGING: &[Group] = &[PACKAGERS];

/// For the papers' experiments.
pub(crate) const EXPERIMENTS: &[Group] = &[JUDGES, LOADS, PLAYERS, PEERS, COMPILERS];

/// For the benchmarks, beside the kernel side.
pub(crate) const BENCHMARKS: &[Group] = &[PEERS, PROGRAMS];

/// The version of bpf-linker that is known to link what [`KERNEL_SIDE`] makes.
const BPF_LINKER: &str = "0.13.0";

/// Flags of `apt-get` for an installation, its own and those that one would type.
const INSTALL: [&str; 3] = ["install", "-y", "--no-install-recommends"];

/// What of a group is missing.
type Gap<'g> = (&'g Group, Vec<&'static Package>);

/// Installs what is missing of the kernel side's toolchain and of `more`. What cannot be installed is
/// printed as a warning.
pub(crate) fn run(more: &[Group]) {
    let root = Path::new("/");
    // Another toolchain than Debian's is as good.
    let kernel_side = Toolchain::find().is_err().then_some(KERNEL_SIDE);
    let gaps = gaps(kernel_side.iter().chain(more), root);
    if !gaps.is_empty() {
        install(&gaps);
    }
    if kernel_side.is_some_and(|group| group.missing(root).is_empty())
        && let Err(error) = install_bpf_linker()
    {
        eprintln!("warning: {error:#}; without it {}", KERNEL_SIDE.without);
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

fn install(gaps: &[Gap<'_>]) {
    let way = Way::find();
    println!("{}", way.announcement(gaps));
    let Some(sudo) = way.prefix() else {
        for (group, _) in gaps {
            eprintln!("warning: without them {}", group.without);
        }
        return;
    };
    let apt = |args: &[&str]| {
        let words =
            [sudo, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"], args].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        quietly(&mut command)
    };
    // Without a network this fails, and what apt has in its cache may still do.
    if let Err(error) = apt(&["update"]) {
        eprintln!("warning: {error:#}");
    }
    for (group, missing) in gaps {
        if let Err(error) = apt(&[&INSTALL[..], &names(missing)].concat()) {
            eprintln!(
                "warning: {error:#}; check the network and repeat; without it {}",
                group.without
            );
        }
    }
}

fn install_bpf_linker() -> Result<()> {
    if find_in_path("bpf-linker").is_none() {
        println!("setup: installing bpf-linker {BPF_LINKER} from crates.io (about a minute)");
        run_command(
            cargo()
                .args(["install", "--quiet", "bpf-linker", "--version", BPF_LINKER, "--locked"])
                .args(["--no-default-features", "--features", "llvm-22"])
                .env("LLVM_PREFIX", "/usr/lib/llvm-22")
                .env_remove("CARGO_TARGET_DIR"),
        )?;
    }
    Toolchain::find().map(drop)
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

    /// What is said before anything is done.
    fn announcement(self, gaps: &[Gap<'_>]) -> String {
        let mut text = String::from(match self {
            Way::Root | Way::Sudo => {
                "setup: installing these Debian packages, which may take minutes:"
            }
            Way::ByHand => "setup: these Debian packages are missing:",
            Way::NotDebian => {
                "setup: this is not a Debian system; install what it has for these packages:"
            }
        });
        let missing: Vec<&Package> =
            gaps.iter().flat_map(|(_, missing)| missing).copied().collect();
        for Package { name, what_for, .. } in &missing {
            write!(text, "\n  {name:24} {what_for}").expect("a string takes all");
        }
        let words = [&INSTALL[..], &names(&missing)].concat().join(" ");
        match self {
            Way::Root | Way::NotDebian => {}
            Way::Sudo => text += "\nsetup: with sudo, which may ask for your password",
            Way::ByHand => {
                write!(
                    text,
                    "\nsetup: that needs root, and there is no sudo; run as root:\n  apt-get update && apt-get {words}"
                )
                .expect("a string takes all");
            }
        }
        text
    }
}

fn names<'p>(packages: &[&'p Package]) -> Vec<&'p str> {
    packages.iter().map(|package| package.name).collect()
}

/// Runs a command that says nothing unless it fails: then the error has its last words.
fn quietly(command: &mut Command) -> Result<()> {
    let line = line(command);
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .with_context(|| format!("`{line}` could not be started"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    // `apt-get update` succeeds without a network, and warns.
    let complaint =
        stderr.lines().rfind(|line| line.starts_with("E:") || line.starts_with("W: Failed"));
    match (output.status.success(), complaint) {
        (true, None) => Ok(()),
        (_, Some(complaint)) => bail!("`{line}` failed: {complaint}"),
        (false, None) => bail!("`{line}` failed ({}): {}", output.status, stderr.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(way: Way) -> String {
        let empty = Path::new("/nowhere");
        way.announcement(&[
            (&READERS, READERS.missing(empty)),
            (&COMPILERS, COMPILERS.missing(empty)),
        ])
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
        let all = [TESTS, BENCHMARKS].concat();
        let gaps = gaps(&all, Path::new("/nowhere"));
        let mut names: Vec<&str> = gaps.iter().flat_map(|(_, missing)| names(missing)).collect();
        let listed = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed, "{names:?}");
        assert!(names.contains(&"memcached") && names.contains(&"postgresql"));
    }

    #[test]
    fn without_sudo_one_exact_command_is_told() {
        let text = said(Way::ByHand);
        let command = "\n  apt-get update && apt-get install -y --no-install-recommends \
                       python3-venv g++ clang pkg-config";
        assert!(text.ends_with(command), "{text}");
        assert_eq!(Way::ByHand.prefix(), None);
        assert!(!said(Way::Root).contains("apt-get"));
        assert!(said(Way::Sudo).contains("sudo"));
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

    #[test]
    fn a_command_that_fails_tells_its_last_words_only() {
        let run =
            |script| quietly(Command::new("sh").args(["-c", script])).map_err(|e| e.to_string());
        assert_eq!(run("echo noise; echo more >&2"), Ok(()));
        let error = run("echo 'W: Failed to fetch a' >&2; echo 'E: no package b' >&2; exit 100")
            .unwrap_err();
        assert!(error.ends_with("failed: E: no package b"), "{error}");
        let error = run("echo 'W: Failed to fetch a' >&2").unwrap_err();
        assert!(
            error.ends_with("W: Failed to fetch a"),
            "apt-get update without a network: {error}"
        );
        let error = run("echo rubbish >&2; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3") && error.ends_with("rubbish"), "{error}");
    }
}
