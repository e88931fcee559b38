//! Memory that faults: a memfd of huge pages can be sealed like any other, and whoever touches a page of which
//! the machine has none left gets `SIGBUS`.

use std::fs;
use std::ptr;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::Attack;
use crate::forged::{Forged, register, seal};
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "huge_pages", program, test };

const PAGE: u64 = 2 << 20;

/// Huge pages of the machine (`/proc/sys/vm/nr_hugepages`, proc_sys_vm(5)).
const POOL: &str = "/proc/sys/vm/nr_hugepages";

fn program(attacker: &Attacker) {
    let forged = Forged::filling(PAGE);
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let memfd = memfd_create("feather-trace", flags).expect("a memfd of huge pages");
    ftruncate(&memfd, forged.bytes()).expect("a size");
    if free_pages() > 0 {
        let (protection, flags) = (ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
        let header = forged.header();
        // SAFETY: a new map, of which the first page is there: only this program uses huge pages now.
        unsafe {
            let at =
                mmap(ptr::null_mut(), PAGE as usize, protection, flags, &memfd, 0).expect("a map");
            ptr::copy_nonoverlapping(header.as_ptr(), at.cast(), header.len());
        }
    }
    seal(&memfd);
    let _connection = register(&attacker.socket, &memfd);
    attacker.stay();
}

fn free_pages() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").expect("proc");
    let line = meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    line.and_then(|pages| pages.trim().parse().ok()).unwrap_or(0)
}

/// The machine's pool, as it was before when this is dropped.
struct Pool(String);

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = fs::write(POOL, &self.0);
    }
}

fn test(stage: &Stage) {
    // One page for the header, none for the rings. Where there cannot be one, the header is not there either.
    let pool = Pool(fs::read_to_string(POOL).expect("a kernel with huge pages"));
    if pool.0.trim() == "0" {
        fs::write(POOL, "1").expect("root");
    }
    stage.attack(&ATTACK, &[]).assert_named("huge pages");
}
