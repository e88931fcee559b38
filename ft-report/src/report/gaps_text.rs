//! The gaps report as text.

use std::fmt;

use super::format::{count, dur, dur_or_dash, percent, short_count, things};
use super::gaps::GapsReport;
use super::locks_text::reasons;
use super::marks::star;
use super::table::{Table, width};
use super::tail::percentile;

/// Lines of the longer tables that are shown; `--json` has all.
const SHOWN: usize = 15;

impl fmt::Display for GapsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GAPS: intervals in which a polling thread did not run")?;
        if self.gaps == 0 {
            return match self.pollers_seen {
                0 => writeln!(
                    f,
                    "  No thread polled. Call ft_user::gap::Poller in a loop, and enable its events: \
                     -e 'gap.*'."
                ),
                n => writeln!(
                    f,
                    "  {} threads polled and saw no gap above their threshold.",
                    count(n)
                ),
            };
        }
        self.coverage(f)?;
        self.pollers_table(f)?;
        self.causes_table(f)?;
        self.culprits_table(f)?;
        self.inference_table(f)?;
        self.longest_table(f)
    }
}

impl GapsReport {
    fn coverage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  {}; {}{}",
            self.marks.line("gap"),
            things(self.pollers.len() as u64, "polling thread"),
            reasons(&[
                (self.unaccounted.before_history, "without the kernel's account"),
                (self.unaccounted.impossible, "more with impossible times, not counted"),
            ])
        )?;
        self.marks.legend(f)?;
        if !self.kernel {
            writeln!(
                f,
                "  no kernel stream: causes are inferred from the user's time stamps alone"
            )?;
        }
        if self.pollers.iter().any(|p| !p.tail.percentiles_exact) {
            writeln!(f, "  percentiles of more than 65,536 gaps are at most 0.1 % too high")?;
        }
        Ok(())
    }

    fn pollers_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut t = Table::new(&[
            "<thread", "tid", "gaps", "total", "p50", "p90", "p99", "p99.9", "p99.99", "max",
        ]);
        for p in self.pollers.iter().take(SHOWN) {
            let percentiles = [p.tail.p90_ns, p.tail.p99_ns, p.tail.p999_ns, p.tail.p9999_ns];
            let first = [
                p.comm.clone(),
                p.tid.to_string(),
                short_count(p.gaps),
                dur(p.total_ns),
                dur(p.tail.p50_ns),
            ];
            t.row(first.into_iter().chain(percentiles.map(percentile)).chain([dur(p.tail.max_ns)]));
        }
        write!(f, "\nPolling threads (-: too few gaps for this percentile)\n{t:w$}")?;
        match self.pollers.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more threads (--json has all)"),
        }
    }

    fn causes_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        if !self.kernel {
            return Ok(());
        }
        let mut t = Table::new(&["<thread", "<cause", "gaps", "total", "share", "max"]);
        for p in self.pollers.iter().take(SHOWN) {
            for c in &p.causes {
                t.row([
                    p.comm.clone(),
                    c.cause.to_owned(),
                    short_count(c.gaps),
                    dur(c.total_ns),
                    percent(c.total_ns, p.total_ns),
                    dur(c.max_ns),
                ]);
            }
        }
        write!(f, "\nWhat took most of each gap, by the kernel's account\n{t:w$}")
    }

    fn culprits_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        if self.culprits.is_empty() {
            return Ok(());
        }
        let mut t = Table::new(&["<cause", "<who or what", "gaps", "total", "max"]);
        for c in self.culprits.iter().take(SHOWN) {
            t.row([
                c.cause.to_owned(),
                c.culprit.clone(),
                short_count(c.gaps),
                dur(c.total_ns),
                dur(c.max_ns),
            ]);
        }
        write!(f, "\nWho or what it was\n{t:w$}")
    }

    fn inference_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut titles = vec!["<inferred", "gaps"];
        if self.kernel {
            titles.extend([
                "switched-out",
                "blocked",
                "irqs",
                "steal",
                "unexplained",
                "no account",
            ]);
        }
        let mut t = Table::new(&titles);
        for i in &self.inference {
            let mut cells = vec![i.inferred.to_owned(), short_count(i.gaps)];
            if self.kernel {
                let of = |causes: &[&str]| {
                    let counts = i.kernel.iter().filter(|(cause, _)| causes.contains(cause));
                    match counts.map(|(_, n)| n).sum() {
                        0 => "-".into(),
                        n => short_count(n),
                    }
                };
                cells.extend([
                    of(&["switched-out"]),
                    of(&["blocked"]),
                    of(&["hardirq", "softirq", "vector"]),
                    of(&["steal"]),
                    of(&["unexplained"]),
                    of(&["no account"]),
                ]);
            }
            t.row(cells);
        }
        writeln!(f, "\nInferred from user time stamps alone, against what the kernel saw")?;
        write!(f, "{t:w$}")
    }

    fn longest_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let mut titles = vec!["<thread", "gap"];
        if self.kernel {
            titles.extend(["<cause", "<who or what", "off CPU", "irqs", "unexpl."]);
        }
        titles.push("<inferred");
        let mut t = Table::new(&titles);
        for g in &self.longest {
            let mut cells = vec![g.comm.clone(), dur(g.dur_ns) + star(g.mark)];
            if self.kernel {
                cells.push(g.cause.to_owned());
                cells.push(g.culprit.as_deref().unwrap_or("-").to_owned());
                cells.extend(match &g.parts {
                    Some(p) => {
                        let off_cpu = p.preempted_ns + p.dispatch_ns + p.blocked_ns;
                        [off_cpu, p.interrupts_ns(), p.unexplained_ns].map(dur_or_dash)
                    }
                    None => [""; 3].map(str::to_owned),
                });
            }
            cells.push(g.inferred.clone());
            t.row(cells);
        }
        write!(f, "\nThe longest gaps\n{t:w$}")
    }
}
