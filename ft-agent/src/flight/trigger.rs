//! What makes a flight recorder take a snapshot by itself: `hold > 1ms`.

use std::fmt;
use std::str::FromStr;

use ft_analysis::Rows;
use ft_report::units;

/// Kind of interval that a trigger looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// A lock was held.
    Hold,
    /// A woken thread waited for a CPU.
    Dispatch,
    /// A polling thread did not run.
    Gap,
}

/// A snapshot is taken when such an interval is longer than this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Kind of interval.
    pub interval: Interval,
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
    /// The longest interval in `rows` that is too long.
    pub fn find(&self, rows: &Rows) -> Option<Hit> {
        let hit = |ts, dur_ns, tid, what: &str| Hit {
            trigger: self.text.clone(),
            ts,
            dur_ns,
            tid,
            what: what.to_owned(),
        };
        let longest = match self.interval {
            Interval::Hold => {
                let row = rows.critical_sections.iter().max_by_key(|row| row.dur)?;
                hit(row.ts.0, row.dur, row.tid.0, &row.lock_name)
            }
            Interval::Dispatch => {
                let row = rows.dispatch_latency.iter().max_by_key(|row| row.dur)?;
                hit(row.ts.0, row.dur, row.tid.0, &row.comm)
            }
            Interval::Gap => {
                let row = rows.gaps.iter().max_by_key(|row| row.dur)?;
                hit(row.ts.0, row.dur, row.tid.0, &row.comm)
            }
        };
        (longest.dur_ns > self.above_ns).then_some(longest)
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
        let form = "write for example 'hold > 1ms', 'dispatch > 5ms' or 'gap > 2ms'";
        let (interval, limit) = text
            .split_once('>')
            .ok_or_else(|| format!("'{text}' compares nothing with '>'; {form}"))?;
        let interval = match interval.trim() {
            "hold" => Interval::Hold,
            "dispatch" => Interval::Dispatch,
            "gap" => Interval::Gap,
            other => return Err(format!("'{other}' is no interval of the analyses; {form}")),
        };
        let limit = limit.trim();
        if limit.chars().all(|c| c.is_ascii_digit() || c == '.') {
            return Err(format!("'{limit}' has no unit; {form}"));
        }
        let above = units::duration(limit)?;
        let above_ns = i64::try_from(above.as_nanos()).map_err(|e| e.to_string())?;
        Ok(Trigger { interval, above_ns, text: text.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::hold;

    #[test]
    fn triggers_are_read() {
        let check = |text: &str, interval, above_ns| {
            let trigger: Trigger = text.parse().unwrap();
            assert_eq!((trigger.interval, trigger.above_ns), (interval, above_ns), "{text}");
        };
        check("hold > 1ms", Interval::Hold, 1_000_000);
        check(" dispatch>5ms ", Interval::Dispatch, 5_000_000);
        check("gap > 20us", Interval::Gap, 20_000);
        check("hold > 1.5 s", Interval::Hold, 1_500_000_000);
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
        check("wait > 1ms", "'wait' is no interval");
        check("> 1ms", "'' is no interval");
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
        let find = |text: &str| text.parse::<Trigger>().unwrap().find(&rows);
        let hit = find("hold > 1ms").unwrap();
        assert_eq!(hit.to_string(), "hold > 1ms: 2.500 ms of 'queue', thread 7");
        // Longer than, not as long as.
        assert_eq!(find("hold > 2.5ms"), None);
        assert_eq!(find("gap > 1us"), None);
        assert_eq!(find("dispatch > 1us"), None);
    }
}
