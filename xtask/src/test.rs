//! `cargo xtask test`: the quick tier, the groups of all other tests, or what `cargo test` is told.

use std::{
    io::{self, IsTerminal as _, Write as _},
    panic::resume_unwind,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::{
    build,
    build_ebpf::{self, Toolchain},
    checks,
    groups::{self, Besides, GROUPS, Group, LEAST_KERNEL_TESTS, QUICK, QUICK_PARTS},
    kernels,
    ledger::{self, Ledger},
    package, packaged,
    programs::{self, Ended, Program},
    report::{Report, Row},
    setup, space,
    steps::Steps,
    tools,
    workspace::{cargo, step, target_dir},
};

/// What is asked for.
enum Asked<'a> {
    /// The quick tier, if so, and these groups; the last programs begin within this time, if it is said.
    Tiers(bool, Vec<&'static Group>, Option<Duration>),
    /// What groups there are.
    List,
    /// A part of the tests, by arguments of `cargo test`.
    Part(&'a [String]),
}

impl Asked<'_> {
    fn of(args: &[String]) -> Result<Asked<'_>> {
        match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => return Ok(Asked::Tiers(true, Vec::new(), None)),
            ["--all"] => return Ok(Asked::Tiers(true, GROUPS.iter().collect(), None)),
            ["--all", "--within", minutes] => {
                let Ok(minutes) = minutes.parse::<u64>() else {
                    bail!("`--within` takes minutes, not `{minutes}`");
                };
                let within = Some(Duration::from_secs(60 * minutes));
                return Ok(Asked::Tiers(true, GROUPS.iter().collect(), within));
            }
            ["--list"] => return Ok(Asked::List),
            ["--", ..] => return Ok(Asked::Part(&args[1..])),
            _ => {}
        }
        let is_named = |name: &str| args.iter().any(|arg| arg == name);
        let known =
            |arg: &&String| *arg == "quick" || GROUPS.iter().any(|group| group.name == **arg);
        if let Some(other) = args.iter().find(|arg| !known(arg)) {
            let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
            bail!(
                "there is no group of tests `{other}`; name some of quick, {}, or none for quick alone, or --all; arguments of \
                 `cargo test` stand behind --",
                names.join(", ")
            );
        }
        Ok(Asked::Tiers(
            is_named("quick"),
            GROUPS.iter().filter(|group| is_named(group.name)).collect(),
            None,
        ))
    }
}

/// Runs what `args` name.
///
/// # Errors
///
/// When something fails, which is named once more at the end.
pub(crate) fn main(args: &[String]) -> Result<()> {
    match Asked::of(args)? {
        Asked::Tiers(is_quick, groups, within) => {
            tiers(is_quick, &groups, within.map(|within| Instant::now() + within))
        }
        Asked::List => {
            println!("{}", groups::list());
            Ok(())
        }
        Asked::Part(args) => part(args),
    }
}

/// What `cargo test` is told, of all packages, with the tools that are there.
fn part(args: &[String]) -> Result<()> {
    bpf();
    build::for_tests()?;
    let all: Vec<_> = GROUPS.iter().flat_map(|group| group.tools).copied().collect();
    let mut ledger = Ledger::new()?;
    let mut test = cargo();
    test.args(["test", "--workspace", "--all-features", "--no-fail-fast"]).args(args);
    let test =
        step(test.envs(tools::ensure(&all, false)?).envs([ledger.variable()]).env(BUILT, "1"));
    ledger.read();
    println!("{}", ledger.counted().summary());
    test
}

fn tiers(is_quick: bool, groups: &[&Group], until: Option<Instant>) -> Result<()> {
    if groups.len() == GROUPS.len()
        && let Some(warning) = space::warning(&target_dir())
    {
        eprintln!("{warning}");
    }
    let mut report = Report::default();
    let mut ledger = Ledger::new()?;
    match groups {
        [] => quick(&mut report, &mut ledger),
        _ => others(is_quick, groups, until, &mut report, &mut ledger)?,
    }
    println!("{}", ledger.counted().summary());
    report.print()
}

/// Says to tests that what they run is built.
const BUILT: &str = "FT_BUILT";

/// How long after the last programs may begin guests may go on.
const GUESTS: Duration = Duration::from_secs(8 * 60);

/// How many cases a property is tried on; each run draws others, so a quarter of what the crate would draw does.
const CASES: &str = "PROPTEST_CASES";

/// The packages of the quick tier, with fewer crates than all features need: a catalogue in an object store takes a hundred. What is
/// left out has no tests of its own, and a harness around it would interpose locks or define hooks.
const QUICK_PACKAGES: [&str; 12] = [
    "--workspace",
    "--exclude",
    "ft-hooks",
    "--exclude",
    "ft-macros",
    "--exclude",
    "ft-preload",
    "--exclude",
    "ft-user-capi",
    "--no-default-features",
    "--features",
    "ft-agent/top,ft-agent/flamegraph",
];

