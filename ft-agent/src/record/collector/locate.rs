//! Processes of which addresses are recorded: looked at while they run, so that the addresses can be named.
//!
//! A process is looked at when its first address is drained and when it has executed another program: soon again then, for its
//! loader may not have come to all libraries, later less often, down to every second, while there are addresses of it. One that executes
//! programs over and over is looked at soon a few times, then every second. Of one that has ended by then nothing is known: its addresses
//! have no names, which the report says.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Collector;
use super::looks::LOOKS;
use crate::collect::discover::start_time_of;
use crate::collect::inspect::Inspected;
use crate::collect::kernel::Kernel;

/// Processes that are kept for the next look, about; then those are forgotten of which there were no addresses lately.
///
/// Limit: addresses of further ones have no names, and the report states their share.
/// Shown by: `processes_that_are_looked_at_are_bounded`.
const MAX_LOCATED: usize = 4096;

/// Looks that one round gives away, at most: addresses of the others come again.
///
/// Limit: as `MAX_LOCATED`.
const LOCATED_AT_ONCE: usize = 64;

/// From the first look at a process to the second one; each further distance is twice the last one, up to [`LOOKS`].
const SECOND_LOOK: Duration = Duration::from_millis(8);

/// After this time a process is looked at that could not be when it was due.
const LATER: Duration = Duration::from_millis(64);

/// Programs for which a process is looked at soon that executes them one after the other; one more every [`LOOKS`].
///
/// Limit: as `MAX_LOCATED`.
const MOST_EXECUTED: u32 = 8;

/// Processes, by number.
#[derive(Debug, Default)]
pub(super) struct Located(HashMap<u32, Known>);

/// A process that was looked at.
#[derive(Debug)]
struct Known {
    subject: Arc<Inspected>,
    life: Life,
    /// When it is looked at again.
    next: Instant,
    /// From the last look to that one.
    distance: Duration,
    /// When it may execute [`MOST_EXECUTED`] programs again, and be looked at soon.
    rested: Instant,
}

/// What distinguishes a process from those that have its number before and after it: its user, and when it began.
#[derive(Clone, Copy, Debug)]
struct Life {
    user: u32,
    /// 0 when it does not say so: then the number is still that of who had it.
    start_time: u64,
}

impl Life {
    fn can_be(self, other: Life) -> bool {
        let starts = [self.start_time, other.start_time];
        self.user == other.user && (starts.contains(&0) || starts[0] == starts[1])
    }
}

impl Collector {
    /// Has the processes looked at whose addresses were drained.
    pub(super) fn locate(&mut self) {
        let Some(chained) = self.kernel.as_mut().and_then(Kernel::take_chained) else { return };
        let Collector { located, intake, .. } = self;
        let now = Instant::now();
        chained.executed.into_iter().for_each(|pid| located.executed(pid, now));
        located.look(chained.processes, now, life, |subject| intake.locate(subject));
    }
}

impl Located {
    /// A process has executed another program, whose libraries come one after the other.
    fn executed(&mut self, pid: u32, now: Instant) {
        if let Some(known) = self.0.get_mut(&pid)
            && known.rested < now + MOST_EXECUTED * LOOKS
        {
            known.rested = known.rested.max(now) + LOOKS;
            // The next look is the first one.
            (known.next, known.distance) = (now, SECOND_LOOK / 2);
        }
    }

    /// Has those of these processes looked at that are due; `locate` has one looked at, or has no room for that.
    fn look(
        &mut self,
        processes: impl IntoIterator<Item = u32>,
        now: Instant,
        life: impl Fn(u32) -> Option<Life>,
        mut locate: impl FnMut(&Arc<Inspected>) -> bool,
    ) {
        let located = &mut self.0;
        if located.len() > MAX_LOCATED {
            located.retain(|_, known| known.next > now);
        }
        let mut left = LOCATED_AT_ONCE;
        for pid in processes {
            let due = located.get(&pid).is_none_or(|known| known.next <= now);
            if !due || left == 0 || located.len() > 2 * MAX_LOCATED {
                continue;
            }
            left -= 1;
            let Some(life) = life(pid) else { continue };
            let known = located.get(&pid).filter(|known| known.life.can_be(life));
            let life = known.map_or(life, |known| match life.start_time {
                0 => known.life,
                _ => life,
            });
            let (subject, before, rested) = match known {
                Some(known) => (known.subject.clone(), known.distance, known.rested),
                None => {
                    let Ok(number) = i32::try_from(pid) else { continue };
                    (Arc::new(Inspected::new(number, life.user)), SECOND_LOOK / 2, now)
                }
            };
            // One that cannot be looked at now keeps nobody else waiting.
            let (distance, wait) = match locate(&subject) {
                true => (LOOKS.min(2 * before), LOOKS.min(2 * before)),
                false => (before, LATER),
            };
            let next = now + wait;
            located.insert(pid, Known { subject, life, next, distance, rested });
        }
    }
}

