//! Where the time of a program's scopes went: per name, and the longest.

use std::cmp::Reverse;

use serde::Serialize;

use super::{Input, without_kernel};
use crate::document::{Interval, N, Ns, Of, Section, Share, Table, Thread, Word};
use crate::stats::counted::{self, CountedSums};
use crate::stats::{
    Counted, Distribution, Groups, Happened, Marks, Own, Tail, Top, happened, own, parts,
};
use crate::text;
use ft_analysis::{Mark, Tally, Unpaired};
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::{Decomposition, Scope};

/// Names with a line of their own; further ones are in one of others.
///
/// Limit: as `MAX_NAMES` of `functions.rs`.
const MAX_NAMES: usize = 16_384;

/// Names that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Longest scopes that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct ScopesReport {
    /// There is a kernel stream; without one there are no parts.
    pub kernel: bool,
    /// Scopes that are in no statistic.
    pub unpaired: Unpaired,
    /// How sure the others are.
    pub marks: Marks,
    /// Each name, the most time first.
    pub names: Vec<ScopeName>,
    /// The longest scopes.
    pub longest: Vec<LongScope>,
}

/// All scopes of one name.
#[derive(Clone, Debug, Serialize)]
pub struct ScopeName {
    /// `category.name`.
    pub name: String,
    /// Scopes.
    pub scopes: u64,
    /// Of these, with lost records: their `parts` are at least what is stated.
    pub lower_bounds: u64,
    /// Sum of their lengths, ns. What inner scopes took is in it.
    pub total_ns: i64,
    /// Percentiles of their lengths.
    #[serde(flatten)]
    pub tail: Tail,
    /// Where their time went; the sum of the parts is `total_ns`, or 0 without a kernel stream.
    pub parts: Decomposition,
    /// Waiting for locks, ns; whatever the parts say of that time.
    pub lock_wait_ns: i64,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// What happened to their threads meanwhile; what did in inner scopes is in it.
    pub happened: Happened,
    /// What counters counted in each of them, inner scopes included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Counted>,
}

/// One of the longest scopes.
#[derive(Clone, Debug, Serialize)]
pub struct LongScope {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// `category.name`.
    pub name: String,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Scopes that it was in already.
    pub depth: i32,
    /// Where the time went.
    pub parts: Option<Decomposition>,
    /// Waiting for locks, ns.
    pub lock_wait_ns: i64,
    /// Of `dur_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Who ran most while the thread was preempted.
    pub preemptor: Option<String>,
    /// That thread's id.
    pub preemptor_tid: Option<i32>,
    /// How sure it is.
    pub mark: Mark,
}

impl LongScope {
    /// Where it lies in the trace.
    fn interval(&self) -> Interval {
        Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.tid, lock: None }
    }
}

impl From<&Scope> for LongScope {
    fn from(r: &Scope) -> Self {
        LongScope {
            ts: r.ts.0,
            dur_ns: r.dur,
            name: r.event.to_string(),
            tid: r.tid.0,
            comm: r.comm.to_string(),
            depth: r.depth,
            parts: r.parts,
            lock_wait_ns: r.lock_wait_ns,
            agent_ns: Own(r.agent_ns),
            preemptor: r.preemptor_comm.as_ref().map(ToString::to_string),
            preemptor_tid: r.preemptor_tid,
            mark: r.mark,
        }
    }
}

#[derive(Debug, Default)]
struct Sums {
    lengths: Distribution,
    total_ns: i64,
    lower_bounds: u64,
    parts: Decomposition,
    lock_wait_ns: i64,
    agent_ns: Own,
    happened: Happened,
    counted: CountedSums,
}

/// Makes a [`ScopesReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Scopes {
    names: Groups<MAX_NAMES, Name, Sums>,
    marks: Marks,
    longest: Top<LongScope>,
}

