//! Who may have how much of something that is limited.
//!
//! Rule: a user may have as much as nobody has (the dynamic threshold of shared buffers: Choudhury and Hahne,
//! *Dynamic Queue Length Thresholds for Shared-Memory Packet Switches*, 1998, with factor 1). One user alone
//! gets half of it, the next half of the rest; so there is always something for one who has nothing yet, and
//! no list of users or sizes has to be chosen. Who comes first may have more, but never all of it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use ft_trace::owners::owner_of;

/// The part of the whole that even who comes first takes only within its share. Beyond it, a flood of those who come
/// first, which is what a session in which many users work looks like, would keep everybody else out.
const SHARED_BY_ALL: usize = 16;

/// Something limited, and what of it has been given to whom.
#[derive(Debug)]
pub struct Shares<K> {
    capacity: usize,
    taken: usize,
    held: HashMap<K, usize>,
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// `capacity` of it.
    pub fn new(capacity: usize) -> Shares<K> {
        Shares { capacity, taken: 0, held: HashMap::new() }
    }

    /// Gives one to `user`, who has to give it back. False when that would be more than its share. Who comes `first`
    /// may have more than that, down to the sixteenth part of the whole that is left to the shares of all.
    pub fn take(&mut self, user: K, first: bool) -> bool {
        self.take_many(user, 1, first)
    }

    /// The same for `amount` of it.
    pub fn take_many(&mut self, user: K, amount: usize, first: bool) -> bool {
        let left = self.capacity - self.taken;
        let held = self.held(user);
        // As if they were taken one by one.
        let is_fair = held.saturating_add(amount.saturating_mul(2)) <= left.saturating_add(1);
        let leaves_shares = amount <= left.saturating_sub(self.capacity / SHARED_BY_ALL);
        if !(is_fair || first && leaves_shares) {
            return false;
        }
        self.held.insert(user, held + amount);
        self.taken += amount;
        true
    }

    /// Takes one back.
    ///
    /// # Panics
    ///
    /// When this user has none.
    pub fn give_back(&mut self, user: K) {
        self.give_back_many(user, 1);
    }

    /// Takes `amount` back.
    ///
    /// # Panics
    ///
    /// When this user has less.
    pub fn give_back_many(&mut self, user: K, amount: usize) {
        let held = self.held.get_mut(&user).expect("only what was taken is given back");
        *held -= amount;
        if *held == 0 {
            self.held.remove(&user);
        }
        self.taken -= amount;
    }

    /// How much this user has.
    pub fn held(&self, user: K) -> usize {
        self.held.get(&user).copied().unwrap_or(0)
    }
}

/// Shares of several threads, by who answers for a user ([`owner_of`]).
#[derive(Clone, Debug)]
pub struct Places(Arc<Mutex<Shares<u32>>>);

/// One of the [`Places`]; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    user: u32,
    amount: u32,
}

impl Places {
    /// `capacity` of them.
    pub fn new(capacity: usize) -> Places {
        Places(Arc::new(Mutex::new(Shares::new(capacity))))
    }

    /// One for `user`, if its share allows that; see [`Shares::take`].
    pub fn take(&self, user: u32, first: bool) -> Option<Place> {
        self.take_many(user, 1, first)
    }

    /// `amount` of them, to be given back at once.
    pub fn take_many(&self, user: u32, amount: u32, first: bool) -> Option<Place> {
        let user = owner_of(user);
        let taken = self.with(|shares| shares.take_many(user, amount as usize, first));
        taken.then(|| Place { places: self.clone(), user, amount })
    }

    fn with<R>(&self, change: impl FnOnce(&mut Shares<u32>) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.with(|shares| shares.give_back_many(self.user, self.amount as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(shares: &mut Shares<char>, user: char) -> usize {
        while shares.take(user, false) {}
        shares.held(user)
    }

    #[test]
    fn each_gets_half_of_what_is_left() {
        let mut shares = Shares::new(1000);
        assert_eq!(['a', 'b', 'c'].map(|user| take_all(&mut shares, user)), [500, 250, 125]);
        // Whoever comes has something.
        let new = ('d'..='j').map(|user| take_all(&mut shares, user)).collect::<Vec<_>>();
        assert_eq!(new, [63, 31, 16, 8, 4, 2, 1]);
    }

    #[test]
    fn amounts_are_shares_like_pieces() {
        let mut shares = Shares::new(100);
        assert!(!shares.take_many('a', 51, false) && shares.take_many('a', 50, false));
        assert!(!shares.take_many('b', 26, false) && shares.take_many('b', 25, false));
        assert!(!shares.take_many('c', 20, true) && shares.take_many('c', 19, true));
        shares.give_back_many('a', 50);
        assert!(shares.take_many('d', 25, false));
    }

    #[test]
    fn what_is_given_back_is_there_for_all() {
        let mut shares = Shares::new(4);
        assert_eq!(take_all(&mut shares, 'a'), 2);
        shares.give_back('a');
        assert!(shares.take('b', false) && shares.take('c', false));
    }

    #[test]
    fn first_is_who_may_have_the_last() {
        let mut shares = Shares::new(3);
        assert!(shares.take('a', false) && shares.take('a', false) && !shares.take('a', false));
        assert!(shares.take('b', true));
        assert!(!shares.take('b', true) && !shares.take('c', true));
        shares.give_back('a');
        assert!(shares.take('b', true));
    }

    #[test]
    fn a_flood_of_who_comes_first_leaves_shares_to_all() {
        let mut shares = Shares::new(1600);
        assert_eq!(take_all(&mut shares, 'a'), 800);
        while shares.take('b', true) {}
        assert_eq!(shares.held('b'), 700);
        // Those who have nothing yet have shares of the rest, whoever they are.
        assert!(!shares.take('a', false));
        while shares.take('c', true) {}
        assert_eq!((shares.held('c'), take_all(&mut shares, 'd')), (50, 25));
    }

    #[test]
    fn a_place_is_given_back_when_it_is_dropped() {
        let places = Places::new(2);
        let place = places.take(7, false);
        assert!(place.is_some() && places.take(7, false).is_none());
        drop(place);
        assert!(places.take(7, false).is_some());
    }
}
