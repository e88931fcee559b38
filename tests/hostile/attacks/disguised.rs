//! Descriptors that have the name of a tracer's memory, and are of a device and of a file that only root may open.

use std::cell::Cell;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ft_tests::gate;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat, readlink};

use crate::Attack;
use crate::forged::recorded;
use crate::namespace;
use crate::stage::{Attacker, Attacking, Scene, Stage};
use crate::watched::Watched;

pub(crate) const ATTACK: Attack = Attack { name: "disguised", program, test };

/// What `/proc` shows for a descriptor of a tracer's memory.
const NAME: &str = "memfd:feather-trace (deleted)";

/// Root's, beside the trace.
const THEIRS: [&str; 2] = ["device", "file"];

pub(super) fn program(attacker: &Attacker) {
    let trace = Path::new(&attacker.socket).parent().expect("a trace");
    let _memfd = recorded(&attacker.socket);
    if !namespace::enter() {
        attacker.ready();
        println!("nobody may");
        return attacker.wait();
    }
    let disguised = THEIRS.map(|name| {
        let (held, tree) = namespace::renamed(&trace.with_file_name(name), NAME);
        let link = readlink(format!("/proc/self/fd/{}", held.as_raw_fd()), Vec::new());
        assert_eq!(link.expect("a link").to_str(), Ok(&*format!("/{NAME}")));
        (held, tree)
    });
    attacker.ready();
    println!("has {}", disguised.len());
    attacker.wait();
}

/// What only root may open there.
pub(super) fn prepare(stage: &Stage) -> Watched {
    let [device, file]: [PathBuf; 2] = THEIRS.map(|name| stage.path(name));
    fs::write(&file, "a secret of root").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("its rights");
    // The null device, which others may open elsewhere.
    let null = makedev(1, 3);
    mknodat(CWD, &device, FileType::CharacterDevice, Mode::RUSR | Mode::WUSR, null)
        .unwrap_or_else(|_| fs::write(&device, "no device can be made here").expect("a file"));
    fs::set_permissions(&device, fs::Permissions::from_mode(0o600)).expect("its rights");
    Watched::all([device, file])
}

fn test(stage: &Stage) {
    let watched = prepare(stage);
    let are_disguised = Cell::new(true);
    let then = |stage: &Stage, attackers: &mut [Attacking]| {
        are_disguised.set(attackers[0].hear() == "has 2");
        let pid = attackers[0].pid().to_string();
        let second = stage.path("second");
        let second = second.to_str().expect("UTF-8");
        for words in [
            &["sites", "-p", &pid][..],
            &["enable", "-p", &pid, "*"],
            &["record", "-k", "none", "-d", "100ms", "-p", &pid, "-o", second],
        ] {
            let output = Command::new(ft_tests::agent()).args(words).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // It has found the tracer's own memory among them.
            let is_recorded = said.contains("another agent already records it");
            assert!(output.status.success() || is_recorded, "{words:?}: {output:?}");
        }
        String::new()
    };
    stage.attack_in(&ATTACK, &Scene { then: &then, ..Scene::default() });
    if !are_disguised.get() {
        return gate::skipped("no user may have a user namespace here");
    }
    assert!(!watched.is_opened(), "what is no memory was opened");
}
