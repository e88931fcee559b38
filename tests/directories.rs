//! A trace directory in the hands of another user, and an agent that is root: nothing outside of it changes.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use ft_tests::gate;

/// User and group of the attacker: `nobody`.
const NOBODY: u32 = 65_534;

/// Names in a trace, so what a link could lead to.
const NAMES: [&str; 6] = [
    "meta.json",
    "analysis.json",
    "agent.sock",
    "spool/registry.ft",
    "spool/segment-000000.ft",
    "names/part-00000.parquet",
];

/// What only root may write to, and a folder of the attacker.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let stage = Stage { folder };
        for name in NAMES {
            let path = stage.victim().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "of root").unwrap();
        }
        fs::create_dir(stage.theirs()).unwrap();
        give(&stage.theirs());
        stage
    }

    fn victim(&self) -> PathBuf {
        self.folder.path().join("victim")
    }

    fn theirs(&self) -> PathBuf {
        self.folder.path().join("theirs")
    }

    #[track_caller]
    fn assert_unharmed(&self) {
        let mut expected: BTreeMap<PathBuf, String> = BTreeMap::new();
        expected.extend(NAMES.map(|name| (self.victim().join(name), "of root".into())));
        let mut found = BTreeMap::new();
        collect(&self.victim(), &mut found);
        assert_eq!(found, expected);
    }
}

fn collect(dir: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            collect(&path, found);
        } else {
            let text = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.insert(path, String::from_utf8_lossy(&text).into_owned());
        }
    }
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

fn agent(args: &[&str], dir: &Path) -> Output {
    let mut agent = Command::new(ft_tests::agent());
    // A reader that waits for a FIFO would do so for ever.
    agent.args(args).arg(dir);
    if args[0] == "record" {
        agent.args(["--", "true"]);
    }
    agent.output().unwrap()
}

/// Runs the agent, which does what it is asked for or says in a sentence why not; what it has said.
#[track_caller]
fn ends_or_says_why(args: &[&str], dir: &Path) -> String {
    let output = agent(args, dir);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_refused = output.status.code() == Some(1) && said.contains("ft-agent: ");
    assert!(output.status.success() || is_refused, "{output:?}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

const RECORD: [&str; 4] = ["record", "-k", "none", "-o"];

fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if root {
        gate::ran()
    } else {
        gate::skipped("only root can be led to what is root's")
    }
    root
}

/// Runs as `nobody`, in a thread of its own: the credentials of the others stay.
fn as_nobody<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    let attack = || {
        // SAFETY: numbers only; the bare system calls concern this thread alone (setresuid(2)).
        let dropped = unsafe {
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>())
                | libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY)
                | libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY)
        };
        assert_eq!(dropped, 0);
        run()
    };
    thread::scope(|scope| scope.spawn(attack).join().unwrap())
}

#[test]
fn the_empty_directory_of_another_user_is_refused() {
    if !root() {
        return;
    }
    let stage = Stage::new();
    let trace = stage.theirs().join("trace");
    as_nobody(|| fs::create_dir(&trace).unwrap());
    let output = agent(&RECORD, &trace);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(said.contains("belongs to the user with number 65534"), "{said}");
    assert!(
        said.trim_end().ends_with("name a directory with -o that does not exist yet"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&trace).unwrap().count(), 0);
    // A new one beneath is ours.
    let output = agent(&RECORD, &trace.join("new"));
    assert!(output.status.success(), "{output:?}");
    // And one into which everybody can put links is nobody's.
    let shared = stage.folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let output = agent(&RECORD, &shared);
    assert!(String::from_utf8_lossy(&output.stderr).contains("other users can write to"));
}

/// `sudo ft-agent record -o trace` in a directory of a user, who puts a link into its place all the time.
#[test]
fn a_directory_that_is_swapped_leads_nowhere() {
    if !root() {
        return;
    }
    let stage = Stage::new();
    let (trace, away) = (stage.theirs().join("trace"), stage.theirs().join("away"));
    // While nobody swaps anything there is a recording.
    let output = agent(&RECORD, &trace);
    assert!(output.status.success(), "{output:?}");
    fs::remove_dir_all(&trace).unwrap();
    let done = AtomicBool::new(false);
    let swap = || {
        let mut swaps = 0u64;
        while !done.load(Relaxed) {
            // Each of these may come too early or too late.
            let _ = fs::rename(&trace, &away);
            let _ = symlink(stage.victim(), &trace);
            thread::yield_now();
            let _ = fs::remove_file(&trace);
            let _ = fs::rename(&away, &trace);
            thread::yield_now();
            swaps += 1;
        }
        swaps
    };
    thread::scope(|scope| {
        let attacker = scope.spawn(|| as_nobody(swap));
        let mut recorded = 0;
        for _ in 0..12 {
            // That nothing was recorded is said at the end of a recording, before it is converted.
            let said = ends_or_says_why(&RECORD, &trace);
            recorded += u32::from(said.contains("no site matches"));
            let _ = fs::remove_dir_all(&away).and_then(|()| fs::remove_dir_all(&trace));
        }
        for command in ["convert", "analyze", "report"] {
            ends_or_says_why(&[command], &trace);
        }
        gate::measured(&format!("{recorded} of 12 recordings were swapped while they lasted"));
        done.store(true, Relaxed);
        assert!(attacker.join().unwrap() > 0);
    });
    stage.assert_unharmed();
}

/// A trace of another user, with links wherever root would write.
#[test]
fn a_trace_of_another_user_is_not_written_to() {
    if !root() {
        return;
    }
    let stage = Stage::new();
    let trace = stage.theirs().join("trace");
    assert!(agent(&RECORD, &trace).status.success());
    fs::remove_file(trace.join("analysis.json")).unwrap();
    let mut files = BTreeMap::new();
    collect(&trace, &mut files);
    files.keys().chain([&trace]).for_each(|path| give(path));
    for entry in fs::read_dir(&trace).unwrap() {
        give(&entry.unwrap().path());
    }
    as_nobody(|| {
        for name in ["analysis.json.tmp", "meta.json.tmp"] {
            symlink(stage.victim().join("meta.json"), trace.join(name)).unwrap();
        }
        symlink(stage.victim(), trace.join("critical_sections.tmp")).unwrap();
        symlink(stage.victim(), trace.join("critical_sections.old.tmp")).unwrap();
    });
    for command in ["analyze", "report", "locks"] {
        let output = agent(&[command], &trace);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{command}: {output:?}");
        assert!(said.contains("belongs to the user with number 65534"), "{command}: {said}");
        assert!(said.contains("run this as that user"), "{command}: {said}");
    }
    stage.assert_unharmed();
    // Nor is anything waited for that never comes.
    as_nobody(|| {
        fs::remove_file(trace.join("meta.json")).unwrap();
        mknodat(CWD, trace.join("meta.json"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    });
    assert!(!agent(&["report"], &trace).status.success());
    as_nobody(|| {
        fs::create_dir(trace.join("spool")).unwrap();
        mknodat(CWD, trace.join("spool/registry.ft"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    });
    assert!(!agent(&["convert"], &trace).status.success());
    stage.assert_unharmed();
}
