//! Which lock, and from where: the arguments of the lock events.

use core::panic::Location;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::intern::{intern_name, intern_place};
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
use crate::portable::{intern_name, intern_place};

/// A call that acquires a lock.
pub(crate) type Place = &'static Location<'static>;

/// The second argument of every lock event: numbers of the call, if it is known, and of the lock's name. Only an event
/// that is written pays for them.
pub(crate) fn word(at: impl Into<Option<Place>>, name: Option<&'static str>) -> u64 {
    crate::layout::place_word(at.into().map_or(0, intern_place), name.map_or(0, intern_name))
}

/// Writes one of the lock events.
macro_rules! tell {
    ($kind:ident, $name:literal, $lock:expr, $at:expr $(, $more:ident: $type:ty = $value:expr)?) => {
        $crate::__event!(
            kind = $kind,
            $name,
            lock: *const () = $lock.address(),
            place: u64 = $crate::sync::place::word($at, $lock.name)
            $(, $more: $type = $value)?
        )
    };
}
pub(crate) use tell;
