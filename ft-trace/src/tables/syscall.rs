//! Group `syscall`: system calls.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};

table! {
    "syscalls",
    /// `syscalls`: one system call.
    pub struct Syscall {
        /// Entry.
        pub ts: Nanos,
        /// Exit minus entry.
        pub dur: i64 as Ns,
        /// CPU of the exit.
        pub cpu: Cpu,
        /// Caller.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Number.
        pub number: i32 as Number,
        /// Name of that number in the 64-bit ABI; a 32-bit program has other numbers.
        pub name: Name,
        /// What it returned; -4095..=-1 is the negated `errno`.
        pub ret: i64 as Number,
    }
}

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind};
    use serde_json::{Map, Value};
    use syscalls::{Errno, Sysno};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, interval, pid, tid};

    use super::*;

    /// Return values that are errors: the negated `errno` (`MAX_ERRNO`, include/linux/err.h).
    const ERRORS: std::ops::RangeInclusive<i64> = -4095..=-1;

    /// Return values from here on are addresses.
    const ADDRESS: i64 = 1 << 32;

    impl KernelTable for Syscall {
        type Record = abi::Syscall;
        const KINDS: &'static [u16] = &[kind::SYSCALL];

        #[inline]
        fn row(r: &abi::Syscall, seen: &mut Decoder) -> Syscall {
            let (ts, dur) = interval(r.entry_ts, r.header.ts);
            Syscall {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                number: r.number as i32,
                name: seen.numbered(kind::SYSCALL, r.number, |_, number| syscall(number)),
                ret: r.ret,
            }
        }
    }

    /// Name of a system call by its number in the ABI of this machine's 64-bit programs.
    fn syscall(number: u32) -> String {
        match Sysno::new(number as usize) {
            Some(call) => call.name().into(),
            None => format!("syscall_{number}"),
        }
    }

    impl Listed for Syscall {
        fn can_be(fits: &dyn Fn(&str) -> bool) -> bool {
            Sysno::iter().any(|call| fits(&format!("syscall.{}", call.name())))
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
            match self.ret {
                ret if ERRORS.contains(&ret) => match Errno::new(-ret as i32).name() {
                    Some(name) => write!(line, "= -{name}")?,
                    None => write!(line, "= {ret}")?,
                },
                ret if ret >= ADDRESS => write!(line, "= {ret:#x}")?,
                ret => write!(line, "= {ret}")?,
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
                [(libc::SYS_futex, "futex"), (libc::SYS_read, "read"), (99_999, "syscall_99999")]
            {
                assert_eq!(syscall(number as u32), expected);
            }
        }
    }
}
