//! The report on waits as text.

use std::fmt;

use super::format::{dur, dur_or_dash, ns, percent, short_count, things};
use super::locks_text::{place, reasons, who};
use super::marks::star;
use super::table::{Table, clean, cut, paragraph, width};
use super::tail::percentile;
use super::waits::{LockWaits, Unended, WaitsReport};

/// Lines of the longer tables that are shown; `--json` has all.
const SHOWN: usize = 15;

impl fmt::Display for WaitsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "WAITS: acquisitions of a lock that was taken, and who made them wait")?;
        self.coverage(f)?;
        self.deadlocks(f)?;
        self.unfinished_table(f)?;
        if self.waits > 0 {
            self.locks_table(f)?;
            self.parts_table(f)?;
            self.places_table(f)?;
            self.roots_table(f)?;
            self.longest_table(f)?;
        } else {
            writeln!(f, "  No lock was found taken.")?;
        }
        self.order(f)
    }
}

impl WaitsReport {
    fn coverage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = &self.incomplete;
        let more = reasons(&[(i.abandoned, "given up"), (i.semaphore_waits, "for semaphores")]);
        writeln!(f, "  {}{more}", self.marks.line("wait"))?;
        self.marks.legend(f)?;
        if self.waits > 0 {
            writeln!(f, "  {} in all", dur(self.total_ns))?;
        }
        if !self.all.tail.percentiles_exact {
            writeln!(f, "  percentiles of more than 65,536 waits are at most 0.1 % too high")?;
        }
        if !self.decomposed {
            writeln!(f, "  no kernel stream: it is not known what the holders did")?;
        }
        Ok(())
    }

    /// Circles of threads that wait for each other.
    fn deadlocks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cycles: Vec<(i32, i32)> =
            self.unfinished.iter().filter_map(|u| Some((u.pid, u.cycle?))).collect();
        cycles.sort_unstable();
        cycles.dedup();
        for (pid, cycle) in cycles {
            let members =
                || self.unfinished.iter().filter(|u| (u.pid, u.cycle) == (pid, Some(cycle)));
            writeln!(
                f,
                "\nDEADLOCK in process {pid}: {} wait for each other",
                things(members().count() as u64, "thread")
            )?;
            for u in members() {
                let text = format!(
                    "{} ({}) waits for {}{}, which {} holds{}",
                    clean(&u.waiter),
                    u.waiter_tid,
                    clean(&u.lock),
                    at(&u.place),
                    holder(u),
                    u.holder_place.as_deref().map_or(String::new(), at)
                );
                paragraph(f, "  ", &text)?;
            }
        }
        Ok(())
    }

    fn unfinished_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        if self.unfinished.is_empty() {
            return Ok(());
        }
        let mut t = Table::new(&[
            "<thread",
            "tid",
            "<lock",
            "<place",
            "at least",
            "<end of",
            "<held by",
            "<acquired at",
        ]);
        for u in self.unfinished.iter().take(SHOWN) {
            t.row([
                u.waiter.clone(),
                u.waiter_tid.to_string(),
                u.lock.clone(),
                place(&u.place),
                dur(u.at_least_ns),
                u.ended.clone(),
                holder(u),
                u.holder_place.as_deref().map_or("-".into(), place),
            ]);
        }
        write!(f, "\nWaits that never ended, and holders that never released\n{t:w$}")?;
        more(f, self.unfinished.len(), "waits")
    }

    fn shown(&self) -> impl Iterator<Item = &LockWaits> {
        let all = (self.locks.len() > 1).then_some(&self.all);
        self.locks.iter().take(SHOWN).chain(all)
    }

    fn locks_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<lock", "<kind", "waits", "total", "mean", "p50", "p99", "max", "by tid",
        ]);
        for l in self.shown() {
            t.row([
                title(&l.lock),
                l.kind.clone(),
                short_count(l.waits),
                dur(l.total_ns),
                ns(l.mean_ns),
                dur(l.tail.p50_ns),
                percentile(l.tail.p99_ns),
                dur(l.tail.max_ns),
                l.max_tid.to_string(),
            ]);
        }
        write!(f, "\nPer lock\n{t:w$}")?;
        more(f, self.locks.len(), "locks")
    }

    fn parts_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut titles = vec!["<lock"];
        if self.decomposed {
            titles.extend(["running", "preempted", "dispatch", "blocked", "irqs", "unexpl."]);
        }
        titles.extend(["no holder", "cycle", "indirect"]);
        let mut t = Table::new(&titles);
        for l in self.shown() {
            let p = &l.parts;
            let mut parts = Vec::new();
            if self.decomposed {
                parts.extend([p.running_ns, p.preempted_ns, p.dispatch_ns, p.blocked_ns]);
                parts.extend([p.interrupts_ns(), p.unexplained_ns]);
            }
            parts.extend([l.no_holder_ns, l.cycle_ns, l.holder_waits_ns]);
            let shares = parts.into_iter().map(|ns| percent(ns, l.total_ns));
            t.row([title(&l.lock)].into_iter().chain(shares));
        }
        write!(
            f,
            "\nWhat the threads to blame did meanwhile (indirect: the holder waited for a lock itself)\n{t:w$}"
        )
    }

    fn places_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<lock",
            "<acquired at",
            "waits",
            "total",
            "share",
            "max",
            "<by",
            "tid",
            "<held at",
        ]);
        for p in self.places.iter().take(SHOWN) {
            t.row([
                p.lock.clone(),
                place(&p.place),
                short_count(p.waits),
                dur(p.total_ns),
                percent(p.total_ns, self.total_ns),
                dur(p.max_ns),
                p.max_comm.clone(),
                p.max_tid.to_string(),
                p.held_at.as_deref().map_or("-".into(), place),
            ]);
        }
        write!(f, "\nPer acquiring place, with the longest wait\n{t:w$}")?;
        more(f, self.places.len(), "places")
    }

    fn roots_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        if self.roots.is_empty() {
            return Ok(());
        }
        let mut t =
            Table::new(&["<thread", "<holding", "<acquired at", "waits", "total", "share", "max"]);
        for r in self.roots.iter().take(SHOWN) {
            t.row([
                r.comm.clone(),
                r.lock.clone(),
                place(&r.place),
                short_count(r.waits),
                dur(r.total_ns),
                percent(r.total_ns, self.total_ns),
                dur(r.max_ns),
            ]);
        }
        write!(
            f,
            "\nWho was to blame: at the end of the chain of holders, most of each wait\n{t:w$}"
        )?;
        more(f, self.roots.len(), "threads and places")
    }

    fn longest_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut titles = vec!["<thread", "<lock", "wait", "<held by", "<at", "turns", "<blamed"];
        if self.decomposed {
            titles.extend(["running", "preempt.", "dispatch", "blocked"]);
        }
        let mut t = Table::new(&titles);
        for w in &self.longest {
            let root = match &w.root {
                Some(root) if w.chain > 1 => who(w.root_tid, Some(root)),
                _ => "-".into(),
            };
            let mut cells = vec![
                w.waiter.clone(),
                w.lock.clone(),
                dur(w.dur_ns) + star(w.mark),
                w.holder.as_deref().map_or("nobody".into(), |h| who(w.holder_tid, Some(h))),
                w.holder_place.as_deref().map_or("-".into(), place),
                w.holders.to_string(),
                root,
            ];
            if let Some(p) = &w.parts {
                cells.extend(
                    [p.running_ns, p.preempted_ns, p.dispatch_ns, p.blocked_ns].map(dur_or_dash),
                );
            }
            t.row(cells);
        }
        write!(f, "\nThe longest waits\n{t:w$}")
    }

    fn order(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.order_edges == 0 {
            return Ok(());
        }
        let what = match self.abba.len() as u64 {
            0 => "no two locks were acquired in both orders".to_owned(),
            n => format!(
                "{} of locks acquired in both orders: potential deadlocks",
                things(n, "pair")
            ),
        };
        writeln!(f, "\nLock order: {}; {what}", things(self.order_edges, "edge"))?;
        if self.gated > 0 {
            writeln!(
                f,
                "  {} more under a common lock, which keeps them apart",
                things(self.gated, "pair")
            )?;
        }
        if self.order_not_kept > 0 {
            let n = things(self.order_not_kept, "acquisition");
            writeln!(f, "  {n} with further edges, which did not fit and were not looked at")?;
        }
        for pair in self.abba.iter().take(SHOWN) {
            let one = if pair.one_thread { ", in one thread so far" } else { "" };
            let [a, b] = [0, 1].map(|i| cut(&pair.locks[i], 40));
            // Locks of one name differ by their address.
            let [a, b] = match a == b && pair.locks[0] == pair.locks[1] {
                true => [0, 1].map(|i| format!("{a} {:#x}", pair.addresses[i])),
                false => [a, b],
            };
            writeln!(f, "  {a} and {b}{one}")?;
            for (taken, [held, wanted]) in pair.orders.iter().zip([[&a, &b], [&b, &a]]) {
                let text = format!(
                    "{held}{} then {wanted}{}, {}",
                    at(&taken.held_at),
                    at(&taken.acquired_at),
                    things(taken.count.unsigned_abs(), "time")
                );
                paragraph(f, "    ", &text)?;
            }
        }
        more(f, self.abba.len(), "pairs")
    }
}

fn more(f: &mut fmt::Formatter<'_>, all: usize, what: &str) -> fmt::Result {
    match all.saturating_sub(SHOWN) {
        0 => Ok(()),
        n => writeln!(f, "  … and {n} more {what} (--json has all)"),
    }
}

fn title(lock: &str) -> String {
    if lock.is_empty() { "all".into() } else { lock.to_owned() }
}

/// ` at file:line`, if it is known.
pub(super) fn at(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!(" at {}", place(at)) }
}

fn holder(u: &Unended) -> String {
    let Some(holder) = &u.holder else { return "nobody known".into() };
    let gone = if u.holder_gone { " (ended)" } else { "" };
    format!("{}{gone}", who(u.holder_tid, Some(holder)))
}
