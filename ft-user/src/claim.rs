//! Rings and threads: a thread claims a ring with its first event and gives it back at its end.
//!
//! A ring stays mapped once it was claimed, so that a program with short-lived threads maps nothing
//! anew, and a `&'static RingControl` is what it says. How its state moves is in [`crate::handover`].
//!
//! All signals are blocked meanwhile: a handler that left a claim by `siglongjmp` would leave a ring that nobody owns or gives back.
//!
//! The end of a thread is seen by the destructor of a pthread key: a Rust or C++ thread-local with a
//! destructor makes the C library allocate when it is registered, which an event inside of an
//! allocator would not survive. To set a key does not allocate as long as it is among the first 32 of the
//! process (glibc, `pthread_setspecific`), which one made at the start of a program is; a later key is not set. Keys are destroyed after
//! thread-locals, so their destructors can still write events. A thread that ends by a bare `SYS_exit` runs no destructors: its ring is
//! taken from it by a thread that finds no other, as that of a thread whose key is a late one.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

use crate::arch::Word;
use crate::at_fork::AtFork;
use crate::critical::SignalsBlocked;
use crate::layout::{RingControl, ring_state};
use crate::memfd::Memfd;
use crate::ring::Ring;
use crate::thread::{self, Claim};
use crate::{
    InitError, arch, at_fork, counters, fork, handover, kernel, looked, mapped, process, tsc,
};

/// The pthread key whose destructor ends a thread's claim, plus one; 0 before the start.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);

/// Keys below this one are set without an allocation: `PTHREAD_KEY_2NDLEVEL_SIZE` of glibc. Other C libraries have room for all of them.
///
/// Limit: of a later key, which `init` makes behind as many of the program's own, no thread's end is seen. Its ring is given back when
/// another thread looks for one, and what it has opened for `--counter` stays open.
/// Shown by: `a_late_key_is_not_set_and_no_event_allocates`.
const KEYS_AT_HAND: u32 = if cfg!(target_env = "gnu") { 32 } else { u32::MAX };

/// To look at the state of every ring with every event would cost more than the event.
const PAUSE_EVENTS: u16 = 256;

/// Rings of whose owners a thread that finds no free one asks the kernel whether they live, at once.
const RINGS_LOOKED_AT: u32 = 16;

/// Gives this thread its ring now, with memory behind each page of it, instead of at its first event.
///
/// For threads with deadlines, before the first of these: no later event makes a system call, and none finds a page of the ring
/// missing. It takes milliseconds for a ring of 8 MiB ([`Config`](crate::Config)), more where the program has locked its memory. If the
/// thread has a ring, only its pages are filled in. Does nothing before [`init`](crate::init), nor where all rings are taken.
pub fn thread_init() {
    if let (Some(memfd), Some(ring)) = (process::memfd(), thread::attach()) {
        memfd.populate(ring);
        thread::begin_counting(ring);
    }
}

/// Makes the pthread key. Called with the process lock held.
pub(crate) fn prepare() -> Result<(), InitError> {
    if EXIT_KEY.load(Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: `key` is a valid place, and `thread_exit` takes what `claim_ring` sets.
        match unsafe { libc::pthread_key_create(&mut key, Some(thread_exit)) } {
            0 => EXIT_KEY.store(key + 1, Relaxed),
            errno => return Err(InitError::System("pthread_key_create", errno)),
        }
    }
    Ok(())
}

