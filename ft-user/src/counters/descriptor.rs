//! The descriptor of a counter that is read by calls: a number in a table that belongs to the program.
//!
//! The program may close it without knowing of it, as a daemon closes all that it has inherited, and what it opens next gets the
//! number. So the number is out of the way of such loops where that is possible, and before each use the descriptor is asked for
//! the id of its counter, which no other one has until the machine starts again. Between the question and the use another thread of
//! the program can still exchange it: then one read takes up to 24 bytes from what it finds, or waits for some (`SECURITY.md`). No call does
//! both, and the page of a counter that is in no register has what it showed when its thread got the CPU.
//!
//! Descriptors are bounded ([`most`]), and the program needs them more: a quarter of their numbers is left to it.

use libc::c_int;

use super::Shown;
use crate::descriptor::{most, set_aside};
use crate::kernel;
pub(super) use crate::kernel::close;

/// `_IOR('$', 7, __u64 *)` (include/uapi/linux/perf_event.h).
const PERF_EVENT_IOC_ID: usize = 0x8008_2407;

/// A descriptor that stays open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    fd: c_int,
    /// Of its counter.
    id: u64,
}

impl Descriptor {
    /// Of the counter that was just opened as `fd`, which is closed where it cannot be kept; or the number of the error.
    pub(super) fn keep(fd: c_int) -> Result<Descriptor, i32> {
        let fd = set_aside(fd);
        let id = id(fd);
        match id {
            Ok(id) if has_room(fd) => Ok(Descriptor { fd, id }),
            _ => {
                close(fd);
                Err(id.err().unwrap_or(libc::EMFILE))
            }
        }
    }

    /// It is still what was opened.
    pub(super) fn is_its(self) -> bool {
        id(self.fd) == Ok(self.id)
    }

    /// What the counter shows.
    pub(super) fn shown(self) -> Option<Shown> {
        let mut words = [0u64; 3];
        let bytes = size_of_val(&words);
        let place = words.as_mut_ptr().expose_provenance();
        // SAFETY: the buffer is valid for its length.
        let read = unsafe { kernel::call(libc::SYS_read, [self.fd as usize, place, bytes]) };
        let [value, enabled, running] = words;
        (read == Ok(bytes)).then(|| Shown { value, missed: enabled.wrapping_sub(running) })
    }

    /// Closes it, unless it is the program's by now.
    pub(super) fn close(self) {
        if self.is_its() {
            close(self.fd);
        }
    }
}

/// Whether so many descriptors are left to the program when this one is open.
pub(super) fn has_room(fd: c_int) -> bool {
    let most = most();
    (fd as u64) < most - most / 4
}

/// The id of a counter; an error where the descriptor is of none.
fn id(fd: c_int) -> kernel::Result<u64> {
    let mut id = 0u64;
    let place = (&raw mut id).expose_provenance();
    // SAFETY: a valid place for the answer of a counter; other files have no such request.
    unsafe { kernel::call(libc::SYS_ioctl, [fd as usize, PERF_EVENT_IOC_ID, place]) }?;
    Ok(id)
}
