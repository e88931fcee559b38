//! Locks that were acquired in both orders: potential deadlocks.
//!
//! **Rule.** Two edges of the lock order, A → B and B → A, may meet: one thread holds A and wants B, another holds B
//! and wants A. They are reported unless they cannot:
//! - *a gate*: one lock was held exclusively around both, every time;
//! - *readers*: neither wants what the other keeps from it, since both share A, or both share B. Locks that let
//!   a reader wait behind a waiting writer can deadlock all the same; that is not looked for.
//!
//! Circles of three and more locks are not looked for; the table `lock_order` has their edges. A pair may have been
//! seen in one thread only, which cannot deadlock with itself: it is reported, since others may run the same code. So is one
//! of which an order was only tried: what is recorded of `trylock` is what is recorded of a lock that was free.

use std::collections::HashMap;

use serde::Serialize;

use crate::document::{Lock as LockName, N, Of, Place, Section, Table, Word};
use crate::text;
use ft_trace::ids::Pid;
use ft_trace::tables::LockOrder;

/// Two locks that were acquired in both orders.
#[derive(Clone, Debug, Serialize)]
pub struct Abba {
    /// Process.
    pub pid: i32,
    /// The locks.
    pub locks: [String; 2],
    /// Their addresses.
    pub addresses: [i64; 2],
    /// First the second while the first was held, then the reverse.
    pub orders: [Taken; 2],
    /// Both were seen in one thread only.
    pub one_thread: bool,
    /// Further pairs of places that acquire these two in both orders.
    pub more_places: u64,
}

/// How two locks were acquired.
#[derive(Clone, Debug, Serialize)]
pub struct Taken {
    /// Where the one that was held had been acquired.
    pub held_at: String,
    /// Where the other was acquired.
    pub acquired_at: String,
    /// How often.
    pub count: i64,
    /// The thread; null: several.
    pub tid: Option<i32>,
}

impl From<&LockOrder> for Taken {
    fn from(r: &LockOrder) -> Self {
        Taken {
            held_at: r.held_place.to_string(),
            acquired_at: r.place.to_string(),
            count: r.count,
            tid: r.tid,
        }
    }
}

/// A lock of one process, by address and name.
type Lock = (i64, ft_trace::ids::Name);

/// The edges of a trace, of which there are at most 65,536.
#[derive(Debug, Default)]
pub(super) struct Edges {
    all: u64,
    edges: HashMap<(Pid, Lock, Lock), Vec<LockOrder>>,
}

impl Edges {
    pub(super) fn add(&mut self, r: LockOrder) {
        self.all += 1;
        let held = (r.held_lock, r.held_name.clone());
        let acquired = (r.lock, r.lock_name.clone());
        self.edges.entry((r.pid, held, acquired)).or_default().push(r);
    }

    /// What they say; `not_kept` acquisitions have edges that are not among them.
    pub(super) fn finish(self, not_kept: u64) -> Order {
        let (mut found, mut gated) = (Vec::new(), 0);
        for ((pid, held, acquired), there) in &self.edges {
            // Each pair once.
            if held >= acquired {
                continue;
            }
            let reverse = (*pid, acquired.clone(), held.clone());
            let Some(back) = self.edges.get(&reverse) else { continue };
            let all = there.iter().flat_map(|a| back.iter().map(move |b| (a, b)));
            let conflicts: Vec<_> = all.filter(|(a, b)| exclude_each_other(a, b)).collect();
            let meet: Vec<_> = conflicts.iter().filter(|(a, b)| !have_a_gate(a, b)).collect();
            let Some((a, b)) = meet.iter().max_by_key(|(a, b)| a.count.min(b.count)) else {
                gated += u64::from(!conflicts.is_empty());
                continue;
            };
            found.push(Abba {
                pid: pid.0,
                locks: [held.1.to_string(), acquired.1.to_string()],
                addresses: [held.0, acquired.0],
                orders: [Taken::from(*a), Taken::from(*b)],
                one_thread: a.tid.is_some() && a.tid == b.tid,
                more_places: meet.len() as u64 - 1,
            });
        }
        found.sort_by(|a, b| {
            (a.one_thread, a.pid, &a.locks, a.addresses).cmp(&(
                b.one_thread,
                b.pid,
                &b.locks,
                b.addresses,
            ))
        });
        Order { abba: found, gated, order_edges: self.all, order_not_kept: not_kept }
    }
}

/// What the edges of a trace say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Order {
    /// Locks that were acquired in both orders.
    pub abba: Vec<Abba>,
    /// Such pairs that cannot meet, since a common lock was held around both.
    pub gated: u64,
    /// Edges of the lock order that were seen.
    pub order_edges: u64,
    /// Acquisitions whose edge did not fit.
    pub order_not_kept: u64,
}

/// By what the summary refers to the table.
pub(super) const ORDER: &str = "order";

/// Pairs that are shown; the machine values have all.
const SHOWN: usize = 15;

