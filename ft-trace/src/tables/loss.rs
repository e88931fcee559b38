//! What is missing from a trace: where it was lost, and what it was.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// Where something was lost. An unknown place is the agent, whose losses may hide anything.
    pub enum LossOrigin {
        /// The ring of a thread.
        Ring = "ring",
        /// The ring that the threads of a process share.
        SharedRing = "shared-ring",
        /// The directory of a process: names and sites.
        Directory = "directory",
        /// The buffer of the kernel's records.
        Kernel = "kernel",
        /// The kernel, which did not run a program.
        KernelSkipped = "kernel-skipped",
        /// A thread that may not read the time stamp counter.
        Tsc = "tsc",
        /// A site that something else has changed; how many is not known.
        Site = "site",
        /// A child that a process has forked, and that is not recorded; how many events is not known.
        Child = "child",
        /// A file of the spool that was damaged.
        Spool = "spool",
        /// The agent.
        Agent = "agent",
        _ => Agent
    }
}

impl LossOrigin {
    /// Records of the kernel were lost.
    pub fn is_kernel(self) -> bool {
        matches!(self, LossOrigin::Kernel | LossOrigin::KernelSkipped)
    }

    /// Nobody can know how many events were lost.
    pub fn is_of_unknown_number(self) -> bool {
        matches!(self, LossOrigin::Site | LossOrigin::Child)
    }
}

words! {
    /// Why events were lost, where no program of the kernel lost them: the words of `loss.what` then.
    pub enum LossReason {
        /// A ring had no room.
        RingFull = "ring full",
        /// The ring that the threads of a process share had no room.
        SharedRingFull = "shared ring full",
        /// A writer began them, and never finished: it was killed, or left them (`siglongjmp`). Those that were interrupted before they
        /// said how long they are count as one where they lie beside each other, so there are at least so many.
        NeverCommitted = "slots never committed",
        /// They were still in the ring when the recording had to end.
        NotRead = "not read at the end",
        /// The directory had no room for a name or a site.
        DirectoryFull = "directory full",
        /// The thread may not read the time stamp counter.
        TscForbidden = "reading the counter is forbidden",
        /// Whoever looks at segments as they come did not look at this one.
        NotWatched = "segment not watched",
        /// It could not be recorded.
        NotRecorded = "not recorded",
        /// Events of applications, in a file that was damaged after it was written.
        DamagedEvents = "events in a damaged file",
        /// Records of the kernel, in such a file.
        DamagedRecords = "kernel records in a damaged file",
        /// What stood in such a file is not known.
        Damaged = "rest of a damaged file",
        /// Another reason, of a later version.
        Other = "other",
        _ => Other
    }
}

/// Which records of the kernel were lost, by the program that would have written them: as far as that decides what they
/// hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostRecords {
    /// Context switches.
    Switches,
    /// Wake-ups and migrations.
    Wakings,
    /// Begins or ends of interrupts.
    Interrupts,
    /// System calls and page faults.
    Calls,
    /// Hits of probes.
    Probes,
    /// Call chains, samples, and what threads slept in.
    Chains,
    /// Sections under locks of the kernel.
    Sections,
    /// Counts of threads that had a CPU.
    Counts,
    /// Those of any other program, which may be of a later version.
    Other,
}

impl LostRecords {
    /// Those of a program, by its name (`ft_ebpf::program::NAMES`).
    pub fn of(program: &str) -> LostRecords {
        match program {
            "sched_switch" => LostRecords::Switches,
            "sched_waking" | "sched_wakeup_new" | "sched_migrate_task" => LostRecords::Wakings,
            "irq_handler_exit"
            | "softirq_exit"
            | "local_timer_exit"
            | "reschedule_exit"
            | "call_function_exit"
            | "call_function_single_exit"
            | "irq_work_exit"
            | "irq_handler_entry"
            | "softirq_entry"
            | "local_timer_entry"
            | "reschedule_entry"
            | "call_function_entry"
            | "call_function_single_entry"
            | "irq_work_entry" => LostRecords::Interrupts,
            "sys_enter" | "sys_exit" | "call_end" | "page_fault_user" | "page_fault_kernel"
            | "fault_minor" | "fault_major" | "fault_end" => LostRecords::Calls,
            "probe_begin" | "probe_end" | "probe_return" => LostRecords::Probes,
            "cpu_count" => LostRecords::Counts,
            "chain_switch" | "chain_waking" | "sample" | "sleep" | "throttle" => {
                LostRecords::Chains
            }
            section if section.starts_with("section_") => LostRecords::Sections,
            _ => LostRecords::Other,
        }
    }
}

table! {
    "loss",
    /// `loss`: what was lost, and where.
    pub struct LossRow {
        /// First loss.
        pub ts: Nanos,
        /// Last loss minus first.
        pub dur: i64 as Ns,
        /// Where it was lost.
        pub origin: LossOrigin,
        /// What was lost: a program or a reason; of a site that something else has changed, its name.
        pub what: Name,
        /// CPU, -1 when it does not apply.
        pub cpu: Cpu,
        /// Process, -1 when it does not apply.
        pub pid: Pid,
        /// Thread, -1 when it does not apply.
        pub tid: Tid,
        /// How many; 0 where that is not known: of sites that something else has changed, of children that are
        /// not recorded, and of the rest of a damaged file.
        pub count: i64 as Count,
    }
}

impl LossRow {
    /// How many were lost is not known.
    pub fn is_of_unknown_number(&self) -> bool {
        self.origin.is_of_unknown_number() || self.reason() == LossReason::Damaged
    }

    /// Which records of the kernel were lost; `None` when it was something else.
    pub fn records(&self) -> Option<LostRecords> {
        self.origin.is_kernel().then(|| LostRecords::of(&self.what))
    }

    /// Why it was lost; [`LossReason::Other`] for records of the kernel, whose `what` is a program.
    pub fn reason(&self) -> LossReason {
        if self.origin.is_kernel() { LossReason::Other } else { LossReason::of(&self.what) }
    }
}

#[cfg(feature = "store")]
mod store {
    //! What a listing says of it.

    use std::borrow::Cow;
    use std::fmt;

    use serde_json::{Map, Value};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};

    use super::*;

    impl Listed for LossRow {
        fn name(&self) -> Cow<'_, str> {
            format!("loss.{}", self.origin).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            match self.is_of_unknown_number() {
                true => line.write_str("an unknown number")?,
                false => line.count(self.count.max(0) as u64)?,
            }
            line.write_str(" lost within ")?;
            line.duration(self.dur)?;
            write!(line, ": {}", self.what)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "origin", "cpu", "pid", "tid"])
        }
    }
}
