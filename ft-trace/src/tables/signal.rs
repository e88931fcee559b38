//! Group `signal`: signals that are sent, and signals that a thread takes.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What happened to a signal.
    pub enum SignalKind {
        /// It was sent.
        Generate = "generate",
        /// Its receiver takes it: a handler runs, or what the signal does by default.
        Deliver = "deliver",
        _ => Generate
    }
}

words! {
    /// What became of a signal when it was sent (`enum` in include/trace/events/signal.h).
    pub enum SignalResult {
        /// It waits for its receiver.
        Delivered = "delivered",
        /// The receiver ignores it.
        Ignored = "ignored",
        /// One of that number was waiting already.
        Pending = "pending",
        /// A queue was full: it was not sent.
        Overflow = "overflow",
        /// A queue was full: it was sent, but not what belongs to it.
        Truncated = "truncated",
        _ => Delivered
    }
}

table! {
    "signals",
    /// `signals`: a signal was sent, or a thread took one.
    pub struct Signal {
        /// Time.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// What happened.
        pub kind: SignalKind,
        /// Thread that sent it, or that an interrupt struck which did (0: idle); null when it is taken.
        pub sender_tid: Option<i32> as Tid,
        /// Its process.
        pub sender_pid: Option<i32> as Pid,
        /// Thread that it was sent to, or that takes it.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Number of the signal.
        pub number: i32 as Number,
        /// Its name; `SIGRT_n` is the real-time signal 32 + n, as strace names it.
        pub name: Name,
        /// It was sent to the process, any thread of which may take it. False when it is taken.
        pub to_process: bool,
        /// What became of it; null when it is taken.
        pub result: Option<SignalResult>,
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

    use super::*;

    impl KernelTable for Signal {
        type Record = abi::Signal;
        const KINDS: &'static [u16] = &[kind::SIGNAL_GENERATE, kind::SIGNAL_DELIVER];

        fn row(r: &abi::Signal, seen: &mut Decoder) -> Signal {
            let sent = r.header.kind == kind::SIGNAL_GENERATE;
            Signal {
                ts: nanos(r.header.ts),
                cpu: cpu(r.header.cpu),
                kind: if sent { SignalKind::Generate } else { SignalKind::Deliver },
                sender_tid: sent.then_some(r.header.tid as i32),
                sender_pid: sent.then_some(r.sender_tgid as i32),
                tid: tid(r.tid),
                pid: pid(r.tgid),
                number: r.number as i32,
                name: seen.numbered(kind::SIGNAL_GENERATE, r.number, |_, number| name(number)),
                to_process: r.group != 0,
                result: sent.then(|| result(r.result)),
            }
        }
    }

    /// `TRACE_SIGNAL_*` (include/trace/events/signal.h).
    fn result(result: u32) -> SignalResult {
        match result {
            1 => SignalResult::Ignored,
            2 => SignalResult::Pending,
            3 => SignalResult::Overflow,
            4 => SignalResult::Truncated,
            _ => SignalResult::Delivered,
        }
    }

    /// Names by number (arch/x86/include/uapi/asm/signal.h).
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];

    fn name(number: u32) -> String {
        match number {
            1..=31 => format!("SIG{}", NAMES[number as usize - 1]),
            32..=64 => format!("SIGRT_{}", number - 32),
            _ => format!("signal {number}"),
        }
    }

    impl Listed for Signal {
        fn names() -> &'static [&'static str] {
            &["signal.generate", "signal.deliver"]
        }

        fn name(&self) -> Cow<'_, str> {
            format!("signal.{}", self.kind).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            match (self.sender_pid, self.sender_tid) {
                (Some(pid), Some(tid)) => (Some(Pid(pid)), Tid(tid)),
                _ => (Some(self.pid), self.tid),
            }
        }

        fn object(&self) -> Option<(Pid, Tid)> {
            self.sender_tid.map(|_| (self.pid, self.tid))
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "{}", self.name)?;
            let Some(result) = self.result else { return Ok(()) };
            line.write_str(" -> ")?;
            line.thread(self.pid, self.tid)?;
            if result == SignalResult::Delivered { Ok(()) } else { write!(line, " ({result})") }
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "kind", "sender_tid", "sender_pid"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn signals_have_the_names_of_the_manual() {
            for (number, expected) in [
                (libc::SIGUSR1, "SIGUSR1"),
                (libc::SIGCHLD, "SIGCHLD"),
                (libc::SIGSYS, "SIGSYS"),
                (34, "SIGRT_2"),
                (65, "signal 65"),
            ] {
                assert_eq!(name(number as u32), expected);
            }
        }
    }
}
