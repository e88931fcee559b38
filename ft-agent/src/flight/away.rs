//! How long threads were off the CPU while a recording goes on, for triggers such as `blocked rt-loop > 2ms`.
//!
//! **Rule.** A thread that leaves its CPU although it could go on is preempted until it has one again. One that goes to sleep is
//! blocked until it is woken. Of what began before a loss of the kernel's records nothing is known, so it finds nothing.

use std::collections::{HashMap, HashSet};

use ft_trace::event::Event;
use ft_trace::ids::{Nanos, Pid, ThreadKey};
use ft_trace::tables::{SchedSwitch, ThreadRow};

use super::trigger::{Interval, ThreadInterval, may_be_switches};

/// Threads that are followed at once, of those that a trigger names.
///
/// Limit: further ones find nothing until others have come back.
/// Shown by: no figure: only which snapshots are taken.
const MAX_AWAY: usize = 1 << 16;

/// Threads off the CPU.
#[derive(Debug, Default)]
pub(super) struct Away {
    /// Processes that are recorded.
    observed: HashSet<Pid>,
    left: HashMap<ThreadKey, ThreadInterval>,
}

impl Away {
    /// Threads that were seen.
    pub(super) fn learn(&mut self, threads: &[ThreadRow]) {
        let observed = threads.iter().filter(|thread| thread.observed);
        self.observed.extend(observed.map(|thread| thread.pid));
    }

    /// What an event ends. Only threads are followed whose name `is_asked` for.
    pub(super) fn see(
        &mut self,
        event: &Event,
        is_asked: impl Fn(&str) -> bool,
    ) -> Option<ThreadInterval> {
        match event {
            Event::Switch(switch) => {
                // Whoever is preempted has a CPU again. A sleeper's waking is missing: when it was woken is not known.
                let back = self.left.remove(&switch.next());
                if self.left.len() < MAX_AWAY && is_asked(&switch.prev_comm) {
                    self.leave(switch);
                }
                over(back.filter(|absence| absence.kind == Interval::Preempted), switch.ts)
            }
            Event::Waking(waking) => {
                let thread = ThreadKey { pid: waking.pid, tid: waking.tid };
                let sleeps = self.left.get(&thread)?.kind == Interval::Blocked;
                over(self.left.remove(&thread).filter(|_| sleeps), waking.ts)
            }
            Event::Loss(loss) => {
                if may_be_switches(loss.origin) {
                    self.left.clear();
                }
                None
            }
            _ => None,
        }
    }

    fn leave(&mut self, switch: &SchedSwitch) {
        let SchedSwitch { prev_state: state, prev_woken, ts, .. } = *switch;
        let thread = switch.prev();
        if state.is_dead() || !self.observed.contains(&thread.pid) {
            return;
        }
        let kind = match state.is_runnable() {
            true => Interval::Preempted,
            // It is awake already.
            false if prev_woken => return,
            false => Interval::Blocked,
        };
        let comm = switch.prev_comm.to_string();
        self.left.insert(thread, ThreadInterval { kind, ts, dur: 0, thread, comm });
    }
}

fn over(absence: Option<ThreadInterval>, now: Nanos) -> Option<ThreadInterval> {
    absence.map(|absence| ThreadInterval { dur: now.0 - absence.ts.0, ..absence })
}

#[cfg(test)]
mod tests {
    use ft_analysis::timeline;

    use super::*;

    /// ThreadIntervals that end in a timeline, in words.
    fn found(of: &str, timeline: &str) -> Vec<String> {
        let mut away = Away::default();
        away.learn(&timeline::threads());
        let events = timeline::events(timeline);
        let found = events.filter_map(|event| away.see(&event, |comm| comm == of));
        found
            .map(|found| format!("{} {:?} {}+{}", found.comm, found.kind, found.ts.0, found.dur))
            .collect()
    }

    #[test]
    fn who_could_go_on_is_preempted_until_it_is_back_and_who_sleeps_is_blocked_until_it_is_woken() {
        let timeline = "0 0 .>a S
                        10 0 a>b R
                        25 0 b>a S
                        40 0 a>X S
                        70 wake X a 0
                        90 0 X>a S";
        assert_eq!(found("a", timeline), ["a Preempted 10+15", "a Blocked 40+30"]);
        // Neither the names of others nor those of programs that are not recorded.
        assert_eq!(found("b", timeline), [""; 0]);
        assert_eq!(found("X", timeline), [""; 0]);
    }

    #[test]
    fn what_began_before_a_loss_or_ends_unseen_finds_nothing() {
        let lost = "0 0 .>a S
                    10 0 a>X S
                    15 lose sched 3
                    30 wake X a 0";
        assert_eq!(found("a", lost), [""; 0]);
        let unseen = "0 0 .>a S
                      10 0 a>X S
                      30 0 X>a S
                      40 0 a>X R
                      45 0 X>a S";
        assert_eq!(found("a", unseen), ["a Preempted 40+5"]);
    }
}
