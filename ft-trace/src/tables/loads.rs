//! Tables of loads whose truth is known: what `ft-load hourglass` was to do, and what became of it.

use super::decomposition::Decomposition;
use crate::Mark;
use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What a worker does (Hourglass, section 3.2 and appendix A).
    pub enum Workload {
        /// Runs whenever it can.
        Cpu = "CPU",
        /// The same, and reads through an array.
        CpuScan = "CPU_SCAN",
        /// Yields the CPU whenever it has had its amount of it.
        CpuYield = "CPU_YIELD",
        /// Both.
        CpuScanYield = "CPU_SCAN_YIELD",
        /// Needs its amount in each period, and then sleeps until the next.
        Periodic = "PERIODIC",
        /// Needs its amount in each period, and begins the next at once.
        CpuPeriodic = "CPU_PERIODIC",
        /// Sleeps for a period, again and again.
        Latency = "LAT",
        _ => Cpu
    }
}

words! {
    /// What wakes a worker.
    pub enum LoadTimer {
        /// A relative sleep.
        Native = "NATIVE",
        /// An absolute sleep.
        Hr = "HR",
        /// An absolute timer that is read.
        Timerfd = "TIMERFD",
        /// Ticks of the real-time clock.
        Rtc = "RTC",
        _ => Native
    }
}

words! {
    /// How the kernel schedules a worker (sched(7)).
    pub enum Policy {
        /// The ordinary scheduler.
        Other = "SCHED_OTHER",
        /// Real time: until it sleeps.
        Fifo = "SCHED_FIFO",
        /// Real time, in turns.
        RoundRobin = "SCHED_RR",
        /// Ordinary, without regard to waking.
        Batch = "SCHED_BATCH",
        /// What nobody else wants.
        Idle = "SCHED_IDLE",
        /// A reservation.
        Deadline = "SCHED_DEADLINE",
        /// One that is not known here, or was not recorded.
        Unknown = "unknown",
        _ => Unknown
    }
}

words! {
    /// Why a run ended.
    pub enum RunEnd {
        /// The worker did nothing for it: it was preempted, or an interrupt came.
        Unasked = "unasked",
        /// It yielded the CPU.
        Yielded = "yielded",
        /// It went to sleep.
        Slept = "slept",
        /// It was at its end.
        Finished = "finished",
        _ => Unasked
    }
}

words! {
    /// What became of the deadline of a job.
    pub enum Deadline {
        /// The job had its time by then.
        Hit = "hit",
        /// Too late, or never.
        Missed = "missed",
        /// The worker or the recording ended first.
        Open = "open",
        _ => Open
    }
}

words! {
    /// What lay between two neighbouring runs on a CPU, inferred from the times of the runs and the words of the workers
    /// alone (Hourglass, section 4).
    pub enum SwitchKind {
        /// A context switch, because the worker before yielded or slept.
        Voluntary = "voluntary",
        /// A context switch that the worker before did nothing for.
        Involuntary = "involuntary",
        /// An interrupt, within one worker.
        Interruption = "interruption",
        /// An interrupt or another thread, within one worker.
        Either = "either",
        /// No switch alone: the worker's own sleep, a yield from which it came back, idle time, or a migration.
        Wait = "wait",
        _ => Wait
    }
}

words! {
    /// What the kernel recorded between two neighbouring runs on a CPU.
    pub enum SwitchSeen {
        /// One switch, from the one to the other.
        Switch = "switch",
        /// Several: to other threads, or the idle task, and from them.
        Others = "others",
        /// No switch.
        None = "none",
        _ => Others
    }
}

