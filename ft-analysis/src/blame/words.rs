//! What threads say to each other as they are woken, for [`Talks`](super::talks::Talks).

use super::Blame;
use super::asleep::{hears, is_lock};
use super::spots::Seen;
use super::sums::Through;
use super::talks::{Before, Place, Who};
use crate::requests::{History, Piece, Waker};
use crate::world::{Thread, World};
use ft_trace::ids::ThreadKey;

/// What a thread does within so long after its birth may be an answer to what was asked before it looked.
const YOUNG_NS: i64 = 100_000_000;

/// It has done something if it took at least so long.
const SERVED_NS: i64 = 1_000_000;

impl Blame {
    /// A thread is woken: if it waits at an event loop, it hears somebody.
    pub(super) fn hears(&mut self, thread: &Thread, waker: &Waker) {
        let call = thread.asleep.as_ref().and_then(|sleep| sleep.call.as_deref());
        if !thread.is_blocked() || Place::of(call) != Place::Poll {
            return;
        }
        match waker {
            Waker::Timer(_) => {}
            Waker::Thread(waker) => self.talks.hears(thread.key, Some(*waker)),
            _ => self.talks.hears(thread.key, None),
        }
    }

    /// A thread wakes another one.
    pub(super) fn talk(&mut self, waker: ThreadKey, whom: &Thread, birth: bool, world: &World) {
        if birth {
            return self.talks.made(waker, whom.key);
        }
        let comm = world.comm(waker);
        let by = Who { key: waker, comm: &comm };
        let sleep = whom.asleep.as_ref().filter(|_| whom.is_blocked());
        let futex = sleep.filter(|sleep| sleep.is_at_futex()).and_then(|sleep| sleep.argument[0]);
        match (futex, sleep.is_some_and(is_lock)) {
            (Some(futex), true) => self.talks.released(by.key, futex),
            (None, true) => {}
            // The end of a wait within the kernel is no word.
            _ if !sleep.is_some_and(hears) => {}
            _ => {
                let slept_ns = world.now() - whom.left;
                let history = &self.history;
                let before = || Before {
                    served: has_served(history, waker, whom, world),
                    kept_ns: history.of(waker).map_or(0, |past| past.kept_since(whom.left)),
                };
                let whom_named = Who { key: whom.key, comm: &whom.comm };
                self.talks.woke(by, whom_named, (futex, slept_ns), before);
                if futex.is_some() {
                    self.threads.of(whom).called = self.herds.calls(waker);
                }
            }
        }
    }

    /// Whether a thread that waits has asked the one that ends that.
    pub(super) fn asks(
        &self,
        waiter: ThreadKey,
        other: ThreadKey,
        at: Place,
        world: &World,
    ) -> bool {
        let (comm, of_other) = (world.comm(waiter), world.comm(other));
        let waiter = Who { key: waiter, comm: &comm };
        self.talks.asks(waiter, Who { key: other, comm: &of_other }, at)
    }

    /// The thread that waits for the one whose time a piece is, and for what.
    pub(super) fn through(&self, by: ThreadKey, piece: &Piece, world: &World) -> Through {
        let spot = self.spots.asleep(by, piece.to);
        let (call, lock) = match spot.map(|spot| &spot.seen) {
            Some(Seen::Slept(call, _, lock)) => (call.clone(), *lock),
            _ => (None, false),
        };
        let at = Place::of(call.as_deref());
        let needs = lock || self.asks(by, piece.thread, at, world);
        Through { comm: world.comm(by), call, needs, stack: spot.and_then(|spot| spot.stack) }
    }
}

/// Whether a thread that has not lived for long, nor the other one, has worked or slept before it says its first word.
fn has_served(history: &History, waker: ThreadKey, whom: &Thread, world: &World) -> bool {
    let is_born = |thread: ThreadKey| {
        let known = world.thread(thread.pid, thread.tid);
        known.is_some_and(|thread| thread.born)
    };
    let Some(past) = history.of(waker) else { return false };
    let (since, worked) = past.worked(world.now());
    is_born(waker) && is_born(whom.key) && world.now() - since < YOUNG_NS && worked > SERVED_NS
}
