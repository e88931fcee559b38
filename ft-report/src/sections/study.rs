//! The study of Brandenburg and Anderson, "Feather-Trace: A Light-Weight Event Tracing Toolkit", 2007, section 3,
//! done with another program: how deep locks are nested and how long they are held.
//!
//! The words are the paper's: a request has nesting depth *n* when its thread holds *n* locks already, and a
//! critical section runs from the acquisition to the release; the wait does not belong to it.

use serde::Serialize;

use super::Input;
use crate::document::{Data, Drawn, MeanNs, N, Ns, Of, Section, Share, Step, Table, Typed, Word};
use crate::stats::{Depths, Distribution, Thresholds};
use crate::text;
use ft_analysis::Incomplete;
use ft_trace::store::Result;
use ft_trace::tables::CriticalSection;

/// Lengths below which the report counts critical sections, ns. The paper has them for 5, 10 and 13 µs.
const EDGES_NS: [i64; 14] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    13_000,
    20_000,
    50_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// The paper's figures: a row for each quantity, for the pthread locks of VLC, Xine and Tux Racer (section
/// 3.4), and for the spinlocks and semaphores of Linux 2.6.20 (section 3.3).
const PAPER: [(&str, [&str; 3]); 6] = [
    ("not nested", ["over 70 %", "over 85 %, loaded", "more often"]),
    ("deepest nesting", ["3", "4", "2"]),
    ("shorter than 5 µs", ["over 95 %", "over 96 %", "not stated"]),
    ("shorter than 10 µs", ["over 99 %", "not stated", "not stated"]),
    ("shorter than 13 µs", ["not stated", "not stated", "over 93 %, loaded"]),
    ("average", ["not stated", "0.67 to 1.24 µs", "6.3 to 14.9 µs"]),
];

/// The paper's quantities of one trace.
#[derive(Debug, Serialize)]
pub struct Study {
    /// Critical sections in these figures.
    pub critical_sections: u64,
    /// What was recorded in part, and is in no figure (section 3.2).
    pub incomplete: Incomplete,
    /// How many of each nesting depth, from 0.
    pub depths: Vec<u64>,
    /// Of these, how many are at least that deep: events of their thread were lost before.
    pub depth_lower_bounds: u64,
    /// Average length, ns.
    pub mean_ns: f64,
    /// Longest, ns.
    pub max_ns: i64,
    /// (ns, critical sections that are shorter).
    pub shorter: Vec<(i64, u64)>,
}

struct Builder {
    lengths: Distribution,
    /// At most a nanosecond less than the edge is shorter than it.
    below: Thresholds<14>,
    depths: Depths,
}

impl Default for Builder {
    fn default() -> Builder {
        let below = Thresholds::new(EDGES_NS.map(|ns| ns - 1));
        Builder { lengths: Distribution::default(), below, depths: Depths::default() }
    }
}

impl Builder {
    fn add(&mut self, row: &CriticalSection) {
        self.lengths.add(row.dur);
        self.below.add(row.dur);
        self.depths.add(row.depth, row.depth_mark);
    }

    fn finish(self, incomplete: Incomplete) -> Study {
        Study {
            critical_sections: self.lengths.count(),
            incomplete,
            depths: self.depths.counts,
            depth_lower_bounds: self.depths.lower_bounds,
            mean_ns: self.lengths.mean(),
            max_ns: self.lengths.max(),
            shorter: self.below.iter().map(|(ns, n)| (ns + 1, n)).collect(),
        }
    }
}

impl Study {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<Study> {
        let mut study = Builder::default();
        input.rows(|r: CriticalSection| study.add(&r))?;
        Ok(study.finish(input.tally.incomplete))
    }

