//! How often functions were called, and where the time inside of them went: by self time, and beside it what the paper has.

mod counted;

use std::cmp::Reverse;

use serde::Serialize;

use super::Input;
use crate::document::{Builder, N, Ns, Number, Of, Place, Section, Share, Table, Word};
use crate::stats::{Groups, Happened, Marks, Own, happened, own};
use crate::text;
use ft_analysis::{FunctionCounts, Mark, Tally};
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::Function;

pub use counted::FunctionCount;

/// Functions with a line of their own; further ones are in one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_NAMES: usize = 16_384;

/// Functions that are shown; the machine values have all.
const SHOWN: usize = 30;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionsReport {
    /// There is a kernel stream; without one there are no parts.
    pub kernel: bool,
    /// Calls, and those of which not both ends were recorded.
    pub counts: FunctionCounts,
    /// How sure the rows of functions and threads are.
    pub marks: Marks,
    /// Self time of all functions, ns: the time inside the outermost calls of all threads.
    pub self_ns: i64,
    /// Cycles of the time stamp counter in a second, of which `cycles_per_call` is made.
    pub tsc_hz: f64,
    /// Each function, the most self time first.
    pub functions: Vec<FunctionTime>,
}

/// A function, in all threads of all processes that have one of its name and place.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionTime {
    /// Its name.
    pub name: String,
    /// `file:line`, empty when not known.
    pub place: String,
    /// Calls.
    pub calls: u64,
    /// Of those, without an end.
    pub without_end: u64,
    /// Calls besides, of which no end is ever recorded, and so no time.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub entered: u64,
    /// Time inside of it and of what it called.
    pub total: FunctionParts,
    /// Time inside of it alone.
    #[serde(rename = "self")]
    pub own: FunctionParts,
    /// What happened to its threads inside of it alone.
    pub happened: Happened,
    /// What counters counted there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<FunctionCount>,
    /// `total` by `calls`, in cycles of the time stamp counter: what the paper's `PROF_IN` and `PROF_OUT` measure of a function that
    /// does not call itself. Missing where no begin was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_per_call: Option<i64>,
    /// The worst mark of its rows.
    pub mark: Mark,
}

/// A time and its parts, ns; the parts are 0 without a kernel stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FunctionParts {
    /// All of it.
    pub ns: i64,
    /// Running.
    pub running_ns: i64,
    /// Able to run and without a CPU, preempted or woken.
    pub preempted_ns: i64,
    /// Blocked.
    pub blocked_ns: i64,
    /// In interrupts.
    pub interrupts_ns: i64,
    /// Covered by no record.
    pub unexplained_ns: i64,
    /// What of *preempted* threads of the agent had the CPU.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
}

impl FunctionParts {
    fn add(&mut self, ns: i64, parts: [Option<i64>; 5], agent_ns: Option<i64>) {
        self.agent_ns.add(agent_ns);
        let [running, preempted, blocked, interrupts, unexplained] =
            parts.map(Option::unwrap_or_default);
        for (sum, part) in [
            (&mut self.ns, ns),
            (&mut self.running_ns, running),
            (&mut self.preempted_ns, preempted),
            (&mut self.blocked_ns, blocked),
            (&mut self.interrupts_ns, interrupts),
            (&mut self.unexplained_ns, unexplained),
        ] {
            *sum = sum.saturating_add(part);
        }
    }
}

#[derive(Debug, Default)]
struct Sums {
    calls: u64,
    without_end: u64,
    entered: u64,
    total: FunctionParts,
    own: FunctionParts,
    happened: Happened,
    counted: counted::Sums,
    mark: Mark,
}

/// Makes a [`FunctionsReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Functions {
    functions: Groups<MAX_NAMES, (Name, Name), Sums>,
    marks: Marks,
}

