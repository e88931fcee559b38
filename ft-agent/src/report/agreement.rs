//! The agreement score: precision and recall of causes inferred from user time stamps alone.

use std::fmt;

use serde::Serialize;

use super::format::{count, dur_or_dash, share, short_count, things};
use super::locks_text::reasons;
use super::table::Table;
use crate::analysis::Tally;
use crate::analysis::agreement::{Agreement, INFERRED, LENGTHS};

/// The report.
#[derive(Debug, Serialize)]
pub struct AgreementReport {
    /// There is a kernel stream to judge by.
    pub kernel: bool,
    /// Gaps of which the kernel saw a cause.
    pub judged: u64,
    /// Of these, the inferred cause is that one.
    pub agree: u64,
    /// The kernel saw no cause.
    pub unexplained: u64,
    /// The kernel's account does not cover them.
    pub untold: u64,
    /// Each cause and class of length, and each cause over all lengths, with at least one gap.
    pub scores: Vec<Score>,
    /// Interruptions that the kernel saw and no gap tells.
    pub missed: Vec<MissedLength>,
    /// User events that were lost: gaps may be among them.
    pub lost_user_events: u64,
    /// How often each inferred cause met each that the kernel saw.
    pub counts: Agreement,
}

/// One cause in one class of length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Class of length, or `all`.
    pub length: &'static str,
    /// Cause.
    pub cause: &'static str,
    /// Judged gaps of which it was inferred.
    pub inferred: u64,
    /// Gaps of which the kernel saw it.
    pub kernel: u64,
    /// Both.
    pub both: u64,
    /// `both / inferred`; null when nothing was inferred.
    pub precision: Option<f64>,
    /// `both / kernel`; null when there was nothing to infer.
    pub recall: Option<f64>,
}

/// Missed interruptions of one class of length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissedLength {
    /// Class of length.
    pub length: &'static str,
    /// How many.
    pub count: u64,
    /// Their sum, ns.
    pub total_ns: i64,
    /// Gaps of this class of which the kernel saw a cause: those not missed.
    pub seen: u64,
}

impl AgreementReport {
    /// Makes the report of the counts of an analysis.
    pub fn new(tally: &Tally) -> AgreementReport {
        let counts = &tally.agreement;
        let sum = |inferred: &[&str], kernel: &[&str], lengths: &[&str]| -> u64 {
            let of = |names: &[&str], name: &String| names.contains(&name.as_str());
            let cells = counts.gaps.iter().filter(|c| {
                of(inferred, &c.inferred) && of(kernel, &c.kernel) && of(lengths, &c.length)
            });
            cells.map(|c| c.gaps).sum()
        };
        let score = |length: &'static str, lengths: &[&str], cause: &'static str| {
            let inferred = sum(&[cause], &INFERRED, lengths);
            let kernel = sum(&INFERRED, &[cause], lengths);
            let both = sum(&[cause], &[cause], lengths);
            let ratio = |of: u64| (of > 0).then(|| both as f64 / of as f64);
            let (precision, recall) = (ratio(inferred), ratio(kernel));
            Score { length, cause, inferred, kernel, both, precision, recall }
        };
        let by_length = LENGTHS
            .into_iter()
            .flat_map(|length| INFERRED.map(|cause| score(length, &[length], cause)));
        let over_all = INFERRED.map(|cause| score("all", &LENGTHS, cause));
        let scores: Vec<Score> =
            by_length.chain(over_all).filter(|s| s.inferred + s.kernel > 0).collect();
        let missed = LENGTHS.into_iter().zip(&counts.missed).map(|(length, missed)| MissedLength {
            length,
            count: missed.count,
            total_ns: missed.total_ns,
            seen: sum(&INFERRED, &INFERRED, &[length]),
        });
        AgreementReport {
            kernel: tally.kernel,
            judged: sum(&INFERRED, &INFERRED, &LENGTHS),
            agree: scores.iter().filter(|s| s.length == "all").map(|s| s.both).sum(),
            unexplained: sum(&INFERRED, &["unexplained"], &LENGTHS),
            untold: sum(&INFERRED, &["not told"], &LENGTHS),
            scores,
            missed: missed.filter(|m| m.count > 0).collect(),
            lost_user_events: tally.lost_user_events,
            counts: counts.clone(),
        }
    }
}

