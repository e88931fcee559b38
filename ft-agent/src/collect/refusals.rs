//! Who was not recorded, and why: for the user, and for the trace.
//!
//! A program can be refused as often as it likes, so refusals are counted by user and kind, with the first
//! process of each; and so are kinds and users, of which there are few unless somebody makes them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ft_trace::owners::owner_of;
use ft_trace::spool::frame::Refused;

/// Users and kinds that are told apart; what is beyond is counted as one.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
const MAX_KINDS: usize = 64;

/// What stands for several users, and for several kinds.
const SEVERAL_USERS: u32 = u32::MAX;
const SEVERAL: &str = "several";

/// Refusals of a recording, counted.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Vec<Counted>>);

#[derive(Debug)]
struct Counted {
    kind: &'static str,
    refused: Refused,
    /// Of how many it is known already.
    told: u64,
}

impl Refusals {
    /// Counts one more of this `kind`; `refused` describes it, and is kept if it is the first.
    pub fn add(&self, kind: &'static str, user: u32, refused: impl FnOnce() -> Refused) {
        self.add_many(kind, user, 1, refused);
    }

    /// The same for so many.
    pub fn add_many(
        &self,
        kind: &'static str,
        user: u32,
        count: u64,
        refused: impl FnOnce() -> Refused,
    ) {
        let mut all = self.lock();
        let known = |kind, user| {
            move |c: &&mut Counted| (c.kind, owner_of(c.refused.uid)) == (kind, owner_of(user))
        };
        let is_full = all.len() + 1 >= MAX_KINDS;
        let (kind, user) = match all.iter_mut().find(known(kind, user)) {
            None if is_full => (SEVERAL, SEVERAL_USERS),
            _ => (kind, user),
        };
        match all.iter_mut().find(known(kind, user)) {
            Some(counted) => counted.refused.count += count,
            None => {
                let refused = Refused { uid: user, count, ..refused() };
                all.push(Counted { kind, refused, told: 0 });
            }
        }
    }

    /// Those that were not reported yet.
    pub fn take_new(&self) -> Vec<Refused> {
        self.take(|counted| counted.told == 0)
    }

    /// Those whose number has grown since they were reported.
    pub fn take_grown(&self) -> Vec<Refused> {
        self.take(|counted| counted.told < counted.refused.count)
    }

    fn take(&self, is_wanted: impl Fn(&Counted) -> bool) -> Vec<Refused> {
        let mut all = self.lock();
        let wanted = all.iter_mut().filter(|counted| is_wanted(counted));
        wanted
            .map(|counted| {
                counted.told = counted.refused.count;
                counted.refused.clone()
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Counted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pid: i32) -> Refused {
        Refused { pid, reason: "it was silent".into(), ..Refused::default() }
    }

    #[test]
    fn each_user_and_kind_is_told_once_and_counted() {
        let refusals = Refusals::default();
        for (kind, pid, user) in [("a", 10, 1), ("a", 11, 1), ("b", 12, 1), ("a", 13, 2)] {
            refusals.add(kind, user, || refused(pid));
        }
        let told = |refused: Vec<Refused>| -> Vec<_> {
            refused.into_iter().map(|r| (r.uid, r.pid, r.count)).collect()
        };
        assert_eq!(told(refusals.take_new()), [(1, 10, 2), (1, 12, 1), (2, 13, 1)]);
        refusals.add("a", 1, || refused(14));
        assert_eq!(told(refusals.take_new()), []);
        assert_eq!(told(refusals.take_grown()), [(1, 10, 3)]);
        assert_eq!(told(refusals.take_grown()), []);
    }

    #[test]
    fn any_number_of_users_takes_bounded_memory_and_none_is_forgotten() {
        let refusals = Refusals::default();
        for user in 0..1000 {
            refusals.add("a", user, || refused(1));
        }
        let all = refusals.take_grown();
        assert_eq!(all.len(), MAX_KINDS);
        assert_eq!(all.iter().map(|r| r.count).sum::<u64>(), 1000);
        assert_eq!((all[0].uid, all[MAX_KINDS - 1].uid), (0, SEVERAL_USERS));
    }
}
