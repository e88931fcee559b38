//! Group `section`: lengths and depths of sections under locks of the kernel, counted.

use crate::ids::{Name, Nanos};
use crate::words::words;

words! {
    /// What the sections are under.
    pub enum SectionLock {
        /// A spinlock; on a real-time kernel one of those that still spin (`raw_spinlock_t`).
        Spinlock = "spinlock",
        /// A spinlock of readers and writers, as a reader.
        RwlockRead = "rwlock-read",
        /// The same, as a writer.
        RwlockWrite = "rwlock-write",
        /// What is a spinlock elsewhere, on a real-time kernel, where its holder can lose the CPU.
        RtSpinlock = "rt-spinlock",
        /// A spinlock of readers and writers there, as a reader.
        RtRwlockRead = "rt-rwlock-read",
        /// The same, as a writer.
        RtRwlockWrite = "rt-rwlock-write",
        /// A mutex.
        Mutex = "mutex",
        /// A semaphore of readers and writers, as a reader.
        RwsemRead = "rwsem-read",
        /// The same, as a writer.
        RwsemWrite = "rwsem-write",
        /// A counting semaphore, from `down` to an `up` by the same thread.
        Semaphore = "semaphore",
        _ => Spinlock
    }
}

words! {
    /// What a row counts.
    pub enum SectionCount {
        /// Sections that are so long.
        Length = "length",
        /// Sections that begin so deep within others: of the same CPU and context for locks that spin, else of the same thread.
        Depth = "depth",
        /// Sections that have begun, whether or not their end was seen.
        Begun = "begun",
        /// Of these, such as could not be followed: too many were open.
        Full = "full",
        /// Ends of sections that had begun before the recording, at a function that is not watched, in a run that was skipped,
        /// or in another thread, or that could not be followed.
        EndOnly = "end-only",
        /// Begins and ends that struck while another was being counted on the CPU.
        Skipped = "skipped",
        /// Sections whose end was seen and that are the recording's own: of its agent's threads, and under locks that its programs in the
        /// kernel take. In the rows of lengths and depths, too.
        Recording = "recording",
        _ => Skipped
    }
}

table! {
    "kernel_sections",
    /// `kernel_sections`: how many sections under locks of the kernel, from where a lock was taken to where it is released,
    /// have a length or a depth. Threads that are observed, and interrupts that strike them.
    pub struct KernelSections {
        /// When the counts were read: the end of the recording.
        pub ts: Nanos,
        /// Kind of the lock.
        pub lock: SectionLock,
        /// They are those of interrupts (hardware interrupts and softirqs), which have depths of their own.
        pub interrupt: bool,
        /// Function that took the lock. Null where it is not known, where callers were too many to be told apart, and in
        /// rows that count neither lengths nor depths.
        pub caller: Option<Name>,
        /// Address in it behind the call; 0 where `caller` is null for one of these reasons.
        pub caller_address: i64 as Address,
        /// What is counted.
        pub what: SectionCount,
        /// The shortest length that is counted here, ns; the longest is below that of the next bin: 0, 1, 2, 3, 4, 6, 8, 12,
        /// … Or the depth: 0 within no other, 7 the most that is followed. Else 0.
        pub at_least: i64 as Number,
        /// How many.
        pub count: i64 as Count,
        /// Their lengths together; 0 where neither lengths nor depths nor the recording's own are counted.
        pub total_ns: i64 as Ns,
        /// The longest.
        pub max_ns: i64 as Ns,
    }
}

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind, section};
    use serde_json::{Map, Value};

    use crate::ids::{Cpu, Pid, Tid};
    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, nanos};

    use super::*;

    impl KernelTable for KernelSections {
        type Record = abi::Section;
        const KINDS: &'static [u16] = &[kind::SECTION];

        fn row(r: &abi::Section, seen: &mut Decoder) -> KernelSections {
            KernelSections {
                ts: nanos(r.header.ts),
                lock: match u32::from(r.kind) {
                    section::MUTEX => SectionLock::Mutex,
                    section::READ => SectionLock::RwsemRead,
                    section::WRITE => SectionLock::RwsemWrite,
                    section::SEMAPHORE => SectionLock::Semaphore,
                    section::SPIN_READ => SectionLock::RwlockRead,
                    section::SPIN_WRITE => SectionLock::RwlockWrite,
                    section::RT_SPIN => SectionLock::RtSpinlock,
                    section::RT_READ => SectionLock::RtRwlockRead,
                    section::RT_WRITE => SectionLock::RtRwlockWrite,
                    _ => SectionLock::Spinlock,
                },
                interrupt: r.interrupt != 0,
                caller: seen.kernel_locks.function(r.caller),
                caller_address: r.caller as i64,
                what: match r.what {
                    section::LENGTH => SectionCount::Length,
                    section::DEPTH => SectionCount::Depth,
                    section::BEGUN => SectionCount::Begun,
                    section::FULL => SectionCount::Full,
                    section::ENDS => SectionCount::EndOnly,
                    section::OWN => SectionCount::Recording,
                    _ => SectionCount::Skipped,
                },
                at_least: number(r.from),
                count: number(r.bin.count),
                total_ns: number(r.bin.total_ns),
                max_ns: number(r.bin.max_ns),
            }
        }
    }

    fn number(n: u64) -> i64 {
        i64::try_from(n).unwrap_or(i64::MAX)
    }

    impl Listed for KernelSections {
        fn names() -> &'static [&'static str] {
            &["section.count"]
        }

        fn name(&self) -> Cow<'_, str> {
            "section.count".into()
        }

        fn cpu(&self) -> Cpu {
            Cpu(-1)
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (None, Tid(-1))
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "{} ", self.lock)?;
            if self.interrupt {
                line.write_str("in interrupts ")?;
            }
            if let Some(caller) = &self.caller {
                write!(line, "of {caller} ")?;
            }
            write!(line, "{} ", self.what)?;
            match self.what {
                SectionCount::Length => line.duration(self.at_least)?,
                SectionCount::Depth => write!(line, "{}", self.at_least)?,
                _ => {}
            }
            write!(line, ": {}", self.count)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts"])
        }
    }
}