/// A ring for the calling thread, which has none. `None` when all are taken, or were not long ago, or
/// tracing has not started, or the thread may not read the time stamp counter.
///
/// Makes system calls, and allocates nothing. The caller keeps `errno`, and sends the events of signal
/// handlers elsewhere meanwhile.
pub(crate) fn claim_ring() -> Option<&'static RingControl> {
    process::memfd()?;
    let pause = looked::pause();
    if pause > 0 {
        looked::set_pause(pause - 1);
        return None;
    }
    // A handler that forks, or does not return, would leave a ring that is half claimed.
    let _blocked = SignalsBlocked::new();
    let memfd = process::memfd()?;
    // A child of `vfork` is on a thread of its parent: a ring that it claimed, or a number that it kept, would be taken for the thread's.
    if !process::is_this() {
        return None;
    }
    let key = EXIT_KEY.load(Relaxed).checked_sub(1)?;
    // SAFETY: the key exists.
    let before = unsafe { libc::pthread_getspecific(key) };
    // A signal handler may have come first, before signals were blocked. Of a thread that ended by a bare `SYS_exit` the C library keeps
    // what its keys hold for the next thread on that stack: then the ring is another's.
    // SAFETY: the key holds null or a ring that was claimed; rings stay mapped.
    let before = unsafe { before.cast::<RingControl>().cast_const().as_ref() };
    arch::tls_set(Word::Tid, tid());
    let before = before.filter(|ring| ring.tid.load(Relaxed) == tid());
    if let Some(ring) = thread::ring().or(before) {
        return Some(ring);
    }
    if key >= KEYS_AT_HAND {
        // Nobody else gives these back, and a new one would be mapped for each thread.
        give_back_of_gone(&memfd);
    }
    let find = || (0..memfd.config().rings).find_map(|number| claim(&memfd, number));
    let Some(ring) = tsc::ask().then(find).flatten() else {
        give_back_of_gone(&memfd);
        looked::set_pause(PAUSE_EVENTS);
        return None;
    };
    if key < KEYS_AT_HAND {
        // SAFETY: the key exists; its destructor expects a ring.
        let errno = unsafe { libc::pthread_setspecific(key, ptr::from_ref(ring).cast()) };
        if errno != 0 {
            handover::give_back(ring);
            return None;
        }
    }
    Some(ring)
}

fn claim(memfd: &Memfd, number: u32) -> Option<&'static RingControl> {
    let ring = match mapped::at(number) {
        Some(ring) => {
            handover::claim(ring).then_some(())?;
            ring
        }
        None => mapped::map(memfd, number, |ring| first_claim(memfd, ring))?,
    };
    take_over(memfd, ring);
    handover::announce(&memfd.header().rings_used, number);
    Some(ring)
}

/// Prepares a ring that was never used; nobody else can see it.
fn first_claim(memfd: &Memfd, mut ring: NonNull<RingControl>) -> &'static RingControl {
    // SAFETY: mapped just now, writable, zero, and known to this thread only.
    let ring = unsafe {
        ring.as_mut().mask = u64::from(memfd.config().ring_slots) - 1;
        ring.as_ref()
    };
    ring.state.store(ring_state::CLAIMED, Relaxed);
    ring
}

/// Prepares a ring that the calling thread has claimed, and makes the thread its owner.
fn take_over(memfd: &Memfd, ring: &'static RingControl) {
    // SAFETY: `mapped` maps as many slots as the configuration says behind each control page.
    let whole = unsafe { Ring::new(ring, memfd.config().ring_slots) };
    if let Some(whole) = whole {
        whole.prepare(memfd.config().mode);
    }
    let mut name = [0u64; 2];
    let place = name.as_mut_ptr().expose_provenance();
    // SAFETY: PR_GET_NAME writes 16 bytes at most, with their NUL (prctl(2)).
    let _ = unsafe { kernel::call(libc::SYS_prctl, [libc::PR_GET_NAME as usize, place]) };
    handover::own(ring, tid(), name);
}

/// Gives back the rings of threads that have ended without doing so: for the next time that a thread looks for one. Looks at some of
/// the rings, since each costs a system call.
fn give_back_of_gone(memfd: &Memfd) {
    static LOOKING: AtomicBool = AtomicBool::new(false);
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // SYNC: rings-of-gone. Who was forked while another thread looked never looks.
    if LOOKING.swap(true, Acquire) {
        return;
    }
    let is_gone = |tid: u32| {
        // SAFETY: signal 0 is none.
        let asked =
            unsafe { kernel::call(libc::SYS_tgkill, [kernel::getpid() as usize, tid as usize, 0]) };
        asked == Err(libc::ESRCH)
    };
    let rings = handover::used(&memfd.header().rings_used).min(memfd.config().rings);
    for _ in 0..rings.min(RINGS_LOOKED_AT) {
        if let Some(ring) = mapped::at(NEXT.fetch_add(1, Relaxed) % rings) {
            handover::give_back_for(ring, is_gone);
        }
    }
    LOOKING.store(false, Release); // SYNC: rings-of-gone
}

