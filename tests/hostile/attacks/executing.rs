//! Processes that execute a program without end: a file that is closed on the way has a server that does not answer. Until it does, nobody
//! gets an answer who asks when such a process has begun, and none of them can be killed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::Attack;
use crate::forged::{Forged, hello, join, recorded, unconnected};
use crate::fuse::{self, Mounted};
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "executing", program, test };

/// The file in the file system.
const FILE: &str = "flushed";

/// Those that execute.
const CHILDREN: usize = 3;

fn program(attacker: &Attacker) {
    let file = fuse::path(&attacker.socket, FILE);
    let connection = unconnected();
    let mut children = [
        // Nobody knows it.
        child(&file, || (), || ()),
        // It is recorded.
        child(&file, || drop(recorded(&attacker.socket)), || ()),
        // It has connected, and its parent speaks for it.
        child(&file, || (), || join(&connection, &attacker.socket)),
    ];
    for child in &mut children {
        child.read_exact(&mut [0]).expect("it lives");
    }
    attacker.ready();
    hear();
    for child in &mut children {
        child.write_all(b"g").expect("it listens");
    }
    hear();
    hello(&connection, Forged::default().memfd().file.as_fd());
    println!("sent");
    attacker.wait();
}

/// Waits for a word of the suite.
fn hear() {
    io::stdin().read_line(&mut String::new()).expect("a word");
}

/// Starts a child that opens the file, does something, and once it is told to, some more, and executes a program.
fn child(file: &Path, before: impl FnOnce(), then: impl FnOnce()) -> UnixStream {
    let (parents, mut own) = UnixStream::pair().expect("a pair");
    // SAFETY: no other thread of this process runs.
    if unsafe { libc::fork() } != 0 {
        return parents;
    }
    // It ends with its parent, as soon as it can.
    set_parent_process_death_signal(Some(Signal::KILL)).expect("a signal");
    let _file = File::open(file).expect("an answer");
    before();
    own.write_all(b"r").expect("its parent listens");
    own.read_exact(&mut [0]).expect("a word");
    then();
    panic!("{}", Command::new("/bin/sleep").arg("1000").exec());
}

fn test(stage: &Stage) {
    let Some(mounted) = Mounted::beside(stage, FILE, b"any".to_vec()) else { return };
    let then = |stage: &Stage, attackers: &mut [Attacking]| {
        mounted.fall_silent();
        attackers[0].say("go");
        let until = Instant::now() + Duration::from_secs(100);
        while mounted.waiting() < CHILDREN {
            assert!(Instant::now() < until, "{} wait", mounted.waiting());
            thread::sleep(Duration::from_millis(1));
        }
        attackers[0].say("speak");
        assert_eq!(attackers[0].hear(), "sent");
        stage.newcomer()
    };
    stage.attack_in(&ATTACK, &Scene { then: &then, ..Scene::default() });
    assert_eq!(mounted.asked(), 0, "the agent has asked who does not answer");
    assert_eq!(mounted.waiting(), CHILDREN, "none has gone on");
}
