//! Programs with mounts of their own, where a path leads to another file than for root: one has its own file at the place of one that only
//! root may read, one takes it away again, and two have in their own `/tmp`, in the place of a compiler's map, a file that only root may
//! read: by a link, and by a mount. The last one does as the first, is not recorded, and is probed under its program's name.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use ft_tests::gate;
use ft_trace::convert::synthetic::program::named;
use ft_trace::store::Trace;
use ft_trace::tables::{FrameRow, Request};

use crate::Attack;
use crate::code::{call, map, run, run_compiled};
use crate::forged::recorded;
use crate::namespace;
use crate::stage::{Attacker, Attacking, NOBODY, Scene, Stage};
use crate::watched::Watched;

pub(crate) const ATTACK: Attack = Attack { name: "elsewhere", program, test };

/// A directory of root's, in which nobody else can look, and the program in it.
const CLOSED: &str = "closed";
const PROGRAM: &str = "program";

/// A file beside the trace that only root may read. It reads as a compiler's map.
const SECRET: &str = "secret";

/// The agent looks at its processes each second.
const LONG: Duration = Duration::from_millis(1500);

/// What the attackers do, by their numbers: all that is done.
const KINDS: usize = 5;

/// The last of them.
const PROBED: usize = 4;

pub(super) fn program(attacker: &Attacker) {
    let trace = Path::new(&attacker.socket).parent().expect("a trace");
    let kind = attacker.number % KINDS;
    let _memfd = (kind != PROBED).then(|| recorded(&attacker.socket));
    if !namespace::enter() {
        attacker.ready();
        println!("nobody may");
        return attacker.wait();
    }
    let (closed, secret) = (trace.with_file_name(CLOSED), trace.with_file_name(SECRET));
    let mut probed = None;
    match kind {
        0 | PROBED => {
            let function = map(&own_program(&closed));
            call(function, LONG);
            probed = (kind == PROBED).then_some(function);
        }
        1 => {
            run(&own_program(&closed), LONG);
            namespace::detach(&closed);
        }
        _ => {
            let folder = tempfile::tempdir().expect("a folder");
            namespace::empty(folder.path());
            let map = folder.path().join(format!("perf-{}.map", std::process::id()));
            let place = if kind == 2 { folder.path().join(SECRET) } else { map.clone() };
            fs::write(&place, "").expect("a file");
            namespace::bind(&secret, &place);
            if kind == 2 {
                symlink(Path::new("/tmp").join(SECRET), &map).expect("a link");
            }
            namespace::bind(folder.path(), Path::new("/tmp"));
            run_compiled(LONG);
            // Its folder is another's by now.
            std::mem::forget(folder);
        }
    }
    attacker.ready();
    println!("is elsewhere");
    while let Some(function) = probed.filter(|_| !attacker.hears()) {
        call(function, Duration::ZERO);
    }
    attacker.wait();
}

/// A program of the attacker's own in that directory, whose function is `own`.
fn own_program(closed: &Path) -> std::path::PathBuf {
    namespace::empty(closed);
    let path = closed.join(PROGRAM);
    fs::write(&path, named(b"own")).expect("a file");
    path
}

/// What root has there: no build id tells the program from another one.
pub(super) fn prepare(stage: &Stage) -> Watched {
    let (closed, secret) = (stage.path(CLOSED), stage.path(SECRET));
    fs::create_dir(&closed).expect("a directory");
    let program = closed.join(PROGRAM);
    fs::write(&program, named(b"secret")).expect("a file");
    fs::write(&secret, "0 ffffffffffffffff a secret of root\n").expect("a file");
    for (path, mode) in [(&closed, 0o700), (&program, 0o600), (&secret, 0o600)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its rights");
    }
    Watched::all([program, secret])
}

/// Records a process with a probe of the program's function of this name.
fn probe(stage: &Stage, pid: i32, function: &str) -> Output {
    let mut agent = Command::new(ft_tests::agent());
    agent.args(["record", "-k", "none", "-d", "4s", "-p", &pid.to_string()]);
    agent.args(["--probe", &format!("{PROGRAM}:{function}"), "-o"]).arg(stage.path("probed"));
    agent.output().expect("it runs")
}

fn test(stage: &Stage) {
    let watched = prepare(stage);
    let are_elsewhere = Cell::new(true);
    let then = |stage: &Stage, attackers: &mut [Attacking]| {
        are_elsewhere.set(attackers.iter_mut().all(|attacker| attacker.hear() == "is elsewhere"));
        if are_elsewhere.get() {
            let output = probe(stage, attackers[PROBED].pid(), "secret");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && said.contains("secret"), "{output:?}");
            let output = probe(stage, attackers[PROBED].pid(), "own");
            assert!(output.status.success(), "{output:?}");
            attackers[PROBED].say("enough");
        }
        String::new()
    };
    let options = ["-k", "default,profile"];
    let users = [NOBODY; KINDS];
    let scene = Scene { options: &options, users: &users, then: &then, ..Scene::default() };
    let recorded = stage.attack_in(&ATTACK, &scene);
    if !are_elsewhere.get() {
        return gate::skipped("no user may have a user namespace here");
    }
    assert!(!watched.is_opened(), "a file of root's was opened");
    let probed = Trace::open(&stage.path("probed")).expect("a trace");
    let calls = probed.rows::<Request>().map(|row| row.expect("a row"));
    let kinds: Vec<String> = calls.map(|call| call.kind.to_string()).collect();
    assert!(!kinds.is_empty(), "what the process executes is probed");
    assert!(kinds.iter().all(|kind| kind == &format!("{PROGRAM}:own")), "{kinds:?}");

    let frames = recorded.trace.rows::<FrameRow>().map(|row| row.expect("a row"));
    let frames: Vec<FrameRow> = frames.collect();
    let of = |number: usize, is_its: &dyn Fn(&str) -> bool| {
        let pid = recorded.attackers[number];
        let of_process: Vec<&FrameRow> = frames.iter().filter(|row| row.pid.0 == pid).collect();
        let its = of_process.iter().filter(|row| is_its(&row.object));
        let its: Vec<&str> = its.map(|row| &*row.function).collect();
        assert!(!its.is_empty(), "no sample of program {number}: {of_process:?}");
        its
    };
    let is_program = |object: &str| object.ends_with(&format!("/{PROGRAM}"));
    assert!(of(0, &is_program).iter().all(|function| *function == "own"));
    // Who looks after the file is gone finds none; a part may be converted before.
    let is_gone = |object: &str| object.is_empty() || is_program(object);
    assert!(of(1, &is_gone).iter().all(|function| ["", "own"].contains(function)));
    for number in [2, 3] {
        let compiled = of(number, &|object| ["", "JIT"].contains(&object));
        assert!(compiled.iter().all(|function| function.is_empty()), "{compiled:?}");
    }
    // The kernel has functions of such names itself.
    let of_programs = |row: &&FrameRow| &*row.object != "kernel";
    let secret = frames.iter().filter(of_programs).find(|row| row.function.contains(SECRET));
    assert!(secret.is_none(), "{secret:?}");
}
