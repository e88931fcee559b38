//! Holds of locks (Feather-Trace, section 3): what happened in each ([`Holds`]), each time that a holder lost the CPU
//! ([`Preemptions`]), what would have spared others the waits behind it ([`WhatIfs`]), and the order in which locks are acquired ([`Order`]). What is a hold, and how deep it is, the world
//! knows (`world/held.rs`).

mod extensions;
mod order;
mod preemptions;
mod what_if;

pub use extensions::Extensions;
pub use order::Order;
pub use preemptions::{Preemptions, Unfinished};
pub use what_if::WhatIfs;

use crate::analysis::Analysis;
use crate::world::{Change, Hold, PerThread, Shares, State, Thread, World};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::ids::Nanos;
use ft_trace::tables::CriticalSection;

/// Makes the table `critical_sections`: one row for each hold whose acquisition and release were both recorded.
#[derive(Debug, Default)]
pub struct Holds {
    /// Who ran while the holder was preempted (not: woken), of the holds in which it was.
    displaced: PerThread<Vec<(u64, Shares)>>,
    rows: u64,
    semaphores_held_up: u64,
    out_of_order: u64,
    extensions: Extensions,
}

impl Analysis for Holds {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Dispatched { thread, after: State::Preempted, shares, .. } => {
                self.displaced(thread, shares);
            }
            Change::Released { thread, hold: Some(hold), in_order, .. } => {
                self.rows += 1;
                self.out_of_order += u64::from(!in_order);
                self.extensions.add(hold.slice);
                let shares = self.over(thread, hold);
                let row = row(thread, hold, &shares, world);
                let held_up = row.parts.is_some_and(|parts| parts.runnable_ns() > 0);
                self.semaphores_held_up += u64::from(held_up && hold.is_semaphore());
                rows.critical_sections.push(row);
            }
            Change::HoldLost { thread, hold } => drop(self.over(thread, hold)),
            Change::HoldMoved { from: Some(from), thread, hold } => {
                let shares = self.over(from, hold);
                if !shares.is_empty() {
                    self.displaced.of(thread).push((hold.id, shares));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.holds = self.rows;
        tally.semaphores_held_up = self.semaphores_held_up;
        tally.out_of_order_releases = self.out_of_order;
        tally.extensions = self.extensions;
    }
}

impl Holds {
    /// A thread was preempted; `shares` tells who ran instead.
    fn displaced(&mut self, thread: &Thread, shares: &Shares) {
        if shares.is_empty() || thread.locks.all().is_empty() {
            return;
        }
        let open = self.displaced.of(thread);
        for hold in thread.locks.all() {
            match open.iter_mut().find(|(id, _)| *id == hold.id) {
                Some((_, known)) => known.merge(shares),
                None => open.push((hold.id, shares.clone())),
            }
        }
    }

    /// Who ran instead of its holder during a hold that is over.
    fn over(&mut self, thread: &Thread, hold: &Hold) -> Shares {
        let Some(open) = self.displaced.get(thread) else { return Shares::default() };
        let at = open.iter().position(|(id, _)| *id == hold.id);
        at.map_or_else(Shares::default, |i| open.swap_remove(i).1)
    }
}

/// The row of a hold that ends now.
pub(crate) fn row(thread: &Thread, hold: &Hold, shares: &Shares, world: &World) -> CriticalSection {
    let (context, key, ts) = (world.context(), thread.key, hold.began.ts);
    let lost = world.losses().any_since(key, ts) || hold.began.is_doubtful(thread, world);
    let mark = Mark::lower_bound_if(lost || !shares.is_exact()).max(thread.disturbed.mark(ts));
    let parts = hold.began.parts(thread, world);
    let preempted = parts.is_some_and(|p| p.preempted_ns > 0);
    let preemptor = shares.longest().filter(|_| preempted);
    CriticalSection {
        ts: Nanos(ts),
        dur: world.now() - ts,
        pid: key.pid,
        tid: key.tid,
        lock: hold.lock,
        lock_name: context.lock_name(key.pid, hold.lock, hold.site, hold.word),
        kind: hold.kind.clone(),
        site: hold.site,
        place: context.place(key.pid, hold.site, hold.word),
        depth: hold.depth,
        depth_mark: hold.depth_mark,
        wait_ns: hold.wait_ns,
        condition: hold.condition,
        slice: hold.slice,
        parts,
        counts: hold.began.counts(thread, world),
        counter: hold.began.counter(thread, world),
        preemptor_tid: preemptor.map(|s| s.who.thread.tid.0),
        preemptor_comm: preemptor.map(|s| s.who.comm.clone()),
        preemptor_ns: preemptor.map(|s| s.ns),
        agent_ns: hold.began.agent_ns(thread, world),
        mark,
    }
}
