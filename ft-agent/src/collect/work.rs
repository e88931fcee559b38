//! How much is done for one user in a round of the collection.
//!
//! Rule: every step that a process can cause costs its user something, also one that finds nothing; whoever has no
//! more is gone on with in the next round. So a round has an end whatever is in the rings, and what one user's
//! processes write delays those of another by one share at most. Work is measured in slots, of which some
//! fifty million can be copied in a second.

use std::collections::HashMap;

use ft_trace::owners::owner_of;

/// A user's share of one round: some 20 ms.
const ROUND: i64 = 1 << 20;

/// A source's share of the last look at it, over all rounds: several times what it can hold at default sizes.
///
/// Limit: as `RINGS_AT_ONCE` of `ring.rs`.
const LAST: i64 = 1 << 26;

/// To look at a source at all: its identity, its shared ring, its directory.
pub(super) const SOURCE: u64 = 64;

/// To look at a ring that has nothing to say: two cache lines.
pub(super) const RING: u64 = 8;

/// A small system call about a memfd.
pub(super) const ASK: u64 = 32;

/// To look up a thread in `/proc`: two or three files.
pub(super) const LOOK_UP: u64 = 1 << 10;

/// A slot of the shared ring: four times as long, and the reader answers each.
pub(super) const SHARED_SLOT: u64 = 8;

/// What is left to be done.
#[derive(Clone, Debug)]
pub struct Work {
    left: i64,
}

impl Work {
    /// For all of the last look at a source, or for a look that has no next round.
    pub fn last() -> Work {
        Work { left: LAST }
    }

    /// So many slots.
    #[cfg(test)]
    pub(super) fn of(slots: i64) -> Work {
        Work { left: slots }
    }

    /// So much was done; the last step may be more than was left.
    pub(super) fn spend(&mut self, slots: u64) {
        self.left = self.left.saturating_sub_unsigned(slots);
    }

    /// As much as is left of both.
    pub(super) fn and(&self, other: &Work) -> Work {
        Work { left: self.left.min(other.left) }
    }

    /// What was done since it was `before`.
    pub(super) fn since(&self, before: &Work) -> u64 {
        u64::try_from(before.left.saturating_sub(self.left)).unwrap_or(0)
    }

    /// No more in this round.
    pub fn is_done(&self) -> bool {
        self.left <= 0
    }

    /// Slots that may still be copied.
    pub(super) fn left(&self) -> u64 {
        u64::try_from(self.left).unwrap_or(0)
    }
}

/// What is left for each user.
#[derive(Debug, Default)]
pub struct Budgets {
    /// Of users who have not their whole share.
    users: HashMap<u32, Work>,
}

impl Budgets {
    /// A new round: everybody gets a share, from which what was done too much before is taken.
    pub fn renew(&mut self) {
        self.users.retain(|_, work| {
            work.left += ROUND;
            work.left < ROUND
        });
    }

    /// What is left for this user in this round.
    pub fn of(&mut self, uid: u32) -> &mut Work {
        self.users.entry(owner_of(uid)).or_insert(Work { left: ROUND })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_had_too_much_waits_and_others_do_not() {
        let mut budgets = Budgets::default();
        budgets.of(1).spend(2 * ROUND as u64 + 5);
        assert!(budgets.of(1).is_done() && !budgets.of(2).is_done());
        budgets.renew();
        assert!(budgets.of(1).is_done());
        budgets.renew();
        assert_eq!(budgets.of(1).left(), ROUND as u64 - 5);
        assert_eq!(budgets.of(2).left(), ROUND as u64);
        budgets.renew();
        assert_eq!(budgets.of(1).left(), ROUND as u64, "nothing is saved up");
    }
}
