//! Where the time of a program's scopes went.
//!
//! **Goal.** One row for each scope (`scope!`) whose begin and end were both recorded: how long it took, and where that
//! time went.
//!
//! **Rule.** Per thread, a list of the scopes in which it is. A begin appends; its *depth* is the number of scopes on the
//! list at that moment. An end takes the newest of its name, wherever it stands. The parts are the account at the end minus
//! the account at the begin; what an inner scope took is in the outer one, too. What begins in a task leaves the list with
//! that, and comes to that of the thread that runs the task next ([`Parked`]); its time in between is *parked*.
//!
//! **Situations that give no row** are counted by reason, [`Unpaired`].
//! - *An end without a begin*: begun before the recording, before its sites were switched on, or during a loss.
//! - *A begin without an end*: the thread, its memory (exec) or the recording ended first.
//! - *Events of the thread were lost*: what it was in then may have ended meanwhile; forgotten.
//!
//! A depth is a lower bound where the thread may be in a scope that was begun unseen (`world/begun.rs`).
//!
//! Memory: 256 scopes for each thread that lives, and what [`Parked`] keeps.

use crate::analysis::Analysis;
use crate::world::{
    Change, GoesOn, Nest, Outcome, Over, Parked, PerThread, Shares, Site, Spell, State, TaskId,
    Thread, World,
};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::{Name, Nanos, SiteId};
use ft_trace::tables::{Scope, SiteKind};
use serde::{Deserialize, Serialize};

/// Scopes, and requests without a key, in which one thread can be at a time; more comes from damaged data, or from ends
/// that never record.
///
/// Limit: the oldest has no row and is counted (`too_many`); depths above 255 are too small accordingly; in
/// `kernel_lock_waits`, which names the outermost, the innermost are left out.
/// Shown by: `scopes_that_never_end_are_bounded_and_counted`.
pub(crate) const MAX_OPEN: usize = 256;

/// Scopes of which only the begin or only the end was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unpaired {
    /// Ended, but the begin was not recorded.
    pub end_only: u64,
    /// Begun, but the thread or the recording ended first.
    pub begin_only: u64,
    /// Open when records of the thread were lost.
    pub open_at_loss: u64,
    /// The oldest of more than 256 in which one thread was.
    pub too_many: u64,
}

impl Unpaired {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.end_only + self.begin_only + self.open_at_loss + self.too_many
    }

    /// So many in which a thread was have no end that will be recorded.
    pub(crate) fn dropped(&mut self, n: u64, why: Over) {
        match why {
            Over::Loss => self.open_at_loss += n,
            Over::Thread | Over::Exec | Over::Trace => self.begin_only += n,
        }
    }
}

/// A scope in which a thread is.
#[derive(Clone, Debug)]
struct Open {
    site: SiteId,
    event: Name,
    depth: i32,
    depth_mark: Mark,
    began: Spell,
    lock_wait_ns: i64,
    /// Who ran while the thread was preempted (not: woken).
    shares: Shares,
}

impl GoesOn for Open {
    fn spell(&self) -> Option<&Spell> {
        Some(&self.began)
    }
}

/// The scopes in which a thread is.
#[derive(Debug, Default)]
struct OfThread {
    open: Vec<Open>,
    /// One has ended of which the begin was not recorded: more may go on.
    ended_unseen: bool,
}

/// Makes the table `scopes`.
#[derive(Debug, Default)]
pub struct Scopes {
    open: PerThread<OfThread>,
    parked: Parked<Open>,
    rows: u64,
    unpaired: Unpaired,
}

impl Analysis for Scopes {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Own { thread, event, site } => match site.kind {
                SiteKind::ScopeBegin => self.begin(thread, event, site, world),
                SiteKind::ScopeEnd => self.over(thread, site, world, rows),
                SiteKind::TaskDrop => self.comes(thread, (site.source, event.arg[0])),
                _ => {}
            },
            Change::TaskPoll { thread, poll, .. } => self.comes(thread, poll.task),
            Change::TaskPolled { thread, poll: Some(poll), how, .. } => {
                let Some(of) = self.open.get(thread) else { return };
                let lost = self.parked.leave(thread, poll, how, &mut of.open);
                self.unpaired.too_many += lost.len() as u64;
            }
            Change::Dispatched { thread, after: State::Preempted, shares, .. } => {
                let open = self.open.get(thread).into_iter().flat_map(|of| &mut of.open);
                open.for_each(|scope| scope.shares.merge(shares));
            }
            Change::WaitOver { thread, wait, end: Outcome::Acquired | Outcome::Abandoned } => {
                let open = self.open.get(thread).into_iter().flat_map(|of| &mut of.open);
                open.for_each(|scope| {
                    scope.lock_wait_ns += world.now() - wait.ts.max(scope.began.ts)
                });
            }
            Change::Dropping { thread, why } => self.dropped(thread, why, world),
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.scopes = self.rows;
        tally.unpaired_scopes = self.unpaired;
    }
}

