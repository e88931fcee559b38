//! Requests: pieces of work that a user waits for, wherever they are done, and what they waited for last.
//!
//! **Goal.** One row for each request whose begin and end were both recorded: how long it took, where the time of its thread
//! went, and what its critical path is made of ([`path`]); of the slowest ones, the path itself.
//!
//! **What a request is.** A scope that lies in no other one of its thread; a scope that the user names; what lies
//! between two events that the user names ([`RequestKind`]); each reaction ([`reactions`]); each call of a function that
//! is probed ([`probes`]); and each cycle of a thread that sleeps until times and has a deadline ([`cycles`]). Scopes have a table of their own, since each of them is a thread's own time, with its parts; a
//! request can begin in one thread and end in another.
//!
//! **Rule.** Scopes, calls, and events without a key are a list for each thread: an end takes the newest begin of its name,
//! and of a call that of its place in the stack. Of events with a key, an end takes the newest begin of that key, of its own
//! process if there is one. What begins without a key in a task goes with the task, as scopes do ([`Parked`]).
//!
//! **Whom to believe.** A request with a key may begin in one process and end in another, and no record says which
//! processes belong together, or to whom: an end without a begin of its own process ends the one of any other. So a program
//! that records events of the names that were asked for, with keys that it guesses, can end a request of another program too
//! early, or begin one that another ends; the row has the process of both ends. Reactions are of all processes by their
//! meaning. All requests share what bounds their paths, below. Requests without a key, scopes and calls are of one thread
//! alone. How many begin with a key in one process pushes out none of another that has an equal share or less ([`keyed`]).
//!
//! **Situations that give no row** are counted by reason, [`Unpaired`]: those of [`Scopes`](crate::Scopes). When events of a
//! thread are lost, what that thread was in is forgotten; what has a key may end elsewhere, and stays.
//!
//! **The path.** What threads did, and who woke them, is kept while any request goes on ([`history`]), and looked through
//! when one ends: for all, as long as no more pieces are looked at than [`PER_PIECE`] times those that threads' time is
//! made of; beyond, for the [`SLOWEST`] of each kind, up to twice as many. Others have no path, and are counted.
//!
//! Memory: 256 scopes for each thread that lives, [`MAX_OPEN_REQUESTS`](keyed::MAX_OPEN_REQUESTS) requests with a key,
//! the history, and of tasks what [`tasks`] keeps.

mod causes;
mod cycles;
mod history;
mod keyed;
mod kinds;
mod open;
mod path;
mod probes;
mod reactions;
mod row;
mod tasks;
#[cfg(test)]
mod tests;
mod wakers;

pub use causes::{Cause, Recorded};
pub use cycles::Deadline;
pub(crate) use history::History;
pub(crate) use kinds::{Does, Role};
pub use kinds::{NoRequest, RequestKind};
pub(crate) use path::{Past, Piece, walk};
pub use reactions::Reactions;
pub(crate) use tasks::Tasks;
pub(crate) use wakers::{Waker, interrupt_that_wakes, who_wakes};

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use crate::analysis::Analysis;
use crate::world::{Change, Left, Over, Parked, PerThread, Site, Thread, World};
use crate::{Rows, Tally, Unpaired};
use cycles::Cycle;
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::Name;
use ft_trace::tables::SiteKind;
use keyed::Keyed;
use open::Open;
use reactions::NO_KEY;
use row::row;
use serde::{Deserialize, Serialize};
use tasks::innermost;

/// Requests of a kind whose path is stored: those that were among so many slowest when they ended.
///
/// Limit: for other requests only the sums of their path are stored; the report names the numbers of the slowest.
/// Shown by: `only_the_slowest_have_their_path_in_the_table`.
pub const SLOWEST: usize = 100;

/// Kinds of requests that are distinguished when the slowest are found; further ones are one kind.
///
/// Limit: as `SLOWEST`.
const MAX_REQUEST_KINDS: usize = 4096;

/// Pieces of paths that are looked at for each piece of a thread's time.
///
/// Limit: a request has no path, and is counted (`without_path`), which the report says.
/// Shown by: `of_requests_whose_paths_would_cost_too_much_the_last_have_none`.
const PER_PIECE: u64 = 16;

/// Pieces of paths that are looked at in any case.
const FREE_PIECES: u64 = if cfg!(test) { 1 << 14 } else { 1 << 20 };

