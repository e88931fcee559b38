//! The agreement score: precision and recall of causes inferred from user time stamps alone.

use serde::Serialize;

use crate::document::{N, Ns, Of, Section, Share, Table, Word};
use crate::text;
use ft_analysis::Tally;
use ft_analysis::agreement::{Agreement, INFERRED, LENGTHS};
use ft_trace::tables::{GapSeen, SwitchKind, SwitchSeen};

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct AgreementReport {
    /// There is a kernel stream to judge by.
    pub kernel: bool,
    /// Gaps of which the kernel saw a cause.
    pub judged: u64,
    /// Of these, the inferred cause is that one.
    pub agree: u64,
    /// Gaps without a record, with the period of a host's tick.
    pub steal: u64,
    /// The kernel saw no cause.
    pub unexplained: u64,
    /// The kernel's account does not cover them.
    pub unaccounted: u64,
    /// All gaps: `judged` and the three after `agree`.
    pub gaps: u64,
    /// `agree / judged`; null without judged gaps.
    pub agreement: Option<f64>,
    /// `agree / gaps`: the agreement if it were wrong about every gap that could not be judged.
    pub agreement_at_least: Option<f64>,
    /// Each cause and class of length, and each cause over all lengths, with at least one gap.
    pub scores: Vec<Score>,
    /// Interruptions that the kernel saw and no gap shows.
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
        let agree = over_all.iter().map(|s| s.both).sum();
        let scores: Vec<Score> =
            by_length.chain(over_all).filter(|s| s.inferred + s.kernel > 0).collect();
        let missed = LENGTHS.into_iter().zip(&counts.missed).map(|(length, missed)| MissedLength {
            length,
            count: missed.count,
            total_ns: missed.total_ns,
            seen: sum(&INFERRED, &INFERRED, &[length]),
        });
        let judged = sum(&INFERRED, &INFERRED, &LENGTHS);
        let gaps: u64 = counts.gaps.iter().map(|c| c.gaps).sum();
        let ratio = |of: u64| (of > 0).then(|| agree as f64 / of as f64);
        AgreementReport {
            kernel: tally.kernel,
            judged,
            agree,
            steal: sum(&INFERRED, &[GapSeen::Steal.word()], &LENGTHS),
            unexplained: sum(&INFERRED, &[GapSeen::Unexplained.word()], &LENGTHS),
            unaccounted: sum(&INFERRED, &[GapSeen::NoAccount.word()], &LENGTHS),
            gaps,
            agreement: ratio(judged),
            agreement_at_least: ratio(gaps),
            scores,
            missed: missed.filter(|m| m.count > 0).collect(),
            lost_user_events: tally.lost_user_events,
            counts: counts.clone(),
        }
    }
}

impl AgreementReport {
    /// What it says.
    pub fn section(self) -> Section {
        let title =
            "causes of gaps inferred from user time stamps alone, against the kernel's account";
        let mut s = Section::new("agreement", title);
        if !self.kernel {
            s.say("No scheduler records to judge by: record with the kernel groups `sched` and `irq`.");
        } else if self.gaps == 0 && self.missed.is_empty() {
            s.say("No polling thread saw a gap, and the kernel's account has none.");
        } else {
            self.verdict(&mut s);
            self.scores(&mut s);
            self.missed(&mut s);
            self.switches(&mut s);
        }
        s.with(self)
    }

    fn verdict(&self, s: &mut Section) {
        s.say(text!(
            "{} inferred correctly, of {} whose cause the kernel saw",
            Share::of(self.agree, self.judged),
            Of(self.judged, "gap")
        ));
        let others = self.gaps - self.judged;
        if others > 0 {
            let all = text!(
                "{} of all {}, counting the other {} as wrong",
                Share::of(self.agree, self.gaps),
                Of(self.gaps, "gap"),
                N(others)
            );
            s.say(all.reasons(&[
                (self.steal, "in step with a host's tick"),
                (self.unexplained, "without a recorded cause"),
                (self.unaccounted, "without the kernel's account"),
            ]));
        }
    }

    fn scores(&self, s: &mut Section) {
        if self.scores.is_empty() {
            return;
        }
        let t = Table::of(&self.scores)
            .column("length", |c| Word(c.length))
            .column("cause", |c| Word(c.cause))
            .column("inferred", |c| N(c.inferred))
            .column("kernel", |c| N(c.kernel))
            .column("both", |c| N(c.both))
            .column("precision", |c| Share::of(c.both, c.inferred))
            .column("recall", |c| Share::of(c.both, c.kernel));
        s.table(t.titled(
            "By length and cause (precision: share of the inferred; recall: share of the kernel's)",
        ));
    }

