//! What makes a flight recorder take a snapshot by itself: `hold > 1ms`, `blocked rt-loop > 2ms`.

use std::fmt;
use std::str::FromStr;

use ft_analysis::Rows;
use ft_report::units;
use ft_trace::ids::{Nanos, ThreadKey};
use ft_trace::tables::LossOrigin;
use ft_user::glob;

/// Kind of interval that a trigger looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// A lock was held.
    Hold,
    /// A lock was waited for.
    Wait,
    /// A woken thread waited for a CPU.
    Dispatch,
    /// A thread that could go on had no CPU.
    Preempted,
    /// A thread slept.
    Blocked,
    /// A cycle of a periodic thread took longer than its deadline.
    Missed,
    /// A polling thread did not run.
    Gap,
}

/// The words for them.
const WORDS: [(&str, Interval); 7] = [
    ("hold", Interval::Hold),
    ("wait", Interval::Wait),
    ("dispatch", Interval::Dispatch),
    ("preempted", Interval::Preempted),
    ("blocked", Interval::Blocked),
    ("missed", Interval::Missed),
    ("gap", Interval::Gap),
];

impl Interval {
    /// Only the kernel's switches show it.
    pub fn is_of_kernel(self) -> bool {
        self == Interval::Dispatch || self.is_of_thread()
    }

    /// It is found in the kernel's events, not in the rows of an analysis.
    fn is_of_thread(self) -> bool {
        matches!(self, Interval::Preempted | Interval::Blocked | Interval::Missed)
    }
}

/// An interval of one thread that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadInterval {
    /// [`Interval::Preempted`], [`Interval::Blocked`] or [`Interval::Missed`].
    pub(super) kind: Interval,
    /// When it began.
    pub(super) ts: Nanos,
    /// Its length, ns.
    pub(super) dur: i64,
    pub(super) thread: ThreadKey,
    /// The name of the thread when it left its CPU.
    pub(super) comm: String,
}

/// Whether records of the kernel's switches may be among what such a loss took.
pub(super) fn may_be_switches(origin: LossOrigin) -> bool {
    matches!(origin, LossOrigin::Kernel | LossOrigin::KernelSkipped | LossOrigin::Agent)
}

/// A snapshot is taken when such an interval is longer than this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Kind of interval.
    pub interval: Interval,
    /// Of which lock, or of which thread where it is none of a lock: a glob over its name.
    pub of: String,
    /// Longest that is accepted, ns.
    pub above_ns: i64,
    /// As it was written.
    text: String,
}

/// An interval that a trigger has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The trigger, as it was written.
    pub trigger: String,
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Thread.
    pub tid: i32,
    /// Name of the lock, or of the thread.
    pub what: String,
}

impl Trigger {
    /// The longest interval of what is over that is too long.
    pub(super) fn find(&self, rows: &Rows, of_threads: &[ThreadInterval]) -> Option<Hit> {
        let hit = |ts, dur_ns, tid, what: &str| Hit {
            trigger: self.text.clone(),
            ts,
            dur_ns,
            tid,
            what: what.to_owned(),
        };
        macro_rules! longest {
            ($rows:expr, $name:ident) => {{
                let rows = $rows.iter().filter(|row| self.is_of(&row.$name));
                let row = rows.max_by_key(|row| row.dur)?;
                hit(row.ts.0, row.dur, row.tid.0, &row.$name)
            }};
        }
        let longest = match self.interval {
            Interval::Hold => longest!(rows.critical_sections, lock_name),
            Interval::Wait => longest!(rows.lock_waits, lock_name),
            Interval::Dispatch => longest!(rows.dispatch_latency, comm),
            Interval::Gap => longest!(rows.gaps, comm),
            Interval::Preempted | Interval::Blocked | Interval::Missed => {
                let of = |it: &&ThreadInterval| it.kind == self.interval && self.is_of(&it.comm);
                let it = of_threads.iter().filter(of).max_by_key(|it| it.dur)?;
                hit(it.ts.0, it.dur, it.thread.tid.0, &it.comm)
            }
        };
        (longest.dur_ns > self.above_ns).then_some(longest)
    }

    /// Asks for such intervals of a thread of this name: what is no cycle is off the CPU.
    pub(super) fn asks_for(&self, cycles: bool, comm: &str) -> bool {
        let is_cycle = self.interval == Interval::Missed;
        self.interval.is_of_thread() && is_cycle == cycles && self.is_of(comm)
    }

