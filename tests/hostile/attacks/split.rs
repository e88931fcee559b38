//! Programs whose debugging information says that the rest of it is in another file: a pipe that nobody writes to, and a file that can
//! be watched.

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ft_trace::convert::synthetic::program::split;
use ft_trace::tables::FrameRow;
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::Attack;
use crate::code::run;
use crate::forged::recorded;
use crate::stage::{Attacker, Attacking, NOBODY, Scene, Stage};
use crate::watched::Watched;

pub(crate) const ATTACK: Attack = Attack { name: "split", program, test };

/// What the rest is in.
const PIPE: &str = "pipe.dwo";
const FILE: &str = "file.dwo";

pub(super) fn program(attacker: &Attacker) {
    let _memfd = recorded(&attacker.socket);
    let folder = tempfile::tempdir().expect("a folder");
    mkfifoat(CWD, folder.path().join(PIPE), Mode::RWXU).expect("a pipe");
    fs::write(folder.path().join(FILE), "nothing").expect("a file");
    for rest in [PIPE, FILE] {
        let path = folder.path().join(rest).with_extension("split");
        fs::write(&path, split(folder.path().to_str().expect("UTF-8"), rest)).expect("a file");
        run(&path, Duration::from_secs(1));
    }
    attacker.ready();
    println!("{}", folder.path().display());
    attacker.wait();
}

fn test(stage: &Stage) {
    let watched = OnceCell::new();
    let then = |_: &Stage, attackers: &mut [Attacking]| {
        let folder = PathBuf::from(attackers[0].hear());
        let _ = watched.set((Watched::all([folder.join(FILE)]), folder));
        String::new()
    };
    let options = ["-k", "default,profile"];
    let scene = Scene { options: &options, then: &then, ..Scene::default() };
    let recorded = stage.attack_in(&ATTACK, &scene);
    let (watched, folder) = watched.get().expect("it was there");
    assert!(!watched.is_opened(), "a file was opened by its name");
    fs::remove_dir_all(folder).expect("its folder");
    // Who waits for the pipe would be said to have taken too long.
    let warnings = recorded.trace.meta().warnings.iter().map(ToString::to_string);
    let own = format!("of the user with number {NOBODY} ");
    let warnings: Vec<String> = warnings.filter(|warning| warning.contains(&own)).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    for name in ["pipe.split", "file.split"] {
        let mut frames = recorded.trace.rows::<FrameRow>().map(|row| row.expect("a row"));
        let frame = frames.find(|row| row.object.ends_with(name)).expect("a sample");
        assert_eq!(&*frame.function, "split", "its own symbols are read");
    }
}
