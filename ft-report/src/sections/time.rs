//! The time ledger: where all the time of each observed thread went, and whether it balances.

mod counted;

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

pub use self::counted::ThreadCount;
use super::steal::Steal;
use super::{Input, NO_SCHEDULER, unknown};
use crate::document::{
    Data, ExactNs, Id, N, Ns, Of, Section, Share, Table, Text, Thread, Typed, Word,
};
use crate::stats::{Groups, IDLE, Marks, Own, own, parts, ranked};
use crate::text;
use ft_analysis::{Mark, Tally};
use ft_trace::ids::{Name, Nanos, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{CpuCount, Decomposition, Part, ThreadTime};

/// Threads with lines of their own; the time of further ones is in the sums over all threads alone.
///
/// Limit: the time of further ones is in all sums, and stated (`others_ns`); their counts are one row `(others)`.
/// Shown by: `threads_that_do_not_fit_are_counted`, `what_has_no_room_is_with_the_others`.
const MAX_THREADS: usize = 16_384;

/// Pairs of part and culprit with a line of their own, over all threads; further ones are in lines of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_CULPRITS: usize = 16_384;

/// Threads that are shown; the machine values have all.
const SHOWN: usize = 15;

/// Threads that are drawn.
const DRAWN: usize = 40;

/// Culprits of one part that are shown.
const SHOWN_CULPRITS: usize = 5;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct TimeReport {
    /// There is a kernel stream; without one nothing is known.
    pub kernel: bool,
    /// Threads of which every part sums to the wall time.
    pub balanced: u64,
    /// Threads of which they do not: a fault of this program.
    pub unbalanced: u64,
    /// Threads by their mark; the censored are in all sums, with what of them lies in the trace.
    pub marks: Marks,
    /// Each thread, longest wall time first.
    pub threads: Vec<ThreadBalance>,
    /// Time of further threads, ns: more than 16,384 have no lines of their own, and these are only in what follows.
    pub others_ns: i64,
    /// Over all threads, by part and then by time.
    pub culprits: Vec<TimeCulprit>,
    /// Counters that were read at switches.
    #[serde(skip)]
    counters: Vec<String>,
    /// What counters of the CPUs counted of each thread, by counter, most first; missing where none were read at switches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<ThreadCount>,
    /// What the hypervisor took, by the kernel's account.
    pub steal: Steal,
}

/// One thread.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadBalance {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its newest name.
    pub comm: String,
    /// First sight, CLOCK_MONOTONIC ns.
    pub from_ns: i64,
    /// First sight to last, ns.
    pub wall_ns: i64,
    /// Sum of the parts, ns.
    pub sum_ns: i64,
    /// `sum_ns - wall_ns`; 0.
    pub difference_ns: i64,
    /// `exact`, `lower bound` or `censored`.
    pub mark: Mark,
    /// (part, ns), all parts in their order.
    pub parts: Vec<(Part, i64)>,
    /// Of *preempted* and *dispatch*, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Who or what took it.
    pub culprits: Vec<TimeCulprit>,
}

impl ThreadBalance {
    /// All parts.
    fn sums(&self) -> Decomposition {
        let mut sums = Decomposition::default();
        self.parts.iter().for_each(|&(part, ns)| *sums.part_mut(part) = ns);
        sums
    }
}

/// The time that one culprit took.
#[derive(Clone, Debug, Serialize)]
pub struct TimeCulprit {
    /// Part.
    pub part: Part,
    /// Who or what; null for the thread itself.
    pub culprit: Option<String>,
    /// Thread id of who ran instead; over all threads null, but for idle tasks, which are 0.
    pub culprit_tid: Option<i32>,
    /// Time, ns.
    pub spent_ns: i64,
    /// Uninterrupted stretches.
    pub stretches: i64,
    /// Of `spent_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
}

/// A part, whether the idle task took it, which no program can be by taking a name, and who or what did.
type Taker = ((Part, bool), Option<Name>);

/// Makes a [`TimeReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Times {
    threads: HashMap<(Pid, Tid, Nanos), ThreadBalance>,
    culprits: Groups<MAX_CULPRITS, Taker, (i64, i64, Own)>,
    /// Time of threads that did not fit, ns.
    others_ns: i64,
}

