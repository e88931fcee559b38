//! The test programs that cargo builds, and running them two at a time, since most of them wait for what they record, or use one
//! CPU; and a long one beside them, which does both.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{LazyLock, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    groups::QUICK,
    workspace::{line, root},
};

/// Programs whose loads take whole CPUs at real-time priorities: each would be in the way of the next one, so one lane runs
/// them in turn.
const REAL_TIME: [&str; 7] = [
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

/// Where an agent listens by default. Each program of tests has a directory of its own there, in a mount namespace: a
/// recording takes in whatever program looks for an agent meanwhile, and those of other tests are not what a test expects.
const SOCKETS: &str = "/run/feather-trace";

/// A program of tests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    /// Folder of its package and name of its target: `ft-agent end_to_end`, `ft-trace lib ft_trace`.
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
    /// Where its package lies, which is where cargo runs tests.
    package: PathBuf,
    /// Which of its tests run, as its arguments say; all, if there are none.
    pub(crate) arguments: Vec<String>,
}

impl Program {
    /// Whether it consists of the tests within a library or a program.
    pub(crate) fn is_of_units(&self) -> bool {
        [" lib ", " bin "].iter().any(|kind| self.name.contains(kind))
    }
}

/// What came of a program of tests.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) name: String,
    /// Tests that passed, and that failed.
    pub(crate) tests: (usize, usize),
    pub(crate) seconds: u64,
    /// Why it failed, with what is told again.
    pub(crate) error: Option<String>,
    /// False of one that did not begin: the time was over.
    pub(crate) ran: bool,
}

/// Builds test programs by a `cargo test --no-run`.
///
/// # Errors
///
/// When they do not build.
pub(crate) fn build(build: &mut Command) -> Result<Vec<Program>> {
    println!("+ {}", line(build));
    build.current_dir(root());
    build.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = build.output().context("cargo could not be started")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    Ok(programs(&String::from_utf8_lossy(&output.stdout)))
}

/// The test programs among cargo's messages, of which each is a line.
fn programs(messages: &str) -> Vec<Program> {
    messages.lines().filter_map(program).collect()
}

fn program(message: &str) -> Option<Program> {
    let profile = message.split("\"profile\":{").nth(1)?.split('}').next()?;
    if !profile.contains("\"test\":true") {
        return None;
    }
    let text = |key: &str| message.split(&format!("\"{key}\":\"")).nth(1)?.split('"').next();
    let package = Path::new(text("manifest_path")?).parent()?.to_owned();
    let kind = message.split("\"kind\":[\"").nth(1)?.split('"').next()?;
    let kind = if kind == "test" { String::new() } else { format!("{kind} ") };
    let folder = package.file_name()?.to_string_lossy();
    let name = format!("{folder} {kind}{}", text("name")?);
    let executable = text("executable")?.into();
    Some(Program { name, executable, package, arguments: Vec::new() })
}

