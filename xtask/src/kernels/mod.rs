//! `cargo xtask kernels [VERSION…] [--cpus N]`: the agent on other kernels, and with other CPUs, than this machine's.
//!
//! Each kernel of [`releases::ALL`] is downloaded from Debian's archive, booted in QEMU without hardware help, on this
//! machine's own root file system, and records there; what it recorded comes back and is judged here. Emulated times say
//! nothing about speed: what is judged is whether it works, and whether the figures are right.

mod archive;
mod guest;
mod job;
mod outcome;
mod releases;

use std::{
    fmt::Write as _,
    fs,
    panic::resume_unwind,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};

pub(crate) use self::job::TRUTHS;
#[cfg(test)]
pub(crate) use self::releases::ENDS;
use self::{
    job::{Built, CHECKS},
    outcome::Outcome,
    releases::Release,
};
use crate::{
    build_ebpf,
    packages::{GUESTS, VIRTIOFSD},
    python,
    report::Row,
    setup,
    workspace::{is_root, target_dir},
};

/// Tests the kernels that are named, or all, with two CPUs or as many as `--cpus` says; prints a table of what came of it.
///
/// # Errors
///
/// When something cannot be had or built, or a check fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (versions, cpus) = cpus(arguments)?;
    let releases = releases::named(versions)?;
    set_up();
    build_ebpf::run()?;
    ready().map_err(|reason| anyhow::anyhow!("{reason}"))?;
    let mut table = Table::default();
    let built = Built::find()?;
    let python = python::READERS.ensure()?;
    for release in releases {
        table.add(release, test(release, cpus, &built, python.as_deref(), None)?);
    }
    println!("{}", table.text());
    table.passed()
}

/// The arguments before `--cpus N`, and how many CPUs that are.
fn cpus(arguments: &[String]) -> Result<(&[String], u32)> {
    let Some(at) = arguments.iter().position(|argument| argument == "--cpus") else {
        return Ok((arguments, guest::CPUS));
    };
    match &arguments[at + 1..] {
        [n] if n.parse().is_ok_and(|n| guest::POSSIBLE_CPUS.contains(&n)) => {
            Ok((&arguments[..at], n.parse()?))
        }
        _ => bail!("`--cpus` comes last, with a number from 2 to 255"),
    }
}

/// The oldest and the newest kernel, as a group of tests, once what guests need is installed: what came of each check goes into `row`,
/// and what ran into `ledger`, as of every test of the kernel side. The checks of a guest that has not ended at `until` have not run.
///
/// # Errors
///
/// When something cannot be built. A kernel that cannot be had fails, if it `may` be downloaded; otherwise, and without the rights
/// to boot it, it is skipped, which the ledger says.
pub(crate) fn in_test_run(
    row: &mut Row,
    ledger: &mut String,
    may: bool,
    python: Option<&Path>,
    until: Option<Instant>,
) -> Result<()> {
    let mut here = Vec::new();
    for release in releases::ENDS {
        let name = format!("Linux {}", release.name);
        let found = row.spending(&name, || {
            ready().and_then(|()| kernel(release).map_err(|e| format!("{e:#}")))
        });
        match found {
            Ok(_) => here.push(release),
            Err(reason) if may && is_root() => row.failed("other kernels", &reason),
            Err(reason) => {
                let _ = writeln!(ledger, "skipped {name}: {reason}");
            }
        }
    }
    if here.is_empty() {
        return Ok(());
    }
    let built = row.spending("build", Built::find)?;
    let tested = row.spending("guests", || test_at_once(&here, &built, python, until))?;
    let mut table = Table::default();
    for (release, outcomes) in here.into_iter().zip(tested) {
        for (check, outcome) in CHECKS.iter().zip(&outcomes) {
            let on = format!("Linux {}: {check}", release.name);
            let _ = match outcome {
                Outcome::Ok(_) | Outcome::Failed(_) => writeln!(ledger, "ran {on}"),
                Outcome::Skipped(reason) => writeln!(ledger, "skipped {on}: {reason}"),
                Outcome::NotRun => writeln!(ledger, "skipped {on}: no time left"),
            };
            match outcome {
                Outcome::Ok(_) => row.passed += 1,
                Outcome::Failed(why) => row.failed(&on, why),
                Outcome::Skipped(_) => {}
                Outcome::NotRun => row.not_run(&on),
            }
        }
        let told = fs::read_to_string(left(release).join("ledger")).unwrap_or_default();
        *ledger += &of_guest(release, &told);
        table.add(release, outcomes);
    }
    table.text().lines().for_each(|line| {
        let _ = writeln!(ledger, "measured {line}");
    });
    Ok(())
}

/// All checks on each of these kernels at the same time: one CPU emulates a guest, however many it has itself.
fn test_at_once(
    releases: &[&Release],
    built: &Built,
    python: Option<&Path>,
    until: Option<Instant>,
) -> Result<Vec<Vec<Outcome>>> {
    thread::scope(|scope| {
        let guest = |release| scope.spawn(move || test(release, guest::CPUS, built, python, until));
        let guests: Vec<_> = releases.iter().copied().map(guest).collect();
        let joined = guests.into_iter().map(|guest| match guest.join() {
            Ok(tested) => tested,
            Err(panic) => resume_unwind(panic),
        });
        joined.collect()
    })
}

/// Installs what guests need.
pub(crate) fn set_up() {
    setup::run(&[GUESTS]);
    // Part of QEMU in Debian 12, and a package of its own from Debian 13 on.
    if guest::virtiofsd().is_none() {
        setup::run(&[VIRTIOFSD]);
    }
}

