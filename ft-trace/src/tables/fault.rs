//! Group `fault`: page faults of user space.

use crate::ids::{Cpu, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What an access to memory is for.
    pub enum Access {
        /// Reading.
        Read = "read",
        /// Writing.
        Write = "write",
        /// Executing.
        Execute = "execute",
        _ => Read
    }
}

words! {
    /// Why an access to memory failed.
    pub enum FaultCause {
        /// There was no page.
        NotPresent = "not-present",
        /// The page forbids the access.
        Protection = "protection",
        _ => NotPresent
    }
}

words! {
    /// What it took to serve a page fault.
    pub enum FaultKind {
        /// Nothing had to be read.
        Minor = "minor",
        /// Something had to be read, or waited for.
        Major = "major",
        _ => Minor
    }
}

table! {
    "page_faults",
    /// `page_faults`: one page fault in user space, or of the kernel where it touched a program's memory for a system call.
    pub struct PageFault {
        /// Time of the fault.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Address that was accessed.
        pub address: i64 as Address,
        /// What the access was for.
        pub access: Access,
        /// Why it failed.
        pub cause: FaultCause,
        /// Error code of the CPU (arch/x86/include/asm/trap_pf.h).
        pub error: i32 as Number,
        /// The kernel touched the page, for the system call in which the thread was.
        pub in_kernel: bool,
        /// Until it was served; null where no end was seen, as of one that becomes a signal.
        pub dur: Option<i64> as Ns,
        /// What that took.
        pub kind: Option<FaultKind>,
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

    impl KernelTable for PageFault {
        type Record = abi::PageFault;
        const KINDS: &'static [u16] = &[kind::PAGE_FAULT, kind::FAULT_MINOR, kind::FAULT_MAJOR];

        #[inline]
        fn row(r: &abi::PageFault, _: &mut Decoder) -> PageFault {
            let (access, cause) = fault(r.error);
            PageFault {
                ts: nanos(r.header.ts),
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                address: r.address as i64,
                access,
                cause,
                error: r.error as i32,
                in_kernel: r.error & abi::PageFault::USER == 0,
                dur: None,
                kind: None,
            }
        }

        /// Of one that was served, its begin follows.
        fn tail_bytes(r: &abi::PageFault) -> Option<usize> {
            let served = r.header.kind != kind::PAGE_FAULT;
            Some(if served {
                size_of::<abi::ServedFault>() - size_of::<abi::PageFault>()
            } else {
                0
            })
        }

        #[inline]
        fn row_with(r: &abi::PageFault, tail: &[u8], seen: &mut Decoder) -> PageFault {
            let row = PageFault::row(r, seen);
            let Ok(begin) = tail.try_into().map(u64::from_ne_bytes) else { return row };
            let (ts, dur) = interval(begin, r.header.ts);
            let major = r.header.kind == kind::FAULT_MAJOR;
            let kind = if major { FaultKind::Major } else { FaultKind::Minor };
            PageFault { ts, dur: Some(dur), kind: Some(kind), ..row }
        }
    }

    /// Access and cause of a page fault by the CPU's error code (`enum x86_pf_error_code`,
    /// arch/x86/include/asm/trap_pf.h).
    fn fault(error: u32) -> (Access, FaultCause) {
        const PROTECTION: u32 = 1;
        const WRITE: u32 = 1 << 1;
        const FETCH: u32 = 1 << 4;
        let access = match error {
            e if e & FETCH != 0 => Access::Execute,
            e if e & WRITE != 0 => Access::Write,
            _ => Access::Read,
        };
        let forbidden = error & PROTECTION != 0;
        (access, if forbidden { FaultCause::Protection } else { FaultCause::NotPresent })
    }

    impl Listed for PageFault {
        fn names() -> &'static [&'static str] {
            &["fault.page"]
        }

        fn name(&self) -> Cow<'_, str> {
            "fault.page".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "{} {:#x} ({})", self.access, self.address, self.cause)?;
            if self.in_kernel {
                line.write_str(" by the kernel")?;
            }
            let Some((kind, dur)) = self.kind.zip(self.dur) else { return Ok(()) };
            write!(line, ", {kind}, ")?;
            line.duration(dur)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn error_codes_tell_access_and_cause() {
            for (error, expected) in [
                (0x04, ("read", "not-present")),
                (0x06, ("write", "not-present")),
                (0x07, ("write", "protection")),
                (0x14, ("execute", "not-present")),
                (0x15, ("execute", "protection")),
            ] {
                let (access, cause) = fault(error);
                assert_eq!((access.word(), cause.word()), expected, "{error:#x}");
            }
        }
    }
}
