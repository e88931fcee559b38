//! System calls and page faults in batches, between which whoever records has time to read.

use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use ft_costs::{cpu, cycles, fewer, median, tell};

/// Calls of a batch.
const CALLS: usize = 5_000;

const BATCHES: u64 = 21;

/// Before each batch.
const PAUSE: Duration = Duration::from_millis(20);

/// Bytes of a page.
const PAGE: usize = 4096;

/// Tells `name`, ns, of what `one` does, which gets its number in the batch; `before` is done before each batch.
fn batches(name: &str, before: impl Fn(), one: impl Fn(usize)) {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    let batch = || {
        std::thread::sleep(PAUSE);
        before();
        let start = cycles::begin();
        (0..CALLS).for_each(&one);
        (cycles::end() - start) as f64 / CALLS as f64 / per_ns
    };
    batch();
    tell(name, median((0..fewer(BATCHES, 3)).map(|_| batch()).collect()));
}

/// Tells `wake`, of threads at a futex where none waits, and `other`, a call that does next to nothing.
pub(crate) fn futex() {
    let word = AtomicU32::new(0);
    let wake = |_| {
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word lives, and the call does not look at it.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
    };
    batches("wake", || (), wake);
    other();
}

/// Tells `other`.
pub(crate) fn other() {
    let call = |_| {
        // SAFETY: takes no pointer.
        unsafe { libc::getppid() };
    };
    batches("other", || (), call);
}

/// Tells `fault`: the first write to a page that is not there.
pub(crate) fn fault() {
    let length = CALLS * PAGE;
    let (prot, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh private mapping, which stays for good.
    let pages = unsafe { libc::mmap(null_mut(), length, prot, flags, -1, 0) };
    assert_ne!(pages, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    let advise = |advice| {
        // SAFETY: the mapping is ours alone, and nothing refers to what is in it.
        assert_eq!(unsafe { libc::madvise(pages, length, advice) }, 0);
    };
    // A huge page would be one fault for 512 of them.
    advise(libc::MADV_NOHUGEPAGE);
    let first = pages.cast::<u8>();
    // SAFETY: the page is mapped, and nobody else writes to it.
    let touch = |page: usize| unsafe { first.add(page * PAGE).write_volatile(1) };
    batches("fault", || advise(libc::MADV_DONTNEED), touch);
}
