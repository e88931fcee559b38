//! What waits could have been spared had every holder had a CPU whenever it could run: chains of holders followed.
//!
//! As in `holds/what_if.rs` nothing is simulated: time is taken away in which a holder could run and had no CPU, and all else
//! is left as it was. There it is bounded what one holder's own time costs those that wait for its lock; here a holder that
//! waits for a lock itself is spared some of that wait, too, and hands it on.
//!
//! **Rule.** A hold from `a` to its release `r` could have ended at `e` at the earliest:
//!
//! ```text
//! e = max(a, r - what its holder could run and did not - what its holder's waits within it could have been spared)
//! ```
//!
//! Whoever waited for the lock since `w` and still did at `r` is spared `r - max(e, w)` at most by that, and its wait as a
//! whole the sum over the holds in it. A wait is over before the hold around it is, so that each `e` is known when it is
//! asked for, however long the chain. What is not explained of a holder counts as time without a CPU.
//!
//! **Situations.**
//! - *Several readers at once*: the lock is free when the last of them releases it, so that one counts.
//! - *The begin or the end of a hold is not recorded, or records are missing since its begin*: it is not known what waits
//!   behind it could have been spared, nor what those behind these.
//! - *A wait that was given up* hands on what it had been spared by then.
//!
//! **What it does not bound** is what `holds/what_if.rs` says: what others gain because the queue is shorter, and who loses
//! the CPU.
//!
//! Memory: a number for each hold within which its thread has waited.

use crate::world::{Hold, PerThread, Thread, Wait, World};

/// The most that a wait could have been shorter, ns; `None` where that is not known.
pub(super) type Spared = Option<i64>;

/// What waits within holds could have been spared.
#[derive(Debug, Default)]
pub(super) struct Gains(PerThread<Vec<(u64, Spared)>>);

impl Gains {
    /// A wait of a thread is over.
    pub(super) fn add(&mut self, thread: &Thread, wait: &Wait, spared: Spared) {
        if spared == Some(0) {
            return;
        }
        let gains = self.0.of(thread);
        // The lock that was waited for may be held by now.
        for hold in thread.locks.locks().filter(|hold| hold.began.ts <= wait.ts) {
            match gains.iter_mut().find(|(id, _)| *id == hold.id) {
                Some((_, sum)) => *sum = sum.zip(spared).map(|(sum, ns)| sum + ns),
                None => gains.push((hold.id, spared)),
            }
        }
    }

    /// When a hold that ends now could have ended.
    pub(super) fn earliest(&mut self, thread: &Thread, hold: &Hold, world: &World) -> Option<i64> {
        let gained = self.forget(thread, hold)?;
        let (since, losses) = (hold.began.ts, world.losses());
        let lost = losses.kernel_since(since)
            || losses.process_since(thread.key.pid, since)
            || thread.unseen >= since;
        let parts = hold.began.parts(thread, world).filter(|_| !lost)?;
        let without = parts.runnable_ns() + parts.unexplained_ns;
        Some(since.max(world.now() - without - gained))
    }

    /// A hold is over; what its holder's waits within it could have been spared.
    pub(super) fn forget(&mut self, thread: &Thread, hold: &Hold) -> Spared {
        let Some(gains) = self.0.get(thread) else { return Some(0) };
        let at = gains.iter().position(|(id, _)| *id == hold.id);
        at.map_or(Some(0), |at| gains.swap_remove(at).1)
    }
}
