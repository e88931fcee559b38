//! Work whose duration a program decides, on the runtime's blocking threads.
//!
//! A look at a process can take for ever: its files may lie on a file system that a process of its user serves, its memory
//! may be one whose pages such a process brings, and the lock of its address space may be held meanwhile. So whoever must
//! not wait (the collecting thread, the control plane) gives such work away. Each user has permits, of which it can keep
//! its share ([`Shares`]) and no more; users take turns; how much of one user's work waits is its share, too.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ft_trace::owners::owner_of;
use tokio::runtime::Handle;

use crate::collect::fair_queue::FairQueue;
use crate::collect::shares::Shares;

/// Looks at once: one user can have 8 permits, a second one 4.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
pub(super) const PERMITS: usize = 16;

/// Looks that wait at most; half of them for one user alone.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
const MAX_WAITING: usize = 4096;

type Look = Box<dyn FnOnce() + Send>;

/// The looks that wait and those that are under way.
#[derive(Clone)]
pub struct Looks {
    threads: Handle,
    state: Arc<Mutex<State>>,
}

struct State {
    waiting: FairQueue<Look>,
    places: Shares<u32>,
    permits: Shares<u32>,
    /// Users who may have more than their share of the permits.
    first: &'static [u32],
}

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Looks").finish_non_exhaustive()
    }
}

impl Looks {
    /// On the blocking threads of this runtime.
    pub(crate) fn new(threads: Handle) -> Looks {
        Looks::of(threads, PERMITS, MAX_WAITING, &[])
    }

    /// The same with so many threads, of which so many can wait. Users who come `first` may have more than their share of the threads.
    pub(super) fn of(
        threads: Handle,
        permits: usize,
        waiting: usize,
        first: &'static [u32],
    ) -> Looks {
        let (places, permits) = (Shares::new(waiting), Shares::new(permits));
        let state = State { waiting: FairQueue::default(), places, permits, first };
        Looks { threads, state: Arc::new(Mutex::new(state)) }
    }

    /// Has `look` done that concerns a process of `user`. Never waits; false when too much of this user's waits already.
    pub fn give(&self, user: u32, look: impl FnOnce() + Send + 'static) -> bool {
        let user = owner_of(user);
        let mut state = self.lock();
        let has_place = state.places.take(user, false);
        if has_place {
            state.waiting.push(user, Box::new(look));
            self.start(&mut state);
        }
        has_place
    }

    /// Starts what waits and has a permit.
    fn start(&self, state: &mut State) {
        while let Some((user, look)) = next(state) {
            let looks = self.clone();
            self.threads.spawn_blocking(move || looks.work(user, look));
        }
    }

    /// Does a look, and what waits behind it.
    fn work(&self, mut user: u32, mut look: Look) {
        loop {
            // A bug in one look must not keep this user's permit for good.
            let _ = catch_unwind(AssertUnwindSafe(look));
            let mut state = self.lock();
            state.permits.give_back(user);
            match next(&mut state) {
                Some(waiting) => (user, look) = waiting,
                None => return,
            }
            self.start(&mut state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody panics with the lock in hand.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next look of a user who has a permit left, and takes it.
fn next(State { waiting, places, permits, first }: &mut State) -> Option<(u32, Look)> {
    let (user, look) = waiting.pop_of(|user| permits.take(user, first.contains(&user)))?;
    places.give_back(user);
    Some((user, look))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::super::handle;
    use super::*;

    /// Gives a look that does not end before the sender that is returned is dropped.
    fn stuck(looks: &Looks, user: u32) -> Option<Sender<()>> {
        let (end, until) = channel::<()>();
        looks
            .give(user, move || {
                let _ = until.recv();
            })
            .then_some(end)
    }

    /// Waits until a look of this user is done.
    fn is_served(looks: &Looks, user: u32) {
        let (sender, done) = channel();
        assert!(looks.give(user, move || sender.send(()).unwrap()));
        done.recv().unwrap();
    }

    #[test]
    fn a_user_whose_looks_never_end_keeps_nobody_else_waiting() {
        let looks = Looks::new(handle());
        let _never: Vec<_> = (0..100).map(|_| stuck(&looks, 1).unwrap()).collect();
        is_served(&looks, 2);
        let _neither: Vec<_> = (0..100).map(|_| stuck(&looks, 2).unwrap()).collect();
        is_served(&looks, 3);
        // The look that was served gives its permit to one that waits.
        while [1, 2].map(|user| looks.lock().permits.held(user)) != [8, 4] {
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_user_cannot_fill_the_queue() {
        let looks = Looks::new(handle());
        let mut never = Vec::new();
        while let Some(end) = stuck(&looks, 1) {
            never.push(end);
            assert!(never.len() <= MAX_WAITING);
        }
        is_served(&looks, 2);
    }

    #[test]
    fn a_panic_costs_no_permit() {
        let looks = Looks::new(handle());
        for _ in 0..2 * PERMITS {
            assert!(looks.give(1, || panic!("in a test")));
        }
        is_served(&looks, 1);
        while looks.lock().permits.held(1) > 0 {
            std::thread::yield_now();
        }
    }
}
