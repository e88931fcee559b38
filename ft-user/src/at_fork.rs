//! What a thread that forks sets aside: its ring, which is the parent's in the child, too.
//!
//! Not in thread-local memory, of which shared objects have little together: threads that fork at once are few.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use crate::critical::this_thread;
use crate::layout::RingControl;
use crate::ring::Ring;
use crate::thread::{self, Claim};
use crate::{arch, claim, process};

/// Threads that are within a fork at once.
///
/// Limit: a further one waits until one of them has forked.
/// Shown by: not shown: each would be within fork handlers of others.
const MAX_FORKING: usize = 64;

/// The ring of a thread that forks, as it was before the fork: the parent's thread may write on while the child looks.
#[derive(Clone, Copy)]
pub(crate) struct AtFork {
    /// Null where it has none.
    pub(crate) own: *const RingControl,
    pub(crate) head: u64,
    pub(crate) unfinished: u32,
    /// Whether its events went to the ring, and not to the shared one.
    was_in_use: bool,
    claim: Claim,
    /// Forks of handlers that have interrupted this one.
    inner: u32,
}

struct Place {
    /// The thread, or 0.
    whose: AtomicUsize,
    is: UnsafeCell<Option<AtFork>>,
}

// SAFETY: `is` is touched by the thread that `whose` names alone.
unsafe impl Sync for Place {}

static PLACES: [Place; MAX_FORKING] =
    [const { Place { whose: AtomicUsize::new(0), is: UnsafeCell::new(None) } }; MAX_FORKING];

/// Of this thread, while it forks.
fn own_place() -> Option<&'static Place> {
    let own = this_thread();
    PLACES.iter().find(|place| place.whose.load(Relaxed) == own)
}

fn take_place() -> &'static Place {
    let own = this_thread();
    loop {
        let free = |place: &&Place| {
            // SYNC: forking-threads
            place.whose.compare_exchange(0, own, Acquire, Relaxed).is_ok()
        };
        if let Some(place) = PLACES.iter().find(free) {
            return place;
        }
        std::thread::yield_now();
    }
}

/// This thread has set nothing aside.
pub(crate) fn is_none() -> bool {
    own_place().is_none()
}

/// Before a fork: this thread sets its ring aside. False where it has done so already, and was interrupted by a handler that forks.
/// The caller's signals are blocked.
pub(crate) fn set_aside() -> bool {
    if let Some(place) = own_place() {
        // SAFETY: the place is this thread's, and nothing of it is borrowed.
        if let Some(outer) = unsafe { &mut *place.is.get() } {
            outer.inner += 1;
        }
        return false;
    }
    let own = process::memfd().and_then(|memfd| Some((claim::own()?, memfd.config().ring_slots)));
    // SAFETY: a ring of this process is mapped, with as many slots.
    let ring = own.and_then(|(own, slots)| unsafe { Ring::new(own, slots) });
    let was_in_use = thread::ring().is_some();
    let is_over = !was_in_use && arch::tls_claim() == Claim::Over as usize;
    let at_fork = AtFork {
        own: own.map_or(ptr::null(), |(own, _)| ptr::from_ref(own)),
        head: ring.as_ref().map_or(0, |ring| ring.control.head.load(Relaxed)),
        unfinished: ring.as_ref().map_or(0, Ring::unfinished),
        was_in_use,
        claim: if is_over { Claim::Over } else { Claim::Allowed },
        inner: 0,
    };
    // SAFETY: the place is this thread's from here on.
    unsafe { *take_place().is.get() = Some(at_fork) };
    thread::clear(Claim::Forks);
    true
}

/// After the fork, in the parent: this thread takes up its ring again, if it had set it aside for this fork; whether it had. The
/// caller's signals are blocked.
pub(crate) fn take_up() -> bool {
    let Some(place) = own_place() else { return false };
    // SAFETY: the place is this thread's, and nothing of it is borrowed.
    if let Some(at_fork) = unsafe { &mut *place.is.get() }
        && let Some(fewer) = at_fork.inner.checked_sub(1)
    {
        at_fork.inner = fewer;
        return false;
    }
    let at_fork = give_up();
    at_fork.inspect(AtFork::go_on).is_some()
}

/// What this thread has set aside, which it has no more.
pub(crate) fn give_up() -> Option<AtFork> {
    let place = own_place()?;
    // SAFETY: the place is this thread's until the next line.
    let at_fork = unsafe { (*place.is.get()).take() };
    place.whose.store(0, Release); // SYNC: forking-threads
    at_fork
}

/// In a forked child: the other threads that forked are not here.
pub(crate) fn begin_child() {
    PLACES.iter().for_each(|place| place.whose.store(0, Relaxed));
}

impl AtFork {
    /// Events of this thread go where they went: in the parent, and in a child whose own ring has come in the parent's place.
    pub(crate) fn go_on(&self) {
        thread::clear(self.claim);
        // SAFETY: null or a ring of this process, which stays mapped.
        if let Some(own) = unsafe { self.own.as_ref() }
            && self.was_in_use
        {
            // SAFETY: it is this thread's.
            unsafe { thread::set(own) };
        }
    }
}