    fn is_of(&self, name: &str) -> bool {
        glob::matches(&self.of, name)
    }
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.dur_ns as f64 / 1e6;
        write!(f, "{}: {ms:.3} ms of '{}', thread {}", self.trigger, self.what, self.tid)
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Trigger, String> {
        let form = "write for example 'hold > 1ms', 'dispatch > 5ms' or 'blocked rt-loop > 2ms'";
        let (interval, limit) = text
            .split_once('>')
            .ok_or_else(|| format!("'{text}' compares nothing with '>'; {form}"))?;
        let (word, of) = interval.trim().split_once(' ').unwrap_or((interval.trim(), "*"));
        let Some((_, interval)) = WORDS.iter().find(|(known, _)| *known == word) else {
            let known = WORDS.map(|(word, _)| word).join(", ");
            return Err(format!("'{word}' is none of {known}; {form}"));
        };
        let (interval, of) = (*interval, of.trim().to_owned());
        // Most threads sleep most of the time, and many sleep until a time without a deadline.
        if matches!(interval, Interval::Blocked | Interval::Missed) && of == "*" {
            return Err(format!("'{word}' needs the name of a thread; {form}"));
        }
        let limit = limit.trim();
        if limit.chars().all(|c| c.is_ascii_digit() || c == '.') {
            return Err(format!("'{limit}' has no unit; {form}"));
        }
        let above = units::duration(limit)?;
        let above_ns = i64::try_from(above.as_nanos()).map_err(|e| e.to_string())?;
        Ok(Trigger { interval, of, above_ns, text: text.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::hold;

    #[test]
    fn triggers_are_read() {
        let check = |text: &str, interval, of: &str, above_ns| {
            let trigger: Trigger = text.parse().unwrap();
            let read = (trigger.interval, &*trigger.of, trigger.above_ns);
            assert_eq!(read, (interval, of, above_ns), "{text}");
        };
        check("hold > 1ms", Interval::Hold, "*", 1_000_000);
        check(" dispatch>5ms ", Interval::Dispatch, "*", 5_000_000);
        check("gap > 20us", Interval::Gap, "*", 20_000);
        check("hold > 1.5 s", Interval::Hold, "*", 1_500_000_000);
        check("wait book > 1ms", Interval::Wait, "book", 1_000_000);
        check("preempted rt-* > 1ms", Interval::Preempted, "rt-*", 1_000_000);
        check("blocked tokio worker>1ms", Interval::Blocked, "tokio worker", 1_000_000);
        check("missed rt-loop > 1ms", Interval::Missed, "rt-loop", 1_000_000);
    }

    #[test]
    fn what_is_no_trigger_is_explained() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Trigger>().unwrap_err();
            assert!(error.contains(expected) && error.contains("write for example"), "{error}");
        };
        check("", "compares nothing");
        check("hold 1ms", "compares nothing");
        check("hold < 1ms", "compares nothing");
        check("sleep > 1ms", "'sleep' is none of hold, wait, dispatch");
        check("> 1ms", "'' is none of");
        check("blocked > 1ms", "'blocked' needs the name of a thread");
        check("missed > 1ms", "'missed' needs the name of a thread");
        check("hold > 5", "'5' has no unit");
        check("hold >", "'' has no unit");
        check("hold > soon", "not a duration");
        check("hold > > 1ms", "not a duration");
    }

    #[test]
    fn the_longest_interval_beyond_the_limit_is_found() {
        let rows = Rows {
            critical_sections: vec![hold(900_000), hold(2_500_000), hold(1_100_000)],
            ..Rows::default()
        };
        let find = |text: &str| text.parse::<Trigger>().unwrap().find(&rows, &[]);
        let hit = find("hold > 1ms").unwrap();
        assert_eq!(hit.to_string(), "hold > 1ms: 2.500 ms of 'queue', thread 7");
        // Longer than, not as long as.
        assert_eq!(find("hold > 2.5ms"), None);
        assert_eq!(find("gap > 1us"), None);
        assert_eq!(find("dispatch > 1us"), None);
        assert_eq!(
            find("hold que* > 1ms"),
            find("hold > 1ms").map(|hit| Hit { trigger: "hold que* > 1ms".into(), ..hit })
        );
        assert_eq!(find("hold book > 1ms"), None);
    }
}
