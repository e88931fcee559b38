//! The addresses of a segment that are looked up for names: return addresses, locks in variables, functions.
//!
//! Their number is bounded, of all processes together. Of too many, the process that has most of them loses one: one whose events
//! have addresses without end takes the names of its own, and of others only what they have beyond an equal share.

use std::collections::BTreeSet;

use crate::convert::fair::Fair;
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

/// Such addresses while they are gathered, by process.
type Gathered = Fair<i32, i64>;

fn gathered() -> Gathered {
    Fair::new(MAX_ADDRESSES)
}

fn whole(gathered: &Gathered) -> Addresses {
    let of = |(pid, own)| std::iter::repeat(pid).zip(own);
    gathered.all().flat_map(of).map(|(pid, &address)| (pid, address)).collect()
}

/// The return addresses, the locks and the functions of the events of a segment.
#[derive(Debug)]
pub(in crate::convert) struct Seen {
    calls: Gathered,
    locks: Gathered,
    functions: Gathered,
    /// Process, lock and return address of late: most events repeat them.
    recent: [(i32, i64, i64); 32],
}

impl Default for Seen {
    fn default() -> Seen {
        let [calls, locks, functions] = [(); 3].map(|()| gathered());
        Seen { calls, locks, functions, recent: Default::default() }
    }
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
        [&self.calls, &self.locks, &self.functions].map(whole)
    }
}

/// Where futexes lie that are called about, or slept at.
pub(in crate::convert) fn futexes(calls: &[FutexCall], sleeps: &[Sleep]) -> Addresses {
    let calls = calls.iter().filter(|call| !call.kind.is_semaphore());
    let calls = calls.map(|call| (call.pid.0, call.address));
    let sleeps = sleeps.iter().filter(|sleep| sleep.is_at_futex());
    let sleeps = sleeps.filter_map(|sleep| Some((sleep.pid.0, sleep.argument[0]?)));
    let (mut found, mut before) = (gathered(), (0, 0));
    for at in calls.chain(sleeps) {
        if std::mem::replace(&mut before, at) != at {
            found.insert(at.0, at.1);
        }
    }
    whole(&found)
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
        let mut gathered = super::gathered();
        let (few, many) = (3, MAX_ADDRESSES as i64 + 1000);
        for address in 0..many {
            gathered.insert(7, address);
        }
        for pid in [5, 9] {
            (0..few).for_each(|address| gathered.insert(pid, address));
        }
        (many..many + 10).for_each(|address| gathered.insert(7, address));
        let all = whole(&gathered);
        assert_eq!(all.len(), MAX_ADDRESSES);
        let of = |pid| all.iter().filter(|(of, _)| *of == pid).count() as i64;
        assert_eq!((of(5), of(9), of(7)), (few, few, MAX_ADDRESSES as i64 - 2 * few));
    }
}
