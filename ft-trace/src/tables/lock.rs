//! Group `lock`: waits for locks of the kernel.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// How a wait for a lock of the kernel ended, as far as its record says.
    pub enum ContentionEnd {
        /// With the lock.
        Acquired = "acquired",
        /// Without it: a signal or a time-out came first.
        Failed = "failed",
        /// It had not, when the recording ended.
        Unfinished = "unfinished",
        /// Its begin was not recorded: it, or the recording of its thread, began before; how long it was is not known.
        EndOnly = "end-only",
        _ => EndOnly
    }
}

table! {
    "contention",
    /// `contention`: one wait of a thread for a lock of the kernel.
    pub struct Contention {
        /// Begin of the wait; the end where that is all that is known.
        pub ts: Nanos,
        /// End minus begin; of one that had not ended, until the recording did.
        pub dur: i64 as Ns,
        /// CPU on which the wait ended.
        pub cpu: Cpu,
        /// Waiter (0: idle). An interrupt waits in the name of the thread that it struck.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// The variable of the kernel that it is, or lies in; the address in hexadecimal where the kernel does not name its
        /// variables (`CONFIG_KALLSYMS_ALL`). Null of a lock that is in allocated memory, or when that is not known.
        pub name: Option<Name>,
        /// Function that wanted the lock: the first of the call chain that is no primitive of locking. Null when not known.
        pub caller: Option<Name>,
        /// What the flags say of the lock and the wait: `mutex`, `spinlock`, `rwlock-read`, `rwsem-write`, …; `unknown` of an
        /// end alone.
        pub kind: Name,
        /// `LCB_F_*` flags (include/trace/events/lock.h).
        pub flags: i32 as Number,
        /// How it ended.
        pub end: ContentionEnd,
        /// The call chain, a row or more of `stacks`; null without the group `stack`, and where none could be had.
        pub stack: Option<i64> as Number,
        /// It is longer than what is recorded, as in `call_chains`.
        pub cut: bool,
    }
}

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind};
    use serde_json::{Map, Value};

    use crate::convert::Found;
    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, interval, pid, tid};

    use super::*;

    impl KernelTable for Contention {
        type Record = abi::Contention;
        const KINDS: &'static [u16] = &[kind::CONTENTION];

        fn row(r: &abi::Contention, seen: &mut Decoder) -> Contention {
            Contention::row_with(r, &[], seen)
        }

        fn tail_bytes(r: &abi::Contention) -> Option<usize> {
            r.address_bytes()
        }

        fn row_with(r: &abi::Contention, tail: &[u8], seen: &mut Decoder) -> Contention {
            let (ts, dur) = interval(r.entry_ts, r.header.ts);
            let has = |flag: u16| r.flags & flag != 0;
            let end = match () {
                () if has(abi::Contention::NO_BEGIN) => ContentionEnd::EndOnly,
                () if has(abi::Contention::UNFINISHED) => ContentionEnd::Unfinished,
                () if has(abi::Contention::FAILED) => ContentionEnd::Failed,
                () => ContentionEnd::Acquired,
            };
            let flags = u32::from(r.flags & abi::Contention::OF_KERNEL);
            let kind = if end == ContentionEnd::EndOnly { "unknown" } else { lock_kind(flags) };
            let chain = abi::Chain {
                header: r.header,
                tgid: r.tgid,
                user: r.user.into(),
                kernel: r.kernel.into(),
                ..abi::Chain::default()
            };
            let kernel = tail.get(8 * usize::from(r.user)..).unwrap_or_default();
            let found = match seen.whole_chains {
                true => seen.chains.find(&chain, tail),
                false => Found::default(),
            };
            Contention {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                lock: r.lock as i64,
                name: seen.kernel_locks.variable(r.lock),
                caller: seen.kernel_locks.caller(kernel),
                kind: seen.fixed(kind),
                flags: flags as i32,
                end,
                stack: found.stack,
                cut: found.cut,
            }
        }
    }

    /// Kind of a kernel lock by the `LCB_F_*` flags of `contention_begin` (include/trace/events/lock.h).
    fn lock_kind(flags: u32) -> &'static str {
        const SPIN: u32 = 1;
        const READ: u32 = 2;
        const WRITE: u32 = 4;
        const RT: u32 = 8;
        const PERCPU: u32 = 16;
        const MUTEX: u32 = 32;
        let (read, write) = (flags & READ != 0, flags & WRITE != 0);
        match flags {
            // A mutex that spins for its owner before it sleeps has `SPIN`, too.
            f if f & MUTEX != 0 => "mutex",
            f if f & PERCPU != 0 && write => "percpu-rwsem-write",
            f if f & PERCPU != 0 => "percpu-rwsem-read",
            f if f & RT != 0 && read => "rt-rwlock-read",
            f if f & RT != 0 && write => "rt-rwlock-write",
            f if f & RT != 0 => "rt-mutex",
            f if f & SPIN != 0 && read => "rwlock-read",
            f if f & SPIN != 0 && write => "rwlock-write",
            f if f & SPIN != 0 => "spinlock",
            _ if read => "rwsem-read",
            _ if write => "rwsem-write",
            _ => "semaphore",
        }
    }

    impl Listed for Contention {
        fn names() -> &'static [&'static str] {
            &["lock.contention"]
        }

        fn name(&self) -> Cow<'_, str> {
            "lock.contention".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "{} ", self.kind)?;
            match &self.name {
                Some(name) => write!(line, "{name}")?,
                None => write!(line, "{:#x}", self.lock)?,
            }
            if let Some(caller) = &self.caller {
                write!(line, " of {caller}")?;
            }
            match self.end {
                ContentionEnd::EndOnly => return line.write_str(", end of a wait"),
                ContentionEnd::Acquired => line.write_str(" waited ")?,
                end => write!(line, " {end} after ")?,
            }
            line.duration(self.dur)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn flags_tell_the_kind_of_a_lock() {
            for (flags, expected) in [
                (0, "semaphore"),
                (0x01, "spinlock"),
                (0x03, "rwlock-read"),
                (0x05, "rwlock-write"),
                (0x02, "rwsem-read"),
                (0x04, "rwsem-write"),
                (0x08, "rt-mutex"),
                (0x12, "percpu-rwsem-read"),
                (0x14, "percpu-rwsem-write"),
                (0x20, "mutex"),
                (0x21, "mutex"),
                (0x8000_0000, "semaphore"),
            ] {
                assert_eq!(lock_kind(flags), expected, "{flags:#x}");
            }
        }
    }
}