/// The quick tier alone: it installs nothing.
fn quick(report: &mut Report, ledger: &mut Ledger) {
    let mut row = Row::new("quick");
    row.timed(|row| {
        let ran = quick_programs().and_then(|programs| run(programs, &[], None, ledger));
        match ran {
            Ok(ended) => ended.iter().for_each(|ended| row.add(ended)),
            Err(error) => row.failed("the quick tier", &format!("{error:#}")),
        }
        enough(row, ledger);
    });
    report.rows.push(row);
}

/// Holds that enough of the tests of the quick tier have really recorded.
fn enough(row: &mut Row, ledger: &mut Ledger) {
    ledger.read();
    let enough = ledger.counted().at_least(LEAST_KERNEL_TESTS, ledger::may_record());
    enough.unwrap_or_else(|error| row.failed("kernel tests", &error.to_string()));
}

/// The targets of the quick tier, for cargo.
fn quick_targets() -> impl Iterator<Item = &'static str> {
    let of_tests = QUICK.iter().filter_map(|name| name.split(' ').nth(1));
    ["--lib", "--bin", "xtask"].into_iter().chain(of_tests.flat_map(|target| ["--test", target]))
}

/// Builds the programs of the quick tier, with few crates.
fn quick_programs() -> Result<Vec<Program>> {
    bpf();
    let parts = QUICK_PARTS.iter().filter_map(|(name, _)| name.split(' ').nth(1));
    let mut build = cargo();
    build.args(["test", "--no-run"]).args(QUICK_PACKAGES).args(quick_targets());
    build.args(parts.flat_map(|target| ["--test", target]));
    beside_loom(|| {
        let built = programs::build(&mut build)?;
        // With the crates of the tests, which are there.
        let run = ["--bin", "ft-agent", "--example", "subject"];
        step(cargo().args(["build", "--quiet"]).args(QUICK_PACKAGES).args(run))?;
        Ok(built.into_iter().filter_map(quick_part).collect())
    })
}

/// A program with what of it the quick tier runs; nothing if it runs none of it.
fn quick_part(mut program: Program) -> Option<Program> {
    if program.is_of_units() || QUICK.contains(&&*program.name) {
        return Some(program);
    }
    let (_, tests) = QUICK_PARTS.iter().find(|(name, _)| *name == program.name)?;
    let exact = (!tests.is_empty()).then_some("--exact");
    program.arguments = exact.iter().chain(*tests).map(ToString::to_string).collect();
    Some(program)
}

/// Builds the models while `build` goes on: each build has times in which it uses one CPU.
fn beside_loom(build: impl FnOnce() -> Result<Vec<Program>>) -> Result<Vec<Program>> {
    thread::scope(|scope| {
        let loom = scope.spawn(|| programs::build(&mut loom()));
        let programs = build();
        let loom = loom.join().unwrap_or_else(|panic| resume_unwind(panic));
        let mut programs = programs?;
        programs.extend(loom?);
        Ok(programs)
    })
}

/// Every interleaving of the rings' two ends; see `ft-user/tests/loom`. Optimised is what walks through them, and not what it
/// prints with.
fn loom() -> Command {
    let mut loom = cargo();
    loom.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target_dir().join("loom"));
    loom.args(["test", "--quiet", "--no-run", "--package", "ft-user", "--test", "loom"]);
    // More would take our own code longer to compile than it gains.
    for (package, level) in [("ft-user", 1), ("loom", 3), ("generator", 3), ("scoped-tls", 3)] {
        loom.arg("--config").arg(format!("profile.dev.package.{package}.opt-level={level}"));
    }
    loom
}

/// The BPF object that the agent of the tests gets: the packaged one of these sources, unless another one was built here or has to
/// be. Without one the tests say so.
fn bpf() {
    if !packaged::will_do() && Toolchain::find().is_ok() {
        build::bpf(&mut Steps::new(1));
    }
}