/// Runs programs of tests to their end, whatever fails, in three lanes. Each says that it begins, and all that it printed when
/// it has ended, which lies in `logs`, too; `set` prepares each. From `until` on none begins.
///
/// # Errors
///
/// When there is no place for the logs.
pub(crate) fn run(
    programs: Vec<Program>,
    logs: &Path,
    until: Option<Instant>,
    set: impl Fn(&mut Command) + Sync,
) -> Result<Vec<Ended>> {
    fs::create_dir_all(logs).with_context(|| format!("cannot make {}", logs.display()))?;
    if !own_sockets() {
        println!(
            "no mount namespaces: a test may record programs of another one that look for an agent at {SOCKETS}"
        );
    }
    let Lanes { real_time, beside, others } = lanes(programs);
    let others = Mutex::new(others.into_iter());
    let next = || others.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run_all = |programs: &mut dyn Iterator<Item = Program>| {
        let ended = programs.map(|program| {
            if is_over(until) {
                let (name, tests) = (program.name, (0, 0));
                return Ended { name, tests, seconds: 0, error: None, ran: false };
            }
            run_one(&program, logs, &set).unwrap_or_else(|error| {
                let error = Some(format!("{error:#}"));
                Ended { name: program.name, tests: (0, 1), seconds: 0, error, ran: true }
            })
        });
        ended.collect::<Vec<_>>()
    };
    Ok(thread::scope(|scope| {
        let beside = scope.spawn(|| run_all(&mut beside.into_iter()));
        let real_time =
            scope.spawn(|| run_all(&mut real_time.into_iter().chain(std::iter::from_fn(next))));
        let mut ended = run_all(&mut std::iter::from_fn(next));
        for lane in [real_time, beside] {
            ended.extend(lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        ended
    }))
}

/// Whether nothing more may begin.
pub(crate) fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// Programs in the order in which they begin.
struct Lanes {
    /// One after another, and then from `others`.
    real_time: Vec<Program>,
    /// One after another beside the two lanes.
    beside: Vec<Program>,
    /// Whichever of the two lanes is free takes the next one.
    others: Vec<Program>,
}

fn lanes(programs: Vec<Program>) -> Lanes {
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

/// The longest that a program of tests may take: one that hangs fails, and the others go on.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Runs one program, and prints what it has printed.
fn run_one(program: &Program, logs: &Path, set: impl Fn(&mut Command)) -> Result<Ended> {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    println!("+ {}, {} s after the first", program.name, BEGAN.elapsed().as_secs());
    let began = Instant::now();
    let path = logs.join(format!("{}.log", program.name.replace(' ', "-")));
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut command = with_default_signals();
    if own_sockets() {
        command.args(IN_OWN_MOUNTS);
    }
    command.arg(&program.executable);
    set(&mut command);
    command.args(&program.arguments);
    command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().context("could not be started")?;
    let status = ended_within(child, LIMIT)?;
    let said = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let said = String::from_utf8_lossy(&said);
    let seconds = began.elapsed().as_secs();
    write!(io::stdout().lock(), "\n     {}, {seconds} s\n{said}", program.name)?;
    let error = match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("{status}{}", failures(&said))),
        None => Some(format!("killed after {} s{}", LIMIT.as_secs(), failures(&said))),
    };
    let tests = counted(&said, error.is_some());
    Ok(Ended { name: program.name.clone(), tests, seconds, error, ran: true })
}

/// How many tests passed and how many failed, by what a program of tests printed. One that counts none is one test.
fn counted(said: &str, has_failed: bool) -> (usize, usize) {
    let counted = said.lines().filter_map(|line| {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |what: &str| -> Option<usize> {
            counts.split("; ").find_map(|part| part.split_once(what)?.0.trim().parse().ok())
        };
        Some((count(" passed")?, count(" failed")?))
    });
    let (passed, failed) = match counted.reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1)) {
        Some(tests) => tests,
        None => (usize::from(!has_failed), 0),
    };
    // One that ended otherwise than by a test that failed has failed, too.
    (passed, failed.max(usize::from(has_failed)))
}

/// Waits for a program, which is killed if it takes longer: then there is no status.
fn ended_within(mut child: Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Runs a program that ends at the signals of a terminal, though a shell that put this run into the background has it ignore them:
/// tests end recordings by them.
fn with_default_signals() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT");
    command
}

/// Runs a program that has [`SOCKETS`] for itself and its children.
const IN_OWN_MOUNTS: [&str; 7] = [
    "unshare",
    "--mount",
    "--",
    "sh",
    "-c",
    "mkdir -p \"$0\" && mount -t tmpfs -o mode=755 tmpfs \"$0\" && exec \"$@\"",
    SOCKETS,
];

/// Whether this process may make such a namespace: only root may, and only root's agents listen there.
fn own_sockets() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let mut nothing = with_default_signals();
        nothing
            .args(IN_OWN_MOUNTS)
            .arg("true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        nothing.status().is_ok_and(|status| status.success())
    });
    *MAY
}

/// Lines of a failed test, or of the end of a program, that are told again at the end of a run.
const TOLD_AGAIN: usize = 60;

