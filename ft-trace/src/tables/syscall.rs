//! Group `syscall`: system calls.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What of a system call was recorded.
    pub enum CallSeen {
        /// That it was entered and that it returned.
        Whole = "whole",
        /// That it was entered; it had not returned when its thread or the recording ended.
        Entry = "entry",
        /// That it returned: it was under way when the recording began, or it is the one that a new thread begins in.
        Return = "return",
        _ => Whole
    }
}

words! {
    /// What a descriptor is of.
    pub enum FileKind {
        /// A file.
        File = "file",
        /// A directory.
        Directory = "directory",
        /// A character device: a terminal, `/dev/null`, …
        Character = "character device",
        /// A block device.
        Block = "block device",
        /// A pipe, with or without a name.
        Pipe = "pipe",
        /// A socket.
        Socket = "socket",
        /// A counter of `eventfd`.
        Eventfd = "eventfd",
        /// A timer of `timerfd_create`.
        Timerfd = "timerfd",
        /// A set of descriptors of `epoll_create`.
        Epoll = "epoll",
        /// Signals of `signalfd`.
        Signalfd = "signalfd",
        /// Changes of files, of `inotify_init`.
        Inotify = "inotify",
        /// Something else.
        Other = "other",
        _ => Other
    }
}

table! {
    "syscalls",
    /// `syscalls`: one system call.
    pub struct Syscall {
        /// Entry; or the exit, where only that was recorded.
        pub ts: Nanos,
        /// Exit minus entry; 0 where only the exit was recorded, and until its thread or the recording ended where only the
        /// entry was.
        pub dur: i64 as Ns,
        /// CPU of the exit, or of the entry where that is all.
        pub cpu: Cpu,
        /// Caller.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Number.
        pub number: i32 as Number,
        /// Name of that number, in the ABI that the call was made by: a call of 32 bits has another number than its namesake
        /// of 64.
        pub name: Name,
        /// What it returned; -4095..=-1 is the negated `errno`. 0 of one that did not return.
        pub ret: i64 as Number,
        /// What its first argument is a descriptor of, where the call may wait for that; null for other calls, for a
        /// descriptor that there is not, and where it is not known.
        pub file: Option<FileKind>,
        /// What of it was recorded.
        pub seen: CallSeen,
    }
}

#[cfg(feature = "store")]
pub use store::syscall_name;
#[cfg(feature = "store")]
pub(super) use store::{call_name, file_kind};

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind};
    use serde_json::{Map, Value};
    use syscalls::{Errno, Sysno, x86};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, interval, pid, tid};

    use super::*;

    /// Return values that are errors: the negated `errno` (`MAX_ERRNO`, include/linux/err.h).
    const ERRORS: std::ops::RangeInclusive<i64> = -4095..=-1;

    /// Return values from here on are addresses.
    const ADDRESS: i64 = 1 << 32;

    /// Numbers of names: from here on those of calls of 32 bits.
    const COMPAT: u32 = 1 << 16;

    impl KernelTable for Syscall {
        type Record = abi::Syscall;
        const KINDS: &'static [u16] = &[kind::SYSCALL, kind::SYSCALL_BEGUN, kind::SYSCALL_ENDED];

        #[inline]
        fn row(r: &abi::Syscall, seen: &mut Decoder) -> Syscall {
            let (ts, dur) = interval(r.entry_ts, r.header.ts);
            Syscall {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                number: i32::from(r.number),
                name: call_name(seen, r.number, r.file),
                ret: r.ret,
                file: file_kind(r.file),
                seen: match r.header.kind {
                    kind::SYSCALL_BEGUN => CallSeen::Entry,
                    kind::SYSCALL_ENDED => CallSeen::Return,
                    _ => CallSeen::Whole,
                },
            }
        }
    }

    /// Name of a call by what a record says of its number and its descriptor.
    pub(crate) fn call_name(seen: &mut Decoder, number: u16, file: u16) -> Name {
        let abi = if file == abi::COMPAT { COMPAT } else { 0 };
        seen.numbered(kind::SYSCALL, abi | u32::from(number), |_, number| syscall_name(number))
    }

    /// What a record says that a descriptor is of.
    pub(crate) fn file_kind(kind: u16) -> Option<FileKind> {
        use abi::file;
        Some(match kind {
            file::NONE | abi::COMPAT => return None,
            file::REGULAR => FileKind::File,
            file::DIRECTORY => FileKind::Directory,
            file::CHARACTER => FileKind::Character,
            file::BLOCK => FileKind::Block,
            file::PIPE => FileKind::Pipe,
            file::SOCKET => FileKind::Socket,
            file::EVENTFD => FileKind::Eventfd,
            file::TIMERFD => FileKind::Timerfd,
            file::EPOLL => FileKind::Epoll,
            file::SIGNALFD => FileKind::Signalfd,
            file::INOTIFY => FileKind::Inotify,
            _ => FileKind::Other,
        })
    }

    /// Name of a system call by its number in the ABI of this machine's 64-bit programs, or, from [`COMPAT`] on, of those of 32.
    pub fn syscall_name(number: u32) -> String {
        let number_in_abi = number as usize % COMPAT as usize;
        let name = match number < COMPAT {
            true => Sysno::new(number_in_abi).map(|call| call.name()),
            false => x86::Sysno::new(number_in_abi).map(|call| call.name()),
        };
        name.map_or_else(|| format!("syscall_{number_in_abi}"), Into::into)
    }

    impl Listed for Syscall {
        fn can_be(fits: &dyn Fn(&str) -> bool) -> bool {
            let fits = |name| fits(&format!("syscall.{name}"));
            Sysno::iter().any(|call| fits(call.name()))
                || x86::Sysno::iter().any(|call| fits(call.name()))
        }

        fn name(&self) -> Cow<'_, str> {
            format!("syscall.{}", self.name).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            if let Some(file) = self.file {
                write!(line, "({file}) ")?;
            }
            match self.ret {
                _ if self.seen == CallSeen::Entry => line.write_str("has not returned")?,
                ret if ERRORS.contains(&ret) => match Errno::new(-ret as i32).name() {
                    Some(name) => write!(line, "= -{name}")?,
                    None => write!(line, "= {ret}")?,
                },
                ret if ret >= ADDRESS => write!(line, "= {ret:#x}")?,
                ret => write!(line, "= {ret}")?,
            }
            if self.seen == CallSeen::Return {
                return line.write_str(", entry not seen");
            }
            line.write_str(" in ")?;
            line.duration(self.dur)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid", "name"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn system_calls_have_the_names_of_the_manual() {
            for (number, expected) in
                [(libc::SYS_futex, "futex"), (libc::SYS_read, "read"), (65_535, "syscall_65535")]
            {
                assert_eq!(syscall_name(number as u32), expected);
            }
            // arch/x86/entry/syscalls/syscall_32.tbl
            for (number, expected) in [(4, "write"), (20, "getpid"), (60_000, "syscall_60000")] {
                assert_eq!(syscall_name(COMPAT | number), expected);
            }
        }
    }
}
