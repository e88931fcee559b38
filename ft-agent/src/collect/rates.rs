//! How often processes of a user are looked at.
//!
//! A look takes as long as a process has mappings, and longer when they are others than before, for then their files are asked. How
//! many processes there are, and how often they change, is the user's choice. So each user has an allowance of what is looked through in
//! a second; whoever has used it up is looked at later.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ft_trace::owners::owner_of;

/// Mappings of one user that are looked up in files in a second: of a thousand processes that begin and end.
///
/// Limit: a process is looked at later; of one that has ended by then the addresses have no names, and the report states their share.
/// Shown by: `who_changes_much_is_looked_at_later_and_others_are_not`.
const MAX_MAPPINGS_A_SECOND: u32 = 1 << 15;

/// What can be used at once of what was not used before.
const SAVED: Duration = Duration::from_secs(4);

/// A look that finds what it knows takes this part of one that has to ask files.
const KNOWN: usize = 16;

/// What a look costs, besides what is looked through.
const LOOK: usize = 16;

/// Bytes of a list of mounts that take as long as a mapping.
const MOUNTS: u64 = 1 << 10;

/// What it costs to read a list of mounts of so many bytes.
pub fn of_mounts(bytes: u64) -> u32 {
    u32::try_from(bytes / MOUNTS).unwrap_or(u32::MAX)
}

/// What a look at so many mappings costs.
pub fn cost(mappings: usize, are_new: bool) -> u32 {
    let whole = LOOK + mappings;
    let cost = if are_new { whole } else { whole.div_ceil(KNOWN) };
    u32::try_from(cost).unwrap_or(u32::MAX)
}

/// When each user has its whole allowance again, of those who have not.
#[derive(Debug, Default)]
pub struct Rates(Mutex<HashMap<u32, Instant>>);

impl Rates {
    /// A look at a process of this user has cost so much.
    pub fn spend(&self, user: u32, cost: u32, now: Instant) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, whole| *whole > now);
        let whole = users.entry(owner_of(user)).or_insert(now);
        *whole += cost * (Duration::from_secs(1) / MAX_MAPPINGS_A_SECOND);
    }

    /// Whether a process of this user is looked at now.
    pub fn allow(&self, user: u32, now: Instant) -> bool {
        let users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.get(&owner_of(user)).is_none_or(|whole| *whole <= now + SAVED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_changes_much_is_looked_at_later_and_others_are_not() {
        let (rates, begin) = (Rates::default(), Instant::now());
        let looks = |user, mappings, are_new, from: u64| {
            let looks = (from..from + 10_000).filter(|ms| {
                let now = begin + Duration::from_millis(*ms);
                let is_allowed = rates.allow(user, now);
                if is_allowed {
                    rates.spend(user, cost(mappings, are_new), now);
                }
                is_allowed
            });
            looks.count()
        };
        let often = looks(1, 4096, true, 0);
        assert!((100..130).contains(&often), "8 a second, and those that were saved: {often}");
        let (of_it, of_another) = (looks(1, 50, true, 10_000), looks(2, 50, true, 0));
        assert!((4500..5500).contains(&of_it) && (6500..7500).contains(&of_another));
        assert_eq!(looks(3, 50, false, 0), 10_000);
        assert!(of_mounts(4 << 20) >= cost(4000, true), "it takes as long");
    }
}
