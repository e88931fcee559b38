//! The study of Brandenburg and Anderson, "Feather-Trace: A Light-Weight Event Tracing Toolkit", 2007, section 3,
//! done with another program: how deep locks are nested and how long they are held.
//!
//! The words are the paper's: a request has nesting depth *n* when its thread holds *n* locks already, and a
//! critical section runs from the acquisition to the release; the wait does not belong to it.

use std::fmt;

use serde::Serialize;

use super::format::{count, dur, ns, percent, share};
use super::table::{Table, paragraph, width};
use crate::stats::{Distribution, Thresholds};
use ft_analysis::{Incomplete, Mark, Tally};
use ft_trace::store::{Result, Trace};
use ft_trace::tables::CriticalSection;

/// Lengths of which the report tells how many critical sections are shorter, ns. The paper tells it for 5, 10
/// and 13 µs.
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
#[derive(Clone, Debug, Serialize)]
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

impl Study {
    /// Reads the critical sections of a trace that was analysed.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn of(trace: &Trace, tally: &Tally) -> Result<Study> {
        let mut study = Builder::default();
        for row in trace.rows::<CriticalSection>() {
            study.add(&row?);
        }
        Ok(study.finish(tally.incomplete))
    }

    fn shorter_than(&self, ns: i64) -> u64 {
        self.shorter.iter().find(|(edge, _)| *edge == ns).map_or(0, |(_, n)| *n)
    }
}

struct Builder {
    lengths: Distribution,
    /// At most a nanosecond less than the edge is shorter than it.
    below: Thresholds<14>,
    depths: Vec<u64>,
    depth_lower_bounds: u64,
}

impl Default for Builder {
    fn default() -> Builder {
        let below = Thresholds::new(EDGES_NS.map(|ns| ns - 1));
        Builder {
            lengths: Distribution::default(),
            below,
            depths: Vec::new(),
            depth_lower_bounds: 0,
        }
    }
}

impl Builder {
    fn add(&mut self, row: &CriticalSection) {
        self.lengths.add(row.dur);
        self.below.add(row.dur);
        let depth = usize::try_from(row.depth).unwrap_or(0);
        if self.depths.len() <= depth {
            self.depths.resize(depth + 1, 0);
        }
        self.depths[depth] += 1;
        self.depth_lower_bounds += u64::from(row.depth_mark != Mark::Exact);
    }

    fn finish(self, incomplete: Incomplete) -> Study {
        Study {
            critical_sections: self.lengths.count(),
            incomplete,
            depths: self.depths,
            depth_lower_bounds: self.depth_lower_bounds,
            mean_ns: self.lengths.mean(),
            max_ns: self.lengths.max(),
            shorter: self.below.iter().map(|(ns, n)| (ns + 1, n)).collect(),
        }
    }
}

impl fmt::Display for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        let all = self.critical_sections;
        writeln!(
            f,
            "STUDY: nesting and length of critical sections, beside those of the paper of 2007"
        )?;
        writeln!(
            f,
            "  {} critical sections; incomplete and not counted: {}",
            count(all),
            count(self.incomplete.holds())
        )?;
        if all == 0 {
            return paragraph(
                f,
                "  ",
                "No hold was recorded. --preload sees pthread locks only: not those that a program brings along itself, \
                 as Rust's std and Java do; choose another program.",
            );
        }
        let ours = [
            share(self.depths.first().copied().unwrap_or(0), all),
            (self.depths.len() - 1).to_string(),
            share(self.shorter_than(5_000), all),
            share(self.shorter_than(10_000), all),
            share(self.shorter_than(13_000), all),
            ns(self.mean_ns),
        ];
        let mut t = Table::new(&[
            "<quantity",
            "this trace",
            "VLC, Xine, Tux Racer",
            "Linux spinlocks",
            "Linux semaphores",
        ]);
        for ((quantity, paper), ours) in PAPER.into_iter().zip(ours) {
            t.row([quantity.into(), ours].into_iter().chain(paper.map(String::from)));
        }
        write!(f, "\n{t:w$}")?;
        writeln!(
            f,
            "  Paper: sections 3.4 (pthread locks) and 3.3 (Linux 2.6.20); two Xeons of 2.7 GHz. Its averages\n  \
             are those of an idle system, a compilation and a stress test."
        )?;
        let mut t = Table::new(&["depth", "critical sections", "share"]);
        for (depth, n) in self.depths.iter().enumerate() {
            t.row([depth.to_string(), count(*n), share(*n, all)]);
        }
        write!(f, "\nDistribution of the nesting depth\n{t:w$}")?;
        if self.depth_lower_bounds > 0 {
            writeln!(
                f,
                "  {} of them are at least that deep: events of the thread were lost before",
                count(self.depth_lower_bounds)
            )?;
        }
        let mut t = Table::new(&["shorter than", "critical sections", "share"]);
        for (edge, n) in &self.shorter {
            t.row([dur(*edge), count(*n), percent(*n as i64, all as i64)]);
            if *n == all {
                break;
            }
        }
        write!(
            f,
            "\nCumulative distribution of the length; the longest is {}\n{t:w$}",
            dur(self.max_ns)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Nanos, Pid, SiteId, Tid};

    #[test]
    fn every_quantity_is_exact() {
        let mut study = Builder::default();
        let row = |dur, depth| CriticalSection {
            ts: Nanos(0),
            dur,
            pid: Pid(1),
            tid: Tid(1),
            lock: 1,
            lock_name: "l".into(),
            kind: "mutex".into(),
            site: SiteId(0),
            place: "".into(),
            depth,
            depth_mark: Mark::lower_bound_if(depth == 3),
            wait_ns: 0,
            condition: false,
            parts: None,
            preemptor_tid: None,
            preemptor_comm: None,
            preemptor_ns: None,
            mark: Mark::Exact,
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

        let text = study.to_string();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        for expected in [
            "5 critical sections; incomplete and not counted: 2",
            "not nested 60.0 % over 70 % over 85 %, loaded more often",
            "deepest nesting 3 3 4 2",
            "shorter than 5 µs 40.0 % over 95 % over 96 % not stated",
            "shorter than 10 µs 80.0 % over 99 % not stated not stated",
            "shorter than 13 µs 100 % not stated not stated over 93 %, loaded",
            "average 6.62 µs not stated 0.67 to 1.24 µs 6.3 to 14.9 µs",
            "3 1 20.0 %",
            "13.0 µs 5 100 %",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected}\n{text}");
        }
        assert!(!text.contains("20.0 µs"), "it ends with the longest\n{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_trace_without_locks_says_what_to_do() {
        let text = Builder::default().finish(Incomplete::default()).to_string();
        assert!(text.contains("0 critical sections") && text.contains("--preload"), "{text}");
    }
}
