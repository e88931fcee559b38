//! Probes of programs that are not changed: calls and returns of functions, and marks that programs have for that.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// Which end of what is probed.
    pub enum ProbeKind {
        /// A function is called, or the first mark of a pair is passed.
        Begin = "begin",
        /// The function returns, or the second mark is passed.
        End = "end",
        _ => Begin
    }
}

table! {
    "probe_hits",
    /// `probe_hits`: a thread came to a place in its program that is probed (`--probe`).
    pub struct ProbeHit {
        /// Time.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Which end it is.
        pub kind: ProbeKind,
        /// What is probed, as `--probe` named it.
        pub probe: Name,
        /// Of a function, where its return address lies: a call and its return have the same, and a call within it has a lower one, but for a last call that became a jump, which has the same. Null between marks.
        pub stack_pointer: Option<i64> as Address,
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

    impl KernelTable for ProbeHit {
        type Record = abi::Probe;
        const KINDS: &'static [u16] = &[kind::PROBE_BEGIN, kind::PROBE_END];

        fn row(r: &abi::Probe, seen: &mut Decoder) -> ProbeHit {
            let known = usize::try_from(r.number).ok().and_then(|n| seen.probes.get(n)).cloned();
            // The recording has noted all that it attached.
            let (probe, marks) = known.unwrap_or_else(|| ("unknown".into(), true));
            let ends = r.header.kind == kind::PROBE_END;
            let (ts, pid, tid) = (nanos(r.header.ts), pid(r.tgid), tid(r.header.tid));
            seen.threads.recorded(pid, tid, ts, None);
            ProbeHit {
                ts,
                cpu: cpu(r.header.cpu),
                tid,
                pid,
                kind: if ends { ProbeKind::End } else { ProbeKind::Begin },
                probe,
                stack_pointer: (!marks).then_some(r.stack_pointer as i64),
            }
        }
    }

    impl Listed for ProbeHit {
        fn names() -> &'static [&'static str] {
            &["probe.begin", "probe.end"]
        }

        fn name(&self) -> Cow<'_, str> {
            format!("probe.{}", self.kind).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            line.write_str(&self.probe)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid", "kind"])
        }
    }
}
