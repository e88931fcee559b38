//! Running programs of tests two at a time, since most of them wait for what they record, or use one CPU; and a long one beside them,
//! which does both.

mod again;
mod built;
mod ended;
mod lanes;
mod said;
mod surroundings;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{LazyLock, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

pub(crate) use again::MOST as MOST_FLAKY;
pub(crate) use built::build;
use ended::{Marked, ended_within};
use lanes::{Lanes, lanes};
use said::{counted, failures};
use surroundings::{IN_OWN_MOUNTS, SOCKETS, own_sockets, with_default_signals};

/// A program of tests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    /// Folder of its package and name of its target: `ft-agent end_to_end`, `ft-trace lib ft_trace`.
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
    /// Where its package lies, which is where cargo runs tests.
    pub(crate) package: PathBuf,
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
    /// How many of its tests failed and then passed alone, and what their failure told.
    pub(crate) flaky: Option<(usize, String)>,
}

/// Runs programs of tests to their end, whatever fails, in three lanes. Each says that it begins, and all that it printed when
/// it has ended, which lies in `logs`, too; `set` prepares each. From `until` on none begins. In the end the tests that failed run
/// [once more](again), alone.
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
                let (name, tests) = (program.name.clone(), (0, 0));
                let ended = Ended { name, tests, seconds: 0, error: None, ran: false, flaky: None };
                return (program, ended, Vec::new());
            }
            let (ended, failed) = run_or_fail(&program, logs, LIMIT, &set);
            (program, ended, failed)
        });
        ended.collect::<Vec<_>>()
    };
    let ended = thread::scope(|scope| {
        let beside = scope.spawn(|| run_all(&mut beside.into_iter()));
        let real_time =
            scope.spawn(|| run_all(&mut real_time.into_iter().chain(std::iter::from_fn(next))));
        let mut ended = run_all(&mut std::iter::from_fn(next));
        for lane in [real_time, beside] {
            ended.extend(lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        ended
    });
    let count: usize = ended.iter().map(|(_, ended, _)| ended.tests.1).sum();
    let lanes_ended = Instant::now();
    let alone = |program: &Program| run_or_fail(program, logs, again::LIMIT, &set).0;
    let once_more = ended.into_iter().map(|(program, ended, failed)| {
        match again::is_hopeless(count, lanes_ended.elapsed()) {
            true => ended,
            false => again::run(&program, ended, failed, alone),
        }
    });
    Ok(once_more.collect())
}

/// Runs one; the names of its tests that failed stand beside what came of it.
fn run_or_fail(
    program: &Program,
    logs: &Path,
    limit: Duration,
    set: impl Fn(&mut Command),
) -> (Ended, Vec<String>) {
    run_one(program, logs, limit, set).unwrap_or_else(|error| {
        let (name, error) = (program.name.clone(), Some(format!("{error:#}")));
        (Ended { name, tests: (0, 1), seconds: 0, error, ran: true, flaky: None }, Vec::new())
    })
}

/// Whether nothing more may begin.
pub(crate) fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// The longest that a program of tests may take: one that hangs fails, and the others go on. The slowest takes most of
/// that on a slow machine.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs one program, and prints what it has printed.
fn run_one(
    program: &Program,
    logs: &Path,
    limit: Duration,
    set: impl Fn(&mut Command),
) -> Result<(Ended, Vec<String>)> {
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
    let status = ended_within(&mut Marked::start(&mut command)?, limit)?;
    let said = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let said = String::from_utf8_lossy(&said);
    let seconds = began.elapsed().as_secs();
    // Not by another way: tests of this print what their own harness must not take for its results.
    print!("\n     {}, {seconds} s\n{said}", program.name);
    let error = match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("{status}{}", failures(&said))),
        None => Some(format!("killed after {} s{}", limit.as_secs(), failures(&said))),
    };
    let tests = counted(&said, error.is_some());
    let failed = again::failed(&said, status.and_then(|status| status.code()));
    Ok((
        Ended { name: program.name.clone(), tests, seconds, error, ran: true, flaky: None },
        failed,
    ))
}

#[cfg(test)]
mod tests {
    use super::lanes::REAL_TIME;
    use super::*;

    /// A shell that is told to read `script` in its package.
    fn shell(name: &str, script: &str, folder: &Path) -> Program {
        let package = folder.join(name.replace(' ', "-"));
        fs::create_dir_all(&package).expect("a folder");
        fs::write(package.join("script"), script).expect("written");
        let arguments = vec!["script".into()];
        Program { name: name.into(), executable: "/bin/sh".into(), package, arguments }
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
    fn a_test_that_failed_runs_again_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("ft-again-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        // Fails the first time, and then passes if it is the only one that is asked for.
        let script = "#!/bin/sh
            if mkdir seen; then
                echo 'test a ... ok'; echo 'test b ... FAILED'; echo 'test result: FAILED. 1 passed; 1 failed'; exit 101
            fi
            [ \"$*\" = '--exact b' ] && echo 'test b ... ok' && echo 'test result: ok. 1 passed; 0 failed'";
        let program = shell("c", script, &folder);
        let executable = program.package.join("script");
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).expect("its own file");
        let program = Program { executable, arguments: Vec::new(), ..program };
        let ended = run(vec![program], &folder.join("logs"), None, |_| ()).expect("a folder");
        let [Ended { name, tests, error: None, flaky: Some((1, told)), .. }] = &ended[..] else {
            panic!("{ended:?}")
        };
        assert_eq!((&**name, *tests), ("c", (2, 0)));
        assert!(told.contains("test b ... FAILED"), "{told}");
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
}
