//! Descriptors that stay open in a program that knows nothing of them: numbers in a table that is the program's.
//!
//! The program may close one, as a daemon closes all that it has inherited, and what it opens next gets the number. So such a
//! descriptor has a number that programs do not use where there is one, and whoever uses it proves first that it is still what was
//! opened. Nothing here is a cancellation point, as the functions of the C library are.

use core::mem::MaybeUninit;

use libc::c_int;

use crate::kernel::{self, close};
use crate::layout::MEMFD_NAME;

/// The number from which on a descriptor is looked for is no larger: the kernel has a table of all smaller ones, 8 bytes each,
/// which a fork copies.
///
/// Limit: further threads count nothing: the head of each report says how many, and *Too many open files*.
/// Shown by: `events_say_what_counters_show_…`; of `SET_ASIDE` no figure depends.
const SET_ASIDE: u64 = 4096;

/// A program that may open fewer descriptors than this keeps all of them.
///
/// Limit: an agent finds the process only with CAP_CHECKPOINT_RESTORE (Linux 5.9) or CAP_SYS_ADMIN, and `-p` says so.
/// Shown by: no figure depends; `copies_of_the_tracer_without_a_descriptor_are_found`.
const FEW: u64 = 256;

/// Descriptors that the program may have: the soft `RLIMIT_NOFILE`.
pub(crate) fn most() -> u64 {
    kernel::limit(libc::RLIMIT_NOFILE as usize)
}

/// The same file under a larger number, where there is one; `fd` is closed then.
pub(crate) fn set_aside(fd: c_int) -> c_int {
    let from = (most() / 2).min(SET_ASIDE);
    if fd as u64 >= from {
        return fd;
    }
    let arguments = [fd as usize, libc::F_DUPFD_CLOEXEC as usize, from as usize];
    // SAFETY: this opens a descriptor and changes none.
    let Ok(aside) = (unsafe { kernel::call(libc::SYS_fcntl, arguments) }) else { return fd };
    close(fd);
    aside as c_int
}

/// A descriptor of the memfd, as long as it is one: for the agent, which gets it when the process registers, or finds it in
/// `/proc/PID/fd`. The process itself needs it for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfMemfd {
    fd: c_int,
    /// Device and inode. No other file has both as long as the memfd is mapped.
    file: (u64, u64),
}

impl OfMemfd {
    /// No descriptor.
    pub(crate) const NONE: OfMemfd = OfMemfd { fd: -1, file: (0, 0) };

    /// A new memfd; or the number of the error.
    pub(crate) fn create() -> Result<OfMemfd, i32> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let name = MEMFD_NAME.as_ptr().expose_provenance();
        // SAFETY: the name is NUL-terminated.
        let fd = unsafe { kernel::call(libc::SYS_memfd_create, [name, flags as usize]) }? as c_int;
        // Before anything else of the program can get used to the small number.
        let fd = set_aside(fd);
        match identity(fd) {
            Some(file) => Ok(OfMemfd { fd, file }),
            None => {
                close(fd);
                Err(libc::EBADF)
            }
        }
    }

    /// From what [`OfMemfd::parts`] gave.
    pub(crate) fn from_parts(fd: c_int, device: u64, inode: u64) -> OfMemfd {
        OfMemfd { fd, file: (device, inode) }
    }

    /// Number, device, inode.
    pub(crate) fn parts(self) -> (c_int, u64, u64) {
        (self.fd, self.file.0, self.file.1)
    }

    /// The number, if it is still that of the memfd. Another thread of the program can close it right after the question.
    pub(crate) fn number(self) -> Option<c_int> {
        (self.fd >= 0 && identity(self.fd) == Some(self.file)).then_some(self.fd)
    }

    /// Closes it, unless it is the program's by now.
    pub(crate) fn close(self) {
        self.number().into_iter().for_each(close);
    }

    /// Keeps it for an agent that may come later, if it is out of the way of the program; else closes it.
    pub(crate) fn keep(self) -> OfMemfd {
        if self.fd >= 0 && self.fd as u64 >= (most() / 2).min(SET_ASIDE) && most() >= FEW {
            return self;
        }
        self.close();
        OfMemfd::NONE
    }
}

/// Device and inode of the file behind a descriptor. The kernel's answer takes no room on the stacks of those that ask.
#[inline(never)]
pub(crate) fn identity(fd: c_int) -> Option<(u64, u64)> {
    let mut file = MaybeUninit::uninit();
    kernel::fstat(fd, &mut file).ok().map(|file| (file.st_dev, file.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_has_put_in_its_place_is_left_alone() {
        let memfd = OfMemfd::create().unwrap();
        let (fd, ..) = memfd.parts();
        assert!(fd as u64 >= (most() / 2).min(SET_ASIDE), "{fd}");
        assert_eq!(memfd.number(), Some(fd));
        assert_eq!(memfd.keep(), memfd);
        let null = std::fs::File::open("/dev/null").unwrap();
        let theirs = identity(std::os::fd::AsRawFd::as_raw_fd(&null));
        // SAFETY: `fd` is the test's own.
        assert_eq!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), fd) }, fd);
        assert_eq!(memfd.number(), None);
        memfd.close();
        assert_eq!(identity(fd), theirs, "it is not closed");
        close(fd);
        assert_eq!(memfd.number(), None);
        assert_eq!(OfMemfd::NONE.number(), None);
    }
}