impl Times {
    /// Counts a row.
    pub fn add(&mut self, r: &ThreadTime) {
        let idle = r.culprit_tid == Some(0);
        let culprit = if idle { Some(IDLE.into()) } else { r.culprit.clone() };
        let (spent_ns, stretches, own) = self.culprits.entry(((r.part, idle), culprit));
        *spent_ns += r.spent_ns;
        *stretches += r.stretches;
        own.add(r.agent_ns);

        let key = (r.pid, r.tid, r.ts);
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&key) {
            self.others_ns += r.spent_ns;
            return;
        }
        let thread = self.threads.entry(key).or_insert_with(|| ThreadBalance {
            pid: r.pid.0,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            from_ns: r.ts.0,
            wall_ns: r.wall_ns,
            sum_ns: 0,
            difference_ns: 0,
            mark: r.mark,
            parts: Part::ALL.iter().map(|part| (*part, 0)).collect(),
            agent_ns: Own::default(),
            culprits: Vec::new(),
        });
        thread.agent_ns.add(r.agent_ns);
        thread.sum_ns += r.spent_ns;
        thread.difference_ns = thread.sum_ns - thread.wall_ns;
        thread.parts.iter_mut().filter(|p| p.0 == r.part).for_each(|p| p.1 += r.spent_ns);
        thread.culprits.push(TimeCulprit {
            part: r.part,
            culprit: r.culprit.as_deref().map(str::to_owned),
            culprit_tid: r.culprit_tid,
            spent_ns: r.spent_ns,
            stretches: r.stretches,
            agent_ns: Own(r.agent_ns),
        });
    }

    /// Finishes the statistics.
    pub fn finish(self, tally: &Tally, steal: Steal) -> TimeReport {
        let mut threads: Vec<ThreadBalance> = self.threads.into_values().collect();
        threads.sort_by_key(|t| (Reverse(t.wall_ns), t.from_ns, t.tid));
        for thread in &mut threads {
            thread.culprits = ranked(std::mem::take(&mut thread.culprits), order);
        }
        let culprits = self.culprits.into_ranked(
            |(((part, idle), culprit), (spent_ns, stretches, agent_ns))| TimeCulprit {
                part,
                culprit: culprit.as_deref().map(str::to_owned),
                culprit_tid: idle.then_some(0),
                spent_ns,
                stretches,
                agent_ns,
            },
            order,
        );
        let mut marks = Marks::default();
        threads.iter().for_each(|t| marks.add(t.mark));
        let wrong = threads.iter().filter(|t| t.difference_ns != 0).count() as u64;
        TimeReport {
            kernel: tally.kernel,
            balanced: threads.len() as u64 - wrong,
            unbalanced: wrong,
            marks,
            threads,
            others_ns: self.others_ns,
            culprits,
            counters: Vec::new(),
            counted: Vec::new(),
            steal,
        }
    }
}

/// The fault that threads whose parts do not sum to their wall time are.
pub(super) fn unbalanced(threads: u64) -> Option<Text> {
    (threads > 0).then(|| {
        text!(
            "the parts of {} do not sum to its wall time: a fault of ft-agent; report it with the trace",
            Of(threads, "thread")
        )
    })
}

/// By part, then most time first.
fn order(c: &TimeCulprit) -> (Part, i64, Option<String>, Option<i32>) {
    (c.part, -c.spent_ns, c.culprit.clone(), c.culprit_tid)
}

