//! Descriptors that take for ever to be closed: TCP sockets that linger, and a file whose server does not answer.

use std::fs::File;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::Attack;
use crate::forged::register;
use crate::fuse::{self, Mounted};
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "lingering", program, test };

/// The file in the file system.
const FILE: &str = "flushed";

/// Of each kind. More than there are threads for one user.
const SENT: usize = 20;

fn program(attacker: &Attacker) {
    let file = File::open(fuse::path(&attacker.socket, FILE)).expect("an answer");
    attacker.ready();
    // The server ignores the agent from now on.
    io::stdin().read_line(&mut String::new()).expect("a word");
    let mut held: Vec<OwnedFd> = Vec::new();
    for _ in 0..SENT {
        held.push(register(&attacker.socket, &file));
        let (one, unread) = lingering();
        held.push(register(&attacker.socket, one));
        held.push(unread.into());
    }
    println!("sent");
    attacker.wait();
}

/// A connection of which nobody reads the other end: closed, it lingers for an hour.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut one = TcpStream::connect(address).expect("a connection");
    let (unread, _) = listener.accept().expect("a connection");
    set_socket_linger(&one, Some(Duration::from_secs(3600))).expect("an option");
    one.set_nonblocking(true).expect("an option");
    while one.write(&[0; 1 << 16]).is_ok() {}
    (one, unread)
}

fn test(stage: &Stage) {
    let Some(mounted) = Mounted::beside(stage, FILE, b"any".to_vec()) else { return };
    let then = |stage: &Stage, attackers: &mut [Attacking]| {
        mounted.ignore_the_agent();
        attackers[0].say("go");
        assert_eq!(attackers[0].hear(), "sent");
        stage.newcomer()
    };
    let recorded = stage.attack_in(&ATTACK, &Scene { then: &then, ..Scene::default() });
    assert!(mounted.asked() > 0, "nothing of the agent's waits");
    recorded.assert_told(&["of user 65534", "could not register", "no memfd"]);
}
