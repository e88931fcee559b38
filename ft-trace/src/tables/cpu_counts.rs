//! What counters of a CPU counted while a thread had it (`record --switch-counter`).

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};

table! {
    "cpu_counts",
    /// `cpu_counts`: an observed thread had a CPU from one switch to the next, and what the CPU's counters counted meanwhile.
    /// Stretches that had begun when the recording did, or had not ended when it did, are not here; `loss` has those that were lost, as
    /// `cpu_count`.
    pub struct CpuCount {
        /// It came to the CPU: `ts` of that row of `sched_switch`.
        pub ts: Nanos,
        /// Until it left it: with `ts`, that of the next row of `sched_switch` of this CPU.
        pub dur: i64 as Ns,
        /// CPU.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Its name, when it left.
        pub comm: Name,
        /// Its kernel priority, when it left.
        pub prio: i32 as Priority,
        /// Columns `counter0` and `counter1`: what the counters that `record --switch-counter` was given, in their order, counted in
        /// user space. Null without one, where the CPU did not have it at both ends (it came during the recording), or had no room for
        /// it for a part of the time.
        pub counter: [Option<i64>; 2] as Count,
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

    impl KernelTable for CpuCount {
        type Record = abi::CpuCount;
        const KINDS: &'static [u16] = &[kind::CPU_COUNT];

        fn row(r: &abi::CpuCount, seen: &mut Decoder) -> CpuCount {
            let (ts, dur) = interval(r.from_ts, r.header.ts);
            // What is unknown is the highest number, and no count can be as large as half of it.
            CpuCount {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                comm: seen.comm(r.comm),
                prio: r.prio,
                counter: r.counted.map(|count| i64::try_from(count).ok()),
            }
        }
    }

    impl Listed for CpuCount {
        fn names() -> &'static [&'static str] {
            &["cpu.count"]
        }

        fn name(&self) -> Cow<'_, str> {
            "cpu.count".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "in ")?;
            line.duration(self.dur)?;
            for (count, before) in self.counter.iter().zip([": ", ", "]) {
                line.write_str(before)?;
                match count {
                    Some(count) => write!(line, "{count}")?,
                    None => line.write_str("-")?,
                }
            }
            Ok(())
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_row_is_a_stretch_with_what_is_known_of_it() {
            let record = abi::CpuCount {
                header: abi::Header { ts: 900, kind: kind::CPU_COUNT, cpu: 3, tid: 7 },
                from_ts: 400,
                counted: [12, abi::CpuCount::UNKNOWN],
                tgid: 6,
                prio: 120,
                comm: *b"worker\0\0\0\0\0\0\0\0\0\0",
            };
            let row = CpuCount::row(&record, &mut Decoder::default());
            assert_eq!((row.ts, row.dur, row.cpu), (Nanos(400), 500, Cpu(3)));
            assert_eq!((row.tid, row.pid, &*row.comm, row.prio), (Tid(7), Pid(6), "worker", 120));
            assert_eq!(row.counter, [Some(12), None]);
        }
    }
}
