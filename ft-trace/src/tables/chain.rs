//! Groups `stack` and `profile`: where in the code threads were.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// Whose call chain it is, and when it was taken.
    pub enum ChainKind {
        /// Of a thread that left the CPU to wait for something.
        Wait = "wait",
        /// Of a thread from which the CPU was taken.
        Preempted = "preempted",
        /// Of a thread that woke another one; of an interrupt, upon the thread that it struck.
        Wake = "wake",
        _ => Wait
    }
}

table! {
    "call_chains",
    /// `call_chains`: where in the code a thread was when it left the CPU, and where the one was that woke it, of times
    /// off the CPU that were long enough (`--stack-min`).
    pub struct CallChain {
        /// When the thread left the CPU, or woke the other one.
        pub ts: Nanos,
        /// Until it had a CPU again; 0 of a wake-up.
        pub dur: i64 as Ns,
        /// CPU on which it woke the other one, or that it had again.
        pub cpu: Cpu,
        /// Thread whose chain it is.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Whose it is.
        pub kind: ChainKind,
        /// Thread that it woke, else null.
        pub woken_tid: Option<i32> as Tid,
        /// Its process.
        pub woken_pid: Option<i32> as Pid,
        /// The chain, a row or more of `stacks`; null where none could be had.
        pub stack: Option<i64> as Number,
        /// Addresses of user space in it.
        pub user: i32 as Count,
        /// It is longer than what is recorded: 127 addresses of user space, 4088 bytes of a stack without frame pointers, 64 addresses
        /// of the kernel.
        pub cut: bool,
    }
}

table! {
    "samples",
    /// `samples`: where in the code a thread was when the clock of its CPU struck (group `profile`).
    pub struct Sample {
        /// Time.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// The chain, a row or more of `stacks`; null where none could be had.
        pub stack: Option<i64> as Number,
        /// Addresses of user space in it.
        pub user: i32 as Count,
        /// It ran in the kernel.
        pub in_kernel: bool,
        /// As in `call_chains`.
        pub cut: bool,
    }
}

words! {
    /// What a thread had to do with a lock when its call chain was taken.
    pub enum LockChainKind {
        /// It waited for it, off the CPU.
        Waits = "waits",
        /// It held it, and had left the CPU to wait for something.
        Sleeps = "sleeps",
        /// It held it, and the CPU was taken from it.
        Preempted = "preempted",
        /// It held it and ran (group `profile`).
        Runs = "runs",
        _ => Runs
    }
}

table! {
    "lock_chains",
    /// `lock_chains`: call chains and samples of threads that waited for a lock, or held one; a row for each such lock.
    pub struct LockChain {
        /// As in `call_chains` or `samples`.
        pub ts: Nanos,
        /// How long the thread was off the CPU; 0 of one that ran.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// What it had to do with the lock.
        pub kind: LockChainKind,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// Name of the lock, or its address in hexadecimal.
        pub lock_name: Name,
        /// Source place of the acquisition, empty when not known.
        pub place: Name,
        /// Of the locks that it held, the one acquired last; also where it waited for it. Sums over threads count only
        /// these.
        pub innermost: bool,
        /// The chain, a row or more of `stacks`; null where none could be had.
        pub stack: Option<i64> as Number,
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
    use crate::tables::record::{Decoder, KernelTable, cpu, interval, nanos, pid, tid};

    use super::*;

    impl KernelTable for CallChain {
        type Record = abi::Chain;
        const KINDS: &'static [u16] = &[kind::CHAIN_OFF_CPU, kind::CHAIN_WAKE];

        fn row(r: &abi::Chain, seen: &mut Decoder) -> CallChain {
            CallChain::row_with(r, &[], seen)
        }

        fn tail_bytes(r: &abi::Chain) -> Option<usize> {
            r.tail_bytes()
        }

        fn row_with(r: &abi::Chain, tail: &[u8], seen: &mut Decoder) -> CallChain {
            let wakes = r.header.kind == kind::CHAIN_WAKE;
            let left = if wakes { r.header.ts } else { r.left_ts };
            let (ts, dur) = interval(left, r.header.ts);
            let found = seen.chains.find(r, tail);
            CallChain {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                kind: match (wakes, r.preempted != 0) {
                    (true, _) => ChainKind::Wake,
                    (false, true) => ChainKind::Preempted,
                    (false, false) => ChainKind::Wait,
                },
                woken_tid: wakes.then_some(r.woken_tid as i32),
                woken_pid: wakes.then_some(r.woken_tgid as i32),
                stack: found.stack,
                user: found.user,
                cut: found.cut,
            }
        }
    }

    impl KernelTable for Sample {
        type Record = abi::Chain;
        const KINDS: &'static [u16] = &[kind::SAMPLE];

        fn row(r: &abi::Chain, seen: &mut Decoder) -> Sample {
            Sample::row_with(r, &[], seen)
        }

        fn tail_bytes(r: &abi::Chain) -> Option<usize> {
            r.tail_bytes()
        }

        fn row_with(r: &abi::Chain, tail: &[u8], seen: &mut Decoder) -> Sample {
            let found = seen.chains.find(r, tail);
            Sample {
                ts: nanos(r.header.ts),
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                stack: found.stack,
                user: found.user,
                in_kernel: r.kernel > 0,
                cut: found.cut,
            }
        }
    }

    impl Listed for CallChain {
        fn names() -> &'static [&'static str] {
            &["chain.wait", "chain.preempted", "chain.wake"]
        }

        fn name(&self) -> Cow<'_, str> {
            format!("chain.{}", self.kind).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn object(&self) -> Option<(Pid, Tid)> {
            Some((Pid(self.woken_pid?), Tid(self.woken_tid?)))
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            match self.object() {
                Some((pid, tid)) => {
                    line.write_str("wakes ")?;
                    line.thread(pid, tid)?;
                }
                None => {
                    line.write_str("off the CPU for ")?;
                    line.duration(self.dur)?;
                }
            }
            self.stack.map_or(Ok(()), |stack| write!(line, ", stack {stack}"))
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid", "kind"])
        }
    }

    impl Listed for Sample {
        fn names() -> &'static [&'static str] {
            &["profile.sample"]
        }

        fn name(&self) -> Cow<'_, str> {
            "profile.sample".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            line.write_str(if self.in_kernel { "in the kernel" } else { "in user space" })?;
            self.stack.map_or(Ok(()), |stack| write!(line, ", stack {stack}"))
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid"])
        }
    }
}
