//! Group `irq`: interrupt handlers, softirqs and interrupt vectors.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// Kind of an interrupt handler.
    pub enum IrqKind {
        /// The handlers of an interrupt line.
        Hard = "hard",
        /// A softirq. On a real-time kernel, where a thread can be preempted in one: a stretch of it without a switch.
        Soft = "soft",
        /// An interrupt vector of the CPU's own: timer, reschedule, …
        Vector = "vector",
        _ => Vector
    }
}

/// What an interrupt is for, as far as its kind and its name say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrqPurpose {
    /// The timer of the CPU itself: its ticks, and whatever is due with them.
    LocalTimer,
    /// Timers that are due, in a softirq, or a clock of the machine.
    Timer,
    /// Received packets, which the kernel hands to sockets (`net_rx_action`, net/core/dev.c).
    Packets,
    /// Anything else.
    Other,
}

impl IrqPurpose {
    /// By the names of vectors, of softirqs, and of the lines of x86.
    pub fn of(kind: IrqKind, name: &str) -> IrqPurpose {
        match (kind, name) {
            (IrqKind::Vector, "local_timer") => IrqPurpose::LocalTimer,
            (IrqKind::Soft, "TIMER" | "HRTIMER") | (IrqKind::Hard, "timer" | "rtc0") => {
                IrqPurpose::Timer
            }
            (IrqKind::Hard, name) if name.starts_with("hpet") => IrqPurpose::Timer,
            (IrqKind::Soft, "NET_RX") => IrqPurpose::Packets,
            _ => IrqPurpose::Other,
        }
    }

    /// It is that of a clock.
    pub fn is_timer(self) -> bool {
        matches!(self, IrqPurpose::LocalTimer | IrqPurpose::Timer)
    }
}

table! {
    "irq",
    /// `irq`: one run of an interrupt handler that struck an observed thread, in which one was woken, or that struck a CPU for which an
    /// observed real-time thread waited.
    pub struct Irq {
        /// Entry.
        pub ts: Nanos,
        /// Exit minus entry.
        pub dur: i64 as Ns,
        /// CPU.
        pub cpu: Cpu,
        /// What kind of handler.
        pub kind: IrqKind,
        /// Line, softirq number or vector kind: 1 `local_timer`, 2 `reschedule`, 3 `call_function`, 4 `call_function_single`,
        /// 5 `irq_work`.
        pub number: i32 as Number,
        /// Action of the line, softirq (`TIMER`, `NET_RX`, …) or vector (`local_timer`, …).
        pub name: Name,
        /// Interrupted thread (0: idle).
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
    }
}

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind, vector};
    use serde_json::{Map, Value};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, interval, pid, tid};

    use super::*;

    /// Names of softirqs by number (`softirq_to_name`, kernel/softirq.c).
    const SOFTIRQS: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];

    impl KernelTable for Irq {
        type Record = abi::Irq;
        const KINDS: &'static [u16] = &[kind::HARDIRQ, kind::SOFTIRQ, kind::VECTOR];

        #[inline]
        fn row(r: &abi::Irq, seen: &mut Decoder) -> Irq {
            let (ts, dur) = interval(r.entry_ts, r.header.ts);
            Irq {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                kind: match r.header.kind {
                    kind::HARDIRQ => IrqKind::Hard,
                    kind::SOFTIRQ => IrqKind::Soft,
                    _ => IrqKind::Vector,
                },
                number: r.number as i32,
                name: seen.numbered(r.header.kind, r.number, irq),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
            }
        }
    }

    /// Name of an interrupt whose line has no action that is known.
    fn irq(kind: u16, number: u32) -> String {
        match (kind, number) {
            (kind::SOFTIRQ, n) if (n as usize) < SOFTIRQS.len() => SOFTIRQS[n as usize].into(),
            (kind::SOFTIRQ, n) => format!("softirq {n}"),
            (kind::VECTOR, vector::LOCAL_TIMER) => "local_timer".into(),
            (kind::VECTOR, vector::RESCHEDULE) => "reschedule".into(),
            (kind::VECTOR, vector::CALL_FUNCTION) => "call_function".into(),
            (kind::VECTOR, vector::CALL_FUNCTION_SINGLE) => "call_function_single".into(),
            (kind::VECTOR, vector::IRQ_WORK) => "irq_work".into(),
            (kind::VECTOR, n) => format!("vector {n}"),
            (_, n) => format!("irq {n}"),
        }
    }

    impl Listed for Irq {
        fn names() -> &'static [&'static str] {
            &["irq.hard", "irq.soft", "irq.vector"]
        }

        fn name(&self) -> Cow<'_, str> {
            format!("irq.{}", self.kind).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            if self.kind == IrqKind::Hard {
                write!(line, "{} ", self.number)?;
            }
            write!(line, "{} ", self.name)?;
            line.duration(self.dur)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "kind", "tid", "pid"])
        }
    }
}
