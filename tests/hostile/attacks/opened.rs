//! Each file that the agent opens while eleven programs of another user name files to it, as strace sees it: what is theirs it
//! opens by holding it (`O_PATH`) alone, which comes before the proof; and a worker that reads names opens nothing.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use ft_tests::gate;

use super::{compiled, cut, disguised, elsewhere, files, split};
use crate::Attack;
use crate::stage::{Attacker, Attacking, NOBODY, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "opened", program, test };

/// What each of them does. Who is elsewhere, and who has a map, does one thing or another by its number.
const PROGRAMS: [fn(&Attacker); 11] = [
    files::program,
    split::program,
    cut::program,
    compiled::program,
    compiled::program,
    elsewhere::program,
    elsewhere::program,
    elsewhere::program,
    elsewhere::program,
    elsewhere::program,
    disguised::program,
];

/// Those who say which folder they have made.
const HAVE_A_FOLDER: [usize; 2] = [1, 2];

/// Where files are that no other user can write, beside the trace.
const OURS: [&str; 6] = ["/proc/", "/sys/", "/dev/null/", "/etc/", "/usr/", "/lib"];

/// What `/proc` has of a process that is a file of its choice.
const CHOSEN: [&str; 5] = ["/map_files/", "/root", "/cwd", "/exe", "/fd/"];

/// What one process did, by its lines of strace's.
#[derive(Default)]
struct Opened {
    /// A worker; and from when on it has no rights.
    is_worker: bool,
    is_confined: bool,
    paths: Vec<(String, bool)>,
}

/// An absolute path that a call names, and whether it only holds what is there.
fn path(line: &str) -> Option<(String, bool)> {
    let path = line.split('"').nth(1).filter(|path| path.starts_with('/'))?;
    Some((path.to_owned(), line.contains("O_PATH")))
}

/// The lines of strace's, by process; but for the recorded program and what that starts.
fn opened(log: &str, honest: &str) -> HashMap<i32, Opened> {
    let (mut of, mut begun) = (HashMap::<i32, Opened>::new(), HashSet::new());
    for line in log.lines() {
        let Some((pid, line)) = line.split_once(' ') else { continue };
        let (pid, line): (i32, &str) = (pid.parse().expect("a number"), line.trim());
        if line.starts_with("execve(") && path(line).is_some_and(|(path, _)| path == honest) {
            begun.insert(pid);
        }
        if line.starts_with("clone") || line.contains("resumed") && line.contains("clone") {
            let child = line.rsplit(" = ").next().and_then(|n| n.trim().parse::<i32>().ok());
            begun.extend(child.filter(|_| begun.contains(&pid)));
        }
        if begun.contains(&pid) {
            continue;
        }
        let its = of.entry(pid).or_default();
        its.is_worker |= line.starts_with("execve(") && line.contains("\"read-names\"");
        let filters = ["seccomp(SECCOMP_SET_MODE_FILTER", "prctl(PR_SET_SECCOMP"];
        its.is_confined |= filters.iter().any(|call| line.starts_with(call));
        if line.starts_with("open") {
            assert!(!(its.is_worker && its.is_confined), "a worker opens something: {line}");
            its.paths.extend(path(line));
        }
    }
    of
}

fn program(attacker: &Attacker) {
    PROGRAMS[attacker.number](attacker);
}

fn test(stage: &Stage) {
    if !std::path::Path::new("/usr/bin/strace").exists() {
        return gate::skipped("strace is not installed (Debian: strace)");
    }
    let log = stage.path("opened");
    let of_root = [elsewhere::prepare(stage), disguised::prepare(stage)];
    let folders = RefCell::new(Vec::new());
    let then = |_: &Stage, attackers: &mut [Attacking]| {
        let heard = HAVE_A_FOLDER.map(|number| PathBuf::from(attackers[number].hear()));
        folders.borrow_mut().extend(heard);
        String::new()
    };
    let scene = Scene {
        options: &["-k", "default,profile"],
        users: &[NOBODY; PROGRAMS.len()],
        opens: Some(&log),
        then: &then,
        ..Scene::default()
    };
    let recorded = stage.attack_in(&ATTACK, &scene);
    compiled::clear_all(&recorded);
    for folder in folders.into_inner() {
        fs::remove_dir_all(folder).expect("a folder");
    }
    assert!(of_root.iter().all(|files| !files.is_opened()), "a file of root's was opened");
    let log = fs::read_to_string(log).expect("what strace has seen");
    let ours = stage.path("");
    let (target, _) = ft_tests::agent().rsplit_once('/').expect("a path");
    let opened = opened(&log, stage.path("hostile").to_str().expect("UTF-8"));
    let workers = opened.values().filter(|its| its.is_worker && its.is_confined).count();
    assert!(workers > 0, "no worker was seen");
    let theirs = |path: &str| {
        let (pid, rest) = path.strip_prefix("/proc/")?.split_once('/')?;
        let is_attacker = recorded.attackers.contains(&pid.parse().ok()?);
        is_attacker.then(|| format!("/{rest}"))
    };
    let mut held = 0;
    for (path, is_held) in opened.into_values().flat_map(|its| its.paths) {
        let is_chosen =
            theirs(&path).is_some_and(|rest| CHOSEN.iter().any(|kind| rest.contains(kind)));
        let is_ours = OURS.iter().any(|place| format!("{path}/").starts_with(place))
            || path.starts_with(ours.to_str().expect("UTF-8"))
            || path.starts_with(target);
        held += usize::from(is_chosen && is_held);
        assert!(is_held || is_ours && !is_chosen, "{path} was opened, and not only held");
    }
    assert!(held > 0, "no file of the attacker's was looked at");
}
