//! Descriptors that do something to whoever opens them again: a lease that blocks, a terminal that is taken for
//! one's own, and a name of a file that only root may write.

use std::fs;
use std::os::fd::AsRawFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::Attack;
use crate::forged::{Forged, register};
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "descriptors", program, test };

/// A file that only root may open, and every user may name.
const ROOTS: &str = "/etc/shadow";

fn program(attacker: &Attacker) {
    let mut connections = Vec::new();
    // Whoever opens a leased file for writing waits for the holder, 45 s by default. This holder ignores the signal.
    let memfd = Forged::default().memfd();
    let own = format!("/proc/self/fd/{}", memfd.file.as_raw_fd());
    let lessor = open(own, OFlags::RDONLY, Mode::empty()).expect("a file of ours");
    // SAFETY: plain system calls on a descriptor of our own; to ignore a signal calls nothing.
    unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        assert_eq!(libc::fcntl(lessor.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK), 0);
    }
    connections.push(register(&attacker.socket, &memfd.file));
    // A session leader without a terminal gets the one that it opens, and SIGHUP when the other end closes.
    {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let slave = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("a terminal");
        connections.push(register(&attacker.socket, &slave));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let name = open(ROOTS, OFlags::PATH, Mode::empty()).expect("every file can be named");
    connections.push(register(&attacker.socket, &name));
    attacker.stay();
}

fn test(stage: &Stage) {
    let before = fs::metadata(ROOTS).expect("a file of root's").modified().expect("a time");
    let recorded = stage.attack(&ATTACK, &[]);
    recorded.assert_named("leased");
    recorded.assert_named("no memfd");
    let after = fs::metadata(ROOTS).expect("a file of root's").modified().expect("a time");
    assert_eq!(before, after);
}
