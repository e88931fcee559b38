//! Thousands of connections that say nothing, made anew as they are closed: they keep nobody out.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Attack;
use crate::crowd;
use crate::forged::try_connection;
use crate::stage::{Attacker, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "silent", program, test };

const PROCESSES: usize = 10;

/// Of each process.
const CONNECTIONS: usize = 440;

fn program(attacker: &Attacker) {
    crowd::run(attacker, PROCESSES, flood);
}

/// One more connection.
pub(crate) fn flood(socket: &str) -> impl FnMut() {
    let mut held = VecDeque::new();
    move || {
        held.extend(try_connection(socket));
        if held.len() > CONNECTIONS {
            held.pop_front();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn test(stage: &Stage) {
    let recorded = stage.attack_in(&ATTACK, &Scene { newcomers: 3, ..Scene::default() });
    recorded.assert_told(&["of user 65534", "could not register", "sent nothing"]);
}