/// What became of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestCounts {
    /// Kinds that were asked for, beside the outermost scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<RequestKind>,
    /// Requests with a row.
    pub requests: u64,
    /// Requests without one.
    pub unpaired: Unpaired,
    /// Of those with a row, the path was not looked for: it would have taken too long.
    pub without_path: u64,
    /// Calls of probed functions that were left without a return that was recorded; see `probes.rs`.
    #[serde(skip_serializing_if = "crate::tally::is_zero")]
    pub left: u64,
    /// What became of the causes of each kind of reaction that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reactions: Vec<Reactions>,
    /// What became of each deadline that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<Deadline>,
}

impl RequestCounts {
    /// Nobody has asked, and there was none.
    pub fn is_none(&self) -> bool {
        *self == RequestCounts::default()
    }
}

/// Makes the tables `requests` and `critical_path`.
#[derive(Debug, Default)]
pub struct Requests {
    threads: PerThread<Vec<Open>>,
    parked: Parked<Open>,
    keyed: Keyed,
    /// When requests that go on began, and which they are.
    open: BTreeSet<(i64, u64)>,
    begun: u64,
    history: History,
    tasks: Tasks,
    slowest: HashMap<Name, BinaryHeap<Reverse<i64>>>,
    /// Pieces of paths that were looked at.
    walked: u64,
    counts: RequestCounts,
    /// By the kind that was asked for.
    reactions: BTreeMap<usize, Reactions>,
    /// Of each kind without a key, when its newest answer was.
    answers: BTreeMap<usize, i64>,
    /// What each thread is in that sleeps until times.
    cycles: PerThread<Vec<Cycle>>,
    /// By the kind that was asked for.
    deadlines: BTreeMap<usize, Deadline>,
    /// When the newest interrupt began of which a waking would make a cause: it will be one since then.
    waking: Option<i64>,
}

impl Analysis for Requests {
    #[inline]
    fn follows(&self) -> bool {
        !self.open.is_empty() || self.waking.is_some()
    }

    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Own { thread, event, site } => {
                if site.kind == SiteKind::TaskDrop {
                    self.comes(thread, (site.source, event.arg[0]));
                }
                if site.kind.is_of_task() {
                    self.tasks.own(thread, event, site, self.needed(), world);
                }
                self.own(thread, event, site, world, rows);
            }
            Change::TaskPoll { thread, event, poll } => {
                self.tasks.begins(thread, event, poll, self.needed(), world);
                self.comes(thread, poll.task);
            }
            Change::TaskPolled { thread, event, task, poll, how } => {
                if let Some(poll) = poll {
                    self.leaves(thread, poll, how);
                }
                let needed = self.needed();
                // When one of too many ended is not known.
                if let Some(poll) = poll.filter(|_| how != Left::TooMany) {
                    let outermost = thread.polls.is_empty();
                    self.tasks.ends(thread, poll, outermost, needed, world.now());
                }
                if how == Left::Ended && event.arg[1] != 0 {
                    self.tasks.over((thread.process, task), needed, world.now());
                }
            }
            Change::Spent(stretch) if self.follows() => {
                let needed = self.needed();
                self.history.add(stretch, needed);
            }
            Change::Waking { thread, wake, cpu, waker, birth } => {
                self.woken(thread, cpu, world);
                self.timer_comes(thread, cpu, world);
                if !self.follows() {
                    return;
                }
                let wake = who_wakes((wake, cpu, waker, birth), world);
                self.history.woken(thread.key, wake, self.needed());
            }
            Change::Interrupted(irq) => self.interrupted(irq, world),
            Change::Switched { prev: Some(thread), .. } => self.left_cpu(thread, world, rows),
            Change::Probed { thread, hit } => self.probed(thread, hit, world, rows),
            Change::ProbesLost { thread } => self.probes_lost(thread),
            Change::Dropping { thread, why } => {
                self.tasks.dropped(thread, self.needed(), world.now());
                if why == Over::Exec {
                    self.tasks.process_over(thread.process, self.needed(), world.now());
                }
                self.dropped(thread, why, world);
            }
            Change::Ended { thread, seen } => {
                self.cycles_end(thread, seen, world);
                if world.is_alone(thread) {
                    self.tasks.process_over(thread.process, self.needed(), world.now());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, world: &World, _: &mut Rows, tally: &mut Tally) {
        let open = self.keyed.kinds().filter(|kind| !self.reactions.contains_key(kind));
        self.counts.unpaired.begin_only += open.count() as u64;
        self.counts.reactions = self.reactions(world);
        self.counts.deadlines = self.deadlines(world);
        self.counts.asked = world.context().asked().to_vec();
        tally.requests = std::mem::take(&mut self.counts);
    }
}

impl Requests {
    /// Since when requests go on, or will have gone on.
    fn needed(&self) -> i64 {
        let waking = self.waking.unwrap_or(i64::MAX);
        self.open.first().map_or(waking, |&(since, _)| since.min(waking))
    }

