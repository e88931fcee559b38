//! A process that executes itself again and again, and registers each time: under one number, and from kernel to agent each
//! time another program.

use std::os::unix::process::CommandExt;
use std::process::Command;

use ft_trace::tables::UserEvent;

use crate::Attack;
use crate::stage::{Attacker, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "execs", program, test };

/// How often it has executed itself.
const DONE: &str = "HOSTILE_EXECS";

const EXECS: u64 = 100;

fn program(attacker: &Attacker) {
    let done = std::env::var(DONE).map_or(0, |done| done.parse().expect("a number"));
    // SAFETY: no other thread of this process runs yet.
    unsafe { std::env::set_var("FT_SOCKET", &attacker.socket) };
    ft_user::init().expect("the tracer starts");
    ft_user::enable("*");
    ft_user::event!("execs.step", done: u64);
    if done < EXECS {
        let mut again = Command::new("/proc/self/exe");
        again.args(std::env::args_os().skip(1)).env(DONE, (done + 1).to_string());
        panic!("exec: {}", again.exec());
    }
    attacker.stay();
}

fn test(stage: &Stage) {
    let recorded = stage.attack_in(&ATTACK, &Scene { newcomers: 3, ..Scene::default() });
    let events = recorded.trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let theirs = events.filter(|event| &*event.event == "execs.step");
    let steps: Vec<_> = theirs.map(|event| (event.pid.0, event.arg[0])).collect();
    // One of its programs may have been refused, which is said; none is there twice, or in another's name.
    let is_refused = recorded.output.contains("could not register");
    assert!(!steps.is_empty());
    assert!(is_refused || steps.len() as u64 == EXECS + 1, "{}", steps.len());
    assert!(steps.is_sorted_by(|a, b| a.1 < b.1), "{steps:?}");
    assert!(steps.iter().all(|(pid, _)| *pid == recorded.attacker), "{steps:?}");
    // A program that has made room for the next is no fault of its sites.
    assert!(!recorded.output.contains("stay off"), "{}", recorded.output);
}