/// The end of a thread that has claimed `ring`.
unsafe extern "C" fn thread_exit(ring: *mut libc::c_void) {
    // A handler that does not return would leave a ring that nobody gives back; a child that one forks knows of no ring of the parent's.
    let _blocked = SignalsBlocked::new();
    // Events of later destructors, and of signal handlers from here on, go to the shared ring.
    thread::clear(Claim::Over);
    // Of a thread that ends within a fork handler, before it has forked.
    if at_fork::give_up().is_some() {
        process::LOCK.end_fork();
    }
    // The ring is the parent's, whose thread lives: this child has neither run its handlers nor written an event.
    if fork::is_child() {
        return;
    }
    counters::close();
    // SAFETY: the key's value is what `claim_ring` has set: a ring that stays mapped.
    let ring = unsafe { &*ring.cast::<RingControl>() };
    // Or that of a thread that had this stack before, and ended without a word.
    if ring.tid.load(Relaxed) == tid() {
        handover::give_back(ring);
    }
}

/// Thread id in the process's own PID namespace.
pub(crate) fn tid() -> u32 {
    match arch::tls_get(Word::Tid) {
        0 if process::is_this() => kernel::gettid(),
        // What a child of `vfork` writes is its parent's.
        0 => known_tid(),
        tid => tid,
    }
}

/// The number that the C library knows of the calling thread: not that of a child which borrows the thread. Of its interface only the clock
/// of a thread tells it (`MAKE_THREAD_CPUCLOCK`, include/linux/posix-timers.h).
pub(crate) fn known_tid() -> u32 {
    let mut clock = 0;
    // SAFETY: a valid place for the answer, and a thread that lives.
    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    !(clock >> 3) as u32
}

/// The ring of the calling thread, if it has claimed one.
pub(crate) fn own() -> Option<&'static RingControl> {
    let of_key = || {
        let key = EXIT_KEY.load(Relaxed).checked_sub(1)?;
        // SAFETY: the key exists, and holds null or a ring that was claimed; rings stay mapped.
        let ring =
            unsafe { libc::pthread_getspecific(key).cast::<RingControl>().cast_const().as_ref() };
        // Or of a thread that had this stack before, and ended without a word.
        ring.filter(|ring| ring.tid.load(Relaxed) == arch::tls_get(Word::Tid))
    };
    // One whose key is a late one.
    let by_number = || {
        let (memfd, tid) = (process::made()?, arch::tls_get(Word::Tid));
        let mut rings = (0..handover::used(&memfd.header().rings_used)).filter_map(mapped::at);
        rings.find(|ring| tid != 0 && handover::is_owned_by(ring, tid))
    };
    thread::ring().or_else(of_key).or_else(by_number)
}

/// In a forked child: this thread is another one.
pub(crate) fn begin_child() {
    counters::forget();
    arch::tls_set(Word::Tid, 0);
    looked::set_pause(0);
}

/// In a forked child: its thread has no ring, and may claim one.
pub(crate) fn disown() {
    thread::clear(Claim::Allowed);
    if let Some(key) = EXIT_KEY.load(Relaxed).checked_sub(1) {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, ptr::null()) };
    }
}

/// In a forked child: prepares the first ring of its `memfd`, which nobody else can see yet, for the calling thread. It goes on where
/// the parent's was, behind unfinished events that it has lost.
pub(crate) fn inherit(
    memfd: &Memfd,
    ring: NonNull<RingControl>,
    &AtFork { head, unfinished, oldest, .. }: &AtFork,
) -> &'static RingControl {
    arch::tls_set(Word::Tid, kernel::gettid());
    let ring = first_claim(memfd, ring);
    ring.tail.store(head, Relaxed);
    ring.head.store(head, Relaxed);
    ring.cut_by_fork.store(unfinished, Relaxed);
    take_over(memfd, ring);
    // SAFETY: as in `take_over`.
    if let Some(whole) = unsafe { Ring::new(ring, memfd.config().ring_slots) } {
        whole.keep_out_of(oldest..head);
    }
    // SYNC: rings-used
    memfd.header().rings_used.store(1, Release);
    ring
}
