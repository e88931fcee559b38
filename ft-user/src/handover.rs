//! The hand-over of a ring: from a thread to the agent, and to the next thread.
//!
//! The state of a ring moves `FREE → CLAIMED` (a thread, by compare-and-exchange), `CLAIMED → LIVE` (when the agent can see whose it
//! is), `LIVE → FREE` (the thread's end, when all was read), `LIVE → EXITED` (its end, when there is something to read), `EXITED → FREE`
//! (the agent, when it has read it). Of a thread that ended without a word (a bare `SYS_exit`), another one moves `LIVE → EXITED`.
//!
//! The agent reads events, asks whose they are, and only then says that they are consumed: as long as something is not consumed, a ring
//! changes hands only by the agent.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::AtomicU32;
use crate::layout::{RingControl, ring_state};

/// Takes a ring for the calling thread if it is free. The thread then prepares it and [`own`]s it.
pub(crate) fn claim(ring: &RingControl) -> bool {
    let (free, claimed) = (ring_state::FREE, ring_state::CLAIMED);
    // SYNC: ring-free (with whoever set it free: what they did with the ring is done).
    ring.state.compare_exchange(free, claimed, Acquire, Relaxed).is_ok()
}

/// Writes the owner into a ring that the calling thread has claimed and prepared. The agent can rely on it from
/// the owner's first committed event on.
pub(crate) fn own(ring: &RingControl, tid: u32, name: [u64; 2]) {
    ring.tid.store(tid, Relaxed);
    for (place, word) in ring.name.iter().zip(name) {
        place.store(word, Relaxed);
    }
    // SYNC: ring-owner
    ring.generation.fetch_add(1, Release);
    // SYNC: ring-live
    ring.state.store(ring_state::LIVE, Release);
}

/// Gives back the ring of the calling thread, which writes no more.
pub(crate) fn give_back(ring: &RingControl) {
    let head = ring.head.load(Relaxed);
    // SYNC: consumed
    let all_read =
        ring.tail.load(Acquire) == head && ring.told.load(Relaxed) == ring.lost.load(Relaxed);
    let state = if all_read { ring_state::FREE } else { ring_state::EXITED };
    // SYNC: ring-exit (with the agent's load: `head` is final) and ring-free.
    ring.state.store(state, Release);
}

/// A thread with this number owns the ring.
pub(crate) fn is_owned_by(ring: &RingControl, tid: u32) -> bool {
    ring.state.load(Acquire) == ring_state::LIVE && ring.tid.load(Relaxed) == tid // SYNC: ring-live
}

/// Gives back the ring of a thread that has ended without doing so, if `is_gone` says of its number that it has. Whether it did.
///
/// One thread of a process at a time may call this.
pub(crate) fn give_back_for(ring: &RingControl, is_gone: impl FnOnce(u32) -> bool) -> bool {
    // SYNC: ring-live (the number is that of the present owner).
    if ring.state.load(Acquire) != ring_state::LIVE {
        return false;
    }
    // SYNC: ring-owner
    let generation = ring.generation.load(Acquire);
    if !is_gone(ring.tid.load(Relaxed)) {
        return false;
    }
    // Whose thread is gone and who is still the owner cannot change the state any more. One that has given it back before it ended
    // can have been followed by another owner.
    let is_gone = ring.state.load(Acquire) == ring_state::LIVE // SYNC: ring-live
        && ring.generation.load(Relaxed) == generation;
    if is_gone {
        ring.state.store(ring_state::EXITED, Release); // SYNC: ring-exit
    }
    is_gone
}

/// For the agent: the state of a ring. Of one that has exited, all that its thread wrote is there.
pub fn state(ring: &RingControl) -> u32 {
    ring.state.load(Acquire) // SYNC: ring-exit
}

/// For the agent: which claim of a ring it is, and the number of the owner. To be asked when an event was read, and before it is consumed.
pub fn owner(ring: &RingControl) -> (u32, u32) {
    // SYNC: ring-owner
    let generation = ring.generation.load(Acquire);
    (generation, ring.tid.load(Relaxed))
}

/// For the agent: a ring that has exited may be claimed, all of it is read.
pub fn set_free(ring: &RingControl) {
    ring.state.store(ring_state::FREE, Release); // SYNC: ring-free
}

/// Says that the ring with this number was claimed, and all below it may have been.
pub(crate) fn announce(rings_used: &AtomicU32, number: u32) {
    // SYNC: rings-used
    rings_used.fetch_max(number + 1, Release);
}

/// For the agent: how many rings may have been claimed.
pub fn used(rings_used: &AtomicU32) -> u32 {
    rings_used.load(Acquire) // SYNC: rings-used
}