/// The groups: what they need is installed, if one may, and built once for all of them, and for the quick tier if it is asked for.
fn others(
    is_quick: bool,
    groups: &[&Group],
    until: Option<Instant>,
    report: &mut Report,
    ledger: &mut Ledger,
) -> Result<()> {
    let not_offered = installed(groups)?;
    let may = not_offered.is_some();
    bpf();
    if groups.iter().any(|group| group.bpf) && Toolchain::find().is_ok() {
        build_ebpf::run()?;
    }
    let (mut quick, mut build) = (Row::new("quick"), Row::new("build"));
    let mut rows: Vec<Row> = groups.iter().map(|group| Row::new(group.name)).collect();
    let tools: Vec<_> = groups.iter().flat_map(|group| group.tools).copied().collect();
    // What tests use is downloaded while the code is compiled.
    let (tools, programs) = thread::scope(|scope| {
        let tools = scope.spawn(|| tools::ensure(&tools, may));
        let mut programs = Vec::new();
        build.timed(|row| match group_programs(is_quick, groups) {
            Ok(built) => programs = built,
            Err(error) => row.failed("the tests", &format!("{error:#}")),
        });
        (tools.join().unwrap_or_else(|panic| resume_unwind(panic)), programs)
    });
    let tools = tools?;
    if let Some(not_offered) = not_offered {
        for (row, group) in rows.iter_mut().zip(groups) {
            let mut lacking = lacking(group);
            lacking.retain(|name| !not_offered.contains(name));
            row.lacks(&lacking);
        }
    }
    let checks = groups.iter().position(|group| group.besides == Besides::Checks);
    if let Some(at) = checks {
        rows[at].timed(|row| {
            checks::run(&checks::FIRST).for_each(|(name, check)| row.step(name, check))
        });
    }
    // The first tests wait for what they record: there is time for what takes one CPU.
    let (ended, beside) = thread::scope(|scope| {
        let beside =
            checks.map(|_| scope.spawn(|| checks::run(&checks::BESIDE).collect::<Vec<_>>()));
        let ended = run(programs, &tools, until, ledger);
        let beside =
            beside.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (ended, beside)
    });
    if let (Some(at), Some(beside)) = (checks, beside) {
        beside.into_iter().for_each(|(name, check)| rows[at].step(name, check));
    }
    let ended = ended.unwrap_or_else(|error| {
        build.failed("the tests", &format!("{error:#}"));
        Vec::new()
    });
    for ended in &ended {
        let at = groups.iter().position(|group| group.programs.contains(&&*ended.name));
        let row = at.map_or(&mut quick, |at| &mut rows[at]);
        row.add(ended);
        row.seconds += ended.seconds;
    }
    if is_quick {
        enough(&mut quick, ledger);
    }
    ledger.read();
    let python = tools.iter().find(|(name, _)| *name == "FT_PYTHON");
    for (row, group) in rows.iter_mut().zip(groups) {
        let is_late = programs::is_over(until);
        match group.besides {
            Besides::Kernels | Besides::Packages if is_late => row.not_run(group.what),
            Besides::Kernels => row.timed(|row| {
                if may {
                    row.spending("packages", kernels::set_up);
                }
                let python = python.map(|(_, path)| path.as_path());
                let until = until.map(|until| until + GUESTS);
                let ran = kernels::in_test_run(row, &mut ledger.reported, may, python, until);
                ran.unwrap_or_else(|error| row.failed("other kernels", &format!("{error:#}")));
            }),
            Besides::Packages => row.timed(|row| {
                let check = package::check().map(|said| println!("{said}"));
                row.step("the crates and the Debian package", check);
            }),
            Besides::Nothing | Besides::Checks => {}
        }
    }
    report.rows.push(build);
    report.rows.extend(is_quick.then_some(quick));
    report.rows.extend(rows);
    Ok(())
}

/// Builds the programs of tests of these groups, and of the quick tier if it is asked for: then all of what it takes a part of.
fn group_programs(is_quick: bool, groups: &[&Group]) -> Result<Vec<Program>> {
    let names: Vec<&str> = groups.iter().flat_map(|group| group.programs).copied().collect();
    let parts = QUICK_PARTS.iter().filter(|(name, _)| is_quick && !names.contains(name));
    let parts: Vec<&str> = parts.map(|(name, _)| *name).collect();
    if names.is_empty() && !is_quick {
        return Ok(Vec::new());
    }
    let mut test = cargo();
    test.args(["test", "--no-run", "--workspace", "--all-features"]);
    for name in names.iter().chain(&parts) {
        let (kind, target) = name.rsplit_once(' ').unwrap_or(("", name));
        test.args([if kind.ends_with(" bench") { "--bench" } else { "--test" }, target]);
    }
    if is_quick {
        test.args(quick_targets());
    }
    let asked = |program: Program| match names.contains(&&*program.name) {
        true => Some(program),
        false => quick_part(program).filter(|_| is_quick),
    };
    let mut build = || {
        let built = programs::build(&mut test)?;
        build::for_tests()?;
        Ok(built.into_iter().filter_map(asked).collect())
    };
    if is_quick { beside_loom(build) } else { build() }
}

