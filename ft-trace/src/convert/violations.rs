//! Whether the two clocks agree: an event of a thread must lie in a time in which the kernel says that
//! the thread ran.
//!
//! For each thread the switches give a sequence of *on* and *off*. Before the first of them the state
//! is unknown, and after the last *off* too, since the next *on* may stand in another segment. An
//! event between an *off* and the next *on* is a violation when both are further away than the clock
//! bound. Where switches were lost, nothing is checked from the loss to the thread's next switch. Where
//! an *off* follows an *off*, the *on* between them was not recorded, so that the events there tell
//! nothing of the clocks; the analyses count such holes.
//!
//! The CPU of the event is not used: it is read before the time, so a thread that moves in between
//! has the old one, and is right.

use crate::ids::{Nanos, ThreadKey};
use crate::tables::SchedSwitch;

/// The outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Violations {
    /// Events that could be judged.
    pub(super) checked: u64,
    /// Events outside the running time of their thread by more than the bound.
    pub(super) count: u64,
    /// The farthest of them, ns.
    pub(super) worst_ns: i64,
}

/// The switches of one thread, and how far the events have come.
#[derive(Clone, Default)]
pub(super) struct Thread {
    /// Time, and whether the thread runs from then on.
    switches: Vec<(Nanos, bool)>,
    /// The first switch after the event at hand.
    next: usize,
}

/// Sorts the switches (by time) out to the threads; `number` tells which are of interest.
pub(super) fn by_thread(
    switches: &[SchedSwitch],
    threads: usize,
    number: impl Fn(ThreadKey) -> Option<u32>,
) -> Vec<Thread> {
    let mut out = vec![Thread::default(); threads];
    for switch in switches {
        for (key, on) in [(switch.prev(), false), (switch.next(), true)] {
            if let Some(thread) = number(key).and_then(|n| out.get_mut(n as usize)) {
                thread.switches.push((switch.ts, on));
            }
        }
    }
    out
}

/// Judges events, sorted by time, each with the number of its thread. `bound_ns` is how wrong a time can be; `lost` are times
/// in which switches were lost, first and last.
pub(super) fn check(
    threads: &mut [Thread],
    events: impl Iterator<Item = (Nanos, u32)>,
    bound_ns: impl Fn(Nanos) -> i64,
    lost: &[(Nanos, Nanos)],
) -> Violations {
    let mut result = Violations::default();
    for (ts, number) in events {
        let Some(thread) = threads.get_mut(number as usize) else { continue };
        while thread.switches.get(thread.next).is_some_and(|s| s.0 <= ts) {
            thread.next += 1;
        }
        let before = thread.next.checked_sub(1).map(|i| thread.switches[i]);
        let Some((since, on)) = before else { continue };
        let next = thread.switches.get(thread.next).copied();
        let until = next.map_or(ts, |(until, _)| until);
        let touched = lost.iter().any(|&(from, to)| from <= until && to >= since);
        match (on, next) {
            _ if touched => {}
            (true, _) => result.checked += 1,
            (false, None | Some((_, false))) => {}
            (false, Some((until, true))) => {
                result.checked += 1;
                let distance = (ts - since).min(until - ts);
                if distance > bound_ns(ts) {
                    result.count += 1;
                    result.worst_ns = result.worst_ns.max(distance);
                }
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TaskState;

    /// Draws one thread: `#` runs, `.` does not, `x` an event while it does not, `o` one while it does,
    /// `?` a time in which switches were lost. One character is 100 ns; the bound is 150 ns.
    fn check_timeline(drawing: &str, expected: (u64, u64, i64)) {
        let mut thread = Thread::default();
        let (mut events, mut lost) = (Vec::new(), Vec::new());
        let mut was_on = None;
        for (i, c) in drawing.chars().enumerate() {
            let ts = Nanos(i as i64 * 100);
            let on = match c {
                '#' | 'o' => true,
                '.' | 'x' => false,
                _ => {
                    lost.push((ts, ts));
                    continue;
                }
            };
            // The first state is there from the beginning: no switch tells it.
            if was_on.is_some_and(|was| was != on) {
                thread.switches.push((ts, on));
            }
            was_on = Some(on);
            if matches!(c, 'x' | 'o') {
                events.push((ts + 50, 0));
            }
        }
        let v = check(&mut [thread], events.into_iter(), |_| 150, &lost);
        assert_eq!((v.checked, v.count, v.worst_ns), expected, "{drawing}");
    }

    #[test]
    fn events_outside_the_running_time_are_counted() {
        check_timeline("##oo..", (0, 0, 0)); // before the first switch nothing is known
        check_timeline("..#oo#..", (2, 0, 0));
        check_timeline("..##x...##", (1, 0, 0)); // 50 ns after the switch: within the bound
        check_timeline("..##...x##", (1, 0, 0)); // 50 ns before the next
        check_timeline("..##..x...##", (1, 1, 250));
        check_timeline("..##.xx...#o", (3, 1, 250));
        check_timeline("..##..x...", (0, 0, 0)); // the next segment may hold the missing switch
        check_timeline("..##..x?..##", (0, 0, 0)); // a lost switch may have been the missing one
        check_timeline("..?###..x..##", (1, 1, 250));
    }

    #[test]
    fn a_switch_that_was_not_recorded_is_not_blamed_on_the_clock() {
        let thread = |last_on| Thread {
            switches: vec![(Nanos(0), true), (Nanos(100), false), (Nanos(1_000), last_on)],
            next: 0,
        };
        let judge = |last_on| {
            let events = [(Nanos(500), 0)].into_iter();
            check(&mut [thread(last_on)], events, |_| 150, &[])
        };
        assert_eq!(judge(true), Violations { checked: 1, count: 1, worst_ns: 400 });
        assert_eq!(judge(false), Violations::default());
    }

    #[test]
    fn switches_go_to_the_threads_of_interest() {
        use crate::ids::{Cpu, Pid, Tid};
        let switch = |ts, prev, next| SchedSwitch {
            ts: Nanos(ts),
            cpu: Cpu(0),
            prev_tid: Tid(prev),
            prev_pid: Pid(4),
            prev_comm: "".into(),
            prev_prio: 120,
            prev_state: TaskState::Sleeping,
            prev_woken: false,
            next_tid: Tid(next),
            next_pid: Pid(4),
            next_comm: "".into(),
            next_prio: 120,
        };
        // Thread 6 of process 4, and what process 5 takes for a thread of its own.
        let number = |key: ThreadKey| match (key.pid.0, key.tid.0) {
            (4, 6) => Some(0),
            (5, 6) => Some(1),
            _ => None,
        };
        let threads = by_thread(&[switch(1, 5, 6), switch(2, 6, 0)], 2, number);
        assert_eq!(threads[0].switches, [(Nanos(1), true), (Nanos(2), false)]);
        assert_eq!(threads[1].switches, []);
    }
}
