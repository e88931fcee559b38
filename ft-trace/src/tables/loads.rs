//! Tables of loads whose truth is known: what `ft-load hourglass` was to do, and what became of it.

use super::results::Decomposition;
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
        /// One that is not known here, or was not told.
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
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, `lower bound` when records were
        /// lost meanwhile or it is not known of all of it who had the CPU, or `censored` when the job did not finish.
        pub mark: Mark,
    }
}
