//! Files whose looks cost the looker: a pipe under the name of one that is mapped, and a note of 3 GiB.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use ft_agent::collect::peer::Peer;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Attack;
use crate::forged::{Forged, register};
use crate::running::peak;
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "mapped_files", program, test };

const PAGE: usize = 4096;

/// The agent looks at its processes each second.
const SOME_LOOKS: Duration = Duration::from_secs(3);

/// What the agent may use of memory meanwhile, KiB.
const MODEST: u64 = 1 << 20;

fn program(attacker: &Attacker) {
    let folder = tempfile::tempdir().expect("a folder");
    let (large, name) = (folder.path().join("large"), folder.path().join("name"));
    sparse_elf(&large);
    let _large = map(&large);
    let memfd = Forged::default().memfd();
    let connection = register(&attacker.socket, &memfd.file);
    let agent = Peer::of(&connection).expect("the agent").pid;
    let spare = folder.path().join("spare");
    let flip = || {
        fs::write(&spare, [0; PAGE]).and_then(|()| fs::rename(&spare, &name)).expect("a file");
        let at = map(&name);
        mkfifoat(CWD, &spare, Mode::RWXU).expect("a pipe");
        fs::rename(&spare, &name).expect("a name");
        std::thread::sleep(Duration::from_millis(1));
        // SAFETY: mapped above, and not used.
        unsafe { munmap(at, PAGE) }.expect("a mapping");
    };
    let until = Instant::now() + SOME_LOOKS;
    while Instant::now() < until {
        flip();
    }
    let peak = peak(agent).expect("the agent runs");
    assert!(peak < MODEST, "the agent has used {peak} KiB");
    attacker.stay();
}

/// An ELF file with one segment of notes that is 3 GiB long, all zeros.
fn sparse_elf(path: &Path) {
    const HEADER_BYTES: usize = 64;
    let mut bytes = [0; HEADER_BYTES + 56];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"\x7fELF\x02\x01\x01");
    // A shared object for x86-64.
    put(16, &[3, 0, 62, 0, 1]);
    put(32, &(HEADER_BYTES as u64).to_le_bytes());
    put(52, &[64, 0, 56, 0, 1, 0]);
    put(HEADER_BYTES, &4u32.to_le_bytes());
    put(HEADER_BYTES + 8, &(PAGE as u64).to_le_bytes());
    put(HEADER_BYTES + 32, &(3u64 << 30).to_le_bytes());
    put(HEADER_BYTES + 48, &4u64.to_le_bytes());
    let mut file = fs::File::create(path).expect("a file");
    file.write_all(&bytes).and_then(|()| file.set_len(4 << 30)).expect("a sparse file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its rights");
}

/// Maps the first page of a file as program text.
fn map(path: &Path) -> *mut std::ffi::c_void {
    let file = fs::File::open(path).expect("a file");
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: a new mapping, which is not used.
    unsafe { mmap(ptr::null_mut(), PAGE, protection, MapFlags::PRIVATE, file.as_fd(), 0) }
        .expect("a mapping")
}

fn test(stage: &Stage) {
    stage.attack(&ATTACK, &[]);
}