impl Scopes {
    fn begin(&mut self, thread: &Thread, event: &LeanUserEvent, site: &Site, world: &World) {
        let OfThread { open, ended_unseen } = self.open.of(thread);
        let depth_mark = thread.begun.mark(Nest::Scopes).max(Mark::lower_bound_if(*ended_unseen));
        if open.len() == MAX_OPEN {
            open.remove(0);
            self.unpaired.too_many += 1;
        }
        open.push(Open {
            site: event.site,
            event: site.event.clone(),
            depth: open.len() as i32,
            depth_mark,
            began: Spell::now(thread, world),
            lock_wait_ns: 0,
            shares: Shares::default(),
        });
    }

    fn over(&mut self, thread: &Thread, site: &Site, world: &World, rows: &mut Rows) {
        let OfThread { open, ended_unseen } = self.open.of(thread);
        let Some(scope) = self.parked.take(thread, open, |scope| scope.event == site.event) else {
            self.unpaired.end_only += 1;
            *ended_unseen = true;
            return;
        };
        self.rows += 1;
        rows.scopes.push(row(thread, scope, world));
    }

    /// A thread runs a task, or drops it: it is in what that has begun.
    fn comes(&mut self, thread: &Thread, task: TaskId) {
        if let Some((_, scopes)) = self.parked.come(thread, task) {
            self.open.of(thread).open.extend(scopes);
        }
    }

    /// The rows of those in which a thread is, and tasks that it has run last, if they ended now.
    pub(crate) fn open(&mut self, thread: &Thread, world: &World) -> Vec<Scope> {
        let open = self.open.get(thread).into_iter().flat_map(|of| &of.open);
        let open = open.chain(self.parked.of_thread(thread));
        let censored =
            |scope: &Open| Scope { mark: Mark::Censored, ..row(thread, scope.clone(), world) };
        open.map(censored).collect()
    }

    /// What a thread is in has no end that will be recorded.
    fn dropped(&mut self, thread: &Thread, why: Over, world: &World) {
        let of_tasks = self.parked.drop(thread, why, world).len() as u64;
        self.unpaired.dropped(of_tasks, why);
        let Some(of) = self.open.get(thread) else { return };
        self.unpaired.dropped(std::mem::take(of).open.len() as u64, why);
    }
}

fn row(thread: &Thread, scope: Open, world: &World) -> Scope {
    let (key, ts) = (thread.key, scope.began.ts);
    let lost = world.losses().any_since(key, ts) || scope.began.is_doubtful(thread, world);
    let parts = scope.began.parts(thread, world);
    let preempted = parts.is_some_and(|p| p.preempted_ns > 0);
    let preemptor = scope.shares.longest().filter(|_| preempted);
    Scope {
        ts: Nanos(ts),
        dur: world.now() - ts,
        pid: key.pid,
        tid: key.tid,
        comm: thread.comm.clone(),
        site: scope.site,
        event: scope.event,
        depth: scope.depth,
        depth_mark: scope.depth_mark,
        parts,
        counts: scope.began.counts(thread, world),
        counter: scope.began.counter(thread, world),
        lock_wait_ns: scope.lock_wait_ns,
        preemptor_tid: preemptor.map(|s| s.who.thread.tid.0),
        preemptor_comm: preemptor.map(|s| s.who.comm.clone()),
        preemptor_ns: preemptor.map(|s| s.ns),
        agent_ns: scope.began.agent_ns(thread, world),
        mark: Mark::lower_bound_if(lost || !scope.shares.is_exact()).max(thread.disturbed.mark(ts)),
    }
}

#[cfg(test)]
mod tests;