/// What a program of tests printed of each test that failed, and their names, or the last that it printed; indented. A run prints far
/// more than anybody reads, and its end is where one looks.
fn failures(said: &str) -> String {
    const HEAD: &str = "\nfailures:\n";
    let Some((rest, names)) = said.rsplit_once(HEAD) else {
        let lines: Vec<&str> = said.trim().lines().collect();
        return indented(lines[lines.len().saturating_sub(TOLD_AGAIN)..].iter().copied());
    };
    let details = rest.split_once(HEAD).map_or("", |(_, details)| details);
    let tests = details.split("\n---- ").skip(1).map(|test| {
        let lines: Vec<&str> = test.trim_end().lines().collect();
        let more = lines.len().saturating_sub(TOLD_AGAIN);
        let cut = (more > 0).then(|| format!("… {more} lines more"));
        indented(lines.iter().copied().take(TOLD_AGAIN).chain(cut.as_deref()))
    });
    let names = names.lines().take_while(|line| !line.is_empty()).map(str::trim);
    format!("{}{}", tests.collect::<String>(), indented(std::iter::once("failed:").chain(names)))
}

fn indented<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| ["\n    ", line]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn the_programs_of_tests_are_found_among_the_messages_of_cargo() {
        let artifact = |kind: &str, name: &str, test: bool, executable: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/ft-agent/Cargo.toml\",\"target\":{{\"kind\":[\"{kind}\"],\
                 \"name\":\"{name}\",\"test\":true}},\"profile\":{{\"opt_level\":\"0\",\"test\":{test}}},\
                 \"executable\":{executable},\"fresh\":true}}\n"
            )
        };
        let messages = [
            artifact("lib", "ft_agent", false, "null"),
            artifact("lib", "ft_agent", true, "\"/t/ft_agent-1\""),
            artifact("bin", "ft-agent", false, "\"/t/ft-agent\""),
            artifact("test", "page", true, "\"/t/page-2\""),
            "{\"reason\":\"build-finished\",\"success\":true}\n".into(),
        ];
        let found = programs(&messages.concat());
        let program = |name: &str, executable: &str| Program {
            name: name.into(),
            executable: executable.into(),
            package: "/w/ft-agent".into(),
            arguments: Vec::new(),
        };
        let expected = [
            program("ft-agent lib ft_agent", "/t/ft_agent-1"),
            program("ft-agent page", "/t/page-2"),
        ];
        assert_eq!(found, expected);
    }

    /// A shell that is told to read `script` in its package.
    fn shell(name: &str, script: &str, folder: &Path) -> Program {
        let package = folder.join(name.replace(' ', "-"));
        fs::create_dir_all(&package).expect("a folder");
        fs::write(package.join("script"), script).expect("written");
        let arguments = vec!["script".into()];
        Program { name: name.into(), executable: "/bin/sh".into(), package, arguments }
    }

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
    fn programs_of_real_time_loads_run_in_turn_and_all_that_fails_is_named() {
        let folder = std::env::temp_dir().join(format!("ft-lanes-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        // Each would find the folder of one that is there at the same time.
        let alone = "mkdir ../turn || exit 3; sleep 0.1; rmdir ../turn";
        let mut programs =
            vec![shell("a test", "echo why; test -d \"$CARGO_MANIFEST_DIR\" && exit $N", &folder)];
        programs.extend(REAL_TIME.map(|name| shell(name, alone, &folder)));
        programs.push(shell("another test", "exit 0", &folder));
        let set = |command: &mut Command| _ = command.env("N", "7");
        let ended = run(programs, &folder.join("logs"), None, set).expect("there is a folder");
        assert_eq!(ended.len(), REAL_TIME.len() + 2);
        let failed: Vec<&Ended> = ended.iter().filter(|ended| ended.error.is_some()).collect();
        let [Ended { name, tests, error: Some(error), .. }] = failed[..] else {
            panic!("{failed:?}")
        };
        assert_eq!((&**name, *tests, &**error), ("a test", (0, 1), "exit status: 7\n    why"));
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn what_has_no_time_left_does_not_begin_and_has_not_passed() {
        let folder = std::env::temp_dir().join(format!("ft-over-{}", std::process::id()));
        let programs = vec![shell("a test", "exit 0", &folder), shell("b", "exit 0", &folder)];
        let ended = run(programs, &folder.join("logs"), Some(Instant::now()), |_| ());
        let ended = ended.expect("there is a folder");
        assert!(ended.iter().all(|ended| !ended.ran && ended.tests == (0, 0)), "{ended:?}");
        assert_eq!(ended.len(), 2);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let start = |script| Command::new("sh").args(["-c", script]).spawn().expect("a shell");
        let limit = Duration::from_secs(3600);
        let status = ended_within(start("exit 3"), limit).expect("it is waited for");
        assert_eq!(status.and_then(|status| status.code()), Some(3));
        let status = ended_within(start("exec sleep 3600"), Duration::ZERO);
        assert_eq!(status.expect("it is killed"), None);
    }

    #[test]
    fn programs_end_at_the_signals_of_a_terminal() {
        // What a shell does to what it puts into the background.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec \"$@\"", "sh"]);
        let within = with_default_signals();
        command.arg(within.get_program()).args(within.get_args());
        let status = command.args(["sh", "-c", "kill -INT $$; sleep 1"]).status();
        assert_eq!(status.expect("a shell").signal(), Some(2));
    }

    #[test]
    fn no_program_sees_the_default_socket_of_another() {
        if !own_sockets() {
            println!("skipped: this user may make no mount namespace");
            return;
        }
        let folder = std::env::temp_dir().join(format!("ft-sockets-{}", std::process::id()));
        // The first stays until the second has looked.
        let turn = "for i in $(seq 3000)";
        let first = format!(
            "touch {SOCKETS}/a ../there || exit 3; {turn}; do test -e ../there || exit 0; sleep 0.01; done; exit 4"
        );
        let second = format!(
            "{turn}; do test -e ../there && break; sleep 0.01; done; test -e {SOCKETS}/a; echo $?; rm ../there"
        );
        let programs = vec![shell(REAL_TIME[0], &first, &folder), shell("b", &second, &folder)];
        let logs = folder.join("logs");
        let ended = run(programs, &logs, None, |_| ()).expect("there is a folder");
        assert!(ended.iter().all(|ended| ended.error.is_none()), "{ended:?}");
        assert_eq!(fs::read_to_string(logs.join("b.log")).expect("its log"), "1\n");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn tests_are_counted_as_their_harness_counts_them() {
        let two = "test result: ok. 3 passed; 0 failed; 1 ignored\n\ntest result: FAILED. 2 passed; 1 failed: [\"x\"]\n";
        assert_eq!(counted(two, true), (5, 1));
        assert_eq!(counted("test result: ok. 3 passed; 0 failed; 0 ignored", false), (3, 0));
        // Killed behind the last test, and another kind of program.
        assert_eq!(counted("test result: ok. 3 passed; 0 failed; 0 ignored", true), (3, 1));
        assert_eq!((counted("done\n", false), counted("", true)), ((1, 0), (0, 1)));
    }

    #[test]
    fn what_failed_is_told_again() {
        let many: String = (0..100).map(|line| format!("{line}\n")).collect();
        let said = format!(
            "running 3 tests\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n{many}\n---- b stdout ----\nleft: 1\n\n\
             \nfailures:\n    a\n    b\n\ntest result: FAILED. 1 passed\n"
        );
        let told = failures(&said);
        assert!(told.starts_with("\n    a stdout ----\n    0\n"), "{told}");
        assert!(
            told.contains("\n    58\n    … 41 lines more\n    b stdout ----\n    left: 1\n"),
            "{told}"
        );
        assert!(told.ends_with("left: 1\n    failed:\n    a\n    b"), "{told}");
        // Of tests of another kind the end.
        let told = failures(&many);
        assert!(told.starts_with("\n    40\n") && told.ends_with("\n    99"), "{told}");
        assert_eq!(failures("x\n\nfailures:\n    silent\n"), "\n    failed:\n    silent");
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