impl Scopes {
    /// Counts a scope.
    pub fn add(&mut self, r: &Scope) {
        self.marks.add(r.mark);
        let sums = self.names.entry(r.event.clone());
        sums.lengths.add(r.dur);
        sums.total_ns = sums.total_ns.saturating_add(r.dur);
        sums.lower_bounds += u64::from(r.mark != Mark::Exact);
        sums.lock_wait_ns = sums.lock_wait_ns.saturating_add(r.lock_wait_ns);
        sums.agent_ns.add(r.agent_ns);
        sums.happened.add(r.counts);
        sums.counted.add(r.counter);
        if let Some(parts) = r.parts {
            sums.parts += parts;
        }
        self.longest.offer(LONGEST, r.dur, || LongScope::from(r));
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(self, tally: &Tally) -> ScopesReport {
        let name = |(name, mut s): (Name, Sums)| ScopeName {
            name: name.to_string(),
            scopes: s.lengths.count(),
            lower_bounds: s.lower_bounds,
            total_ns: s.total_ns,
            tail: Tail::of(&mut s.lengths),
            parts: s.parts,
            lock_wait_ns: s.lock_wait_ns,
            agent_ns: s.agent_ns,
            happened: s.happened,
            counted: s.counted.finish(&tally.counting.names),
        };
        ScopesReport {
            kernel: tally.kernel,
            unpaired: tally.unpaired_scopes,
            marks: self.marks,
            names: self.names.into_ranked(name, |n| (Reverse(n.total_ns), n.name.clone())),
            longest: self.longest.into_sorted(),
        }
    }
}

/// Says how many have no row, because an end of theirs is not known.
pub(super) fn not_counted(
    s: &mut Section,
    thing: &'static str,
    unpaired: &Unpaired,
    too_many: &'static str,
) {
    if unpaired.total() > 0 {
        s.say(text!("{} not counted", Of(unpaired.total(), thing)).reasons(&[
            (unpaired.end_only, "with no recorded begin"),
            (unpaired.begin_only, "open at the end"),
            (unpaired.open_at_loss, "open when events were lost"),
            (unpaired.too_many, too_many),
        ]));
    }
}

impl ScopesReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<ScopesReport> {
        let mut scopes = Scopes::default();
        input.rows(|r: Scope| scopes.add(&r))?;
        Ok(scopes.finish(input.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("scopes", "where the time of each `scope!` went");
        self.coverage(&mut s);
        if !self.names.is_empty() {
            self.lengths(&mut s);
            if self.kernel {
                self.parts(&mut s);
            }
            let t = Table::first(SHOWN, &self.names).column("scope", |n| Word(&n.name));
            let t = t.column("scopes", |n| N(n.scopes));
            happened::table(&mut s, t, "What happened in them, and how often", |n| n.happened);
            counted::tables(
                &mut s,
                &self.names,
                SHOWN,
                |n| &n.counted,
                |t| t.column("scope", |(n, _)| Word(&n.name)),
                "scopes",
            );
            self.longest(&mut s);
            own::explain(&mut s, "");
            parts::explain(&mut s, self.names.iter().map(|n| &n.parts));
            self.marks.legend(&mut s);
        }
        if self.kernel { s.with(self) } else { s.with(without_kernel(self, &["parts"])) }
    }

    fn coverage(&self, s: &mut Section) {
        if self.marks.any() {
            s.say(self.marks.line("scope"));
        } else {
            s.say("No scope was recorded from its beginning to its end; a program marks one with `ft_user::scope!`.");
        }
        not_counted(s, "scope", &self.unpaired, "more than one thread can be in");
        Tail::legend(s, "scope", self.names.iter().map(|name| &name.tail));
    }

    fn lengths(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.names)
            .counted("names")
            .column("scope", |n| Word(&n.name))
            .column("scopes", |n| N(n.scopes))
            .column("total", |n| Ns(n.total_ns))
            .column("p50", |n| Ns(n.tail.p50_ns))
            .column("p99", |n| n.tail.p99_ns.map(Ns))
            .column("max", |n| Ns(n.tail.max_ns));
        s.table(t.titled("By name, the most time first"));
    }