table! {
    "workers",
    /// `workers`: one thread of a load, `ft-load hourglass`: what it was to do, and what it did. Counts are those of this
    /// trace; with a mark other than `exact` the worker may have done more.
    pub struct LoadWorker {
        /// When it was to begin.
        pub ts: Nanos,
        /// How long it was to last.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Its number in the load, from 0 on.
        pub worker: i32 as Number,
        /// What it does.
        pub workload: Workload,
        /// CPU time that it needs, in each period or before it yields.
        pub amount_ns: Option<i64> as Ns,
        /// Length of a period.
        pub period_ns: Option<i64> as Ns,
        /// What wakes it.
        pub timer: LoadTimer,
        /// How it is scheduled.
        pub policy: Policy,
        /// Real-time priority (1 … 99, the highest first), or nice value (-20 first … 19).
        pub priority: i32 as Number,
        /// Of a reservation, CPU time in each of its periods.
        pub reserved_ns: Option<i64> as Ns,
        /// Of a reservation, the period.
        pub reserved_period_ns: Option<i64> as Ns,
        /// The only CPU that it may run on; null if there are several.
        pub only_cpu: Option<i32> as Cpu,
        /// Longest response of its jobs by the analysis of response times (Hourglass, section 5.5), without switches
        /// and interrupts: for `PERIODIC` with `SCHED_FIFO` on one CPU, where everything above it is that, too.
        pub bound_ns: Option<i64> as Ns,
        /// Gap-free runs, in `runs`.
        pub runs: i64 as Count,
        /// Sum of the runs.
        pub run_ns: i64 as Ns,
        /// Sum of the gaps between them. With `run_ns` it is the time from its first reading of the counter to its
        /// last.
        pub gap_ns: i64 as Ns,
        /// Jobs that it has begun.
        pub jobs: i64 as Count,
        /// Deadlines that were met.
        pub hit: i64 as Count,
        /// Deadlines that were missed. `PERIODIC`: each whole period is one deadline. `CPU_PERIODIC`: a job meets one,
        /// and misses one for each further period that goes by without its end.
        pub missed: i64 as Count,
        /// Sleeps, in `timer_latency`.
        pub sleeps: i64 as Count,
        /// [`Mark`]: `exact`; `lower bound` when events of the worker were lost, or it says itself that it did more
        /// than the trace has; or `censored` when its end was not recorded.
        pub mark: Mark,
    }
}

table! {
    "runs",
    /// `runs`: one time in which a worker of a load had the CPU without a gap. Runs and the `gaps` between them tile the
    /// worker's time: a run ends where a gap begins, to the nanosecond.
    pub struct LoadRun {
        /// First reading of the counter in it.
        pub ts: Nanos,
        /// Last reading minus the first.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Number of the worker.
        pub worker: i32 as Number,
        /// CPU; a thread changes its CPU in a gap only.
        pub cpu: Cpu,
        /// Why it ended.
        pub ended: RunEnd,
        /// Length of the gap behind it; null for the last one.
        pub gap_ns: Option<i64> as Ns,
        /// Decomposition of `dur`: what there is beside *running* was shorter than the worker's threshold for gaps. Null
        /// without a kernel stream, or where it is older than what is kept of the worker's time.
        pub parts: Option<Decomposition>,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, or `lower bound` when records
        /// were lost during the run.
        pub mark: Mark,
    }
}

table! {
    "jobs",
    /// `jobs`: one job of a periodic worker of a load, and where its response time went.
    pub struct LoadJob {
        /// Release: begin of its period; of `CPU_PERIODIC`, its start.
        pub ts: Nanos,
        /// Response time: finish minus release. Of a job that did not finish, what it lasted until the worker or the
        /// trace ended, or records were lost.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Number of the worker.
        pub worker: i32 as Number,
        /// Number of the job, from 0 on.
        pub number: i64 as Number,
        /// Due: end of its period.
        pub due: Nanos,
        /// When the worker began with it.
        pub start: Nanos,
        /// When it had had its time; null where that did not come.
        pub finish: Option<i64> as Ns,
        /// What became of its deadline.
        pub deadline: Deadline,
        /// Of `dur`, the time in which the worker was still at its earlier jobs.
        pub backlog_ns: i64 as Ns,
        /// Decomposition of `dur` without `backlog_ns`. *Running* is what the job had, between gaps; *blocked* is the
        /// timer's lateness, from the release to the waking; what the worker had of the CPU in gaps, without a
        /// record of what else it was, is *unexplained*: the way into the kernel and back, faults, steal. Null without a kernel
        /// stream.
        pub parts: Option<Decomposition>,
        /// Who (thread) or which (interrupt, `late timer`) took most of it from the job; null when nobody is known to
        /// have.
        pub culprit: Option<Name>,
        /// Its thread id, if it is one; 0: idle, which had the CPU while the worker was being woken.
        pub culprit_tid: Option<i32> as Tid,
        /// How long.
        pub culprit_ns: Option<i64> as Ns,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, `lower bound` when records were
        /// lost meanwhile or it is not known of all of it who had the CPU, or `censored` when the job did not finish.
        pub mark: Mark,
    }
}

