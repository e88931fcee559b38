//! Memory that is not there until its program brings it (userfaultfd(2)), which it never does: a library is mapped over it, so that whoever
//! looks for sites reads it. The kernel has nobody wait for an ordinary user's program but that itself, so this one is lent a device by which
//! everybody waits.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::ptr;

use ft_tests::gate;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::Attack;
use crate::forged::recorded;
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "unanswered", program, test };

/// Bytes of the library, none of which is there.
const BYTES: usize = 1 << 20;

/// The device's number in the attacker.
const LENT: i32 = 200;

fn program(attacker: &Attacker) {
    let _memfd = recorded(&attacker.socket);
    let path = PathBuf::from(format!("/dev/shm/unanswered-{}.so", std::process::id()));
    let file = File::create_new(&path).expect("a file");
    file.set_len(BYTES as u64).expect("a size");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its rights");
    let file = File::options().read(true).write(true).open(&path).expect("a file");
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: a new mapping, which is not used.
    let at = unsafe { mmap(ptr::null_mut(), BYTES, protection, MapFlags::SHARED, file.as_fd(), 0) };
    let faults = asked_for(at.expect("a mapping") as u64);
    // The agent looks at its processes each second, or later on a busy machine.
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    let asked = poll(&mut [PollFd::new(&faults, PollFlags::IN)], Some(&limit));
    attacker.ready();
    println!("asked {}", asked.is_ok_and(|asked| asked > 0));
    attacker.wait();
    let _ = fs::remove_file(path);
}

/// Has the kernel ask this process for each page of the mapping.
fn asked_for(begin: u64) -> OwnedFd {
    const NEW: u64 = 0xaa00;
    const API: u64 = 0xc018_aa3f;
    const REGISTER: u64 = 0xc020_aa00;
    // SAFETY: takes numbers alone.
    let faults = unsafe { libc::ioctl(LENT, NEW, libc::O_CLOEXEC) };
    assert!(faults >= 0, "the device is lent");
    // SAFETY: a new descriptor.
    let faults = unsafe { OwnedFd::from_raw_fd(faults) };
    // Its version, and what it answers; place, size, what is missing, and what it answers (linux/userfaultfd.h).
    let mut version = [0xaa_u64, 0, 0];
    let mut place = [begin, BYTES as u64, 1, 0];
    // SAFETY: what these read and write has this size.
    let answers = unsafe {
        [
            libc::ioctl(faults.as_raw_fd(), API, version.as_mut_ptr()),
            libc::ioctl(faults.as_raw_fd(), REGISTER, place.as_mut_ptr()),
        ]
    };
    assert_eq!(answers, [0, 0], "{}", std::io::Error::last_os_error());
    faults
}

fn test(stage: &Stage) {
    let Ok(device) = File::options().read(true).write(true).open("/dev/userfaultfd") else {
        return gate::skipped("the kernel has no /dev/userfaultfd (Linux 6.1)");
    };
    // SAFETY: nothing else has this number, which what is started inherits.
    let lent = unsafe { libc::dup2(device.as_raw_fd(), LENT) };
    // SAFETY: opened above.
    let lent = unsafe { OwnedFd::from_raw_fd(lent) };
    let then = |_: &Stage, attackers: &mut [Attacking]| {
        assert_eq!(attackers[0].hear(), "asked true", "the agent has read it");
        String::new()
    };
    let recorded = stage.attack_in(&ATTACK, &Scene { then: &then, ..Scene::default() });
    drop(lent);
    let _ = fs::remove_file(format!("/dev/shm/unanswered-{}.so", recorded.attacker));
}