/// Runs programs of tests, which are built.
fn run(
    programs: Vec<Program>,
    tools: &[(&'static str, PathBuf)],
    until: Option<Instant>,
    ledger: &Ledger,
) -> Result<Vec<Ended>> {
    programs::run(programs, &target_dir().join("tests"), until, |program| {
        program.envs(tools.iter().cloned()).envs([ledger.variable()]).env(BUILT, "1");
        if std::env::var_os(CASES).is_none() {
            program.env(CASES, "64");
        }
    })
}

/// What a group installs and is not there.
fn lacking(group: &Group) -> Vec<&'static str> {
    let tools = group.tools.iter().filter(|tool| !tool.is_there()).map(|tool| tool.what());
    setup::missing(group.packages, group.bpf).into_iter().chain(tools).collect()
}

/// Says what these groups install and is missing, asks for it on a terminal, and installs it: then returns what this system does not
/// offer of it. Nothing if it may not be installed.
fn installed(groups: &[&Group]) -> Result<Option<Vec<&'static str>>> {
    let mut missing = String::new();
    for group in groups {
        let names = lacking(group);
        if !names.is_empty() {
            missing += &format!("\n  {:9} {}", group.name, names.join(", "));
        }
    }
    if missing.is_empty() {
        return Ok(Some(Vec::new()));
    }
    println!("These groups of tests want what is missing here:{missing}");
    if !agreed(io::stdin().is_terminal() && io::stdout().is_terminal(), &mut io::stdin().lock())? {
        println!("Nothing is installed; tests that need it are skipped, and say so.");
        return Ok(None);
    }
    let packages: Vec<_> = groups.iter().flat_map(|group| group.packages).copied().collect();
    Ok(Some(match groups.iter().any(|group| group.bpf) {
        true => setup::run(&packages),
        false => setup::run_without_bpf(&packages),
    }))
}

/// Whether what is missing may be installed: where nobody can be asked, it is.
fn agreed(is_terminal: bool, answers: &mut impl io::BufRead) -> Result<bool> {
    if !is_terminal {
        return Ok(true);
    }
    print!("Install it? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Recordings of programs that know what they did, in as many rounds as `FT_ROUNDS` says, or 50: those tests whose names
/// contain one of `tests`, or all. In a run of the group `truth` some play fewer.
///
/// # Errors
///
/// The first set of tests that fails.
pub(crate) fn truths(tests: &[String]) -> Result<()> {
    let truth: Vec<&Group> = GROUPS.iter().filter(|group| group.name == "truth").collect();
    let may = installed(&truth)?.is_some();
    build_ebpf::run()?;
    let mut ledger = Ledger::new()?;
    let rounds = std::env::var("FT_ROUNDS").unwrap_or_else(|_| "50".into());
    // Unwinders, from each instruction of an event, with all compilers.
    let mut unwind = cargo();
    unwind.env("FT_ROUNDS", &rounds).args(["test", "-p", "ft-user", "-p", "ft-preload"]);
    step(unwind.args(["--test", "unwind", "--"]).args(tests))?;
    let mut test = cargo();
    test.env("FT_ROUNDS", rounds).args(["test", "--package", "ft-tests"]);
    test.args(["--test", "end_to_end", "--test", "chains", "--test", "framehop", "--"]).args(tests);
    let tests = step(test.envs(tools::ensure(truth[0].tools, may)?).envs([ledger.variable()]));
    ledger.read();
    println!("{}", ledger.counted().summary());
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Option<(bool, Vec<&'static str>)> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match Asked::of(&args) {
            Ok(Asked::Tiers(quick, groups, _)) => {
                Some((quick, groups.iter().map(|group| group.name).collect()))
            }
            Ok(Asked::Part(_) | Asked::List) | Err(_) => None,
        }
    }

    #[test]
    fn groups_are_named_and_the_quick_tier_is_what_nobody_names() {
        assert_eq!(asked(""), Some((true, vec![])));
        assert_eq!(asked("hostile truth"), Some((false, vec!["truth", "hostile"])));
        assert_eq!(asked("quick page"), Some((true, vec!["page"])));
        let (quick, all) = asked("--all").expect("everything");
        assert!(quick && all.len() == GROUPS.len());
        assert_eq!(asked("-- --test cli"), None);
        let Err(error) = Asked::of(&["nonsense".to_owned()]) else { panic!("it is no group") };
        assert!(error.to_string().contains("quick, checks, "), "{error}");
    }

    #[test]
    fn who_sits_at_a_terminal_is_asked() {
        for (terminal, answer, expected) in [
            (true, "y\n", true),
            (true, "yes\n", true),
            (true, "\n", false),
            (true, "n\n", false),
            (true, "", false),
            (false, "", true),
        ] {
            assert_eq!(agreed(terminal, &mut answer.as_bytes()).unwrap(), expected, "{answer:?}");
        }
    }
}
