//! What a process may choose: sizes and mode, from code or from the environment.

use core::ffi::CStr;

use crate::InitError;
use crate::layout::{MAX_RING_SLOTS, MAX_RINGS, MIN_RING_SLOTS, Mode};

/// Sizes and mode of the buffers, fixed when tracing starts.
///
/// ```
/// let config = ft_user::Config { ring_slots: 1 << 14, ..Default::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Slots of 32 bytes in the ring of one thread. Rounded up to a power of two in
    /// `MIN_RING_SLOTS ..= MAX_RING_SLOTS` (2^12 to 2^22). Default 2^18: 8 MiB. A ring is backed by
    /// memory as it is written for the first time, so a thread that writes much has all of it after a
    /// while; less is enough for what writes slowly.
    pub ring_slots: u32,
    /// Threads that can have a ring at once, `1 ..= MAX_RINGS` (4096); more threads share one.
    /// Default 256.
    pub rings: u32,
    /// What happens when a ring is full. Default [`Mode::Discard`].
    pub mode: Mode,
}

impl Default for Config {
    fn default() -> Self {
        Config { ring_slots: 1 << 18, rings: 256, mode: Mode::Discard }
    }
}

impl Config {
    /// Overrides with `FT_RING_SLOTS`, `FT_RINGS` and `FT_MODE` where they are set.
    pub(crate) fn with_env(self) -> Result<Self, InitError> {
        self.with(env(c"FT_RING_SLOTS"), env(c"FT_RINGS"), env(c"FT_MODE"))
    }

    fn with(
        mut self,
        ring_slots: Option<&str>,
        rings: Option<&str>,
        mode: Option<&str>,
    ) -> Result<Self, InitError> {
        let number = |name, text: &str| text.parse().map_err(|_| InitError::Variable(name));
        if let Some(text) = ring_slots {
            self.ring_slots = number("FT_RING_SLOTS", text)?;
        }
        if let Some(text) = rings {
            self.rings = number("FT_RINGS", text)?;
        }
        self.mode = match mode {
            None => self.mode,
            Some("discard") => Mode::Discard,
            Some("overwrite") => Mode::Overwrite,
            Some(_) => return Err(InitError::Variable("FT_MODE")),
        };
        Ok(Config {
            ring_slots: self.ring_slots.clamp(MIN_RING_SLOTS, MAX_RING_SLOTS).next_power_of_two(),
            rings: self.rings.clamp(1, MAX_RINGS),
            mode: self.mode,
        })
    }
}

/// An environment variable, without allocating; `None` when it is not set, empty, not UTF-8, or when the
/// process has more rights than whoever set its environment (set-user-id, file capabilities).
pub(crate) fn env(name: &CStr) -> Option<&'static str> {
    // SAFETY: takes no pointer.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: `name` is NUL-terminated.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated string. It stays as it is unless the process sets this very variable
    // meanwhile, which Rust marks unsafe and POSIX leaves undefined for a process with threads.
    let value = unsafe { CStr::from_ptr(value) };
    value.to_str().ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Input = [Option<&'static str>; 3];

    fn check([slots, rings, mode]: Input, expected: Result<(u32, u32, Mode), InitError>) {
        let config = Config::default().with(slots, rings, mode);
        assert_eq!(config.map(|c| (c.ring_slots, c.rings, c.mode)), expected);
    }

    #[test]
    fn environment_overrides() {
        check([None, None, None], Ok((1 << 18, 256, Mode::Discard)));
        check([Some("5000"), Some("3"), Some("overwrite")], Ok((8192, 3, Mode::Overwrite)));
        check([Some("0"), Some("0"), Some("discard")], Ok((MIN_RING_SLOTS, 1, Mode::Discard)));
        check([Some("4294967295"), Some("4294967295"), None], Ok((1 << 22, 4096, Mode::Discard)));
    }

    #[test]
    fn nonsense_is_named() {
        check([Some("2M"), None, None], Err(InitError::Variable("FT_RING_SLOTS")));
        check([None, Some("-1"), None], Err(InitError::Variable("FT_RINGS")));
        check([None, None, Some("fast")], Err(InitError::Variable("FT_MODE")));
    }
}
