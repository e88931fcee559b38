//! What gives no row of the tables because its end was not recorded: for whoever draws what was so, be it to no known
//! end. Each is made at the moment at which it ends or is not known any more, and is `censored`.

use crate::holds;
use crate::scopes::Scopes;
use crate::world::{Hold, Outcome, Thread, Wait, World};
use ft_trace::Mark;
use ft_trace::ids::{Name, ThreadKey, Tid};
use ft_trace::tables::{CriticalSection, Scope};

/// A hold that [`Change::HoldLost`](crate::world::Change::HoldLost) reports, as if it ended now; `None` for one of a
/// semaphore, which is a hold only when it is posted.
pub fn hold(thread: &Thread, hold: &Hold, world: &World) -> Option<CriticalSection> {
    let row = || holds::row(thread, hold, &Default::default(), world);
    (!hold.is_semaphore()).then(|| CriticalSection { mark: Mark::Censored, ..row() })
}

/// The scopes in which a thread is, as if they ended now: for
/// [`Change::Dropping`](crate::world::Change::Dropping), before `scopes` is shown it.
pub fn scopes(scopes: &mut Scopes, thread: &Thread, world: &World) -> Vec<Scope> {
    scopes.open(thread, world)
}

/// A wait for a lock that did not end with the lock, or of which that is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// Who waited.
    pub thread: ThreadKey,
    /// Its name.
    pub comm: Name,
    /// Begin of the wait, CLOCK_MONOTONIC ns.
    pub from: i64,
    /// When it ended, or was not known any more.
    pub to: i64,
    /// Address of the lock.
    pub lock: i64,
    /// Its name, or the address in hexadecimal.
    pub lock_name: Name,
    /// `mutex`, `rwlock-read`, …
    pub kind: Name,
    /// Place of the wait in the source; empty when not known.
    pub place: Name,
    /// Who held the lock at the end, of those that are known.
    pub holder: Option<Tid>,
    /// How it ended; never with the lock.
    pub outcome: Outcome,
    /// `exact` for one that was given up, else `censored`.
    pub mark: Mark,
}

/// A wait that [`Change::WaitOver`](crate::world::Change::WaitOver) reports; `None` when it ended with the lock, and so has
/// a row.
pub fn wait(thread: &Thread, wait: &Wait, outcome: Outcome, world: &World) -> Option<Unmet> {
    let (key, context) = (thread.key, world.context());
    let mark = match outcome {
        Outcome::Acquired => return None,
        Outcome::Abandoned => Mark::lower_bound_if(world.losses().any_since(key, wait.ts)),
        Outcome::Unknown | Outcome::Over(_) => Mark::Censored,
    };
    Some(Unmet {
        thread: key,
        comm: thread.comm.clone(),
        from: wait.ts,
        to: world.now(),
        lock: wait.lock,
        lock_name: context.lock_name(key.pid, wait.lock, wait.site, wait.word),
        kind: wait.kind.clone(),
        place: context.place(key.pid, wait.site, wait.word),
        holder: world.locks().holder(thread.process, wait.lock).map(|h| h.tid),
        outcome,
        mark: mark.max(thread.disturbed.mark(wait.ts)),
    })
}
