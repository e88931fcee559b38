//! What a run is to do: threads and how each is scheduled, when it runs and what it does.

use super::class::{Class, Priority};
use super::timer::Timer;
use super::workload::Workload;
use crate::Error;
use crate::time::Time;

/// Threads of one run. More than that one machine has no use for.
///
/// Limit: the run is refused, with the remedy.
/// Shown by: `bad_lines_get_one_sentence_…`.
pub(super) const MAX_THREADS: usize = 1024;

/// Runs that the execution trace has room for, unless `-e` says otherwise.
pub(super) const DEFAULT_RECORDS: usize = 300_000;

/// The most that can be asked for: 2.4 GB.
///
/// Limit: further runs are counted (`lost:`); the times of threads include them.
/// Shown by: `runs_without_room_are_counted`.
pub(super) const MAX_RECORDS: usize = 100_000_000;

/// Jobs, or samples of latency, that one thread may make: some 500 MB.
///
/// Limit: as `MAX_THREADS`.
const MAX_JOBS: u64 = 10_000_000;

/// A pass of a loop takes some 20 ns, and a gap with an interrupt in it seldom less than this.
pub(super) const DEFAULT_GAP_NS: u64 = 1_000;

/// The longest run: a day. Threads of a high priority end in time.
///
/// Limit: as `LONGEST_NS` of `events.rs`.
const LONGEST_NS: u64 = 24 * 3_600_000_000_000;

/// A run: what all threads have in common, and the threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// How long it takes, from the moment that is called 0 in its output, ns.
    pub duration_ns: u64,
    /// How many runs the execution trace has room for, of all threads together.
    pub records: usize,
    /// Two readings of the counter that are farther apart are a gap, ns.
    pub gap_ns: u64,
    /// Whether it is an error when memory cannot be locked.
    pub lock_memory: bool,
    /// The threads, by their number.
    pub threads: Vec<Plan>,
}

/// What one thread is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name in traces; `hourglass/N` where it has none.
    pub name: Option<String>,
    /// What it does.
    pub workload: Workload,
    /// How it is scheduled; `None`: as the process is.
    pub class: Option<Class>,
    /// What wakes it.
    pub timer: Timer,
    /// CPUs that it may run on; empty: those of the process.
    pub cpus: Vec<usize>,
    /// Time that it asks for at once, where the ordinary scheduler is its own (EEVDF), ns.
    pub slice_ns: Option<u64>,
    /// When it begins, ns into the run.
    pub start_ns: u64,
    /// When it ends, ns into the run; `None`: with it.
    pub finish_ns: Option<u64>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            name: None,
            workload: Workload::Cpu { scan_kb: None, yield_after_ns: None },
            class: None,
            timer: Timer::Native,
            cpus: Vec::new(),
            slice_ns: None,
            start_ns: 0,
            finish_ns: None,
        }
    }
}

impl Plan {
    /// When it ends, ns into a run of this scenario.
    pub(super) fn finish_ns(&self, scenario: &Scenario) -> u64 {
        self.finish_ns.unwrap_or(scenario.duration_ns)
    }

    /// How many jobs, or samples of latency, it makes at most.
    pub(super) fn most_jobs(&self, scenario: &Scenario) -> u64 {
        let whole = self.finish_ns(scenario).saturating_sub(self.start_ns);
        match self.workload {
            Workload::Cpu { .. } => 0,
            Workload::Periodic { period_ns, .. } | Workload::Latency { period_ns } => {
                whole / period_ns + 2
            }
            Workload::CpuPeriodic { amount_ns, .. } => whole / amount_ns + 2,
        }
    }

    /// One of its settings.
    pub(super) fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Workload(workload) => self.workload = workload,
            Setting::Class(class) => self.class = Some(class),
            Setting::Timer(timer) => self.timer = timer,
            Setting::Cpus(cpus) => self.cpus = cpus,
            Setting::Slice(ns) => self.slice_ns = Some(ns),
            Setting::Start(ns) => self.start_ns = ns,
            Setting::Finish(ns) => self.finish_ns = Some(ns),
        }
    }
}

/// What can be said of a thread, on a command line or in a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Setting {
    Workload(Workload),
    Class(Class),
    Timer(Timer),
    Cpus(Vec<usize>),
    Slice(u64),
    Start(u64),
    Finish(u64),
}

impl Scenario {
    /// Checks what only the whole shows.
    ///
    /// # Errors
    ///
    /// A sentence for the first part that makes no sense.
    pub(super) fn check(self) -> Result<Self, Error> {
        if self.duration_ns > LONGEST_NS {
            return Err(Error::usage("a run takes a day at most; give a shorter duration"));
        }
        for (n, plan) in self.threads.iter().enumerate() {
            let finish = plan.finish_ns(&self);
            if finish > self.duration_ns {
                return Err(Error::usage(format!(
                    "thread {n} would finish at {}, after the end of the run at {}; lengthen the run with -d",
                    Time(finish),
                    Time(self.duration_ns)
                )));
            }
            if plan.start_ns >= finish {
                return Err(Error::usage(format!(
                    "thread {n} would start at {} and finish at {}; let it start earlier",
                    Time(plan.start_ns),
                    Time(finish)
                )));
            }
            let jobs = plan.most_jobs(&self);
            if jobs > MAX_JOBS {
                return Err(Error::usage(format!(
                    "thread {n} would have {jobs} periods, and there is room for {MAX_JOBS}; make them longer, or the run shorter"
                )));
            }
            let ordinary = match plan.class {
                None | Some(Class::Priority(Priority::Nice(_))) => true,
                Some(_) => false,
            };
            if plan.slice_ns.is_some() && !ordinary {
                return Err(Error::usage(format!(
                    "thread {n} has a slice, which only the ordinary scheduler knows; leave out its slice, or \
                     its priority or reservation"
                )));
            }
        }
        Ok(self)
    }
}