/// Whether guests can be booted here, or why not.
fn ready() -> Result<(), String> {
    let missing = GUESTS.missing(Path::new("/"));
    if let Some(package) = missing.first() {
        return Err(format!("there is no {}; install it", package.name));
    }
    if guest::virtiofsd().is_none() {
        return Err("there is no virtiofsd; install it".into());
    }
    match is_root() {
        true => Ok(()),
        false => Err("guests share this machine's files; run as root".into()),
    }
}

/// Where everything about guests lies.
fn folder() -> PathBuf {
    target_dir().join("kernels")
}

/// Where that lies which a guest has left.
fn left(release: &Release) -> PathBuf {
    folder().join("out").join(release.name)
}

/// Which tests ran in a guest and which it skipped, by what it has told. What it measured says nothing.
fn of_guest(release: &Release, told: &str) -> String {
    let lines = told.lines().filter_map(|line| line.split_once(' '));
    let lines = lines.filter(|(what, _)| ["ran", "skipped"].contains(what));
    lines.map(|(what, of)| format!("{what} Linux {}, {of}\n", release.name)).collect()
}

/// A kernel that is ready to be booted, downloaded now if need be.
fn kernel(release: &Release) -> Result<guest::Image> {
    archive::image(release, &folder()).with_context(|| {
        format!("Linux {} cannot be had from Debian's {}", release.name, release.suite)
    })
}

/// All checks on one kernel, in the order of [`CHECKS`].
fn test(
    release: &Release,
    cpus: u32,
    built: &Built,
    python: Option<&Path>,
    until: Option<Instant>,
) -> Result<Vec<Outcome>> {
    let began = Instant::now();
    let image = kernel(release)?;
    let out = left(release);
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let job = job::write(&out, built, cpus)?;
    let Some(said) = guest::boot(&image, &job, &out, cpus, until)? else {
        let seconds = began.elapsed().as_secs();
        println!("kernels: Linux {} had not done its checks after {seconds} s", release.name);
        return Ok(vec![Outcome::NotRun; CHECKS.len()]);
    };
    let outcomes = job::judge(&out, built, python, cpus, release);
    println!("kernels: {said}, {} s with what is judged here", began.elapsed().as_secs());
    for (check, outcome) in CHECKS.iter().zip(&outcomes) {
        println!("  {check:16} {outcome}");
    }
    Ok(outcomes)
}

/// What came of all kernels: a row each.
#[derive(Default)]
struct Table(Vec<(String, Vec<Outcome>)>);

impl Table {
    fn add(&mut self, release: &Release, outcomes: Vec<Outcome>) {
        self.0.push((release.name.to_owned(), outcomes));
    }

    /// As Markdown.
    fn text(&self) -> String {
        let mut text =
            format!("| Linux | {} |\n|{}", CHECKS.join(" | "), "---|".repeat(CHECKS.len() + 1));
        for (name, outcomes) in &self.0 {
            let cells: Vec<String> = outcomes.iter().map(Outcome::cell).collect();
            let _ = write!(text, "\n| {name} | {} |", cells.join(" | "));
        }
        text
    }

    fn passed(&self) -> Result<()> {
        let mut failed = String::new();
        for (name, outcomes) in &self.0 {
            for (check, outcome) in CHECKS.iter().zip(outcomes) {
                if let Outcome::Failed(why) = outcome {
                    let _ = write!(failed, "\n  {check} on Linux {name}: {why}");
                }
            }
        }
        if !failed.is_empty() {
            let out = folder().join("out");
            bail!("checks failed; all that they said is in {}{failed}", out.display());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_cpus_stands_behind_the_kernels() {
        let arguments =
            |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        let check = |line, expected: Option<(usize, u32)>| {
            let line = arguments(line);
            let found = cpus(&line).ok().map(|(versions, cpus)| (versions.len(), cpus));
            assert_eq!(found, expected, "{line:?}");
        };
        check("5.10 7", Some((2, guest::CPUS)));
        check("7 --cpus 72", Some((1, 72)));
        check("--cpus 8", Some((0, 8)));
        for wrong in ["--cpus", "7 --cpus many", "--cpus 8 7", "--cpus 1", "--cpus 256"] {
            check(wrong, None);
        }
    }

    #[test]
    fn each_test_of_a_guest_is_counted() {
        let told = of_guest(releases::ENDS[0], "ran a\nmeasured 5 ns\nskipped b::c: no CAP_BPF\n");
        assert_eq!(told, "ran Linux 5.10, a\nskipped Linux 5.10, b::c: no CAP_BPF\n");
    }

    #[test]
    fn a_table_has_a_row_for_each_kernel_and_fails_with_its_name() {
        let mut table = Table::default();
        let with = |outcome: Outcome| {
            let mut all = vec![Outcome::Ok(String::new()); CHECKS.len() - 1];
            all.push(outcome);
            all
        };
        table.add(releases::ENDS[0], with(Outcome::Skipped("no Python".into())));
        assert!(table.passed().is_ok());
        assert!(table.text().ends_with("| skipped: no Python |"), "{}", table.text());
        table.add(releases::ENDS[1], with(Outcome::Failed("3 rows differ".into())));
        let error = table.passed().unwrap_err().to_string();
        let why = format!("{} on Linux {}: 3 rows differ", CHECKS[9], releases::ENDS[1].name);
        assert!(error.contains(&why), "{error}");
        assert!(!error.contains(&format!("Linux {}:", releases::ENDS[0].name)), "{error}");
    }
}
