//! Processes of which addresses are recorded: looked at while they run, so that the addresses can be named.
//!
//! A process is looked at when its first address is drained, when it has executed another program, and every second while
//! there are addresses of it. Of one that has ended by then nothing is known: its addresses have no names, which the
//! report says.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Instant;

use super::Collector;
use super::looks::LOOKS;
use crate::collect::inspect::Inspected;
use crate::collect::kernel::Kernel;

/// Processes that are kept for the next look, about; then those are forgotten of which there were no addresses lately.
const MAX_LOCATED: usize = 4096;

/// Looks that one round gives away, at most: addresses of the others come again.
const LOCATED_AT_ONCE: usize = 64;

/// Processes, by number: what was recorded of them, and when they are looked at again.
#[derive(Debug, Default)]
pub(super) struct Located(HashMap<u32, (Arc<Inspected>, Instant)>);

impl Collector {
    /// Has the processes looked at whose addresses were drained.
    pub(super) fn locate(&mut self) {
        let Some(chained) = self.kernel.as_mut().and_then(Kernel::take_chained) else { return };
        let Collector { located, intake, .. } = self;
        for pid in chained.executed {
            located.0.remove(&pid);
        }
        located.look(chained.processes, Instant::now(), subject, |subject| intake.locate(subject));
    }
}

impl Located {
    /// Has those of these processes looked at that are due; `locate` has one looked at, or has no room for that.
    fn look(
        &mut self,
        processes: impl IntoIterator<Item = u32>,
        now: Instant,
        subject: impl Fn(u32) -> Option<Arc<Inspected>>,
        mut locate: impl FnMut(&Arc<Inspected>) -> bool,
    ) {
        let located = &mut self.0;
        if located.len() > MAX_LOCATED {
            located.retain(|_, (_, next)| *next > now);
        }
        let mut left = LOCATED_AT_ONCE;
        for pid in processes {
            let due = located.get(&pid).is_none_or(|(_, next)| *next <= now);
            if !due || left == 0 || located.len() > 2 * MAX_LOCATED {
                continue;
            }
            left -= 1;
            let known = located.get(&pid).map(|(subject, _)| subject.clone());
            let Some(subject) = known.or_else(|| subject(pid)) else { continue };
            if locate(&subject) {
                located.insert(pid, (subject, now + LOOKS));
            }
        }
    }
}

/// The process of this number; `None` when it has ended.
fn subject(pid: u32) -> Option<Arc<Inspected>> {
    // The directory belongs to its effective user (proc(5)).
    let user = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    Some(Arc::new(Inspected::new(i32::try_from(pid).ok()?, user)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these processes are looked at.
    fn look(located: &mut Located, processes: std::ops::Range<u32>, now: Instant) -> usize {
        let subject = |pid| Some(Arc::new(Inspected::new(pid as i32, 0)));
        let mut looks = 0;
        located.look(processes, now, subject, |_| {
            looks += 1;
            true
        });
        looks
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
