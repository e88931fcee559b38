//! Connections of which one direction is shut down (shutdown(2)): before their message, after it, and the direction in
//! which the answer would come.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};

use crate::Attack;
use crate::forged::{Forged, connection, hello, try_connection, wait_for_hang_up};
use crate::stage::{Attacker, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "half_closed", program, test };

const CONNECTIONS: usize = 200;

fn program(attacker: &Attacker) {
    let mut held = Vec::new();
    for n in 0..CONNECTIONS {
        std::thread::sleep(Duration::from_millis(2));
        let Some(connection) = try_connection(&attacker.socket) else { continue };
        let close = |direction| shutdown(&connection, direction).expect("a socket of ours");
        let memfd = Forged::default().memfd();
        let speak = || hello(&connection, memfd.file.as_fd());
        match n % 4 {
            0 => close(Shutdown::Write),
            1 => {
                speak();
                close(Shutdown::Write);
            }
            2 => {
                close(Shutdown::Read);
                speak();
            }
            _ => {
                speak();
                close(Shutdown::Read);
            }
        }
        held.push((connection, memfd));
    }
    // It hears nothing, and says nothing.
    let silent = connection(&attacker.socket);
    shutdown(&silent, Shutdown::Read).expect("a socket of ours");
    wait_for_hang_up(&silent);
    attacker.stay();
}

fn test(stage: &Stage) {
    let recorded = stage.attack_in(&ATTACK, &Scene { newcomers: 3, ..Scene::default() });
    recorded.assert_named("could not register");
    recorded.assert_told(&["of user 65534", "sent nothing"]);
    let told = recorded.output.contains("went on before the agent had answered them");
    assert!(told, "who could not be answered\n{}", recorded.output);
}