    fn own(
        &mut self,
        thread: &Thread,
        event: &LeanUserEvent,
        site: &Site,
        world: &World,
        rows: &mut Rows,
    ) {
        let named = site.roles.iter().find(|role| role.does == Does::Names);
        match site.kind {
            SiteKind::ScopeBegin => {
                let within = self.threads.of(thread).iter().any(|open| open.scope);
                let mut open = self.begins(thread, &site.event, named.map(|role| role.kind), world);
                (open.scope, open.inner) = (true, within && named.is_none());
                self.push(thread, open, world);
            }
            SiteKind::ScopeEnd => {
                let is = |open: &Open| open.scope && open.name == site.event;
                if let Some(open) = self.take(thread, is) {
                    self.over(thread, open, None, world, rows);
                }
            }
            _ => {}
        }
        for role in &site.roles {
            let key = role.key.map(|i| event.arg[i]);
            match role.does {
                Does::Begins => {
                    let open = self.begins(thread, &site.event, Some(role.kind), world);
                    match key {
                        Some(key) => self.push_keyed((role.kind, key), open, world),
                        None => self.push(thread, open, world),
                    }
                }
                Does::Ends => {
                    let found = match key {
                        Some(key) => self.keyed.take_newest((role.kind, key), thread.key.pid),
                        None => self.take(thread, |open| {
                            open.probe.is_none() && !open.scope && open.asked == Some(role.kind)
                        }),
                    };
                    match found {
                        Some(open) => self.over(thread, open, key, world, rows),
                        None => self.counts.unpaired.end_only += 1,
                    }
                }
                Does::Causes => {
                    let open = self.begins(thread, &site.event, Some(role.kind), world);
                    self.caused((role.kind, key.unwrap_or(NO_KEY)), open, world);
                }
                Does::Answers => {
                    if let Some(cause) = self.answered((role.kind, key), thread, world) {
                        self.over(thread, cause, key, world, rows);
                    }
                }
                Does::Names => {}
            }
        }
    }

    /// A request, or a scope within one, is over.
    fn over(
        &mut self,
        thread: &Thread,
        open: Open,
        key: Option<i64>,
        world: &World,
        rows: &mut Rows,
    ) {
        self.over_with(thread, (open, key), false, world, rows);
    }

    /// The same; `whole`: its path is stored, even if it is none of the slowest.
    fn over_with(
        &mut self,
        thread: &Thread,
        (open, key): (Open, Option<i64>),
        whole: bool,
        world: &World,
        rows: &mut Rows,
    ) {
        if !open.inner {
            let kind = match open.asked {
                Some(asked) => world.context().request_name(asked).clone(),
                None => open.name.clone(),
            };
            let (from, to) = (open.ts, world.now());
            let slow = self.is_slow(&kind, to - from) || whole;
            let path = self.path(thread, &open, slow, world);
            let request = self.counts.requests as i64;
            self.counts.requests += 1;
            rows.requests.push(row(thread, &open, (request, kind, key), path.as_deref(), world));
            if slow {
                let pieces = path.into_iter().flatten();
                rows.critical_path.extend(pieces.map(|piece| piece.row(request, world)));
            }
        }
        self.forget(&open);
    }

    /// A request of this kind is among the slowest so far.
    fn is_slow(&mut self, kind: &Name, dur: i64) -> bool {
        let full = self.slowest.len() >= MAX_REQUEST_KINDS;
        let kind = if full && !self.slowest.contains_key(kind) { "".into() } else { kind.clone() };
        let slowest = self.slowest.entry(kind).or_default();
        let slow = slowest.len() < SLOWEST || slowest.peek().is_some_and(|least| dur > least.0);
        if slow {
            slowest.push(Reverse(dur));
            if slowest.len() > SLOWEST {
                slowest.pop();
            }
        }
        slow
    }

    fn path(
        &mut self,
        thread: &Thread,
        open: &Open,
        slow: bool,
        world: &World,
    ) -> Option<Vec<Piece>> {
        if !world.context().has_kernel() {
            return None;
        }
        let most = FREE_PIECES + PER_PIECE * self.history.told;
        if self.walked > if slow { 2 * most } else { most } {
            self.counts.without_path += 1;
            return None;
        }
        // What begins outside of tasks is the threads' own.
        let task = innermost(thread).filter(|_| open.in_task);
        let lost = world.losses().process_since(thread.key.pid, open.ts);
        let mark = Mark::lower_bound_if(lost);
        let past = Past { history: &self.history, tasks: &self.tasks, of_tasks: mark };
        let path = walk(past, thread.key, task, open.ts, world.now());
        self.walked += path.len() as u64 + 1;
        Some(path)
    }
}
