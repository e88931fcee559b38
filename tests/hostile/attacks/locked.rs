//! The lock of a memfd's inode, which a program holds without end: it writes to it from a page of a file whose server does not answer.
//! Whoever asks where in the memfd something was written (`SEEK_DATA`) waits for that lock.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use ft_user::layout::{MIN_RING_SLOTS, PAGE, ring_state};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::Attack;
use crate::forged::{Forged, register, wait_for_answer};
use crate::fuse::{self, Mounted};
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "locked", program, test };

/// The file in the file system.
const FILE: &str = "unread";

fn program(attacker: &Attacker) {
    let file = File::open(fuse::path(&attacker.socket, FILE)).expect("an answer");
    let (bytes, flags) = (PAGE as usize, MapFlags::PRIVATE);
    // SAFETY: a new mapping, which nobody but the kernel reads.
    let page = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, flags, file.as_fd(), 0) };
    let page = page.expect("a mapping");
    // While there is an answer to that.
    drop(file);
    // The agent is to ask where something was written: events are reserved in pages that do not exist.
    let memfd = Forged { rings: 8, rings_used: 8, ..Forged::default() }.memfd();
    memfd.claim(0, u64::from(MIN_RING_SLOTS) + 300, ring_state::LIVE);
    let connection = register(&attacker.socket, &memfd.file);
    wait_for_answer(&connection);
    attacker.ready();
    // The server falls silent.
    io::stdin().read_line(&mut String::new()).expect("a word");
    // A child, since who waits so cannot be killed.
    // SAFETY: no other thread of this process runs.
    if unsafe { libc::fork() } == 0 {
        set_parent_process_death_signal(Some(Signal::KILL)).expect("a signal");
        // SAFETY: the page stays mapped.
        unsafe { libc::pwrite(memfd.file.as_raw_fd(), page, bytes, memfd.ring(1) as i64) };
        panic!("it has been answered");
    }
    println!("sent");
    attacker.wait();
}

fn test(stage: &Stage) {
    let content = vec![1; PAGE as usize];
    let Some(mounted) = Mounted::beside(stage, FILE, content) else { return };
    let then = |stage: &Stage, attackers: &mut [Attacking]| {
        mounted.fall_silent();
        attackers[0].say("go");
        assert_eq!(attackers[0].hear(), "sent");
        let until = Instant::now() + Duration::from_secs(100);
        while mounted.waiting() == 0 {
            assert!(Instant::now() < until, "nobody waits");
            thread::sleep(Duration::from_millis(1));
        }
        stage.newcomer()
    };
    stage.attack_in(&ATTACK, &Scene { then: &then, ..Scene::default() });
    assert_eq!(mounted.waiting(), 1, "it has gone on");
}
