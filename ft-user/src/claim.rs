//! Rings and threads: a thread claims a ring with its first event and gives it back at its end.
//!
//! A ring stays mapped once it was claimed, so that a program with short-lived threads maps nothing
//! anew, and a `&'static RingControl` is what it says. Its state moves `FREE → LIVE` (a thread, by
//! compare-and-exchange), `LIVE → FREE` (its end, when all was read), `LIVE → EXITED` (its end, when
//! there is something to read), `EXITED → FREE` (the agent, when it has read it).
//!
//! The end of a thread is seen by the destructor of a pthread key: a Rust or C++ thread-local with a
//! destructor makes the C library allocate when it is registered, which an event inside of an
//! allocator would not survive. To set a key does not allocate as long as it is among the first 32 of the
//! process (glibc, `pthread_setspecific`), which one made at the start of a program is. Keys are
//! destroyed after thread-locals, so their destructors can still write events.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*, compiler_fence};

use crate::layout::{MAX_RINGS, RingControl, ring_state};
use crate::memfd::Memfd;
use crate::ring::Ring;
use crate::thread::{self, Claim};
use crate::{InitError, counters, process};

/// The rings that were claimed at least once, [`MAPPING`] while a thread is at it.
static MAPPED: [AtomicPtr<RingControl>; MAX_RINGS as usize] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_RINGS as usize];

/// Stands in [`MAPPED`] for a ring that is being mapped. Never dereferenced.
const MAPPING: *mut RingControl = ptr::dangling_mut();

/// The pthread key whose destructor ends a thread's claim, plus one; 0 before the start.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Thread id, 0 until it is asked for.
    static TID: Cell<u32> = const { Cell::new(0) };
    /// Events that this thread, which found no free ring, writes before it looks again.
    static PAUSE: Cell<u32> = const { Cell::new(0) };
}

/// To look at the state of every ring with every event would cost more than the event.
const PAUSE_EVENTS: u32 = 256;

/// Gives this thread its ring now, backed with memory, instead of at its first event.
///
/// For threads with deadlines: the first event of a thread costs some system calls and page faults. Does
/// nothing before [`init`](crate::init), or when the thread has a ring.
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
/// tracing has not started.
///
/// Makes system calls, and allocates nothing. The caller keeps `errno`, and sends the events of signal
/// handlers elsewhere meanwhile.
pub(crate) fn claim_ring() -> Option<&'static RingControl> {
    let memfd = process::memfd()?;
    let key = EXIT_KEY.load(Relaxed).checked_sub(1)?;
    // SAFETY: the key exists.
    let before = unsafe { libc::pthread_getspecific(key) };
    // A signal handler may have come first, before the claim was marked as running.
    // SAFETY: the key holds null or the ring that this thread has claimed; rings stay mapped.
    if let Some(ring) = unsafe { before.cast::<RingControl>().cast_const().as_ref() } {
        return Some(ring);
    }
    if let Some(left) = PAUSE.get().checked_sub(1) {
        PAUSE.set(left);
        return None;
    }
    let Some(ring) = (0..memfd.config().rings).find_map(|number| claim(&memfd, number)) else {
        PAUSE.set(PAUSE_EVENTS);
        return None;
    };
    // SAFETY: the key exists; its destructor expects a ring.
    if unsafe { libc::pthread_setspecific(key, ptr::from_ref(ring).cast()) } != 0 {
        // SYNC: ring-free
        ring.state.store(ring_state::FREE, Release);
        return None;
    }
    Some(ring)
}