/// Which process has this number; `None` when it has ended.
fn life(pid: u32) -> Option<Life> {
    // The directory belongs to its effective user (proc(5)).
    let user = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let start_time = i32::try_from(pid).ok().and_then(start_time_of).unwrap_or(0);
    Some(Life { user, start_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these processes are looked at.
    fn look(located: &mut Located, processes: std::ops::Range<u32>, now: Instant) -> usize {
        let life = |_| Some(Life { user: 0, start_time: 1 });
        let mut looks = 0;
        located.look(processes, now, life, |_| {
            looks += 1;
            true
        });
        looks
    }

    #[test]
    fn a_number_that_another_process_has_is_looked_at_as_its_own() {
        let (mut located, begin) = (Located::default(), Instant::now());
        let mut looked_at = |user, start_time, after: u32| {
            let life = |_| Some(Life { user, start_time });
            let mut found = None;
            located.look([7], begin + after * LOOKS, life, |subject| {
                found = Some(subject.clone());
                true
            });
            found.expect("it is due")
        };
        let first = looked_at(1, 10, 0);
        assert!(Arc::ptr_eq(&first, &looked_at(1, 10, 1)));
        let second = looked_at(1, 11, 2);
        assert!(!Arc::ptr_eq(&first, &second), "it began later");
        assert!(Arc::ptr_eq(&second, &looked_at(1, 0, 3)), "it does not answer");
        assert!(Arc::ptr_eq(&second, &looked_at(1, 11, 4)));
        assert!(!Arc::ptr_eq(&second, &looked_at(2, 11, 5)), "it is another user's");
    }

    #[test]
    fn a_process_is_looked_at_less_and_less_often() {
        let (mut located, begin) = (Located::default(), Instant::now());
        let ms = Duration::from_millis;
        let is_due = |located: &mut Located, at| look(located, 7..8, begin + ms(at)) == 1;
        let due: Vec<u64> = (0..4100).filter(|&at| is_due(&mut located, at)).collect();
        assert_eq!(due, [0, 8, 24, 56, 120, 248, 504, 1016, 2016, 3016, 4016]);
        // Another program has to load its libraries, too.
        located.executed(7, begin + ms(4100));
        assert!(is_due(&mut located, 4100) && is_due(&mut located, 4108));
    }

    #[test]
    fn a_process_that_executes_programs_without_end_is_looked_at_every_second() {
        let (mut located, begin) = (Located::default(), Instant::now());
        let looks = (0..20_000).filter(|&at| {
            let now = begin + Duration::from_millis(at);
            located.executed(7, now);
            look(&mut located, 7..8, now) == 1
        });
        let first = looks.map(|at| at / 1000).collect::<Vec<_>>();
        let of = |second| first.iter().filter(|&&at| at == second).count();
        assert!((8..=20).contains(&of(0)), "{}", of(0));
        assert!((10..20).all(|second| (1..=10).contains(&of(second))), "{first:?}");
    }

    #[test]
    fn who_cannot_be_looked_at_now_keeps_nobody_waiting() {
        let (mut located, begin) = (Located::default(), Instant::now());
        let most = LOCATED_AT_ONCE as u32;
        let mut looked_at = Vec::new();
        for round in 0..3 {
            let (now, life) =
                (begin + round * LATER / 2, |_| Some(Life { user: 0, start_time: 1 }));
            located.look(0..most + 1, now, life, |subject| {
                looked_at.push(subject.clone());
                false
            });
        }
        let most = most as usize;
        assert_eq!(looked_at.len(), most + 1 + most);
        assert!(Arc::ptr_eq(&looked_at[0], &looked_at[most + 1]), "it is the same one");
    }

    #[test]
    fn processes_that_are_looked_at_are_bounded() {
        let (mut located, begin) = (Located::default(), Instant::now());
        assert_eq!(look(&mut located, 0..1000, begin), LOCATED_AT_ONCE, "in one round");
        let most = 2 * MAX_LOCATED as u32;
        for first in (0..2 * most).step_by(LOCATED_AT_ONCE) {
            look(&mut located, first..first + LOCATED_AT_ONCE as u32, begin);
        }
        assert_eq!(located.0.len() as u32, most + 1);
        assert_eq!(look(&mut located, 2 * most..2 * most + 1, begin), 0, "there is no room");
        // Those of which there was no address since are forgotten.
        let later = begin + 2 * LOOKS;
        assert_eq!(look(&mut located, 2 * most..2 * most + 1, later), 1);
        assert_eq!(located.0.len(), 1);
    }
}
