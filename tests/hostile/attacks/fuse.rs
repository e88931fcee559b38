//! A file whose file system does not answer any more: a program of some user does (FUSE), and it likes to have others wait.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ft_tests::gate;
use ft_trace::convert::synthetic::program::named;
use ft_trace::tables::FrameRow;

use crate::Attack;
use crate::code::run;
use crate::forged::recorded;
use crate::fuse::Mounted;
use crate::stage::{Attacker, Attacking, NOBODY, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "fuse", program, test };

/// Where it is mounted, beside the trace, and the file in it.
const PLACE: &str = "answered";
const FILE: &str = "hangs";

pub(super) fn program(attacker: &Attacker) {
    let trace = Path::new(&attacker.socket).parent().expect("a trace");
    let _memfd = recorded(&attacker.socket);
    run(&trace.with_file_name(PLACE).join(FILE), Duration::from_millis(500));
    attacker.stay();
}

fn test(stage: &Stage) {
    let place = stage.path(PLACE);
    fs::create_dir(&place).expect("a directory");
    let Some(mounted) = Mounted::at(&place, NOBODY, FILE, named(b"named")) else {
        return gate::skipped("no file system can be mounted that a program answers for");
    };
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
