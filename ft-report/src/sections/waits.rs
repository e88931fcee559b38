//! Statistics of the waits for locks: per lock, per acquiring place, and whose fault they were.

mod figures;
pub(super) mod free;
mod longest;
mod sums;
mod unfinished;

use std::cmp::Reverse;

use serde::Serialize;

use super::called::Called;
use super::order::{Edges, Order};
use super::{Input, without_kernel};
use crate::document::{
    Id, Lock, MeanNs, N, Ns, Of, Place, Section, Share, Table, Text, Thread, Word,
};
use crate::stats::{Groups, Marks, OTHERS, Tail, Top, own, parts};
use crate::text;
pub use free::{Behind, Free};
use ft_analysis::{Incomplete, Mark, Tally};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{LockOrder, LockWait, UnfinishedWait};
pub use longest::LongWait;
use sums::LockWaitSums;
pub use sums::{LockWaits, PlaceWaits, RootWaits, ThreadWaits};
pub(super) use unfinished::UNFINISHED;
pub use unfinished::Unended;

/// Groups of one kind; further ones are in one of others.
///
/// Limit: as `MAX_GROUPS` of `preempted.rs`.
const MAX_GROUPS: usize = 16_384;

/// Rows of the longer tables that are shown; the machine values have all.
const SHOWN: usize = 15;

/// Longest waits that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// What only the kernel's records tell.
const OF_KERNEL: &[&str] = &[
    "parts",
    "asleep_ns",
    "runnable_ns",
    "running_ns",
    "woken",
    "woken_after_ns",
    "woken_after_max_ns",
];

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct WaitsReport {
    /// Waits with their end.
    pub waits: u64,
    /// Sum of their lengths, ns.
    pub total_ns: i64,
    /// Holds and waits that were recorded in part; in no statistic.
    pub incomplete: Incomplete,
    /// How many are exact, lower bounds, censored.
    pub marks: Marks,
    /// There is a kernel stream: it is known what the holders did.
    pub decomposed: bool,
    /// All waits together.
    pub all: LockWaits,
    /// Each lock, the longest total first.
    pub locks: Vec<LockWaits>,
    /// Each place that acquires a lock, the longest total first.
    pub places: Vec<PlaceWaits>,
    /// Each thread that waited for each lock, the longest total first.
    pub by_thread: Vec<ThreadWaits>,
    /// Each thread that was to blame, by its name, and the lock that it held, of each wait the one that was longest; the longest
    /// total first.
    pub roots: Vec<RootWaits>,
    /// Time of the waits in which others were to blame, less long in the same wait, ns.
    pub brief_roots_ns: i64,
    /// Time of the waits in which nobody was: the lock was free, or the chain of holders a circle, ns.
    pub nobody_ns: i64,
    /// Who had the CPU while waiters could run and nobody held their lock, the longest total first.
    pub behind: Vec<Behind>,
    /// The longest waits.
    pub longest: Vec<LongWait>,
    /// Waits that never ended, by their begin.
    pub unfinished: Vec<Unended>,
    /// Locks that were acquired in both orders.
    #[serde(flatten)]
    pub order: Order,
}

/// Makes a [`WaitsReport`] of rows, in memory that does not grow with the number of waits.
#[derive(Debug, Default)]
pub struct Waits {
    all: LockWaitSums,
    locks: Groups<MAX_GROUPS, (Pid, Name, Name), LockWaitSums>,
    places: Groups<MAX_GROUPS, (Pid, Name, Name), PlaceWaits>,
    threads: Groups<MAX_GROUPS, (Pid, Tid, Name), ThreadWaits>,
    roots: Groups<MAX_GROUPS, (Pid, Name, Name, Name), RootWaits>,
    behind: Groups<MAX_GROUPS, Name, Behind>,
    marks: Marks,
    longest: Top<LongWait>,
    unfinished: Vec<Unended>,
    edges: Edges,
}

impl Waits {
    /// Counts a wait.
    pub fn add(&mut self, r: &LockWait) {
        self.all.add(r);
        self.locks.entry((r.pid, r.lock_name.clone(), r.kind.clone())).add(r);

        let place = self.places.entry((r.pid, r.lock_name.clone(), r.place.clone()));
        place.waits += 1;
        place.total_ns += r.dur;
        if r.dur > place.max_ns {
            (place.max_ns, place.max_tid) = (r.dur, r.tid.0);
            place.max_comm = r.comm.to_string();
            place.held_at = r.holder_place.as_ref().map(ToString::to_string);
        }

        let first = || ThreadWaits { comm: r.comm.to_string(), ..ThreadWaits::default() };
        let thread = self.threads.entry_or((r.pid, r.tid, r.lock_name.clone()), first);
        thread.waits += 1;
        thread.total_ns += r.dur;
        thread.max_ns = thread.max_ns.max(r.dur);

        if let (Some(comm), Some(lock), Some(at), Some(ns)) =
            (&r.root_comm, &r.root_lock, &r.root_place, r.root_ns)
        {
            let root = self.roots.entry((r.pid, comm.clone(), lock.clone(), at.clone()));
            root.waits += 1;
            root.total_ns += ns;
            root.max_ns = root.max_ns.max(ns);
        }
        if let (Some(comm), Some(ns)) = (&r.behind_comm, r.behind_ns) {
            self.behind.entry(comm.clone()).add(ns);
        }
        self.marks.add(r.mark);
        self.longest.offer(LONGEST, r.dur, || LongWait::from(r));
    }