table! {
    "timer_latency",
    /// `timer_latency`: one sleep of a worker of a load, and why it ran later than it wanted to. `timer_ns`, `interrupt_ns`,
    /// `dispatch_ns` and `return_ns` sum to `dur`; they are null without a kernel stream, and where the worker did not
    /// sleep at all.
    pub struct TimerLatency {
        /// Until when it was to sleep.
        pub ts: Nanos,
        /// From then until it had read the clock again.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Number of the worker.
        pub worker: i32 as Number,
        /// What wakes it.
        pub timer: LoadTimer,
        /// CPU on which it ran then.
        pub cpu: Option<i32> as Cpu,
        /// A late timer: until the interrupt in which it was woken began; until the waking, where that was not recorded: an
        /// interrupt that strikes a thread that is not observed has a record with `record -a` alone. 0 where it was woken
        /// before `ts`, by a tick of a timer that has no finer ones.
        pub timer_ns: Option<i64> as Ns,
        /// A late interrupt: from its begin, or `ts`, to the waking.
        pub interrupt_ns: Option<i64> as Ns,
        /// A late dispatch: from the waking, or `ts`, to the switch that let it run. If it had been woken and had run before
        /// `ts`, and then lost the CPU: from then, or `ts`, to the switch that let it go on.
        pub dispatch_ns: Option<i64> as Ns,
        /// The way back: the rest until it had read the clock.
        pub return_ns: Option<i64> as Ns,
        /// The interrupt; null where none was recorded.
        pub interrupt: Option<Name>,
        /// Who had the CPU longest during the dispatch; 0: idle, which was being woken itself. Null when unknown.
        pub running_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub running_comm: Option<Name>,
        /// How long it had it, as far as that is surely after `ts`.
        pub running_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, or `lower bound` when records were
        /// lost meanwhile, or it is not known of all of it who had the CPU.
        pub mark: Mark,
    }
}

table! {
    "switches",
    /// `switches`: what lay between two neighbouring runs of workers of one load on one CPU, as it can be inferred without the
    /// kernel, and as the kernel recorded it. `out_ns`, `others_ns` and `in_ns` sum to `dur`.
    pub struct LoadSwitch {
        /// End of the run before.
        pub ts: Nanos,
        /// Begin of the run behind, minus that.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread whose run begins.
        pub tid: Tid,
        /// Number of its worker.
        pub worker: i32 as Number,
        /// Thread whose run has ended.
        pub from_tid: Tid,
        /// Number of its worker.
        pub from_worker: i32 as Number,
        /// CPU.
        pub cpu: Cpu,
        /// Why the run before ended.
        pub ended: RunEnd,
        /// What it was, by inference.
        pub inferred: SwitchKind,
        /// What it was, by the kernel's account; null without one.
        pub kernel: Option<SwitchSeen>,
        /// From the run before to the first switch: the way into the kernel, and what is done there before. Null without a
        /// switch.
        pub out_ns: Option<i64> as Ns,
        /// From the first switch to the last: other threads. Null without a switch.
        pub others_ns: Option<i64> as Ns,
        /// From the last switch to the run behind: the way back. Null without a switch.
        pub in_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, or `lower bound` when records were lost since its begin: switches may be missing.
        pub mark: Mark,
    }
}