impl TimeReport {
    /// Where all the time of all threads went.
    pub(super) fn parts(&self) -> Decomposition {
        let mut parts = Decomposition::default();
        self.culprits.iter().for_each(|c| *parts.part_mut(c.part) += c.spent_ns);
        parts
    }

    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<TimeReport> {
        let mut times = Times::default();
        input.rows(|r: ThreadTime| times.add(&r))?;
        let mut report = times.finish(input.tally, Steal::of(input.trace.meta()));
        let counters = &input.trace.meta().start.switch_counters;
        if !counters.is_empty() {
            let mut sums = counted::Sums::default();
            input.rows(|r: CpuCount| sums.add(&r))?;
            report.counted = sums.finish(counters);
            report.counters.clone_from(counters);
        }
        Ok(report)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("time", "where all the time of each observed thread went");
        if !self.kernel {
            s.say(NO_SCHEDULER);
        } else if self.threads.is_empty() {
            s.say("No thread of a recorded process was seen.");
        } else {
            self.coverage(&mut s);
            self.threads(&mut s);
            self.figure(&mut s);
            self.culprits(&mut s);
            own::explain(
                &mut s,
                " In the table of threads it is the share of what they were preempted and waited for a CPU.",
            );
            let parts = self.parts();
            let on_cpu_ns = parts.running_ns + parts.interrupts_ns();
            counted::say(&mut s, &self.counters, &self.counted, on_cpu_ns);
            self.steal.say(&mut s);
        }
        s.fault = unbalanced(self.unbalanced);
        if self.kernel {
            return s.with(self);
        }
        // The kernel's account of stolen time is another.
        let steal = serde_json::to_value(&self.steal).unwrap_or_default();
        let mut values = unknown(self);
        values["steal"] = steal;
        s.with(values)
    }

    fn coverage(&self, s: &mut Section) {
        let threads = Of(self.balanced + self.unbalanced, "thread");
        if self.unbalanced > 0 {
            s.warn(text!(
                "NOT BALANCED: the parts of {} of {} do not sum to the wall time; do not trust them, and report \
                 the trace",
                N(self.unbalanced),
                threads
            ));
        }
        let all = match self.unbalanced {
            0 => text!("{}; the parts of each sum to its wall time, to the nanosecond", threads),
            _ => text!("{}", threads),
        };
        s.say(all.reasons(&[
            (self.marks.exact, "exact: started and ended in the trace"),
            (self.marks.disturbed, "that waited for room in their rings: disturbed by the tracer"),
            (self.marks.lower_bounds, "with lost records: lower bounds"),
            (self.marks.censored, "only partly in the trace: censored"),
        ]));
        if self.others_ns > 0 {
            s.say(text!(
                "Further threads, without lines of their own: {} in all",
                Ns(self.others_ns)
            ));
        }
    }

