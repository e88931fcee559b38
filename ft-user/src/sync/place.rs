//! Which lock, and from where: the arguments of the lock events.

use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::intern::{intern_name, intern_place, is_place};
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
use crate::portable::{intern_name, intern_place, is_place};

/// A call that acquires a lock.
pub(crate) type Place = &'static Location<'static>;

/// The second argument of every lock event: numbers of the call, if it is known, and of the lock's name. Only an event
/// that is written pays for them.
pub(crate) fn word(at: impl Into<Option<Place>>, name: Option<&'static str>) -> u64 {
    crate::layout::place_word(at.into().map_or(0, intern_place), name.map_or(0, intern_name))
}

/// The word of a lock's last hold, kept beside the lock: most locks are held from one place many times, and the release
/// follows the acquisition. To look up both numbers anew would be half of what an event costs.
pub(crate) struct LastWord(AtomicU64);

impl LastWord {
    pub(crate) const fn new() -> LastWord {
        LastWord(AtomicU64::new(0))
    }

    /// As [`word`], of a lock that always has this name.
    #[inline]
    pub(crate) fn get(&self, at: Place, name: Option<&'static str>) -> u64 {
        // Relaxed: the word is all there is, and whatever it is, its place is compared.
        let last = self.0.load(Relaxed);
        if is_place(last as u32, at) { last } else { self.renew(at, name) }
    }

    #[cold]
    #[inline(never)]
    fn renew(&self, at: Place, name: Option<&'static str>) -> u64 {
        let word = word(at, name);
        self.0.store(word, Relaxed);
        word
    }
}

/// Writes one of the lock events, with this second argument, or with that of a place and of the lock's name.
macro_rules! tell {
    ($kind:ident, $name:literal, $lock:expr, word = $word:expr $(, $more:ident: $type:ty = $value:expr)?) => {
        $crate::__event!(
            kind = $kind,
            $name,
            lock: *const () = $lock.address(),
            place: u64 = $word
            $(, $more: $type = $value)?
        )
    };
    ($kind:ident, $name:literal, $lock:expr, $at:expr) => {
        $crate::sync::place::tell!(
            $kind, $name, $lock, word = $crate::sync::place::word($at, $lock.name)
        )
    };
}
pub(crate) use tell;

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;

    /// Whatever was recorded last, the word is that of the place.
    #[test]
    fn the_last_word_is_that_of_its_place() {
        let (last, name) = (LastWord::new(), Some("a lock"));
        let (here, there) = (Location::caller(), elsewhere());
        assert_ne!(word(here, name), word(there, name));
        for at in [here, here, there, here, there, there] {
            assert_eq!(last.get(at, name), word(at, name));
        }
    }

    #[track_caller]
    fn elsewhere() -> Place {
        Location::caller()
    }
}
