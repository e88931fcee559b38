//! To whom events belong: threads as a process names them, and as the kernel knows them.
//!
//! Rule: a number is believed when the kernel says that the process has such a thread. A thread that has ended
//! can be asked for no more: its number is believed when no other process has it now, and none was seen with it
//! before. All others become threads [without a number](discover::unnumbered), which are nobody's. What was found is
//! remembered for a second; numbers do not come round again as fast.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::collect::discover::{self, Identity};
use crate::collect::work::{self, Work};

/// How long it is believed who has a number, ns.
///
/// Limit: as `MAX_KNOWN`.
pub(super) const BELIEVED_NS: i64 = 1_000_000_000;

/// Numbers that are remembered of one process. One that names more has them looked up again.
///
/// Limit: nothing: they are looked up again.
/// Shown by: `of_more_numbers_than_are_remembered_each_is_found`.
const MAX_KNOWN: usize = 1 << 16;

/// The process in which each thread was last seen. Shared by all sources of a recording; at most one entry for each
/// number that the kernel gives (proc_sys_kernel(5), pid_max).
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<HashMap<i32, Process>>>);

/// A process by its number and its start: the number alone may be another's later. One that had ended before it could
/// be asked has no start, and is none that was seen.
type Process = (i32, u64);

fn process(identity: &Identity) -> Process {
    (identity.pid, identity.start_time)
}

impl Seen {
    fn with<T>(&self, look: impl FnOnce(&mut HashMap<i32, Process>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is known of the threads of one process.
pub(super) struct Owners {
    seen: Seen,
    /// By the number in the process's own namespace: ours, and until when that is believed.
    known: HashMap<u32, (i32, i64)>,
}

impl Owners {
    pub(super) fn new(seen: Seen) -> Owners {
        Owners { seen, known: HashMap::new() }
    }

    /// The thread that the process calls `said`.
    pub(super) fn find(
        &mut self,
        identity: &Identity,
        said: u32,
        now_ns: i64,
        work: &mut Work,
    ) -> i32 {
        if let Some(&(tid, until)) = self.known.get(&said)
            && now_ns < until
        {
            return tid;
        }
        let tid = self.look_up(identity, said, work).unwrap_or_else(|| discover::unnumbered(said));
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(said, (tid, now_ns.saturating_add(BELIEVED_NS)));
        tid
    }

    fn look_up(&self, identity: &Identity, said: u32, work: &mut Work) -> Option<i32> {
        work.spend(work::LOOK_UP);
        let tid = identity.translate(said)?;
        if discover::comm(identity.pid, tid).is_some() && identity.has_number() {
            self.seen.with(|seen| seen.insert(tid, process(identity)));
            return Some(tid);
        }
        // No start is known either of one that has not said it.
        let is_other = |one| identity.pidfd.is_none() || one != process(identity);
        let is_anothers = discover::comm(tid, tid).is_some()
            || self.seen.with(|seen| seen.get(&tid).is_some_and(|&one| is_other(one)));
        (!is_anothers).then_some(tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who names more threads than are remembered costs itself another look.
    #[test]
    fn of_more_numbers_than_are_remembered_each_is_found() {
        let me = std::process::id();
        let identity = Identity::of(me as i32).expect("this process");
        let mut owners = Owners::new(Seen::default());
        // Above all that the kernel gives (PID_MAX_LIMIT).
        let others = 1 << 22;
        owners.known.extend((others..others + MAX_KNOWN as u32).map(|said| (said, (-1, i64::MAX))));
        assert_eq!(owners.find(&identity, me, 0, &mut Work::last()), me as i32);
        assert_eq!(owners.known.len(), 1);
        assert_eq!(owners.find(&identity, me, 1, &mut Work::last()), me as i32);
    }
}