    fn threads(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.threads)
            .column("thread", |b| Thread::named(&b.comm))
            .column("tid", |b| Id(b.tid))
            .column("wall ns", |b| ExactNs(b.wall_ns))
            .column("sum of parts ns", |b| ExactNs(b.sum_ns))
            .column("difference ns", |b| ExactNs(b.difference_ns))
            .marked(|b| b.mark)
            .counted("threads");
        s.table(t.titled("Balance"));
        let t = Table::first(SHOWN, &self.threads)
            .marks(|b| b.mark)
            .column("thread", |b| Thread::named(&b.comm))
            .column("tid", |b| Id(b.tid));
        let t = parts::durations(t, |b| Some(b.sums()));
        let t = own::beside(t, |b| {
            let sums = b.sums();
            (b.agent_ns, sums.runnable_ns())
        });
        s.table(t.titled(
            "Where the time went (dispatch: woken and waiting for a CPU; star: not exact, see the mark)",
        ));
    }

    fn figure(&self, s: &mut Section) {
        let stack = |b: &ThreadBalance| {
            let parts = b.parts.iter().map(|(_, ns)| *ns).collect();
            (Thread::named(&b.comm).value(), Some(b.tid), parts)
        };
        s.figure(
            "Time of each thread by its parts",
            Data::Stacks {
                parts: Part::ALL.iter().map(|part| part.word()).collect(),
                stacks: self.threads.iter().take(DRAWN).map(stack).collect(),
                more: self.threads.len().saturating_sub(DRAWN) as u64,
            },
        );
    }

    fn culprits(&self, s: &mut Section) {
        let mut shown = Vec::new();
        let mut all = 0;
        for &part in Part::ALL.iter().filter(|part| **part != Part::Running) {
            let of_part = || self.culprits.iter().filter(|c| c.part == part);
            let total: i64 = of_part().map(|c| c.spent_ns).sum();
            all += of_part().count();
            shown.extend(of_part().take(SHOWN_CULPRITS).map(|c| (c, total)));
        }
        let more = all - shown.len();
        let t = Table::of(shown)
            .omitted(more, "culprits")
            .column("part", |(c, _)| Word(c.part.word()))
            .column("who or what", |(c, _)| c.culprit.as_deref().map(Word))
            .column("time", |(c, _)| Ns(c.spent_ns))
            .column("of the part", |(c, total)| Share(c.spent_ns, *total))
            .column("stretches", |(c, _)| N(c.stretches.unsigned_abs()));
        let t = own::beside(t, |(c, _)| (c.agent_ns, c.spent_ns));
        s.table(t.titled(
            "Who or what took it, over all threads, the first five of each part (--json has it for each thread)",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(part: &str, spent_ns: i64, wall_ns: i64) -> ThreadTime {
        ThreadTime {
            ts: Nanos(5),
            pid: Pid(1),
            tid: Tid(2),
            comm: "a".into(),
            part: Part::of(part),
            culprit: None,
            culprit_tid: None,
            spent_ns,
            stretches: 1,
            agent_ns: None,
            wall_ns,
            mark: Mark::Exact,
        }
    }

    #[test]
    fn a_thread_that_does_not_balance_is_not_hidden() {
        let check = |rows: &[ThreadTime], difference: i64| {
            let mut times = Times::default();
            rows.iter().for_each(|r| times.add(r));
            let report =
                times.finish(&Tally { kernel: true, ..Tally::default() }, Steal::default());
            assert_eq!(report.threads[0].difference_ns, difference);
            assert_eq!(report.unbalanced, u64::from(difference != 0));
            assert_eq!(report.section().to_string().contains("NOT BALANCED"), difference != 0);
        };
        check(&[row("running", 70, 100), row("blocked", 30, 100)], 0);
        check(&[row("running", 70, 100), row("blocked", 31, 100)], 1);
        check(&[row("running", 70, 100)], -30);
    }

    #[test]
    fn culprits_that_are_not_shown_are_counted_and_rows_have_their_marks() {
        let mut times = Times::default();
        for n in 0..SHOWN_CULPRITS + 2 {
            let culprit = Some(n.to_string().as_str().into());
            let row = row("blocked", 10, 10 * (SHOWN_CULPRITS as i64 + 2));
            times.add(&ThreadTime { culprit, mark: Mark::Censored, ..row });
        }
        let kernel = Tally { kernel: true, ..Tally::default() };
        let section = times.finish(&kernel, Steal::default()).section();
        let text = format!("{section:160}");
        assert!(text.contains("… and 2 more culprits (--json has all)"), "{text}");
        let json = serde_json::to_value(&section).expect("JSON");
        let blocks = json["blocks"].as_array().expect("blocks");
        let tables: Vec<_> = blocks.iter().filter_map(|block| block.get("table")).collect();
        assert_eq!(tables[0]["rows"][0]["mark"], "censored", "{:#}", tables[0]);
        assert_eq!(tables[1]["rows"][0]["mark"], "censored", "{:#}", tables[1]);
        assert_eq!(tables[2]["omitted"], 2, "{:#}", tables[2]);
    }

    /// Every CPU has an idle task, of a name of its own; a program is none, whatever its name.
    #[test]
    fn idle_tasks_of_all_cpus_are_one_and_no_program_is_one_of_them() {
        let mut times = Times::default();
        for (name, tid, spent_ns) in [("swapper/0", 0, 5), ("swapper/1", 0, 6), ("(idle)", 7, 9)] {
            let (culprit, culprit_tid) = (Some(name.into()), Some(tid));
            times.add(&ThreadTime { culprit, culprit_tid, ..row("dispatch", spent_ns, 20) });
        }
        let report = times.finish(&Tally { kernel: true, ..Tally::default() }, Steal::default());
        let found =
            report.culprits.iter().map(|c| (c.culprit.as_deref(), c.culprit_tid, c.spent_ns));
        let expected = [(Some(IDLE), Some(0), 11), (Some(IDLE), None, 9)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn threads_that_do_not_fit_are_counted() {
        let mut times = Times::default();
        for tid in 1..=MAX_THREADS as i32 + 2 {
            times.add(&ThreadTime { tid: Tid(tid), ..row("running", 100, 100) });
        }
        let report = times.finish(&Tally { kernel: true, ..Tally::default() }, Steal::default());
        assert_eq!((report.threads.len(), report.others_ns), (MAX_THREADS, 200));
        assert!(report.section().to_string().contains("lines of their own: 200 ns in all"));
    }
}