fn claim(memfd: &Memfd, number: u32) -> Option<&'static RingControl> {
    let place = &MAPPED[number as usize];
    // SYNC: ring-mapped
    let ring = match place.load(Acquire) {
        MAPPING => return None,
        known if !known.is_null() => {
            // SAFETY: mapped, initialised, and never unmapped while a thread could see it.
            let ring = unsafe { &*known };
            // SYNC: ring-free (with whoever set it free: what they did with the ring is done).
            let (free, live) = (ring_state::FREE, ring_state::LIVE);
            ring.state.compare_exchange(free, live, Acquire, Relaxed).ok()?;
            ring
        }
        null => {
            place.compare_exchange(null, MAPPING, Relaxed, Relaxed).ok()?;
            let mapped = memfd.map_ring(number).map(|ring| first_claim(memfd, ring));
            let ring = mapped.map_or(ptr::null_mut(), |ring| ptr::from_ref(ring).cast_mut());
            // SYNC: ring-mapped
            place.store(ring, Release);
            mapped?
        }
    };
    take_over(memfd, ring);
    // SYNC: rings-used (with the agent's acquire load: the ring's control page is in place).
    memfd.header().rings_used.fetch_max(number + 1, Release);
    Some(ring)
}

/// Prepares a ring that was never used; nobody else can see it.
fn first_claim(memfd: &Memfd, mut ring: NonNull<RingControl>) -> &'static RingControl {
    // SAFETY: mapped just now, writable, zero, and known to this thread only.
    let ring = unsafe {
        ring.as_mut().mask = u64::from(memfd.config().ring_slots) - 1;
        ring.as_ref()
    };
    ring.state.store(ring_state::LIVE, Relaxed);
    ring
}

/// Writes the new owner into a ring that is `LIVE` for the calling thread. The agent can rely on it from
/// the owner's first committed event on.
fn take_over(memfd: &Memfd, ring: &'static RingControl) {
    // SAFETY: `map_ring` maps as many slots as the configuration says behind each control page.
    let whole = unsafe { Ring::new(ring, memfd.config().ring_slots) };
    if let Some(whole) = whole {
        whole.prepare(memfd.config().mode);
    }
    let head = ring.head.load(Relaxed);
    ring.tid.store(tid(), Relaxed);
    ring.claimed_at.store(head, Relaxed);
    let mut name = [0u64; 2];
    // SAFETY: PR_GET_NAME writes 16 bytes at most, with their NUL (prctl(2)).
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    for (place, word) in ring.name.iter().zip(name) {
        place.store(word, Relaxed);
    }
    // SYNC: ring-owner (with the agent's acquire load of the generation).
    ring.generation.fetch_add(1, Release);
}

/// The end of a thread that has claimed `ring`.
unsafe extern "C" fn thread_exit(ring: *mut libc::c_void) {
    // Events of later destructors, and of signal handlers from here on, go to the shared ring.
    thread::clear(Claim::Over);
    compiler_fence(SeqCst);
    counters::close();
    // SAFETY: the key's value is what `claim_ring` has set: a ring that stays mapped.
    let ring = unsafe { &*ring.cast::<RingControl>() };
    let head = ring.head.load(Relaxed);
    let all_read = ring.tail.load(Acquire) == head && ring.lost_pending.load(Relaxed) == 0;
    let state = if all_read { ring_state::FREE } else { ring_state::EXITED };
    // SYNC: ring-exit (with the agent's acquire load: `head` is final) and ring-free.
    ring.state.store(state, Release);
}

/// Thread id in the process's own PID namespace.
pub(crate) fn tid() -> u32 {
    if TID.get() == 0 {
        // SAFETY: takes no argument and cannot fail.
        TID.set(unsafe { libc::gettid() } as u32);
    }
    TID.get()
}

/// In a forked child: this thread has no ring, and none is mapped. Yields those that were.
///
/// # Safety
///
/// The calling thread is the only one.
pub(crate) unsafe fn forget_rings() -> impl Iterator<Item = NonNull<RingControl>> {
    thread::clear(Claim::Allowed);
    counters::forget();
    TID.set(0);
    PAUSE.set(0);
    if let Some(key) = EXIT_KEY.load(Relaxed).checked_sub(1) {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, ptr::null()) };
    }
    MAPPED
        .iter()
        .map(|place| place.swap(ptr::null_mut(), Relaxed))
        .filter(|&ring| ring != MAPPING)
        .filter_map(NonNull::new)
}