impl Functions {
    /// Counts a row.
    pub fn add(&mut self, r: &Function) {
        self.marks.add(r.mark);
        let count = |n: i64| n.max(0) as u64;
        let sums = self.functions.entry((r.function.clone(), r.place.clone()));
        sums.calls += count(r.calls);
        sums.without_end += count(r.unfinished) + count(r.left);
        sums.entered += count(r.entered);
        sums.mark = sums.mark.max(r.mark);
        sums.happened.add(r.counts);
        sums.counted.add(r.counter, count(r.calls));
        sums.total.add(
            r.total_ns,
            [
                r.total_running_ns,
                r.total_preempted_ns,
                r.total_blocked_ns,
                r.total_interrupts_ns,
                r.total_unexplained_ns,
            ],
            r.total_agent_ns,
        );
        sums.own.add(
            r.self_ns,
            [
                r.self_running_ns,
                r.self_preempted_ns,
                r.self_blocked_ns,
                r.self_interrupts_ns,
                r.self_unexplained_ns,
            ],
            r.self_agent_ns,
        );
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(self, tally: &Tally, tsc_hz: f64) -> FunctionsReport {
        let cycles = |ns: i64, calls: u64| (ns as f64 * tsc_hz / 1e9 / calls as f64).round() as i64;
        let function = |((name, place), s): ((Name, Name), Sums)| FunctionTime {
            name: name.to_string(),
            place: place.to_string(),
            calls: s.calls,
            without_end: s.without_end,
            entered: s.entered,
            total: s.total,
            own: s.own,
            happened: s.happened,
            counted: s.counted.finish(&tally.counting.names),
            cycles_per_call: (s.calls > 0).then(|| cycles(s.total.ns, s.calls)),
            mark: s.mark,
        };
        let rank =
            |f: &FunctionTime| (Reverse((f.own.ns, f.entered)), f.name.clone(), f.place.clone());
        let functions = self.functions.into_ranked(function, rank);
        FunctionsReport {
            kernel: tally.kernel,
            counts: tally.functions,
            marks: self.marks,
            self_ns: functions.iter().fold(0, |sum, f| sum.saturating_add(f.own.ns)),
            tsc_hz,
            functions,
        }
    }
}

impl FunctionsReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<FunctionsReport> {
        let mut functions = Functions::default();
        input.rows(|r: Function| functions.add(&r))?;
        Ok(functions.finish(input.tally, input.trace.meta().clock.tsc_hz))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s =
            Section::new("functions", "how often functions were called, and where their time went");
        self.coverage(&mut s);
        self.entered(&mut s);
        if self.timed().next().is_some() {
            self.own(&mut s);
            self.total(&mut s);
            own::explain(&mut s, "");
            let t = Table::first(SHOWN, self.timed()).column("function", |f| Word(&f.name));
            let t = t.column("calls", |f| N(f.calls));
            happened::table(
                &mut s,
                t,
                "What happened inside the function, in none that it called, and how often",
                |f| f.happened,
            );
            counted::tables(&mut s, &self.functions);
        }
        if !self.functions.is_empty() {
            self.legend(&mut s);
        }
        s.with(self)
    }

    fn coverage(&self, s: &mut Section) {
        if self.functions.is_empty() {
            s.say(
                "No function was recorded: compile C or C++ with `-finstrument-functions`, or with what leaves nops \
                 (`-fxray-instrument` of clang, `-fpatchable-function-entry=11` of gcc and FT_PATCHABLE=1 in its environment), and \
                 record it with `--preload`, or link it with libfeather_trace.",
            );
            return;
        }
        let counts = &self.counts;
        if self.timed().next().is_some() {
            s.say(text!("{}, {} inside the outermost", Of(counts.calls, "call"), Ns(self.self_ns)));
        }
        let unpaired = counts.unfinished + counts.left + counts.begun_before + counts.too_many;
        if unpaired > 0 {
            s.say(text!("{} without a begin or an end", Of(unpaired, "call")).reasons(&[
                (counts.begun_before, "with no recorded begin"),
                (counts.unfinished, "open at the end, or when events were lost"),
                (
                    counts.left,
                    "left by a jump or an exception, or open when their sites were switched off: counted up to the last event before",
                ),
                (counts.too_many, "more than one thread can be in"),
            ]));
        }
    }

    /// Those of which ends are recorded, too.
    pub(super) fn timed(&self) -> impl Iterator<Item = &FunctionTime> {
        self.functions.iter().filter(|f| f.calls > 0 || f.entered == 0)
    }

