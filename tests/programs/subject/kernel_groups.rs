//! What the kernel groups `syscall`, `fault` and `lock` must show: pages that are touched for the first time,
//! a system call that fails in a known way, and threads that write one file at once.

use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::thread;
use std::time::{Duration, Instant};

use crate::{kernel_locks, sched};

/// Bytes of a page.
const PAGE: usize = 4096;

/// How long the writers write.
const WRITING: Duration = Duration::from_millis(200);

/// Prints the thread, the address of the first page and the file descriptor that is none.
pub(crate) fn run(pages: u64) -> String {
    ft_user::event!("groups.begin");
    let before = minor_faults();
    let first = touch(pages as usize);
    let minor = minor_faults() - before;
    for _ in 0..pages {
        // SAFETY: closes nothing.
        assert_eq!(unsafe { libc::close(-1) }, -1);
    }
    ft_user::event!("groups.end");
    write_one_file();
    // These may never meet, where they hardly get a CPU; here one waits for sure.
    kernel_locks::run(1);
    format!(
        "{{\"pages\":{pages},\"tid\":{},\"first\":{first},\"minor_faults\":{minor}}}",
        sched::gettid()
    )
}

/// Minor page faults of this thread so far, as the kernel counts them.
fn minor_faults() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it is written by the call, and zeroes are one.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    usage.ru_minflt
}

/// Writes to each of so many fresh pages; returns the address of the first.
fn touch(pages: usize) -> usize {
    let length = pages * PAGE;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh private mapping, which stays for good; each write is within it.
    unsafe {
        let at =
            libc::mmap(null_mut(), length, prot, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        assert_ne!(at, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        // A huge page would be one fault for many.
        libc::madvise(at, length, libc::MADV_NOHUGEPAGE);
        for page in 0..pages {
            at.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        at as usize
    }
}

/// Writers of one file wait for each other in the kernel.
fn write_one_file() {
    let path = std::env::temp_dir().join(format!("ft-subject-{}", std::process::id()));
    let file = std::fs::File::create(&path).expect("a file");
    std::fs::remove_file(&path).expect("remove");
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while begin.elapsed() < WRITING {
                    file.write_all_at(&[0; 1 << 18], 0).expect("write");
                }
            });
        }
    });
}
