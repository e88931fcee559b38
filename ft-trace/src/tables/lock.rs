//! Group `lock`: waits for locks of the kernel.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};

table! {
    "contention",
    /// `contention`: one wait of a thread for a lock of the kernel.
    pub struct Contention {
        /// Begin of the wait.
        pub ts: Nanos,
        /// End minus begin.
        pub dur: i64 as Ns,
        /// CPU on which the wait ended.
        pub cpu: Cpu,
        /// Waiter (0: idle).
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// What the flags say of the lock and the wait: `mutex`, `spinlock`, `rwlock-read`, `rwsem-write`, ….
        pub kind: Name,
        /// `LCB_F_*` flags (include/trace/events/lock.h).
        pub flags: i32 as Number,
    }
}

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind};
    use serde_json::{Map, Value};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, interval, pid, tid};

    use super::*;

    impl KernelTable for Contention {
        type Record = abi::Contention;
        const KINDS: &'static [u16] = &[kind::CONTENTION];

        #[inline]
        fn row(r: &abi::Contention, seen: &mut Decoder) -> Contention {
            let (ts, dur) = interval(r.entry_ts, r.header.ts);
            Contention {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                lock: r.lock as i64,
                kind: seen.fixed(lock_kind(r.flags)),
                flags: r.flags as i32,
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
            write!(line, "{} {:#x} waited ", self.kind, self.lock)?;
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