    /// What lies between neighbouring runs of a load's workers.
    fn switches(&self, s: &mut Section) {
        use SwitchKind::*;
        let cells = &self.counts.switches;
        let count = |kinds: &[SwitchKind], seen: &[SwitchSeen]| -> u64 {
            let meant = cells.iter().filter(|c| {
                kinds.iter().any(|kind| kind.word() == c.inferred)
                    && seen.iter().any(|seen| seen.word() == c.kernel)
            });
            meant.map(|c| c.switches).sum()
        };
        if cells.is_empty() {
            return;
        }
        // What each claims; `either` and `wait` claim nothing that the kernel's records could refute.
        let claims = [
            ("switch", [Voluntary, Involuntary], SwitchSeen::Switch),
            ("interruption", [Interruption, Interruption], SwitchSeen::None),
        ];
        let t = Table::of(claims)
            .column("claim", |(claim, ..)| Word(claim))
            .column("inferred", |(_, kinds, _)| N(count(kinds, SwitchSeen::ALL)))
            .column("kernel", |(.., seen)| N(count(SwitchKind::ALL, &[*seen])))
            .column("both", |(_, kinds, seen)| N(count(kinds, &[*seen])))
            .column("precision", |(_, kinds, seen)| {
                Share::of(count(kinds, &[*seen]), count(kinds, SwitchSeen::ALL))
            })
            .column("recall", |(_, kinds, seen)| {
                Share::of(count(kinds, &[*seen]), count(SwitchKind::ALL, &[*seen]))
            });
        let undecided = count(&[Either, Wait], SwitchSeen::ALL);
        s.table(t.titled(text!(
            "Between neighbouring runs of a load's workers on a CPU, against its switches ({} more without a claim)",
            N(undecided)
        )));
    }

    fn missed(&self, s: &mut Section) {
        if self.missed.is_empty() {
            return;
        }
        let t = Table::of(&self.missed)
            .column("length", |m| Word(m.length))
            .column("not in a gap", |m| N(m.count))
            .column("time", |m| Ns(m.total_ns))
            .column("share of all", |m| Share::of(m.count, m.count + m.seen));
        let mut title = text!(
            "Interruptions that the kernel saw and that no gap shows (below the threshold, or where polling ended"
        );
        if self.lost_user_events > 0 {
            title = text!(
                "{}; {} may have been gaps",
                title,
                Of(self.lost_user_events, "lost user event")
            );
        }
        s.table(t.titled(title.and(")")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::agreement::{Cell, Missed};

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
            cell("long", "no account", "≥10 ms", 1),
            cell("tick", "steal", "10–100 µs", 4),
        ];
        let mut agreement = Agreement { gaps, ..Agreement::default() };
        agreement.missed[0] = Missed { count: 24, total_ns: 48_000 };
        let tally = Tally { kernel: true, agreement, ..Tally::default() };
        let r = AgreementReport::new(&tally);
        assert_eq!((r.judged, r.agree, r.gaps), (10, 6, 20));
        assert_eq!((r.steal, r.unexplained, r.unaccounted), (4, 5, 1));
        // Of those that can be judged, and of all.
        assert_eq!((r.agreement, r.agreement_at_least), (Some(0.6), Some(0.3)));
        let of = |length, cause| {
            let s = r.scores.iter().find(|s| (s.length, s.cause) == (length, cause)).unwrap();
            (s.inferred, s.kernel, s.both, s.precision, s.recall)
        };
        assert_eq!(of("all", "tick"), (8, 8, 6, Some(0.75), Some(0.75)));
        assert_eq!(of("<10 µs", "tick"), (6, 8, 6, Some(1.0), Some(0.75)));
        assert_eq!(of("all", "interrupt"), (2, 2, 0, Some(0.0), Some(0.0)));
        assert_eq!(of("<10 µs", "interrupt"), (2, 0, 0, Some(0.0), None));
        assert_eq!((r.missed.len(), r.missed[0].seen), (1, 8));
        let text = r.section().to_string();
        for expected in
            ["75.0 %", "  60.0 % inferred correctly, of 10 gaps", "  30.0 % of all 20 gaps"]
        {
            assert!(text.contains(expected), "{text}");
        }
    }
}
