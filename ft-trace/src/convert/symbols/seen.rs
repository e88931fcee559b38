//! The addresses of a segment that are looked up for names: return addresses, locks in variables, functions.
//!
//! Their number is bounded, of all processes together. Of too many, the process that has most of them loses one: one whose events
//! have addresses without end takes the names of its own, and of others only what they have beyond an equal share.

use std::collections::{BTreeSet, HashMap};

use crate::convert::registry::Site;
use crate::tables::{FutexCall, Sleep, UserEvent};

/// Addresses of one kind that are looked up, of one segment.
///
/// Limit: of the process that has most of them, one has an address in hexadecimal as its name. A process with an equal
/// share or less loses none.
/// Shown by: `addresses_of_one_process_leave_those_of_others_their_names`.
const MAX_ADDRESSES: usize = 1 << 16;

/// Addresses of one kind, with their processes.
pub(in crate::convert) type Addresses = BTreeSet<(i32, i64)>;

/// Such addresses while they are gathered.
#[derive(Debug, Default)]
struct Gathered {
    all: Addresses,
    /// How many each process has.
    counts: HashMap<i32, usize>,
    /// The same by how many: the last is the process that has most.
    most: BTreeSet<(usize, i32)>,
}

impl Gathered {
    fn insert(&mut self, pid: i32, address: i64) {
        if self.all.contains(&(pid, address)) {
            return;
        }
        if self.all.len() >= MAX_ADDRESSES {
            let own = self.counts.get(&pid).copied().unwrap_or(0);
            let Some(&(_, largest)) = self.most.last().filter(|(most, _)| *most > own) else {
                return;
            };
            let last = self.all.range((largest, i64::MIN)..=(largest, i64::MAX)).next_back();
            if let Some(last) = last.copied() {
                self.all.remove(&last);
                self.recount(largest, |count| count - 1);
            }
        }
        self.all.insert((pid, address));
        self.recount(pid, |count| count + 1);
    }

    fn recount(&mut self, pid: i32, to: impl FnOnce(usize) -> usize) {
        let count = self.counts.entry(pid).or_default();
        self.most.remove(&(*count, pid));
        *count = to(*count);
        self.most.insert((*count, pid));
    }
}

/// The return addresses, the locks and the functions of the events of a segment.
#[derive(Debug, Default)]
pub(in crate::convert) struct Seen {
    calls: Gathered,
    locks: Gathered,
    functions: Gathered,
    /// Process, lock and return address of late: most events repeat them.
    recent: [(i32, i64, i64); 32],
}

impl Seen {
    /// Takes note of an event.
    pub(in crate::convert) fn note(&mut self, event: &UserEvent, site: &Site) {
        let pid = event.pid.0;
        if let (true, [Some(function), ..]) = (site.has_function, event.arg) {
            let recent = &mut self.recent[(function >> 4) as usize % 32];
            if std::mem::replace(recent, (pid, function, function)) != (pid, function, function) {
                self.functions.insert(pid, function);
            }
            return;
        }
        let (true, [Some(lock), Some(call), ..]) = (site.has_caller, event.arg) else { return };
        let recent = &mut self.recent[(call ^ lock >> 3) as usize % 32];
        if std::mem::replace(recent, (pid, lock, call)) == (pid, lock, call) {
            return;
        }
        self.locks.insert(pid, lock);
        self.calls.insert(pid, call);
    }

    /// Return addresses, locks, functions.
    pub(in crate::convert) fn into_addresses(self) -> [Addresses; 3] {
        [self.calls.all, self.locks.all, self.functions.all]
    }
}

/// Where futexes lie that are called about, or slept at.
pub(in crate::convert) fn futexes(calls: &[FutexCall], sleeps: &[Sleep]) -> Addresses {
    let calls = calls.iter().filter(|call| !call.kind.is_semaphore());
    let calls = calls.map(|call| (call.pid.0, call.address));
    let sleeps = sleeps.iter().filter(|sleep| sleep.is_at_futex());
    let sleeps = sleeps.filter_map(|sleep| Some((sleep.pid.0, sleep.argument[0]?)));
    let (mut found, mut before) = (Gathered::default(), (0, 0));
    for at in calls.chain(sleeps) {
        if std::mem::replace(&mut before, at) != at {
            found.insert(at.0, at.1);
        }
    }
    found.all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Cpu, Name, Nanos, Pid, Tid};

    #[test]
    fn futexes_at_which_threads_sleep_are_looked_up() {
        let sleep = |pid, call: Option<&str>, address| Sleep {
            ts: Nanos(0),
            cpu: Cpu(0),
            tid: Tid(pid),
            pid: Pid(pid),
            call: call.map(Name::from),
            file: None,
            argument: [address, None, None, None],
            until: None,
            word: None,
            owner: None,
        };
        let sleeps = [
            sleep(7, Some("futex"), Some(0x10)),
            sleep(7, Some("futex"), Some(0x10)),
            sleep(8, Some("futex"), Some(0x10)),
            sleep(7, Some("futex_wait"), Some(0x20)),
            sleep(7, Some("read"), Some(3)),
            sleep(7, None, None),
        ];
        assert_eq!(futexes(&[], &sleeps), [(7, 0x10), (7, 0x20), (8, 0x10)].into());
    }

    #[test]
    fn addresses_of_one_process_leave_those_of_others_their_names() {
        let mut gathered = Gathered::default();
        let (few, many) = (3, MAX_ADDRESSES as i64 + 1000);
        for address in 0..many {
            gathered.insert(7, address);
        }
        for pid in [5, 9] {
            (0..few).for_each(|address| gathered.insert(pid, address));
        }
        (many..many + 10).for_each(|address| gathered.insert(7, address));
        assert_eq!(gathered.all.len(), MAX_ADDRESSES);
        let of = |pid| gathered.all.iter().filter(|(of, _)| *of == pid).count() as i64;
        assert_eq!((of(5), of(9), of(7)), (few, few, MAX_ADDRESSES as i64 - 2 * few));
        let counted: usize = gathered.counts.values().sum();
        assert_eq!((counted, gathered.most.len()), (MAX_ADDRESSES, 3));
    }
}
