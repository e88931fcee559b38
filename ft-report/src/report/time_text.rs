//! The time ledger as text.

use std::fmt;

use super::format::{count, dur_or_dash, percent, things};
use super::locks_text::reasons;
use super::table::{Table, width};
use super::time::{ThreadBalance, TimeReport};
use ft_analysis::TIME_PARTS;

/// Threads that are shown; `--json` has all.
const SHOWN: usize = 15;

/// Culprits of one part that are shown.
const SHOWN_CULPRITS: usize = 5;

impl fmt::Display for TimeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "TIME: where all the time of each observed thread went")?;
        if !self.kernel {
            return writeln!(
                f,
                "  No scheduler records: record with the kernel group `sched` (see `ft-agent doctor`)."
            );
        }
        if self.threads.is_empty() {
            return writeln!(f, "  No thread of a recorded process was seen.");
        }
        self.coverage(f)?;
        self.balance_table(f)?;
        self.parts_table(f)?;
        self.culprits_table(f)?;
        writeln!(f, "\n{}", self.steal)
    }
}

impl TimeReport {
    fn coverage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = things(self.balanced + self.unbalanced, "thread");
        match self.unbalanced {
            0 => {
                write!(f, "  {threads}; the parts of each sum to its wall time, to the nanosecond")?
            }
            n => write!(
                f,
                "  NOT BALANCED: the parts of {} of {threads} do not sum to the wall time; do not trust \
                 them,\n  and report the trace",
                count(n)
            )?,
        }
        let marks = [
            (self.marks.exact, "exact: born and ended in the trace"),
            (self.marks.lower_bounds, "with lost records: lower bounds"),
            (self.marks.censored, "not wholly in the trace: censored"),
        ];
        match reasons(&marks) {
            reasons if reasons.is_empty() => writeln!(f)?,
            reasons => writeln!(f, "\n {reasons}")?,
        }
        match self.others_ns {
            0 => Ok(()),
            ns => writeln!(f, "  further threads: {} in all, not told apart", dur_or_dash(ns)),
        }
    }

    fn balance_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t =
            Table::new(&["<thread", "tid", "wall ns", "sum of parts ns", "difference", "<mark"]);
        for b in self.shown() {
            t.row([
                b.comm.clone(),
                b.tid.to_string(),
                count(b.wall_ns.unsigned_abs()),
                count(b.sum_ns.unsigned_abs()),
                b.difference_ns.to_string(),
                b.mark.word().to_owned(),
            ]);
        }
        write!(f, "\nBalance\n{t:w$}")?;
        match self.threads.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more threads (--json has all)"),
        }
    }

    fn parts_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<thread",
            "tid",
            "running",
            "preempted",
            "dispatch",
            "blocked",
            "irqs",
            "unexplained",
        ]);
        for b in self.shown() {
            let parts = [
                b.part("running"),
                b.part("preempted"),
                b.part("dispatch"),
                b.part("blocked"),
                b.interrupts_ns(),
                b.part("unexplained"),
            ];
            let cells = parts.map(dur_or_dash);
            t.row([b.comm.clone(), b.tid.to_string()].into_iter().chain(cells));
        }
        write!(f, "\nWhere the time went (dispatch: woken and waiting for a CPU)\n{t:w$}")
    }

    fn culprits_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&["<part", "<who or what", "time", "of the part", "stretches"]);
        for part in TIME_PARTS.into_iter().filter(|p| *p != "running") {
            let of_part = || self.culprits.iter().filter(|c| c.part == part);
            let total: i64 = of_part().map(|c| c.spent_ns).sum();
            for c in of_part().take(SHOWN_CULPRITS) {
                t.row([
                    part.to_owned(),
                    c.culprit.as_deref().unwrap_or("-").to_owned(),
                    dur_or_dash(c.spent_ns),
                    percent(c.spent_ns, total),
                    count(c.stretches.unsigned_abs()),
                ]);
            }
        }
        write!(f, "\nWho or what took it, over all threads (--json has each thread's)\n{t:w$}")
    }

    fn shown(&self) -> impl Iterator<Item = &ThreadBalance> {
        self.threads.iter().take(SHOWN)
    }
}