    /// Takes a wait that never ended; there are no more of them than threads.
    pub fn add_unfinished(&mut self, r: &UnfinishedWait) {
        self.unfinished.push(Unended::from(r));
    }

    /// Takes an edge of the lock order.
    pub fn add_order(&mut self, r: LockOrder) {
        self.edges.add(r);
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(self, tally: &Tally) -> WaitsReport {
        let locks = self.locks.into_ranked(
            |((pid, lock, kind), c)| c.finish(pid.0, &lock, &kind),
            |l| (Reverse(l.total_ns), l.lock.clone(), l.kind.clone(), l.pid),
        );
        let places = self.places.into_ranked(
            |((pid, lock, place), sums)| PlaceWaits {
                pid: pid.0,
                lock: lock.to_string(),
                place: place.to_string(),
                ..sums
            },
            |p| (Reverse(p.total_ns), p.lock.clone(), p.place.clone(), p.pid),
        );
        let by_thread = self.threads.into_ranked(
            |((pid, tid, lock), sums)| ThreadWaits {
                pid: pid.0,
                tid: tid.0,
                lock: lock.to_string(),
                comm: if tid.0 == 0 { OTHERS.to_owned() } else { sums.comm },
                ..sums
            },
            |t| (Reverse(t.total_ns), t.lock.clone(), t.tid, t.pid),
        );
        let roots = self.roots.into_ranked(
            |((pid, comm, lock, place), sums)| RootWaits {
                pid: pid.0,
                comm: comm.to_string(),
                lock: lock.to_string(),
                place: place.to_string(),
                ..sums
            },
            |r| (Reverse(r.total_ns), r.comm.clone(), r.lock.clone(), r.place.clone(), r.pid),
        );
        let behind = self.behind.into_ranked(
            |(comm, sums)| Behind { comm: comm.to_string(), ..sums },
            |b| (Reverse(b.total_ns), b.comm.clone()),
        );
        let all = self.all.finish(0, "", "");
        // The times of all roots, and those without one, sum to the waits.
        let nobody_ns = all.no_holder_ns + all.cycle_ns;
        let blamed_ns: i64 = roots.iter().map(|r| r.total_ns).sum();
        let brief_roots_ns = all.total_ns - nobody_ns - blamed_ns;
        let mut marks = self.marks;
        marks.add_many(Mark::Censored, tally.incomplete.wait_only);
        WaitsReport {
            waits: all.waits,
            total_ns: all.total_ns,
            incomplete: tally.incomplete,
            marks,
            decomposed: tally.kernel,
            all,
            locks,
            places,
            by_thread,
            roots,
            brief_roots_ns,
            nobody_ns,
            behind,
            longest: self.longest.into_sorted(),
            unfinished: self.unfinished,
            order: self.edges.finish(tally.order_not_kept),
        }
    }
}

impl WaitsReport {
    /// Threads that wait for each other.
    pub(super) fn deadlocked(&self) -> u64 {
        self.unfinished.iter().filter(|u| u.cycle.is_some()).count() as u64
    }

    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<WaitsReport> {
        let mut waits = Waits::default();
        input.rows(|r: LockWait| waits.add(&r))?;
        input.rows(|r: UnfinishedWait| waits.add_unfinished(&r))?;
        input.rows(|r: LockOrder| waits.add_order(r))?;
        let mut report = waits.finish(input.tally);
        Called::name(input, report.longest.iter_mut().map(|w| &mut w.called))?;
        Ok(report)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s =
            Section::new("waits", "acquisitions of a lock that was taken, and who made them wait");
        self.coverage(&mut s);
        unfinished::say(&self.unfinished, &mut s);
        if self.waits > 0 {
            self.locks(&mut s);
            figures::add(&self, &mut s);
            self.places(&mut s);
            self.roots(&mut s);
            s.table(longest::table(&self.longest, self.decomposed));
            own::explain(&mut s, "");
        }
        self.order.say(&mut s);
        if self.decomposed { s.with(self) } else { s.with(without_kernel(self, OF_KERNEL)) }
    }