impl fmt::Display for AgreementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "AGREEMENT: causes of gaps told from user time stamps alone, against the kernel's account"
        )?;
        if !self.kernel {
            return writeln!(
                f,
                "  No scheduler records to judge by: record with the kernel groups `sched` and `irq`."
            );
        }
        if self.judged + self.unexplained + self.untold == 0 && self.missed.is_empty() {
            return writeln!(f, "  No polling thread saw a gap, and the kernel knows of none.");
        }
        writeln!(
            f,
            "  n={} of which the kernel saw a cause; {} inferred the same ({}){}",
            things(self.judged, "gap"),
            count(self.agree),
            share(self.agree, self.judged),
            reasons(&[
                (self.unexplained, "more without a cause"),
                (self.untold, "more without an account"),
            ])
        )?;
        self.scores_table(f)?;
        self.missed_table(f)
    }
}

impl AgreementReport {
    fn scores_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scores.is_empty() {
            return Ok(());
        }
        let titles = ["<length", "<cause", "inferred", "kernel", "both", "precision", "recall"];
        let mut t = Table::new(&titles);
        for s in &self.scores {
            t.row([
                s.length.to_owned(),
                s.cause.to_owned(),
                short_count(s.inferred),
                short_count(s.kernel),
                short_count(s.both),
                share(s.both, s.inferred),
                share(s.both, s.kernel),
            ]);
        }
        write!(
            f,
            "\nBy length and cause (precision: of the inferred; recall: of the kernel's)\n{t}"
        )
    }

    fn missed_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.missed.is_empty() {
            return Ok(());
        }
        let mut t = Table::new(&["<length", "no gap tells", "time", "share of all"]);
        for m in &self.missed {
            t.row([
                m.length.to_owned(),
                short_count(m.count),
                dur_or_dash(m.total_ns),
                share(m.count, m.count + m.seen),
            ]);
        }
        let lost = match self.lost_user_events {
            0 => String::new(),
            n => format!("; {} lost user events may be gaps", count(n)),
        };
        write!(
            f,
            "\nInterruptions that the kernel saw and no gap tells (below the threshold{lost})\n{t}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::agreement::{Cell, Missed};

    #[test]
    fn precision_and_recall_are_of_judged_gaps() {
        let cell = |inferred: &str, kernel: &str, length: &str, gaps| Cell {
            inferred: inferred.into(),
            kernel: kernel.into(),
            length: length.into(),
            gaps,
        };
        // 8 ticks: 6 inferred, 2 taken for interrupts; 2 interrupts taken for ticks.
        let gaps = vec![
            cell("tick", "tick", "<10 µs", 6),
            cell("interrupt", "tick", "<10 µs", 2),
            cell("tick", "interrupt", "10–100 µs", 2),
            cell("tick", "unexplained", "<10 µs", 5),
            cell("long", "not told", "≥10 ms", 1),
        ];
        let mut agreement = Agreement { gaps, ..Agreement::default() };
        agreement.missed[0] = Missed { count: 24, total_ns: 48_000 };
        let tally = Tally { kernel: true, agreement, ..Tally::default() };
        let r = AgreementReport::new(&tally);
        assert_eq!((r.judged, r.agree, r.unexplained, r.untold), (10, 6, 5, 1));
        let of = |length, cause| {
            let s = r.scores.iter().find(|s| (s.length, s.cause) == (length, cause)).unwrap();
            (s.inferred, s.kernel, s.both, s.precision, s.recall)
        };
        assert_eq!(of("all", "tick"), (8, 8, 6, Some(0.75), Some(0.75)));
        assert_eq!(of("<10 µs", "tick"), (6, 8, 6, Some(1.0), Some(0.75)));
        assert_eq!(of("all", "interrupt"), (2, 2, 0, Some(0.0), Some(0.0)));
        assert_eq!(of("<10 µs", "interrupt"), (2, 0, 0, Some(0.0), None));
        assert_eq!((r.missed.len(), r.missed[0].seen), (1, 8));
        assert!(r.to_string().contains("75.0 %"), "{r}");
    }
}
