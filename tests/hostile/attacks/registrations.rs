//! Processes that register without end, and programs that fork for nothing else: whoever comes is recorded all the
//! same, and the agent keeps its descriptors.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::Attack;
use crate::crowd;
use crate::forged::{Forged, try_connection, try_hello};
use crate::stage::{Attacker, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "registrations", program, test };

/// Half of them register again and again, the others have children that do.
const PROCESSES: usize = 16;

/// Registrations that one process holds.
const HELD: usize = 200;

fn program(attacker: &Attacker) {
    crowd::run(attacker, PROCESSES, flood);
}

/// One more registration, of this process or of a child.
pub(crate) fn flood(socket: &str) -> impl FnMut() {
    let mut held = VecDeque::new();
    let has_children = std::process::id().is_multiple_of(2);
    move || {
        std::thread::sleep(Duration::from_millis(2));
        // A busy machine, or a full queue: again.
        let Some(connection) = try_connection(socket) else { return };
        let memfd = Forged::default().memfd();
        if has_children {
            // SAFETY: this process has one more thread, which holds no lock for ever; the child calls the
            // kernel only.
            match unsafe { libc::fork() } {
                0 => {
                    drop(connection);
                    if let Some(connection) = try_connection(socket) {
                        try_hello(&connection, memfd.file.as_fd());
                    }
                    // SAFETY: ends the process.
                    unsafe { libc::_exit(0) };
                }
                // SAFETY: waits for a child of ours.
                child => drop(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }),
            }
            return;
        }
        // Refused, as it may be at once: again, so that the flood does not end.
        if !try_hello(&connection, memfd.file.as_fd()) {
            return;
        }
        held.push_back((connection, memfd));
        if held.len() > HELD {
            held.pop_front();
        }
    }
}

fn test(stage: &Stage) {
    stage.attack_in(&ATTACK, &Scene { newcomers: 3, ..Scene::default() });
}
