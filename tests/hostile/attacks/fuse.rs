//! A file whose file system does not answer any more: a program of some user does (FUSE), and it likes to have others wait.

use std::time::Duration;

use ft_trace::convert::synthetic::program::named;
use ft_trace::tables::FrameRow;

use crate::Attack;
use crate::code::run;
use crate::forged::recorded;
use crate::fuse::{self, Mounted};
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "fuse", program, test };

/// The file in it.
const FILE: &str = "hangs";

pub(super) fn program(attacker: &Attacker) {
    let _memfd = recorded(&attacker.socket);
    run(&fuse::path(&attacker.socket, FILE), Duration::from_millis(500));
    attacker.stay();
}

fn test(stage: &Stage) {
    let Some(mounted) = Mounted::beside(stage, FILE, named(b"named")) else { return };
    let then = |_: &Stage, _: &mut [Attacking]| {
        mounted.fall_silent();
        String::new()
    };
    let options = ["-k", "default,profile"];
    let scene = Scene { options: &options, then: &then, ..Scene::default() };
    let recorded = stage.attack_in(&ATTACK, &scene);
    assert_eq!(mounted.asked(), 0, "the agent has asked who does not answer");
    let frames = recorded.trace.rows::<FrameRow>().map(|row| row.expect("a row"));
    let its: Vec<FrameRow> = frames.filter(|row| row.object.ends_with(FILE)).collect();
    assert!(!its.is_empty() && its.iter().all(|row| row.function.is_empty()), "{its:?}");
}
