//! Group `sched`: what kept threads from the CPU that could run.

use crate::ids::{Cpu, Name, Nanos, Pid, ThreadKey, Tid};

table! {
    "throttles",
    /// `throttles`: for how long a thread that could run, or slept, was kept from its CPU, since the cgroup that it is in had used up its
    /// quota of CPU time. Of one that slept meanwhile, that says when it could not have run. Written when it has a CPU again.
    pub struct Throttle {
        /// Since when.
        pub ts: Nanos,
        /// For how long: until the cgroup had time again, as the kernel has measured it; where it has not, until the thread had a CPU.
        pub dur: i64 as Ns,
        /// CPU on which it came back.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// The last part of the path of the cgroup whose quota it is, at most 31 bytes; null where that is not known.
        pub cgroup: Option<Name>,
        /// Number of that cgroup: of its directory.
        pub cgroup_id: Option<i64> as Number,
        /// What its threads may run together in each period.
        pub quota_ns: Option<i64> as Ns,
        /// The period.
        pub period_ns: Option<i64> as Ns,
        /// The kernel has measured `dur` (since Linux 6.6, where the thread stayed on its CPU).
        pub measured: bool,
        /// It left its CPU for that reason. Else it had waited for another thread, or slept, and `ts` is so much before its return.
        pub since_left: bool,
    }
}

impl Throttle {
    /// The thread.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey { pid: self.pid, tid: self.tid }
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

    impl KernelTable for Throttle {
        type Record = abi::Throttle;
        const KINDS: &'static [u16] = &[kind::THROTTLE];

        #[inline]
        fn row(r: &abi::Throttle, _: &mut Decoder) -> Throttle {
            let known = |value: u64| i64::try_from(value).ok().filter(|value| *value != 0);
            let name = r.name.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            Throttle {
                ts: nanos(r.since_ts),
                dur: nanos(r.ns).0,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                cgroup: Some(Name::from(&*name)).filter(|name| !name.is_empty()),
                cgroup_id: (r.cgroup != 0).then_some(r.cgroup as i64),
                quota_ns: known(r.quota_ns),
                period_ns: known(r.period_ns),
                measured: r.flags & abi::Throttle::MEASURED != 0,
                since_left: r.flags & abi::Throttle::SINCE_LEFT != 0,
            }
        }
    }

    impl Listed for Throttle {
        fn names() -> &'static [&'static str] {
            &["sched.throttle"]
        }

        fn name(&self) -> Cow<'_, str> {
            "sched.throttle".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "kept from the CPU for {} ns", self.dur)?;
            if let Some(cgroup) = &self.cgroup {
                write!(line, " by the quota of {cgroup}")?;
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
        fn a_row_has_the_group_as_far_as_it_is_known() {
            let mut record = abi::Throttle {
                header: abi::Header { ts: 900, kind: kind::THROTTLE, cpu: 3, tid: 7 },
                left_ts: 100,
                since_ts: 100,
                ns: 700,
                quota_ns: 20,
                period_ns: u64::MAX,
                tgid: 6,
                flags: abi::Throttle::MEASURED,
                ..abi::Throttle::default()
            };
            let row = Throttle::row(&record, &mut Decoder::default());
            assert_eq!((row.ts, row.dur, row.tid, row.pid), (Nanos(100), 700, Tid(7), Pid(6)));
            assert_eq!((row.quota_ns, row.period_ns, row.cgroup), (Some(20), None, None));
            assert!(row.measured && !row.since_left);
            record.name[..3].copy_from_slice(b"web");
            let row = Throttle::row(&record, &mut Decoder::default());
            assert_eq!(row.cgroup.as_deref(), Some("web"));
        }
    }
}
