//! What root writes and reads by the command line, when another user has prepared the place: a link on the way, a trace that would fill
//! the memory, and locks on all that everybody may read of a recording.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::Attack;
use crate::forged::recorded;
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "written", program, test };

/// A directory of root's, in which nobody else can look.
const CLOSED: &str = "closed";

/// What the agent may use of memory to read a trace, KiB.
const MODEST: u64 = 2 << 20;

pub(super) fn program(attacker: &Attacker) {
    let trace = Path::new(&attacker.socket).parent().expect("a trace");
    let _memfd = recorded(&attacker.socket);
    let folder = tempfile::tempdir().expect("a folder");
    symlink(trace.with_file_name(CLOSED), folder.path().join("link")).expect("a link");
    fs::create_dir(folder.path().join("large")).expect("a directory");
    let large = File::create(folder.path().join("large/meta.json")).expect("a file");
    large.set_len(6 << 30).expect("a size");
    let mut locked = HashMap::new();
    lock(trace, &mut locked);
    attacker.ready();
    println!("{}", folder.path().display());
    println!("{}", locked.len());
    while !attacker.hears() {
        lock(trace, &mut locked);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Locks what is at a path, and below it, as far as it can be opened. All locks are kept.
fn lock(path: &Path, locked: &mut HashMap<PathBuf, File>) {
    let Ok(file) = File::open(path) else { return };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        locked.entry(path.to_owned()).or_insert(file);
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        lock(&entry.path(), locked);
    }
}

/// The agent, with so much memory.
fn agent(words: &str, folder: &str) -> Output {
    let mut shell = Command::new("sh");
    let command = format!("ulimit -v {MODEST}; exec \"$0\" {words}");
    let output = shell.args(["-c", &command, ft_tests::agent()]).current_dir(folder).output();
    output.expect("it runs")
}

fn test(stage: &Stage) {
    let closed = stage.path(CLOSED);
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("its rights");
    let own = stage.path("paged");
    let then = |_: &Stage, attackers: &mut [Attacking]| {
        let (folder, locked) = (attackers[0].hear(), attackers[0].hear());
        assert_ne!(locked, "0", "everybody may read this trace");
        let page = format!("record -k none -o {} --html link/page.html -- true", own.display());
        for (words, named) in [
            ("record -k none -o link/trace -- true", "link"),
            (&page, "link"),
            ("report large", "meta.json"),
        ] {
            let output = agent(words, &folder);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code().is_some_and(|code| code != 0), "{words}: {output:?}");
            assert!(said.contains(named), "{words}: {said}");
        }
        fs::remove_dir_all(folder).expect("its folder");
        String::new()
    };
    stage.attack_in(
        &ATTACK,
        &Scene { options: &["--mode", "755"], then: &then, ..Scene::default() },
    );
    let written = fs::read_dir(&closed).expect("a directory").count();
    assert_eq!(written, 0, "root has written behind another user's link");
}
