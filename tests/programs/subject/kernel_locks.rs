//! Waits for a lock of the kernel whose holder, length and reason are known.
//!
//! Who writes to a file has its lock (`inode->i_rwsem`) while the kernel fetches what is to be written. What the holder
//! writes is a page that is not there until somebody brings it (userfaultfd(2)): so it sleeps and holds the lock, and who
//! writes to the file meanwhile waits for it, and cannot spin.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use ft_user::sync::Mutex;

use crate::futexes::asleep;
use crate::sched::{gettid, now_ns};

/// Held by who waits.
static HELD: Mutex<()> = Mutex::named("held", ());

/// How long the wait lasts, at least.
const WAIT: Duration = Duration::from_millis(2);

/// Bytes of a page.
const PAGE: usize = 4096;

/// Pages that are not there.
struct Absent {
    fault: OwnedFd,
    first: usize,
}

/// `_IOWR(0xAA, number, …)` (include/uapi/linux/userfaultfd.h).
const fn request(number: u64, bytes: usize) -> u64 {
    3 << 30 | (bytes as u64) << 16 | 0xaa << 8 | number
}

impl Absent {
    fn pages(n: usize) -> Absent {
        let length = n * PAGE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let map = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh private mapping, which stays for good.
        let first = unsafe { libc::mmap(null_mut(), length, prot, map, -1, 0) };
        assert_ne!(first, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        // SAFETY: no pointers.
        let fault = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        assert!(fault >= 0, "userfaultfd: {}", std::io::Error::last_os_error());
        // SAFETY: a descriptor that nobody else has.
        let fault = unsafe { OwnedFd::from_raw_fd(fault as i32) };
        let absent = Absent { fault, first: first as usize };
        const API: u64 = 0xaa;
        absent.ask(request(0x3f, 24), [API, 0, 0]);
        const MISSING: u64 = 1;
        absent.ask(request(0, 32), [absent.first as u64, length as u64, MISSING, 0]);
        absent
    }

    fn ask<const N: usize>(&self, what: u64, mut with: [u64; N]) {
        // SAFETY: `with` is as large as the request says.
        let status = unsafe { libc::ioctl(self.fault.as_raw_fd(), what, with.as_mut_ptr()) };
        assert_eq!(status, 0, "userfaultfd: {}", std::io::Error::last_os_error());
    }

    /// Writes a page to the file, when it is there.
    fn write(&self, page: usize, file: &File) {
        let at = (self.first + page * PAGE) as *const libc::c_void;
        // SAFETY: the page is mapped.
        let written = unsafe { libc::pwrite(file.as_raw_fd(), at, PAGE, 0) };
        assert_eq!(written, PAGE as isize);
    }

    /// Brings a page.
    fn bring(&self, page: usize) {
        self.ask(request(4, 32), [(self.first + page * PAGE) as u64, PAGE as u64, 0, 0]);
    }
}

fn file() -> File {
    let path = std::env::temp_dir().join(format!("ft-locks-{}", std::process::id()));
    let file = File::create(&path).expect("a file");
    std::fs::remove_file(&path).expect("remove");
    file
}

/// Starts a thread; returns its number, too.
fn start<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 's,
) -> (i32, ScopedJoinHandle<'s, T>) {
    let (tell, told): (_, Receiver<i32>) = mpsc::channel();
    let run = move || {
        ft_user::thread_init();
        tell.send(gettid()).expect("a listener");
        work()
    };
    let thread = thread::Builder::new().name(name.into()).spawn_scoped(scope, run).expect("spawn");
    (told.recv().expect("a thread"), thread)
}

/// Prints for each round: waiter, holder, just outside of the waiter's call, since when it slept for sure, and just
/// outside of the moment at which the holder's page came.
pub(crate) fn run(rounds: u64) -> String {
    let (file, absent) = (file(), Absent::pages(rounds as usize));
    let round = |page: usize| {
        thread::scope(|scope| {
            let (holder, holds) = start(scope, "holder", || absent.write(page, &file));
            asleep(holder);
            let (waiter, waits) = start(scope, "waiter", || {
                let _scope = ft_user::scope!("kernel.delayed");
                let held = HELD.lock().expect("a lock");
                let from = now_ns();
                file.write_all_at(b"x", 0).expect("write");
                let to = now_ns();
                drop(held);
                [from, to]
            });
            let slept = asleep(waiter);
            thread::sleep(WAIT);
            let brings = now_ns();
            absent.bring(page);
            let brought = now_ns();
            holds.join().expect("a holder");
            let [from, to] = waits.join().expect("a waiter");
            format!(
                "{{\"waiter\":{waiter},\"holder\":{holder},\"around\":[{from},{to}],\"asleep\":{slept},\
                 \"brought\":[{brings},{brought}]}}"
            )
        })
    };
    let rounds: Vec<String> = (0..rounds as usize).map(round).collect();
    format!("{{\"rounds\":[{}]}}", rounds.join(","))
}

/// Tells that a thread waits, and stays until it is killed.
pub(crate) fn stays() -> String {
    let (file, absent) = (file(), Absent::pages(1));
    thread::scope(|scope| {
        let (holder, _) = start(scope, "holder", || absent.write(0, &file));
        asleep(holder);
        let (waiter, _) = start(scope, "waiter", || file.write_all_at(b"x", 0));
        asleep(waiter);
        println!("{{\"waiter\":{waiter}}}");
    });
    String::new()
}
