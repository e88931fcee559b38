//! Cycles of periodic threads while a recording goes on, for triggers such as `missed rt-loop > 1ms`.
//!
//! **Rule.** That of [`Deadline`](ft_analysis::Deadline): a cycle begins at the time until which its thread sleeps, and ends when
//! the thread sleeps until a time again. Where the call does not say the time, it begins when the thread is woken. Of a cycle in
//! which records are missing nothing is known, so it finds nothing.

use std::collections::HashMap;

use ft_trace::event::Event;
use ft_trace::ids::{Nanos, ThreadKey};
use ft_trace::tables::{SchedSwitch, Sleep};

use super::trigger::{Interval, ThreadInterval, may_be_switches};

/// Threads whose cycles are followed at once, of those that a trigger names.
///
/// Limit: further ones find nothing until others have ended.
/// Shown by: no figure: only which snapshots are taken.
const MAX_PERIODIC: usize = 1 << 16;

/// Threads that sleep until times.
#[derive(Debug, Default)]
pub(super) struct Cycles {
    /// The begin of each one's cycle, which may lie ahead; `None`: when it is woken.
    begun: HashMap<ThreadKey, Option<Nanos>>,
    /// Who is about to leave its CPU, by a record just before that of the switch.
    sleeps: Option<Sleep>,
}

impl Cycles {
    /// The cycle that an event ends. Only threads are followed whose name `is_asked` for.
    pub(super) fn see(
        &mut self,
        event: &Event,
        is_asked: impl Fn(&str) -> bool,
    ) -> Option<ThreadInterval> {
        match event {
            Event::Sleep(sleep) => self.sleeps = Some(sleep.clone()),
            Event::Switch(switch) if switch.prev_state.is_dead() => {
                self.begun.remove(&switch.prev());
            }
            Event::Switch(switch) => return self.leave(switch, is_asked),
            Event::Waking(waking) => {
                let thread = ThreadKey { pid: waking.pid, tid: waking.tid };
                if let Some(unknown @ None) = self.begun.get_mut(&thread) {
                    *unknown = Some(waking.ts);
                }
            }
            Event::Loss(loss) if may_be_switches(loss.origin) => self.begun.clear(),
            _ => {}
        }
        None
    }

    fn leave(
        &mut self,
        switch: &SchedSwitch,
        is_asked: impl Fn(&str) -> bool,
    ) -> Option<ThreadInterval> {
        let thread = switch.prev();
        let is_this = |sleep: &Sleep| sleep.ts == switch.ts && sleep.thread() == thread;
        let due = self.sleeps.take_if(|sleep| is_this(sleep))?.due()?;
        let comm = &*switch.prev_comm;
        if !is_asked(comm) {
            return None;
        }
        let begun = self.begun.remove(&thread).flatten();
        if self.begun.len() < MAX_PERIODIC {
            self.begun.insert(thread, due.map(Nanos));
        }
        // Woken before its time, and asleep again before it: no cycle.
        let ts = begun.filter(|begun| *begun < switch.ts)?;
        let (dur, comm) = (switch.ts.0 - ts.0, comm.to_owned());
        Some(ThreadInterval { kind: Interval::Missed, ts, dur, thread, comm })
    }
}

#[cfg(test)]
mod tests {
    use ft_analysis::timeline;

    use super::*;

    /// Cycles of thread a that end in a timeline.
    fn found(timeline: &str) -> Vec<String> {
        let mut cycles = Cycles::default();
        let events = timeline::events(timeline);
        let found = events.filter_map(|event| cycles.see(&event, |comm| comm == "a"));
        found.map(|found| format!("{} {}+{}", found.comm, found.ts.0, found.dur)).collect()
    }

    #[test]
    fn a_cycle_lasts_from_its_time_until_the_thread_sleeps_until_a_time_again() {
        let timeline = "0 0 .>a S
                        50 asleep a clock_nanosleep 1 - 100
                        50 0 a>X S
                        110 wake X a 0
                        130 0 X>a R
                        140 asleep a futex 4096
                        140 0 a>X S
                        150 0 X>a R
                        160 asleep a clock_nanosleep 1 - 200
                        160 0 a>X S
                        170 asleep X clock_nanosleep 1 - 180
                        170 0 X>a S
                        175 asleep a nanosleep 1 - 200
                        175 0 a>X S
                        210 0 X>a S
                        290 asleep a read-timerfd 3
                        290 0 a>X S
                        310 wake X a 0
                        320 0 X>a R
                        345 asleep a read-timerfd 3
                        345 0 a>X S";
        assert_eq!(found(timeline), ["a 100+60", "a 200+90", "a 310+35"]);
    }

    #[test]
    fn a_cycle_in_which_records_are_missing_finds_nothing() {
        let timeline = "0 0 .>a S
                        50 asleep a nanosleep 1 - 100
                        50 0 a>X S
                        70 lose sched 3
                        110 0 X>a S
                        160 asleep a nanosleep 1 - 200
                        160 0 a>X S
                        210 0 X>a S
                        290 asleep a nanosleep 1 - 300
                        290 0 a>X S";
        assert_eq!(found(timeline), ["a 200+90"]);
    }
}
