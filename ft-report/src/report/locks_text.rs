//! The locks report as text.

use std::fmt;

use super::format::{count, dur, dur_or_dash, log_bar, ns, percent, share, short_count, things};
use super::locks::{Group, LocksReport};
use super::marks::star;
use super::table::{Table, clean, paragraph, width};
use super::tail::{self, percentile};

/// Locks that are shown; `--json` has all.
const SHOWN: usize = 15;

impl fmt::Display for LocksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "LOCKS: critical sections, from acquisition to release")?;
        self.coverage(f)?;
        if self.holds == 0 {
            return paragraph(
                f,
                "  ",
                "No hold was recorded. Locks are seen that come from ft-user (Mutex, RwLock, Condvar), with their \
                 events enabled (-e 'lock.*'), and under --preload those of pthread. Locks that a program brings along \
                 itself, as those of Rust's std and of Java, are not: they make no call that could be caught.",
            );
        }
        self.holds_table(f)?;
        self.tails_table(f)?;
        self.waits_table(f)?;
        self.parts_table(f)?;
        self.depth_table(f)?;
        self.distribution(f)?;
        self.longest_table(f)
    }
}

impl LocksReport {
    fn coverage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = &self.incomplete;
        let why = reasons(&[
            (i.release_only, "released without acquisition"),
            (i.never_released, "never released"),
            (i.held_at_loss, "held when events were lost"),
            (i.acquired_again, "acquired again"),
            (i.too_many, "too many held"),
        ]);
        writeln!(f, "  {}{why}", self.marks.line("hold"))?;
        self.marks.legend(f)?;
        if !self.all.tail.percentiles_exact {
            writeln!(f, "  percentiles of more than 65,536 holds are at most 0.1 % too high")?;
        }
        Ok(())
    }

    fn holds_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<lock", "<kind", "holds", "nested", "total", "mean", "p50", "p99", "max",
        ]);
        for g in self.shown() {
            t.row([
                title(g),
                g.kind.clone(),
                short_count(g.holds),
                share(g.nested, g.holds),
                dur(g.total_ns),
                ns(g.mean_ns),
                dur(g.tail.p50_ns),
                percentile(g.tail.p99_ns),
                dur(g.tail.max_ns),
            ]);
        }
        write!(f, "\nHold times\n{t:w$}")?;
        match self.locks.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more locks (--json has all)"),
        }
    }

    fn tails_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let rows = self.shown().filter(|g| g.tail.p99_ns.is_some());
        let mut rows = rows.map(|g| (title(g), g.holds, &g.tail)).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let t = tail::table("<lock", "n", rows);
        write!(f, "\nTails of the hold times (-: too few for this percentile)\n{t:w$}")
    }

    fn waits_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        if self.all.waits == 0 {
            return writeln!(f, "\nNo lock was waited for.");
        }
        let mut t = Table::new(&["<lock", "<kind", "waits", "of holds", "total", "mean", "max"]);
        for g in self.shown().filter(|g| g.waits > 0) {
            t.row([
                title(g),
                g.kind.clone(),
                short_count(g.waits),
                share(g.waits, g.holds),
                dur(g.wait_total_ns),
                ns(g.wait_total_ns as f64 / g.waits as f64),
                dur(g.wait_max_ns),
            ]);
        }
        write!(f, "\nWaits for a lock that was found taken\n{t:w$}")
    }

    fn parts_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        if !self.decomposed {
            return writeln!(f, "\nNo kernel stream: the held time is not decomposed.");
        }
        let mut t = Table::new(&[
            "<lock",
            "<kind",
            "running",
            "preempted",
            "dispatch",
            "blocked",
            "irqs",
            "unexpl.",
            "n preempted",
        ]);
        for g in self.shown() {
            let p = &g.parts;
            let parts = [
                p.running_ns,
                p.preempted_ns,
                p.dispatch_ns,
                p.blocked_ns,
                p.interrupts_ns(),
                p.unexplained_ns,
            ];
            let parts = parts.map(|part| percent(part, p.total_ns()));
            let preempted = short_count(g.preempted_holds);
            t.row([title(g), g.kind.clone()].into_iter().chain(parts).chain([preempted]));
        }
        write!(
            f,
            "\nWhat the held time consisted of (dispatch: woken and waiting for a CPU; n preempted: holds)\n{t:w$}"
        )
    }

    fn shown(&self) -> impl Iterator<Item = &Group> {
        let all = (self.locks.len() > 1).then_some(&self.all);
        self.locks.iter().take(SHOWN).chain(all)
    }

    fn depth_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&["depth", "holds", "share", "<"]);
        let largest = self.depths.iter().copied().max().unwrap_or(0);
        for (depth, n) in self.depths.iter().enumerate() {
            let bar = log_bar(*n, largest, 40);
            t.row([depth.to_string(), count(*n), share(*n, self.holds), bar]);
        }
        write!(
            f,
            "\nNesting depth: locks already held at the acquisition (bars: logarithmic)\n{t:w$}"
        )?;
        match self.depth_lower_bounds {
            0 => Ok(()),
            n => writeln!(
                f,
                "  {} at least that deep: events of the thread were lost before",
                things(n, "hold")
            ),
        }
    }

    fn distribution(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&["up to", "holds", "share", "cumulative", "<"]);
        let last = (i64::MAX, self.holds);
        let mut before = 0;
        let mut rows = Vec::new();
        for &(edge, below) in self.all.cumulative.iter().chain([&last]) {
            rows.push((edge, below - before, below));
            before = below;
        }
        let largest = rows.iter().map(|r| r.1).max().unwrap_or(0);
        let first = rows.iter().position(|r| r.1 > 0).unwrap_or(0);
        for &(edge, n, below) in &rows[first..] {
            let edge = if edge == i64::MAX { "longer".into() } else { dur(edge) };
            t.row([
                edge,
                count(n),
                share(n, self.holds),
                share(below, self.holds),
                log_bar(n, largest, 40),
            ]);
            if below == self.holds {
                break;
            }
        }
        write!(
            f,
            "\nDistribution of the hold times (bars: logarithmic; --json has bins of 0.1 µs)\n{t:w$}"
        )
    }

    fn longest_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut titles = vec!["<lock", "<place", "hold"];
        if self.decomposed {
            titles.extend([
                "running",
                "preempted",
                "dispatch",
                "blocked",
                "irqs",
                "unexpl.",
                "<preemptor",
            ]);
        }
        let mut t = Table::new(&titles);
        for h in &self.longest {
            let hold = dur(h.dur_ns) + star(h.mark);
            let mut cells = vec![h.lock.clone(), place(&h.place), hold];
            if let Some(p) = &h.parts {
                let parts = [
                    p.running_ns,
                    p.preempted_ns,
                    p.dispatch_ns,
                    p.blocked_ns,
                    p.interrupts_ns(),
                    p.unexplained_ns,
                ];
                cells.extend(parts.map(dur_or_dash));
                let preemptor = h.preemptor.as_deref();
                cells.push(match preemptor {
                    None if p.preempted_ns == 0 => "-".into(),
                    _ => who(h.preemptor_tid, preemptor),
                });
            }
            t.row(cells);
        }
        write!(f, "\nThe longest holds\n{t:w$}")
    }
}

/// Name of a group; of all groups, when it has none.
fn title(g: &Group) -> String {
    match (g.lock.as_str(), g.instances) {
        ("", _) => "all".into(),
        (name, 0 | 1) => name.to_owned(),
        (name, n) => {
            let more = if g.instances_exact { "" } else { "+" };
            format!("{name} ×{}{more}", short_count(n))
        }
    }
}

/// Name of a thread for a table; the idle task has one of its own for each CPU (`swapper/0`, …).
pub(super) fn who(tid: Option<i32>, comm: Option<&str>) -> String {
    match (tid, comm) {
        (Some(0), _) => "(idle)".into(),
        (_, Some(comm)) if !comm.is_empty() => clean(comm),
        _ => "not known".into(),
    }
}

/// A source place without its directories.
pub(super) fn place(place: &str) -> String {
    clean(place.rsplit('/').next().unwrap_or(place))
}

/// ` (3 this, 4 that)` of the counts that are not 0.
pub(super) fn reasons(counts: &[(u64, &str)]) -> String {
    let reasons: Vec<String> =
        counts.iter().filter(|c| c.0 > 0).map(|(n, why)| format!("{} {why}", count(*n))).collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) }
}
