//! Floods by six users at once, half of them in the session of the recording, of registrations and of connections that
//! say nothing: each has a share, and so has whoever comes.

use crate::Attack;
use crate::attacks::{registrations, silent};
use crate::crowd;
use crate::stage::{Attacker, NOBODY, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "users", program, test };

/// Of these the honest newcomers are none.
const USERS: [u32; 6] = [NOBODY, 2, 3, 4, 5, 6];

/// Of each user.
const PROCESSES: usize = 4;

fn program(attacker: &Attacker) {
    if rustix::process::getuid().as_raw().is_multiple_of(2) {
        // Refused to its members, who are in the session already.
        let _ = rustix::process::setsid();
    }
    crowd::run(attacker, PROCESSES, |socket| {
        let (mut register, mut connect) = (registrations::flood(socket), silent::flood(socket));
        move || {
            register();
            connect();
        }
    });
}

fn test(stage: &Stage) {
    let scene = Scene { users: &USERS, newcomers: 3, ..Scene::default() };
    let recorded = stage.attack_in(&ATTACK, &scene);
    for user in USERS {
        recorded.assert_told(&[&format!("of user {user} "), "could not register"]);
    }
}