    /// Those of which begins alone are recorded.
    fn entered(&self, s: &mut Section) {
        let mut entered: Vec<_> = self.functions.iter().filter(|f| f.entered > 0).collect();
        if entered.is_empty() {
            return;
        }
        entered.sort_by_key(|f| Reverse(f.entered));
        s.say(text!(
            "{} of which no end is recorded, as patchable entries of gcc tell none: how long they took is not known, and is time of \
             the functions around them, of which ends are",
            Of(self.counts.entered, "call")
        ));
        let t = Table::first(SHOWN, entered)
            .counted("functions")
            .marks(|f| f.mark)
            .column("function", |f| Word(&f.name))
            .column("place", |f| (!f.place.is_empty()).then(|| Place(&f.place)))
            .column("calls", |f| N(f.entered))
            .column("of all", |f| Share(f.entered as i64, self.counts.entered as i64));
        s.table(t.titled("Functions of which the calls are counted, and no time"));
    }

    fn own(&self, s: &mut Section) {
        let t = Table::first(SHOWN, self.timed())
            .counted("functions")
            .marks(|f| f.mark)
            .column("function", |f| Word(&f.name))
            .column("place", |f| (!f.place.is_empty()).then(|| Place(&f.place)))
            .column("calls", |f| N(f.calls))
            .column("self", |f| Ns(f.own.ns))
            .column("of all", |f| Share(f.own.ns, self.self_ns))
            .when(self.kernel, |t| parts(t, |f| f.own));
        let t = own::beside(t, |f| (f.own.agent_ns, f.own.ns));
        s.table(t.titled("By self time: inside the function, and in none that it called"));
    }

    fn total(&self, s: &mut Section) {
        let t = Table::first(SHOWN, self.timed())
            .counted("functions")
            .marks(|f| f.mark)
            .column("function", |f| Word(&f.name))
            .column("total", |f| Ns(f.total.ns))
            .column("cycles/call", |f| f.cycles_per_call.map(Number))
            .when(self.kernel, |t| parts(t, |f| f.total));
        let t = own::beside(t, |f| (f.total.agent_ns, f.total.ns));
        s.table(t.titled("The same functions with what they called; a call within a call of the same function counts once"));
        s.say(
            "cycles/call: of the time stamp counter, from PROF_IN to PROF_OUT, as Danjean, Wacrenier and Namyst (2005) have them; \
             these go on while the thread has no CPU, and what is preempted or blocked stands beside. Each call contains what \
             recording the calls within it costs.",
        );
    }
}

impl FunctionsReport {
    /// Says what *(unknown)* and a star mean, where there is one.
    fn legend(&self, s: &mut Section) {
        if self.counts.left > 0 {
            s.say(
                "(unknown): from the last event before a jump to the event that shows it. A function that is called after a jump and \
                 needs more of the stack than the one that was left counts as called by that one.",
            );
        }
        self.marks.legend_disturbed(s);
        if self.marks.lower_bounds + self.marks.censored > 0 {
            s.say(
                "A star (*) marks a function of which a call has no begin or no end, or was left or come back into by a jump, or \
                 that ran when records were lost: its figures are of what was recorded; those of one that was left may lack time, or have too much.",
            );
        }
    }
}

/// The parts of a time, as shares of it.
fn parts(
    t: Builder<&FunctionTime>,
    of: impl Fn(&FunctionTime) -> FunctionParts + Copy,
) -> Builder<&FunctionTime> {
    type PartColumn = (&'static str, fn(&FunctionParts) -> i64);
    const COLUMNS: [PartColumn; 5] = [
        ("running", |p| p.running_ns),
        ("preempted", |p| p.preempted_ns),
        ("blocked", |p| p.blocked_ns),
        ("irqs", |p| p.interrupts_ns),
        ("unexpl.", |p| p.unexplained_ns),
    ];
    COLUMNS
        .into_iter()
        .fold(t, |t, (title, part)| t.column(title, move |f| Share(part(&of(f)), of(f).ns)))
}

#[cfg(test)]
mod tests;
