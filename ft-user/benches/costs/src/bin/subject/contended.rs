//! A wait for a lock of the kernel, in each round the same one: a thread writes a page that is not there (userfaultfd(2)) to a
//! file, whose lock it so holds asleep, and another one writes to the file and waits for that lock, until the page is brought.
//!
//! All share one CPU, and each has a higher real-time priority than the one that has it go on: so each runs at once, and until
//! it sleeps.

use std::fs::File;
use std::io::{Error, PipeReader, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::thread;
use std::time::Duration;

use ft_costs::{cpu, cycles, fewer, median, tell};

const ROUNDS: u64 = 500;
const BATCHES: u64 = 21;

/// Before each batch, in which whoever records has time to read.
const PAUSE: Duration = Duration::from_millis(20);

/// Bytes of a page.
const PAGE: usize = 4096;

/// What the one that waits writes.
static BYTE: u8 = 0;

/// `_IOWR(0xAA, number, …)` (include/uapi/linux/userfaultfd.h).
const fn request(number: u64, bytes: usize) -> u64 {
    3 << 30 | (bytes as u64) << 16 | 0xaa << 8 | number
}

/// A page that is not there until it is brought.
#[derive(Clone, Copy)]
struct Absent {
    fault: i32,
    at: usize,
}

impl Absent {
    fn new() -> Absent {
        let (prot, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh private mapping, which stays for good.
        let at = unsafe { libc::mmap(null_mut(), PAGE, prot, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED, "mmap: {}", Error::last_os_error());
        // SAFETY: no pointers.
        let fault = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        assert!(fault >= 0, "userfaultfd: {}", Error::last_os_error());
        let absent = Absent { fault: fault as i32, at: at as usize };
        absent.ask(request(0x3f, 24), [0xaa, 0, 0]);
        const MISSING: u64 = 1;
        absent.ask(request(0, 32), [absent.at as u64, PAGE as u64, MISSING, 0]);
        absent
    }

    fn ask<const N: usize>(self, what: u64, mut with: [u64; N]) {
        // SAFETY: `with` is as large as the request says.
        let status = unsafe { libc::ioctl(self.fault, what, with.as_mut_ptr()) };
        assert_eq!(status, 0, "userfaultfd: {}", Error::last_os_error());
    }

    /// Has it be not there again.
    fn forget(self) {
        // SAFETY: the mapping is ours alone, and nothing refers to what is in it.
        assert_eq!(unsafe { libc::madvise(self.at as *mut _, PAGE, libc::MADV_DONTNEED) }, 0);
    }

    /// Brings it, full of zeros.
    fn bring(self) {
        self.ask(request(4, 32), [self.at as u64, PAGE as u64, 0, 0]);
    }
}

/// Writes `bytes` from an address to the begin of a file.
fn write(file: &File, from: usize, bytes: usize) {
    // SAFETY: as many bytes are mapped there.
    let written = unsafe { libc::pwrite(file.as_raw_fd(), from as *const _, bytes, 0) };
    assert_eq!(written, bytes as isize, "write: {}", Error::last_os_error());
}

/// Gives the calling thread a real-time priority.
fn fifo(sched_priority: i32) {
    let parameter = libc::sched_param { sched_priority };
    // SAFETY: `parameter` is valid.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) };
    assert_eq!(set, 0, "a real-time priority: {}", Error::last_os_error());
}

/// Does `work` for each byte that comes.
fn for_each_byte(priority: i32, mut bytes: PipeReader, work: impl Fn()) {
    fifo(priority);
    while bytes.read(&mut [0]).is_ok_and(|n| n == 1) {
        work();
    }
}

/// Tells `round`, ns: a fault, a wait, and what has all three threads go on.
pub(crate) fn measure() {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    let absent = Absent::new();
    let path = std::env::temp_dir().join(format!("ft-costs-{}", std::process::id()));
    let file = File::create(&path).expect("a file");
    std::fs::remove_file(&path).expect("the file can be removed");
    let (hold, mut holds) = pipe().expect("a pipe");
    let (want, mut wants) = pipe().expect("a pipe");
    thread::scope(|scope| {
        // They inherit the CPU.
        scope.spawn(|| for_each_byte(2, hold, || write(&file, absent.at, PAGE)));
        scope.spawn(|| for_each_byte(3, want, || write(&file, (&raw const BYTE) as usize, 1)));
        fifo(1);
        let mut batch = || {
            thread::sleep(PAUSE);
            let start = cycles::begin();
            for _ in 0..ROUNDS {
                absent.forget();
                holds.write_all(&[0]).expect("the other end is open");
                wants.write_all(&[0]).expect("the other end is open");
                absent.bring();
            }
            (cycles::end() - start) as f64 / ROUNDS as f64 / per_ns
        };
        batch();
        tell("round", median((0..fewer(BATCHES, 3)).map(|_| batch()).collect()));
        drop((holds, wants));
    });
}