    fn coverage(&self, s: &mut Section) {
        let i = &self.incomplete;
        let mut line = self.marks.line("wait");
        if self.waits > 0 {
            line = text!("{}; {} in all", line, Ns(self.total_ns));
        }
        if self.marks.any() {
            s.say(
                line.reasons(&[(i.abandoned, "given up"), (i.semaphore_waits, "for semaphores")]),
            );
        }
        self.marks.legend(s);
        Tail::legend(s, "wait", std::iter::once(&self.all.tail));
        if !self.decomposed {
            s.say("The kernel was not recorded, so what the holders did meanwhile is unknown.");
        }
        if self.waits == 0 {
            s.say("No acquisition of a traced lock found it taken.");
        }
        if !self.marks.any() && i.semaphore_waits > 0 {
            s.say(text!(
                "{} for semaphores, which nobody in particular holds, are not among them.",
                Of(i.semaphore_waits, "wait")
            ));
        }
    }

    /// All locks together, where there are several.
    fn total(&self) -> Option<&LockWaits> {
        (self.locks.len() > 1).then_some(&self.all)
    }

    fn locks(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.locks)
            .total(self.total())
            .column("lock", |l| Lock::named(&l.lock))
            .column("kind", |l| Word(&l.kind))
            .processes(|l| l.pid)
            .column("waits", |l| N(l.waits))
            .column("total", |l| Ns(l.total_ns))
            .column("mean", |l| MeanNs(l.mean_ns))
            .column("p50", |l| Ns(l.tail.p50_ns))
            .column("p99", |l| l.tail.p99_ns.map(Ns))
            .column("max", |l| Ns(l.tail.max_ns))
            .column("of tid", |l| Id(l.max_tid))
            .counted("locks");
        s.table(own::beside(t, |l| (l.agent_ns, l.total_ns)).titled("By lock"));
        let t = Table::first(SHOWN, &self.locks)
            .total(self.total())
            .column("lock", |l| Lock::named(&l.lock))
            .column("kind", |l| Word(&l.kind))
            .processes(|l| l.pid)
            .when(self.decomposed, |t| parts::shares(t, |l| (l.parts, l.total_ns)))
            .column("no holder", |l| Share(l.no_holder_ns, l.total_ns))
            .column("cycle", |l| Share(l.cycle_ns, l.total_ns))
            .column("indirect", |l| Share(l.holder_waits_ns, l.total_ns));
        s.table(t.titled(
            "What the threads to blame did meanwhile (indirect: the holder itself waited for a lock)",
        ));
        if self.decomposed {
            free::say(&self.locks, self.total(), &self.behind, s);
        }
    }

    fn places(&self, s: &mut Section) {
        let t = Table::first(SHOWN, self.places.iter())
            .column("lock", |p| Lock::named(&p.lock))
            .processes(|p| p.pid)
            .column("acquired at", |p| Place(&p.place))
            .column("waits", |p| N(p.waits))
            .column("total", |p| Ns(p.total_ns))
            .column("share", |p| Share(p.total_ns, self.total_ns))
            .column("max", |p| Ns(p.max_ns))
            .column("by", |p| Thread::named(&p.max_comm))
            .column("tid", |p| Id(p.max_tid))
            .column("held at", |p| p.held_at.as_deref().map(Place))
            .counted("places");
        s.table(t.titled("By place of the acquisition, with the longest wait"));
    }

    fn roots(&self, s: &mut Section) {
        if self.roots.is_empty() {
            return;
        }
        if self.nobody_ns > 0 {
            s.say(text!(
                "Nobody was to blame for {} of the time: the lock was free, or its holders waited in a circle.",
                Share(self.nobody_ns, self.total_ns)
            ));
        }
        if self.brief_roots_ns > 0 {
            s.say(text!(
                "For {} of it threads were to blame that were not to blame longest in that wait: they are not counted below, so \
                 each share is at least as large as it is shown.",
                Share(self.brief_roots_ns, self.total_ns)
            ));
        }
        let t = Table::first(SHOWN, self.roots.iter())
            .column("thread", |r| Thread::named(&r.comm))
            .processes(|r| r.pid)
            .column("holding", |r| Lock::named(&r.lock))
            .column("acquired at", |r| Place(&r.place))
            .column("waits", |r| N(r.waits))
            .column("total", |r| Ns(r.total_ns))
            .column("share", |r| Share(r.total_ns, self.total_ns))
            .column("max", |r| Ns(r.max_ns))
            .counted("rows");
        s.table(
            t.titled("Who was to blame: longest at the end of the chain of holders, in each wait"),
        );
    }
}

/// ` at file:line`, if it is known.
pub(super) fn at(place: &str) -> Text {
    if place.is_empty() { Text::default() } else { text!(" at {}", Place(place)) }
}
