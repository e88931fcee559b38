//! The report on preempted holders as text.

use std::fmt;

use super::format::{count, dur, dur_or_dash, percent, share, short_count};
use super::locks_text::{place, reasons, who};
use super::marks::star;
use super::preempted::PreemptedReport;
use super::table::{Table, width};

/// Lines of the longer tables that are shown; `--json` has all.
const SHOWN: usize = 15;

impl fmt::Display for PreemptedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PREEMPTED: holders of locks that could have run and did not")?;
        if !self.kernel {
            return writeln!(
                f,
                "  No scheduler records: record with the kernel group `sched` (see `ft-agent doctor`)."
            );
        }
        self.coverage(f)?;
        if self.times == 0 {
            return writeln!(f, "  No holder was off the CPU while it could have run.");
        }
        self.locks_table(f)?;
        self.preemptors_table(f)?;
        self.grants_table(f)?;
        self.longest_table(f)
    }
}

impl PreemptedReport {
    fn coverage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let u = &self.unfinished;
        let why =
            reasons(&[(u.at_end, "without an end"), (u.at_loss, "in which switches were lost")]);
        writeln!(f, "  {}{why}", self.marks.line("time"))?;
        self.marks.legend(f)?;
        if self.times > 0 {
            writeln!(
                f,
                "  {} in all: {} preempted, {} woken and not yet running",
                dur(self.total_ns),
                count(self.preempted),
                count(self.times - self.preempted)
            )?;
        }
        Ok(())
    }

    fn locks_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t =
            Table::new(&["<lock", "<kind", "times", "total", "max", "delayed waits", "by in all"]);
        for l in self.locks.iter().take(SHOWN) {
            t.row([
                l.lock.clone(),
                l.kind.clone(),
                short_count(l.times),
                dur(l.total_ns),
                dur(l.max_ns),
                short_count(l.waiters),
                dur_or_dash(l.delayed_ns),
            ]);
        }
        write!(f, "\nPer lock: a time counts for every lock that was held\n{t:w$}")
    }

    fn preemptors_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<had the CPU longest",
            "tid",
            "prio",
            "times",
            "total",
            "share",
            "max",
            "itself",
            "waiters delayed",
        ]);
        for p in self.preemptors.iter().take(SHOWN) {
            t.row([
                if p.comm.is_empty() { "not known".into() } else { p.comm.clone() },
                p.tid.map_or("-".into(), |tid| tid.to_string()),
                p.prio.map_or("-".into(), |prio| prio.to_string()),
                short_count(p.times),
                dur(p.total_ns),
                percent(p.total_ns, self.total_ns),
                dur(p.max_ns),
                dur(p.own_ns),
                dur_or_dash(p.delayed_ns),
            ]);
        }
        write!(f, "\nPer thread that ran instead: a time counts once\n{t:w$}")
    }

    fn grants_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let preempted = self.grants.preempted_holds;
        if preempted == 0 {
            return Ok(());
        }
        let mut t =
            Table::new(&["grant", "preempted holds", "would have ended", "of all holds, done"]);
        let whole = self.holds.saturating_sub(preempted);
        for &(grant, ended) in [(0, 0)].iter().chain(&self.grants.would_have_ended) {
            t.row([
                if grant == 0 { "none".into() } else { dur(grant) },
                short_count(preempted),
                share(ended, preempted),
                share(whole + ended, self.holds),
            ]);
        }
        write!(
            f,
            "\nHad the holder been granted more running time when it was first preempted\n{t:w$}"
        )
    }

    fn longest_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<lock",
            "<place",
            "<holder",
            "for",
            "<ran instead",
            "prio",
            "waiters",
            "delayed",
            "ran after",
        ]);
        for p in &self.longest {
            t.row([
                p.lock.clone(),
                place(&p.place),
                p.holder.clone(),
                dur(p.dur_ns) + star(p.mark),
                who(p.preemptor_tid, p.preemptor.as_deref()),
                p.preemptor_prio.map_or("-".into(), |prio| prio.to_string()),
                p.waiters.to_string(),
                dur_or_dash(p.delayed_ns),
                p.ran_after_ns.map_or("?".into(), dur),
            ]);
        }
        write!(f, "\nThe longest, with the innermost lock\n{t:w$}")
    }
}