    fn parts(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.names)
            .marks(|n| Mark::lower_bound_if(n.lower_bounds > 0))
            .column("scope", |n| Word(&n.name));
        let t = parts::shares(t, |n| (n.parts, n.total_ns))
            .column("for locks", |n| Share(n.lock_wait_ns, n.total_ns));
        let t = own::beside(t, |n| (n.agent_ns, n.total_ns));
        s.table(t.titled("Where the time went; waiting for locks is blocked for the most part"));
    }

    fn longest(&self, s: &mut Section) {
        let t = Table::of(&self.longest)
            .marks(|l| l.mark)
            .column("scope", |l| Word(&l.name))
            .column("thread", |l| Thread::of(Some(l.tid), Some(&l.comm)))
            .column("length", |l| l.interval())
            .when(self.kernel, |t| {
                parts::durations(t, |l| l.parts).column("preemptor", |l| {
                    let preempted = l.preemptor.as_deref();
                    preempted.map(|comm| Thread::of(l.preemptor_tid, Some(comm)))
                })
            });
        s.table(own::beside(t, |l| (l.agent_ns, l.dur_ns)).titled("The longest scopes"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::run;

    /// The report of a timeline.
    fn report(kernel: bool, timeline: &str) -> ScopesReport {
        let (rows, tally) = run(kernel, timeline);
        let mut scopes = Scopes::default();
        rows.scopes.iter().for_each(|r| scopes.add(r));
        scopes.finish(&tally)
    }

    const TIMELINE: &str = "
        0 0 .>a S
        1000 open a
        1100 enter a
        1200 0 a>X R
        2200 0 X>a S
        2300 leave a
        2400 enter a
        2500 0 a>X S
        3000 wake X a 0
        3100 0 X>a S
        3200 leave a
        3400 close a
        3500 close a
        3600 open a";

    #[test]
    fn the_parts_of_a_name_sum_to_its_total() {
        let report = report(true, TIMELINE);
        let found = report.names.iter().map(|n| (&*n.name, n.scopes, n.total_ns, n.tail.max_ns));
        let expected = [("work.outer", 1, 2400, 2400), ("work.inner", 2, 2000, 1200)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(report.names.iter().all(|n| n.parts.total_ns() == n.total_ns));
        let inner = &report.names[1].parts;
        assert_eq!((inner.running_ns, inner.preempted_ns, inner.blocked_ns), (400, 1000, 500));
        assert_eq!((report.unpaired.end_only, report.unpaired.begin_only), (1, 1));
        assert_eq!(report.longest.iter().map(|l| l.dur_ns).collect::<Vec<_>>(), [2400, 1200, 800]);
        let text = format!("{:120}", report.section());
        for line in
            ["3 scopes, all exact", "2 scopes not counted", "work.outer", "The longest scopes"]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn time_in_which_a_fiber_was_switched_out_has_a_column_where_there_is_some() {
        let timeline = "
            0 0 .>a S
            1000 fiber a 1
            1100 open a
            1300 fiber a 2
            1900 fiber a 1
            2100 close a";
        let report = report(true, timeline);
        let parts = &report.names[0].parts;
        assert_eq!((parts.running_ns, parts.parked_ns, parts.total_ns()), (400, 600, 1000));
        let text = format!("{:120}", report.section());
        assert!(text.contains("60.0 %") && text.contains("*parked*"), "{text}");
        let others = format!("{:120}", self::report(true, TIMELINE).section());
        assert!(!others.contains("parked"), "{others}");
    }

    #[test]
    fn without_a_kernel_there_are_lengths_alone_and_without_scopes_a_sentence() {
        let alone = format!("{:120}", report(false, TIMELINE).section());
        assert!(alone.contains("By name") && !alone.contains("preempted"), "{alone}");
        let none = format!("{:120}", report(true, "0 0 .>a S").section());
        assert!(none.contains("No scope was recorded"), "{none}");
    }
}
