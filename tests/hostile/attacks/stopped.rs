//! Processes that are stopped in the middle of their registration, by a signal and by a tracer: before they have said
//! anything, and before they have read the answer.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr;

use crate::Attack;
use crate::forged::{Forged, hello, join, unconnected, wait_for_hang_up};
use crate::stage::{Attacker, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "stopped", program, test };

fn program(attacker: &Attacker) {
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    let stop = |(speaks, is_traced)| stopped(&attacker.socket, speaks, is_traced);
    let connections: Vec<OwnedFd> = kinds.into_iter().map(stop).collect();
    // The agent has given up on those that say nothing, and answered the others.
    connections.iter().for_each(wait_for_hang_up);
    attacker.stay();
}

/// Our copy of the connection of a child that is stopped before it has spoken, or before it has heard.
fn stopped(socket: &str, speaks: bool, is_traced: bool) -> OwnedFd {
    let connection = unconnected();
    // SAFETY: no other thread of this process runs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: plain system calls; a tracer is the parent, which never lets it go on.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if is_traced {
                libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<()>(), ptr::null_mut::<()>());
            }
        }
        join(&connection, socket);
        if speaks {
            hello(&connection, Forged::default().memfd().file.as_fd());
        }
        // SAFETY: stops this process for good, and ends it if somebody continues it.
        unsafe {
            libc::raise(libc::SIGSTOP);
            libc::_exit(0);
        }
    }
    let mut status = 0;
    // SAFETY: waits for a child of ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, libc::WUNTRACED) }, child);
    assert!(libc::WIFSTOPPED(status), "{status:#x}");
    connection
}

fn test(stage: &Stage) {
    let recorded = stage.attack_in(&ATTACK, &Scene { newcomers: 3, ..Scene::default() });
    recorded.assert_told(&["2 registrations of user 65534 could not register", "sent nothing"]);
}
