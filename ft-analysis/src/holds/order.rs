//! In which order locks are acquired.
//!
//! **Goal.** One edge for each pair of a lock that was held and a lock that was acquired meanwhile, with both places
//! and how often.
//!
//! **Rule.** An acquisition gives an edge from every lock that the thread holds. Locks are distinguished by address and
//! name, since the memory of a lock that is gone may become another lock. What was held before *both* is a
//! possible gate: where two threads that take two locks in opposite order hold the same gate, they cannot meet
//! in between. An edge keeps the gates that were there every time.
//!
//! **Limits.** An acquisition that did not wait may have been an attempt (`try_lock`), which cannot block; it counts
//! all the same. Locks that the program makes and frees at one address without a name are one lock here.
//! Semaphores are left out.
//!
//! Memory: 65,536 edges of each process; further ones are counted.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::world::{Change, Context, Thread, World};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos, Pid, SiteId, ThreadKey, Tid};
use ft_trace::tables::LockOrder;

/// Edges that are kept of one process; its own, so that none takes the room of another.
///
/// Limit: acquisitions without an edge are counted (`order_not_kept`), and `waits` says how many.
/// Shown by: `edges_that_do_not_fit_are_counted`.
const MAX_EDGES: usize = 1 << 16;

/// Gates that are kept for an edge.
///
/// Limit: a pair that only a ninth lock guards is reported needlessly as a possible deadlock; none is missed.
/// Shown by: `a_ninth_gate_is_not_kept`.
const MAX_GATES: usize = 8;

/// Address of a lock and the word of its acquisition, which has the name and the place.
type Place = (i64, i64);

#[derive(Debug)]
struct Edge {
    ts: i64,
    count: i64,
    /// None: several.
    tid: Option<Tid>,
    held: (SiteId, Name),
    acquired: (SiteId, Name),
    gates: Vec<i64>,
    mark: Mark,
}

/// Makes the table `lock_order`, at the end.
#[derive(Debug, Default)]
pub struct Order {
    edges: HashMap<Pid, HashMap<(Place, Place), Edge>>,
    /// Acquisitions whose edge did not fit.
    not_kept: u64,
}

impl Analysis for Order {
    #[inline]
    fn see(&mut self, change: &Change<'_>, _: &World, _: &mut Rows) {
        if let Change::Acquired { thread, hold } = *change
            && hold.depth > 0
            && !hold.is_semaphore()
        {
            self.acquired(thread);
        }
    }

    fn end(&mut self, world: &World, rows: &mut Rows, tally: &mut Tally) {
        rows.lock_order = self.rows(world.context());
        tally.order_not_kept = self.not_kept;
    }
}

impl Order {
    /// A thread acquired the last of the locks that it holds now.
    fn acquired(&mut self, thread: &Thread) {
        let ThreadKey { pid, tid } = thread.key;
        let locks = thread.locks.locks();
        let mut before = locks.clone();
        let Some(new) = before.next_back() else { return };
        let edges = self.edges.entry(pid).or_default();
        for (i, held) in before.enumerate().filter(|(_, held)| held.lock != new.lock) {
            // A shared gate lets both in.
            let gates =
                locks.clone().take(i).filter(|h| !h.kind.ends_with("-read")).map(|h| h.lock);
            let key = ((held.lock, held.word), (new.lock, new.word));
            if let Some(edge) = edges.get_mut(&key) {
                edge.count += 1;
                edge.mark = edge.mark.max(new.depth_mark);
                edge.tid.take_if(|one| *one != tid);
                if !edge.gates.is_empty() {
                    let gates: Vec<i64> = gates.collect();
                    edge.gates.retain(|g| gates.contains(g));
                }
            } else if edges.len() < MAX_EDGES {
                let edge = Edge {
                    ts: new.began.ts,
                    count: 1,
                    tid: Some(tid),
                    held: (held.site, held.kind.clone()),
                    acquired: (new.site, new.kind.clone()),
                    gates: gates.take(MAX_GATES).collect(),
                    mark: new.depth_mark,
                };
                edges.insert(key, edge);
            } else {
                self.not_kept += 1;
            }
        }
    }

    /// The rows of all edges, by the time of their first.
    fn rows(&mut self, context: &Context) -> Vec<LockOrder> {
        let edges = self.edges.drain();
        let mut edges: Vec<_> = edges
            .flat_map(|(pid, of)| of.into_iter().map(move |(key, edge)| (pid, key, edge)))
            .collect();
        edges.sort_by_key(|&(pid, (held, new), ref edge)| (edge.ts, pid, held, new));
        let row = |(pid, (held, new), edge): (Pid, (Place, Place), Edge)| {
            let gates: Vec<String> = edge.gates.iter().map(|g| format!("{g:#x}")).collect();
            let name = |(lock, word), site| context.lock_name(pid, lock, site, word);
            let (held_name, lock_name) = (name(held, edge.held.0), name(new, edge.acquired.0));
            LockOrder {
                ts: Nanos(edge.ts),
                count: edge.count,
                pid,
                tid: edge.tid.map(|tid| tid.0),
                held_lock: held.0,
                held_name,
                held_kind: edge.held.1,
                held_place: context.place(pid, edge.held.0, held.1),
                lock: new.0,
                lock_name,
                kind: edge.acquired.1,
                place: context.place(pid, edge.acquired.0, new.1),
                gates: gates.join(" ").into(),
                mark: edge.mark,
            }
        };
        edges.into_iter().map(row).collect()
    }
}
