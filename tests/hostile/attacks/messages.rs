//! Messages that are none: cut, too long, of another version, without a descriptor or with as many as fit, and connections that
//! are closed in the middle of it all, before and after the message. What comes with them must not stay open.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ft_user::layout::{MAGIC, VERSION};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::Attack;
use crate::forged::{Forged, try_connection};
use crate::stage::{Attacker, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "messages", program, test };

/// Enough that the agent would run out of descriptors if it kept them.
const MESSAGES: usize = 6_000;

/// The kernel takes no more at once (SCM_MAX_FD).
const DESCRIPTORS: usize = 253;

fn program(attacker: &Attacker) {
    let memfd = Forged::default().memfd();
    let hello = [&MAGIC.to_ne_bytes()[..], &VERSION.to_ne_bytes(), &[0; 4]].concat();
    let other = [&MAGIC.to_ne_bytes()[..], &(VERSION + 1).to_ne_bytes(), &[0; 4]].concat();
    let long = hello.repeat(4_000);
    let messages: [(&[u8], usize); 8] = [
        (&hello, 0),
        (&hello, 2),
        (&hello, DESCRIPTORS),
        (&hello[..7], 1),
        (&hello[..1], DESCRIPTORS),
        (&other, 1),
        (&long, 1),
        (&[], 0),
    ];
    for n in 0..MESSAGES {
        // A full queue: a little later.
        let Some(connection) = try_connection(&attacker.socket) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let (message, descriptors) = messages[n % messages.len()];
        send(connection.as_fd(), message, &vec![memfd.file.as_fd(); descriptors]);
        // Closed, whatever the agent is doing with it.
    }
    attacker.stay();
}

/// Sends so much of a message, if the agent takes it.
fn send(connection: BorrowedFd<'_>, message: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    let _ = sendmsg(connection, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL);
}

fn test(stage: &Stage) {
    let recorded = stage.attack_in(&ATTACK, &Scene { newcomers: 3, ..Scene::default() });
    recorded.assert_told(&["of user 65534", "could not register"]);
}