    fn shorter_than(&self, ns: i64) -> u64 {
        self.shorter.iter().find(|(edge, _)| *edge == ns).map_or(0, |(_, n)| *n)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let title = "nesting and length of critical sections, beside those of the paper of 2007";
        let mut s = Section::new("study", title);
        let all = self.critical_sections;
        s.say(match self.incomplete.holds() {
            0 => text!("{}", Of(all, "critical section")),
            n => text!("{}; {} more incomplete and not counted", Of(all, "critical section"), N(n)),
        });
        if all == 0 {
            s.say(
                "No hold was recorded. --preload sees pthread locks only, and not those that a program implements \
                 itself, as Rust's std and Java do (of these the kernel group `futex` tells the waits: report futexes); \
                 choose another program.",
            );
            return s.with(self);
        }
        self.beside_the_paper(&mut s);
        let bars = (0..).zip(self.depths.iter().copied()).collect();
        s.figure(
            text!("Distribution of the nesting depth{}", Drawn(" (bars: logarithmic)")),
            Data::Bars { axis: "depth", counted: "critical sections", bars, each: Vec::new() },
        );
        if self.depth_lower_bounds > 0 {
            let n = Of(self.depth_lower_bounds, "critical section");
            s.say(text!("{} may be nested deeper: their threads may hold what was acquired before they were recorded, or in a loss.", n));
        }
        s.figure(
            text!(
                "Distribution of the length{}; the longest is {}",
                Drawn(" (bars: logarithmic)"),
                Ns(self.max_ns)
            ),
            Data::Cumulative {
                axis: "shorter than",
                counted: "critical sections",
                steps: Step::between(&self.shorter, all),
                bins: Vec::new(),
                each: Vec::new(),
            },
        );
        s.with(self)
    }

    fn beside_the_paper(&self, s: &mut Section) {
        let all = self.critical_sections;
        let share = |n| Share::of(n, all).value();
        let ours = [
            share(self.depths.first().copied().unwrap_or(0)),
            N(self.depths.len() as u64 - 1).value(),
            share(self.shorter_than(5_000)),
            share(self.shorter_than(10_000)),
            share(self.shorter_than(13_000)),
            MeanNs(self.mean_ns).value(),
        ];
        let t = Table::of(PAPER.into_iter().zip(ours))
            .column("quantity", |((quantity, _), _)| Word(quantity))
            .column("this trace", |(_, ours)| ours.clone())
            .column("VLC, Xine, Tux Racer", |((_, paper), _)| Word(paper[0]))
            .column("Linux spinlocks", |((_, paper), _)| Word(paper[1]))
            .column("Linux semaphores", |((_, paper), _)| Word(paper[2]));
        s.table(t.titled(
            "This trace beside the paper (sections 3.4, pthread locks, and 3.3, Linux 2.6.20; on two Xeons of 2.7 GHz; \
             its averages are those of an idle system, a compilation and a stress test)",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::Mark;
    use ft_analysis::timeline::hold;

    #[test]
    fn every_quantity_is_exact() {
        let mut study = Builder::default();
        let row = |dur, depth| CriticalSection {
            depth,
            depth_mark: Mark::lower_bound_if(depth == 3),
            ..hold(dur)
        };
        // 5 µs is not shorter than 5 µs.
        for (dur, depth) in [(99, 0), (4_999, 0), (5_000, 0), (9_999, 1), (12_999, 3)] {
            study.add(&row(dur, depth));
        }
        let study = study.finish(Incomplete { never_released: 2, ..Incomplete::default() });
        assert_eq!((&study.depths[..], study.depth_lower_bounds), (&[3, 1, 0, 1][..], 1));
        assert_eq!((study.mean_ns, study.max_ns), (6_619.2, 12_999));
        let shorter: Vec<u64> =
            [100, 5_000, 10_000, 13_000].map(|ns| study.shorter_than(ns)).into();
        assert_eq!(shorter, [1, 2, 4, 5]);

        let text = study.section().to_string();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        for expected in [
            "5 critical sections; 2 more incomplete and not counted",
            "not nested 60.0 % over 70 % over 85 %, loaded more often",
            "deepest nesting 3 3 4 2",
            "shorter than 5 µs 40.0 % over 95 % over 96 % not stated",
            "shorter than 10 µs 80.0 % over 99 % not stated not stated",
            "shorter than 13 µs 100 % not stated not stated over 93 %, loaded",
            "average 6.62 µs not stated 0.67 to 1.24 µs 6.3 to 14.9 µs",
            "3 1 20.0 %",
            "13.0 µs 1 20.0 % 5 100 %",
        ] {
            assert!(lines.iter().any(|line| line.starts_with(expected)), "{expected}\n{text}");
        }
        assert!(!text.contains("20.0 µs"), "it ends with the longest\n{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_trace_without_locks_says_what_to_do() {
        let text = Builder::default().finish(Incomplete::default()).section().to_string();
        assert!(text.contains("0 critical sections") && text.contains("--preload"), "{text}");
    }
}