impl Order {
    /// Says it.
    pub(super) fn say(&self, s: &mut Section) {
        if self.order_edges == 0 {
            return;
        }
        let edges = Of(self.order_edges, "edge");
        let mut about = match self.abba.len() as u64 {
            0 => text!("Lock order: {}; no two locks were acquired in both orders", edges),
            n => text!(
                "Lock order: {}; {} of locks acquired in both orders (potential deadlocks, but where one is only tried, as by trylock, \
                 which is not recorded)",
                edges,
                Of(n, "pair")
            ),
        };
        if self.gated > 0 {
            let more = Of(self.gated, "further pair");
            about = text!(
                "{}; {} cannot meet, because a common lock was held around both",
                about,
                more
            );
        }
        if self.order_not_kept > 0 {
            let n = Of(self.order_not_kept, "acquisition");
            about = text!("{}; {} had further edges, for which there was no room", about, n);
        }
        if self.abba.is_empty() {
            return s.say(about.and("."));
        }
        let name = |pair: &Abba, i: usize| {
            // Locks of one name differ by their address.
            let address = (pair.locks[0] == pair.locks[1]).then_some(pair.addresses[i]);
            LockName { address, ..LockName::named(&pair.locks[i]) }
        };
        let shown = self.abba.iter().take(SHOWN);
        let t = Table::of(shown.flat_map(|pair| [(pair, 0), (pair, 1)]))
            .column("holding", |(pair, i)| name(pair, *i))
            .column("acquired at", |(pair, i)| Place(&pair.orders[*i].held_at))
            .column("then", |(pair, i)| name(pair, 1 - *i))
            .column("acquired at", |(pair, i)| Place(&pair.orders[*i].acquired_at))
            .column("times", |(pair, i)| N(pair.orders[*i].count.unsigned_abs()))
            .column("threads", |(pair, _)| Word(if pair.one_thread { "one" } else { "several" }))
            .anchored(ORDER)
            .omitted(self.abba.len().saturating_sub(SHOWN), "pairs");
        s.table(t.titled(about));
    }
}

/// One waits for what the other holds, both ways.
fn exclude_each_other(a: &LockOrder, b: &LockOrder) -> bool {
    let shared = |kind: &str| kind.ends_with("-read");
    let first = !(shared(&a.held_kind) && shared(&b.kind));
    first && !(shared(&b.held_kind) && shared(&a.kind))
}

fn have_a_gate(a: &LockOrder, b: &LockOrder) -> bool {
    a.gates.split_whitespace().any(|gate| b.gates.split_whitespace().any(|other| other == gate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::run;

    /// Runs a timeline; the pairs, and how many have a gate.
    fn check(timeline: &str, expected: &[&str], expected_gated: u64) {
        let mut edges = Edges::default();
        run(true, timeline).0.lock_order.into_iter().for_each(|r| edges.add(r));
        let Order { abba: found, gated, .. } = edges.finish(0);
        let text = |p: &Abba| {
            let taken = |t: &Taken| format!("{}-{}×{}", t.held_at, t.acquired_at, t.count);
            let one = if p.one_thread { " one thread" } else { "" };
            let [a, b] = [&p.orders[0], &p.orders[1]].map(taken);
            format!("{} {}: {a} {b}{one}", p.locks[0], p.locks[1])
        };
        assert_eq!(found.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
        assert_eq!(gated, expected_gated, "{timeline}");
    }

    #[test]
    fn two_locks_in_both_orders_are_reported_with_both_places() {
        check(
            "10 acquire a K 1
             11 acquire a L 2
             12 release a L
             13 release a K
             20 acquire b L 3
             21 acquire b K 4
             22 release b K
             23 release b L",
            &["0x4b 0x4c: x.rs:1-x.rs:2×1 x.rs:3-x.rs:4×1"],
            0,
        );
    }

    #[test]
    fn what_is_only_tried_is_said_not_to_be_told_apart() {
        let mut edges = Edges::default();
        let timeline = "10 acquire a K\n 11 acquire a L\n 12 release a L\n 13 release a K
             20 acquire b L\n 21 acquire b K";
        run(true, timeline).0.lock_order.into_iter().for_each(|r| edges.add(r));
        let mut s = Section::new("waits", "");
        edges.finish(0).say(&mut s);
        let text = format!("{s:200}");
        assert!(text.contains("potential deadlocks, but where one is only tried"), "{text}");
    }

    #[test]
    fn one_thread_alone_is_said_to_be_so() {
        check(
            "10 acquire a K
             11 acquire a L
             12 release a L
             13 release a K
             20 acquire a L
             21 acquire a K",
            &["0x4b 0x4c: -×1 -×1 one thread"],
            0,
        );
    }

    #[test]
    fn a_common_gate_keeps_them_apart() {
        let both = |gate: &str| {
            format!(
                "10 {gate} a G
                 11 acquire a K
                 12 acquire a L
                 13 release a L
                 14 release a K
                 15 release a G
                 20 {gate} b G
                 21 acquire b L
                 22 acquire b K"
            )
        };
        check(&both("acquire"), &[], 1);
        check(&both("read"), &["0x4b 0x4c: -×1 -×1"], 0);
    }

    #[test]
    fn a_gate_that_is_between_the_two_is_none() {
        check(
            "10 acquire a K
             11 acquire a G
             12 acquire a L
             13 release a L
             14 release a G
             15 release a K
             20 acquire b L
             21 acquire b G
             22 acquire b K",
            // K before G and G before K are in both orders too.
            &["0x47 0x4b: -×1 -×1", "0x47 0x4c: -×1 -×1", "0x4b 0x4c: -×1 -×1"],
            0,
        );
    }

    #[test]
    fn readers_do_not_keep_each_other_out() {
        let orders = |a: &str, b: &str| {
            format!(
                "10 read a K
                 11 {a} a L
                 12 release a L
                 13 release a K
                 20 read b L
                 21 {b} b K"
            )
        };
        check(&orders("read", "read"), &[], 0);
        check(&orders("acquire", "read"), &[], 0);
        check(&orders("acquire", "acquire"), &["0x4b 0x4c: -×1 -×1"], 0);
    }
}
