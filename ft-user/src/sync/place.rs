//! Which lock, and from where: the arguments of the lock events.

use core::panic::Location;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::intern::{intern_name, intern_place};
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
use crate::portable::{intern_name, intern_place};

/// A lock and the place in the source that acquires it. Costs nothing until an event asks.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Name of the lock, if it has one.
    pub(super) name: Option<&'static str>,
    /// The call.
    pub(super) at: &'static Location<'static>,
}

impl Place {
    /// The second argument of every lock event.
    #[inline]
    pub(super) fn word(self) -> u64 {
        crate::layout::place_word(intern_place(self.at), self.name.map_or(0, intern_name))
    }
}

/// Writes one of the lock events.
macro_rules! tell {
    ($kind:ident, $name:literal, $lock:expr, $place:expr) => {
        $crate::__event!(
            kind = $kind,
            $name,
            lock: *const () = $lock.address(),
            place: u64 = $place.word()
        )
    };
}
pub(super) use tell;
