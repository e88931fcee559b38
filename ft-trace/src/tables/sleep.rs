//! Group `sched`: what threads slept in.

use super::syscall::FileKind;
use crate::ids::{Cpu, Name, Nanos, Pid, ThreadKey, Tid};

table! {
    "sleeps",
    /// `sleeps`: what an observed thread of a program was in when it left its CPU to wait: the row of `sched_switch` with the same `ts`
    /// and `cpu` says in which state. From Linux 5.15 on.
    pub struct Sleep {
        /// Time.
        pub ts: Nanos,
        /// CPU that it left.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// System call in which it waits; null: in none, as in a page fault.
        pub call: Option<Name>,
        /// What the call's first argument is a descriptor of, as in `syscalls`.
        pub file: Option<FileKind>,
        /// Columns `argument0` … `argument3`: the arguments of the call as the program passed them, whatever they mean. Null without a call.
        pub argument: [Option<i64>; 4] as Number,
        /// Until when it sleeps at the latest, if the call is `nanosleep` or `clock_nanosleep`: the time of its arguments, and the slack
        /// that timers of this thread may have, on CLOCK_MONOTONIC. Null of CLOCK_REALTIME, if the time is an absolute one.
        pub until: Option<i64> as Ns,
        /// Of a call of `futex`, what stands at its address; null where it could not be read.
        pub word: Option<i32> as Number,
        /// Of a call of `futex`, what stands eight bytes behind its address: of a mutex of glibc, the thread that holds it, as its PID
        /// namespace numbers it. Of another lock it can be anything.
        pub owner: Option<i32> as Number,
    }
}

impl Sleep {
    /// The thread.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey { pid: self.pid, tid: self.tid }
    }

    /// The time at which a periodic thread's next cycle begins, ns, if that is what it sleeps for; `None` within, if the
    /// call does not say the time.
    pub fn due(&self) -> Option<Option<i64>> {
        match self.call.as_deref()? {
            "nanosleep" | "clock_nanosleep" => Some(self.until),
            "read" if self.file == Some(FileKind::Timerfd) => Some(None),
            _ => None,
        }
    }

    /// Whether it is at a futex, whose address is the call's first argument.
    pub fn is_at_futex(&self) -> bool {
        self.call.as_deref().is_some_and(|call| matches!(call, "futex" | "futex_wait"))
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
    use crate::tables::record::{Decoder, KernelTable, cpu, nanos, pid, tid};
    use crate::tables::syscall::{call_name, file_kind};

    use super::*;

    impl KernelTable for Sleep {
        type Record = abi::Sleep;
        const KINDS: &'static [u16] = &[kind::SLEEP];

        #[inline]
        fn row(r: &abi::Sleep, seen: &mut Decoder) -> Sleep {
            let in_call = r.flags & abi::Sleep::NO_CALL == 0;
            let read = |flag, word| (r.flags & flag != 0).then_some(word as i32);
            Sleep {
                ts: nanos(r.header.ts),
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                call: in_call.then(|| call_name(seen, r.number, r.file)),
                file: file_kind(r.file).filter(|_| in_call),
                argument: r.arguments.map(|argument| in_call.then_some(argument as i64)),
                until: (in_call && r.until != 0).then_some(r.until as i64),
                word: read(abi::Sleep::WORD, r.word),
                owner: read(abi::Sleep::OWNER, r.owner),
            }
        }
    }

    impl Listed for Sleep {
        fn names() -> &'static [&'static str] {
            &["sched.sleep"]
        }

        fn name(&self) -> Cow<'_, str> {
            "sched.sleep".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            let Some(call) = &self.call else { return line.write_str("in no system call") };
            write!(line, "in {call}")?;
            match (self.file, self.argument[0]) {
                (Some(file), Some(descriptor)) => write!(line, " ({file} {descriptor})"),
                (None, Some(first)) => write!(line, " ({first:#x})"),
                (_, None) => Ok(()),
            }
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_row_has_the_call_and_nothing_that_was_not_read() {
            let record = abi::Sleep {
                header: abi::Header { ts: 900, kind: kind::SLEEP, cpu: 3, tid: 7 },
                arguments: [0x1000, 128, u64::MAX, 0],
                tgid: 6,
                number: libc::SYS_futex as u16,
                word: 2,
                owner: 8,
                flags: abi::Sleep::WORD,
                ..abi::Sleep::default()
            };
            let row = Sleep::row(&record, &mut Decoder::default());
            assert_eq!((row.ts, row.cpu, row.tid, row.pid), (Nanos(900), Cpu(3), Tid(7), Pid(6)));
            assert_eq!((row.call.as_deref(), row.file), (Some("futex"), None));
            assert_eq!(row.argument, [Some(0x1000), Some(128), Some(-1), Some(0)]);
            assert_eq!((row.word, row.owner), (Some(2), None));
            let fault = abi::Sleep { flags: abi::Sleep::NO_CALL, ..record };
            let row = Sleep::row(&fault, &mut Decoder::default());
            assert_eq!((row.call, row.argument), (None, [None; 4]));
        }
    }
}
