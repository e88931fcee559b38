//! Where records of the scheduler are missing, by the raw tables alone.
//!
//! Some machines hide a process of their own from every tracer, and with it the switches from it. A test leaves out what
//! that touches; but that it does must not be for the analyses to say, which are what is tested.

use std::collections::BTreeMap;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{LossRow, SchedSwitch, SchedWaking};

/// The times in which something is missing.
pub(crate) struct Holes(Vec<(i64, i64)>);

impl Holes {
    /// A switch is missing where one says who came, and the next one of that CPU that another left; a waking, where a
    /// thread left to sleep and came again, and nobody woke it.
    pub(crate) fn of(trace: &Trace) -> Holes {
        let losses = trace.rows::<LossRow>().map(|row| row.expect("a row"));
        let mut holes: Vec<(i64, i64)> = losses.map(|l| (l.ts.0, l.ts.0 + l.dur)).collect();
        let mut last: BTreeMap<i32, SchedSwitch> = BTreeMap::new();
        let mut left: BTreeMap<i32, i64> = BTreeMap::new();
        let mut woken: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for waking in trace.rows::<SchedWaking>() {
            let waking = waking.expect("a row");
            woken.entry(waking.tid.0).or_default().push(waking.ts.0);
        }
        for switch in trace.rows::<SchedSwitch>() {
            let switch = switch.expect("a row");
            let before = last.insert(switch.cpu.0, switch.clone());
            // Who came before it, and since when it has been there: a waking after that may be the one.
            if let Some(before) = &before
                && before.next_tid != switch.prev_tid
            {
                holes.push((before.ts.0, switch.ts.0));
            }
            let came = before.map_or(i64::MIN, |before| before.ts.0);
            if !switch.prev_state.is_runnable() {
                left.insert(switch.prev_tid.0, came);
            } else {
                left.remove(&switch.prev_tid.0);
            }
            let next = switch.next_tid.0;
            if let Some(since) = left.remove(&next)
                && let Some(woken) = woken.get(&next)
            {
                let after = woken.partition_point(|&ts| ts < since);
                if woken.get(after).is_none_or(|&ts| ts > switch.ts.0) {
                    holes.push((since, switch.ts.0));
                }
            }
        }
        Holes(holes)
    }

    /// Whether something is missing in a time.
    pub(crate) fn touch(&self, from: i64, to: i64) -> bool {
        self.0.iter().any(|&(start, end)| start <= to && from <= end)
    }

    /// Whether the row of this interval can be judged. One whose mark says that it cannot, where nothing is missing,
    /// fails the test.
    #[track_caller]
    pub(crate) fn judged(&self, mark: Mark, from: i64, dur: i64) -> bool {
        let exact = mark == Mark::Exact;
        assert!(
            exact || self.touch(from, from + dur),
            "marked as {mark}, and nothing is missing in the {dur} ns from {from} on"
        );
        exact
    }
}
