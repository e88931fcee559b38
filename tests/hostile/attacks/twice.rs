//! One memory that registers again and again, in the name of its process and of others: whoever reads it more than once has its
//! events more than once.

use std::os::fd::AsFd;

use ft_trace::tables::UserEvent;

use crate::Attack;
use crate::forged::{connection, hello, recorded};
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "twice", program, test };

const REGISTRATIONS: usize = 20;

const EVENTS: u64 = 5_000;

fn program(attacker: &Attacker) {
    let memfd = recorded(&attacker.socket);
    for n in 0..REGISTRATIONS {
        // SAFETY: no other thread of this process runs; the child calls the kernel only.
        let child = if n % 2 == 0 { 0 } else { unsafe { libc::fork() } };
        if n % 2 == 0 || child == 0 {
            let connection = connection(&attacker.socket);
            hello(&connection, memfd.as_fd());
            std::mem::forget(connection);
        }
        if n % 2 == 1 && child == 0 {
            // Longer than the recording, and not for ever.
            std::thread::sleep(std::time::Duration::from_secs(30));
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
    }
    for number in 0..EVENTS {
        ft_user::event!("twice.step", number: u64);
        if number % 50 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    attacker.stay();
}

fn test(stage: &Stage) {
    let recorded = stage.attack(&ATTACK, &[]);
    let honest = recorded.honest_threads();
    let mut steps = 0;
    for event in recorded.trace.rows::<UserEvent>() {
        let event = event.expect("a row");
        if &*event.event == "twice.step" {
            assert!(!honest.contains(&event.tid.0), "{event:?}");
            steps += 1;
        }
    }
    // Its own affair how often it says what.
    assert!(steps > 0, "it is recorded");
}
