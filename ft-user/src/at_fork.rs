//! What a thread that forks sets aside: its ring, which is the parent's in the child, too.
//!
//! Not in thread-local memory, of which shared objects have little together: threads that fork at once are few.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use crate::arch::Word;
use crate::critical::this_thread;
use crate::layout::RingControl;
use crate::ring::Ring;
use crate::thread::{self, Claim};
use crate::{arch, claim, kernel, process};

/// Threads that are within a fork at once and are remembered.
///
/// Limit: the child of a further one, if a signal handler has forked it within an event, may count that event twice, or not at all.
/// Shown by: not shown: the event is in the parent's trace.
const MAX_FORKING: usize = 64;

/// The ring of a thread that forks, as it was before the fork: the parent's thread may write on while the child looks.
#[derive(Clone, Copy)]
pub(crate) struct AtFork {
    /// Null where it has none.
    pub(crate) own: *const RingControl,
    pub(crate) head: u64,
    pub(crate) unfinished: u32,
    /// Index of the oldest of these.
    pub(crate) oldest: u64,
    claim: Claim,
    /// Forks of handlers that have interrupted this one.
    inner: u32,
    /// Where our handler stood on the stack.
    frame: usize,
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

/// Whether this thread has set its ring aside.
pub(crate) fn is_forking() -> bool {
    arch::tls_get(Word::Claim) == Claim::Forks as u32
}

/// Of this thread, while it forks.
fn own_place() -> Option<&'static Place> {
    let own = this_thread();
    PLACES.iter().find(|place| place.whose.load(Relaxed) == own)
}

/// What this thread has set aside. Its signals are blocked.
fn set_aside_before() -> Option<&'static mut AtFork> {
    // SAFETY: the place is this thread's, which borrows nothing of it.
    unsafe { (*own_place()?.is.get()).as_mut() }
}

/// Before a fork: this thread, whose handler stands at `frame`, sets its ring aside. False where it has done so already, and was
/// interrupted by a handler that forks. The caller's signals are blocked.
pub(crate) fn set_aside(frame: usize) -> bool {
    if is_forking() {
        if let Some(outer) = set_aside_before() {
            outer.inner += 1;
        }
        return false;
    }
    let at_fork = AtFork { frame, ..AtFork::now() };
    let own = this_thread();
    let is_free = |place: &&Place| {
        // SYNC: forking-threads
        place.whose.compare_exchange(0, own, Acquire, Relaxed).is_ok()
    };
    // One of a thread that has ended in a fork by a bare `SYS_exit`, and was where this one is, is this one's.
    if let Some(place) = own_place().or_else(|| PLACES.iter().find(is_free)) {
        // SAFETY: the place is this thread's from here on.
        unsafe { *place.is.get() = Some(at_fork) };
    }
    thread::clear(Claim::Forks);
    true
}

/// Whether a fork for which this thread has set its ring aside was given up: a handler has left it by a jump (`longjmp`), for another one
/// begins at `frame`, where nothing of the first is on the stack any more. On the stack of a signal handler that cannot be said.
pub(crate) fn is_left(frame: usize) -> bool {
    is_forking()
        && set_aside_before().is_some_and(|before| before.frame <= frame)
        && !kernel::is_on_signal_stack()
}

/// After the fork, in the parent: this thread takes up its ring again, if it had set it aside for this fork; whether it had. The
/// caller's signals are blocked.
pub(crate) fn take_up() -> bool {
    if !is_forking() {
        return false;
    }
    if let Some(at_fork) = set_aside_before()
        && let Some(fewer) = at_fork.inner.checked_sub(1)
    {
        at_fork.inner = fewer;
        return false;
    }
    give_up().unwrap_or_else(AtFork::now).go_on();
    true
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
    /// The ring of this thread as it is.
    pub(crate) fn now() -> AtFork {
        let own =
            process::made().and_then(|memfd| Some((claim::own()?, memfd.config().ring_slots)));
        // SAFETY: a ring of this process is mapped, with as many slots.
        let ring = own.and_then(|(own, slots)| unsafe { Ring::new(own, slots) });
        let head = ring.as_ref().map_or(0, |ring| ring.control.head.load(Relaxed));
        let (unfinished, oldest) = ring.as_ref().map_or((0, head), Ring::unfinished);
        let is_over = arch::tls_get(Word::Claim) == Claim::Over as u32;
        AtFork {
            own: own.map_or(ptr::null(), |(own, _)| ptr::from_ref(own)),
            head,
            unfinished,
            oldest,
            claim: if is_over { Claim::Over } else { Claim::Allowed },
            inner: 0,
            frame: 0,
        }
    }

    /// Events of this thread go where they went: in the parent, and in a child whose own ring has come in the parent's place.
    pub(crate) fn go_on(&self) {
        thread::clear(self.claim);
        // SAFETY: null or a ring of this process, which stays mapped.
        if let Some(own) = unsafe { self.own.as_ref() } {
            // SAFETY: it is this thread's.
            unsafe { thread::set(own) };
        }
    }
}
