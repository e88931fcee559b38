//! `libft_preload.so`: the pthread locks of a program, traced without a change to the program.
//!
//! `ft-agent record --preload -- CMD` runs a command with it; by hand, set `LD_PRELOAD` to its path.
//! It stands in front of the C library's mutexes, reader-writer locks, spin locks, condition waits,
//! semaphores, barriers and `pthread_once`, and writes the events of `ft_user::sync`, with the return address of the call in place
//! of the source place.
//!
//! # The way of a call
//!
//! ```text
//! pthread_mutex_lock:                        one trigger for each event that the call can cause
//!     nop                lock.mutex_wait         off (on: jmp 9f)
//!     nop                lock.mutex_acquire      off (on: jmp 9f)
//!     jmp [REAL]         the C library's, straight
//! 9:  mov rsi, [rsp]     the caller's return address as a further argument
//!     jmp mutex::lock    in Rust: tries, tells, waits, tells
//! ```
//!
//! While its events are off, a call costs the two nops and the jump (`cargo xtask bench pthread`). The trigger of a
//! stub and those in the Rust function behind it share their metadata, so a glob switches them together.
//!
//! # Events
//!
//! | event | when | arguments |
//! |---|---|---|
//! | `lock.mutex_wait` | it is taken, and the thread is about to block | lock, caller |
//! | `lock.mutex_acquire` | the thread has it | lock, caller |
//! | `lock.mutex_abandon` | the wait ended without it: time-out, deadlock detected | lock, caller |
//! | `lock.mutex_release` | just before it is given back | lock, caller |
//! | `lock.rwlock_read_…`, `lock.rwlock_write_…`, `lock.rwlock_release` | the same | lock, caller |
//! | `lock.spin_…` | the same; the wait spins | lock, caller |
//! | `lock.cond_wait`, `lock.cond_wake` | around a condition wait | lock, caller, condition |
//! | `lock.semaphore_…` | the same for wait and post | semaphore, caller |
//! | `lock.barrier_wait`, `lock.barrier_wake` | around a wait at a barrier | barrier, caller |
//! | `lock.once_wait`, `lock.once_wake` | around a wait for a thread that is in the routine of `pthread_once` | its control, caller |
//!
//! | `fn.instrumented` | a function begins, or ends, of a program that is compiled with `-finstrument-functions`, or of which clang's sleds are on, or gcc's patchable entries | function, `ft_user::layout::Frame` |
//!
//! A contended acquisition tries once, then tells that it waits, and waits. A failed attempt (`trylock`)
//! leaves no event. Of a recursive mutex only the outermost acquisition and release are recorded. A
//! condition wait is idle time and no contention, so it has events of its own; so has a semaphore, which
//! is a lock only where one thread both waits and posts: nothing else makes a hold.
//!
//! # Safety in the host
//!
//! - The event path neither allocates, nor locks, nor blocks, keeps `errno`, and orders no memory.
//! - A call that comes before the library is initialised finds the C library's functions by itself
//!   (`real`); set-up takes no pthread lock, so it never comes back here.
//! - Thread cancellation, exceptions and panics pass through: no frame of this library has a destructor. A stack can be walked
//!   from each of its instructions, but where the linker has left a table of jumps undescribed: LLD describes none, and from the
//!   one instruction of an entry the walk ends early.
//! - A thread that makes its ring ahead jumps to its function, and leaves nothing on its stack. If there is no ring, it starts without.
//! - Fork and threads that end are handled by `ft_user`. The library is never unmapped.
//!
//! # Limits
//!
//! Seen is what reaches the C library through its dynamic symbols. Not seen are locks that are not
//! pthread's (Rust's `std`, Go's, futexes by hand), C11's `mtx_lock`, `cnd_wait` and `call_once`, which glibc implements without
//! them, locks of files (`flock`, `lockf`), locks inside of the C library, and statically linked programs. Nor is a wait for the
//! end of a thread (`pthread_join`), or for a routine of `pthread_once` that another thread begins just then; one whose
//! initialiser throws leaves no end of its wait. A thread that is cancelled in a condition
//! wait has its mutex again without an event. A child made by `_Fork` or a bare `clone` writes into
//! the buffers of its parent: it must not use locks whose events are on. What a child of `vfork` writes is its parent's.
//!
//! A program linked with musl does not start with this library, nor one of 2002 with condition variables of `GLIBC_2.2.5` run well.
//! `mlockall` wants some 15 MiB more, and with `MCL_FUTURE` each thread has all of its ring in memory, 8 MiB (`FT_RING_SLOTS` makes it
//! smaller). That takes milliseconds. A thread that prepares for deadlines pays them before its first lock (`ready`), if something is
//! recorded by then. Others pay in the first lock, while they hold it: those that are there when a recording begins or another thread
//! locks the memory, those that others give a real-time policy or that ask for it by a bare system call, those of C11's
//! `thrd_create`, and those with a stack of less than 64 KiB or under ThreadSanitizer that do not ask for a policy themselves.
//!
//! A call of a lock, and one that makes a ring, looks for 5 KiB of stack before it does anything: a signal stack of 4 KiB
//! is too small where handlers post semaphores. A filter of system calls must allow `getpid`, `gettid`, `prctl`, `mremap`, `mmap`,
//! `clock_gettime` and `rt_sigprocmask` for the first event of a thread, `sched_getscheduler` at the start and `madvise` for a ring that is
//! made ahead, and `memfd_create`, `prlimit64`, `ftruncate`, `fcntl`,
//! `fstat`, `munmap`, `faccessat`, `socket`, `connect`, `sendmsg` and `close` for a forked child.
//! A call of a lock is an attempt, then the call: another library that counts `pthread_mutex_lock` counts the attempts apart. Robust mutexes,
//! and all under ThreadSanitizer, are looked at in place of the attempt; of reader-writer locks it sees the attempts, and no order.
//! One pthread key is taken.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod begin;
mod condition;
mod event;
mod mutex;
mod ready;
mod real;
mod rwlock;
mod semaphore;
mod spin;
mod stack;
mod stub;
mod time;
mod wait;

use ft_hooks as _;

/// Runs when the library is loaded, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn() = start;

unsafe extern "C" fn start() {
    real::resolve();
    // An allocator that sets itself up at its first use sets up its fork handlers then. In a child they
    // run in the order of their registration, and its handlers must come before those of `ft_user`,
    // which allocate.
    // SAFETY: allocates and frees one byte; the volatile store keeps both.
    unsafe {
        let byte = libc::malloc(1).cast::<u8>();
        if !byte.is_null() {
            byte.write_volatile(0);
        }
        libc::free(byte.cast());
    }
    ft_user::find_sleds();
    // Without a memfd the program runs untraced, as it would without this library.
    ft_user::init().ok();
    ready::of_main();
}
