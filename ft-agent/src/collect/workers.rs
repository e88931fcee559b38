//! Job whose duration a program decides, done aside.
//!
//! To look at a process can take for ever: its files may lie on a file system that a process of its user
//! serves, its memory may be one whose pages such a process brings, and the lock of its address space may be
//! held meanwhile. So whoever must not wait (the collecting thread, the registration server) gives such work
//! away, and nobody waits for a worker: a new one takes the place of one that does not come back. Users take
//! turns; how much of one user's work waits, and how many workers it can keep, is its share ([`Shares`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fair_queue::FairQueue;
use super::shares::Shares;
use crate::threads;

/// Workers at most: one user can keep 8 of them, a second one 4.
const MAX_WORKERS: usize = 16;

/// Works that wait at most; half of it for one user alone.
const MAX_WAITING: usize = 4096;

/// A worker that is at it for longer is not waited for.
const STUCK: Duration = Duration::from_millis(20);

type Job = Box<dyn FnOnce() + Send>;

/// Threads that do it. They end when this is dropped and they have nothing more to do; one that is stuck ends
/// with the agent.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There is something to do, or nothing any more.
    wake: Condvar,
}

struct State {
    waiting: FairQueue<Job>,
    places: Shares<u32>,
    /// Workers that are at it, by whose work it is.
    hands: Shares<u32>,
    /// When each of them began, by a number of their own.
    began: BTreeMap<u64, Instant>,
    workers: usize,
    idle: usize,
    next: u64,
    over: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Default for Workers {
    fn default() -> Self {
        let state = State {
            waiting: FairQueue::default(),
            places: Shares::new(MAX_WAITING),
            hands: Shares::new(MAX_WORKERS),
            began: BTreeMap::new(),
            workers: 0,
            idle: 0,
            next: 0,
            over: false,
        };
        Workers { shared: Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() }) }
    }
}

impl Workers {
    /// Has `work` done that concerns a process of `user`. False when too much of this user's waits already, or
    /// there is no thread to be had.
    pub fn give(&self, user: u32, work: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.shared.lock();
        if !state.places.take(user, false) {
            return false;
        }
        state.waiting.push(user, Box::new(work));
        self.reinforce(&mut state);
        self.shared.wake.notify_one();
        state.workers > 0
    }

    /// Gives the place of workers that do not come back to new ones; to be called now and then.
    pub fn tend(&self) {
        self.reinforce(&mut self.shared.lock());
    }

    fn reinforce(&self, state: &mut State) {
        let all_stuck = || state.began.values().all(|began| began.elapsed() > STUCK);
        if state.idle > 0 || state.workers == MAX_WORKERS || !all_stuck() {
            return;
        }
        let shared = self.shared.clone();
        let work = move || {
            // What takes as long as a program likes goes before nobody; who starts a thread may.
            let _ = rustix::process::setpriority_process(None, 0);
            shared.work();
        };
        if threads::spawn("ft-look", work).is_ok() {
            state.workers += 1;
            // Until it runs: so that not every work that comes meanwhile starts one.
            state.idle += 1;
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody panics with the lock in hand; a panic of a work itself has been reported by its own hook.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let State { waiting, hands, .. } = &mut *state;
            let Some((user, work)) = waiting.pop_of(|user| hands.take(user, false)) else {
                if state.over {
                    return;
                }
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.places.give_back(user);
            state.idle -= 1;
            state.next += 1;
            let number = state.next;
            state.began.insert(number, Instant::now());
            drop(state);
            // A bug in one look must not keep this user's share for good.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            state = self.lock();
            state.began.remove(&number);
            state.hands.give_back(user);
            state.idle += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Gives away work that does not end before the sender that is returned is dropped.
    fn stuck(workers: &Workers, user: u32) -> Option<std::sync::mpsc::Sender<()>> {
        let (end, until) = channel::<()>();
        workers
            .give(user, move || {
                let _ = until.recv();
            })
            .then_some(end)
    }

    /// Waits until the work of this user is done, while somebody tends the workers.
    fn is_served(workers: &Workers, user: u32) {
        let (sender, done) = channel();
        assert!(workers.give(user, move || sender.send(()).unwrap()));
        while done.recv_timeout(STUCK / 2).is_err() {
            workers.tend();
        }
    }

    #[test]
    fn work_is_done_beside_what_never_ends() {
        let workers = Workers::default();
        let _never: Vec<_> = (0..100).map(|_| stuck(&workers, 1).unwrap()).collect();
        is_served(&workers, 2);
        let _neither: Vec<_> = (0..100).map(|_| stuck(&workers, 2).unwrap()).collect();
        is_served(&workers, 3);
        assert!(workers.shared.lock().workers <= MAX_WORKERS);
    }

    #[test]
    fn one_user_cannot_fill_the_queue() {
        let workers = Workers::default();
        let mut never = Vec::new();
        while let Some(end) = stuck(&workers, 1) {
            never.push(end);
            assert!(never.len() <= MAX_WAITING);
        }
        is_served(&workers, 2);
    }

    #[test]
    fn one_thread_does_what_ends_soon_and_a_panic_is_survived() {
        let workers = Workers::default();
        is_served(&workers, 1);
        assert!(workers.give(1, || panic!("in a test")));
        is_served(&workers, 1);
        is_served(&workers, 2);
    }
}
