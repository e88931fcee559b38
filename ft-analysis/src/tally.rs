//! What the analyses saw and could not use: the coverage that stands beside every figure.

use serde::{Deserialize, Serialize};

use crate::agreement::Agreement;
use crate::{
    Extensions, FunctionCounts, Incomplete, LoopCounts, Overhead, Overlaps, Races, RequestCounts,
    RingWaits, TaskCounts, Unaccounted, Unfinished, Unpaired, Worked,
};

/// Version of the tables that the analyses write and of this file.
pub const VERSION: u32 = 26;

/// Counts of one run of the analyses; `DIR/analysis.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// [`VERSION`].
    pub version: u32,
    /// Scheduler records were there, so intervals are decomposed.
    pub kernel: bool,
    /// Events that were read.
    pub events: u64,
    /// Time of the last event, CLOCK_MONOTONIC ns.
    pub last_ns: i64,
    /// Events that came earlier than the event before them; not analysed.
    pub disordered: u64,
    /// Holds with a row.
    pub holds: u64,
    /// Holds and waits without one.
    pub incomplete: Incomplete,
    /// Holds released in another order than the reverse of their acquisition.
    pub out_of_order_releases: u64,
    /// Holds of one lock that overlap.
    #[serde(skip_serializing_if = "Overlaps::is_none")]
    pub overlaps: Overlaps,
    /// What came of the time-slice extensions that holders asked for, of the holds with a row.
    #[serde(skip_serializing_if = "Extensions::is_none")]
    pub extensions: Extensions,
    /// Waits for locks with a row.
    pub waits: u64,
    /// Times that a holder of locks could have run and did not, and then ran again.
    pub preemptions: u64,
    /// Such times without a row.
    pub unfinished_preemptions: Unfinished,
    /// Holds in which the holder could have run and did not, and whose release was not recorded.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreleased_held_up: u64,
    /// Holds of semaphores in which the holder could have run and did not: no such time has a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub semaphores_held_up: u64,
    /// Acquisitions whose edge in `lock_order` did not fit.
    pub order_not_kept: u64,
    /// Wake-ups with a row.
    pub dispatches: u64,
    /// Wake-ups without one.
    pub races: Races,
    /// Gaps with a row.
    pub gaps: u64,
    /// Gaps without the kernel's account.
    pub unaccounted: Unaccounted,
    /// Causes inferred of gaps against those that the kernel saw.
    pub agreement: Agreement,
    /// Scopes with a row.
    pub scopes: u64,
    /// Scopes without one.
    pub unpaired_scopes: Unpaired,
    /// Calls of functions.
    #[serde(skip_serializing_if = "FunctionCounts::is_none")]
    pub functions: FunctionCounts,
    /// Requests.
    #[serde(skip_serializing_if = "RequestCounts::is_none")]
    pub requests: RequestCounts,
    /// Async tasks and their polls.
    #[serde(skip_serializing_if = "TaskCounts::is_none")]
    pub tasks: TaskCounts,
    /// Waits at futexes and semaphores with a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub futex_waits: u64,
    /// Waits for locks of the kernel with a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub kernel_waits: u64,
    /// Waits for locks of the kernel of which only the end was recorded.
    #[serde(skip_serializing_if = "is_zero")]
    pub kernel_waits_without_begin: u64,
    /// Waits for locks of the kernel in the name of threads that are not observed, or of an idle CPU.
    #[serde(skip_serializing_if = "is_zero")]
    pub kernel_waits_of_others: u64,
    /// Loops of `ft-load npt`.
    #[serde(skip_serializing_if = "LoopCounts::is_none")]
    pub loops: LoopCounts,
    /// What workers of loads did.
    #[serde(skip_serializing_if = "Worked::is_none")]
    pub worked: Worked,
    /// Threads that polled.
    pub pollers: u64,
    /// Interrupt rows of threads that the scheduler said were off the CPU, or that nest deeper than interrupts can; not
    /// counted anywhere.
    pub interrupts_off_cpu: u64,
    /// Switches away from a thread that, by the record before, did not have the CPU: at least one switch in
    /// between was not recorded, and no loss accounts for it.
    pub unseen_switches: u64,
    /// Times that a thread had waited for a CPU and gone to another one, and then a switch on the first showed that who
    /// had it is not sure. Rows that were finished by then are not marked.
    pub doubtful_shares: u64,
    /// Times a thread recorded an event, made a call or took a fault while, by its last switch, it had been off the CPU
    /// for longer than the clock can be wrong: it ran unseen.
    pub ran_unseen: u64,
    /// Events of sites that the trace does not describe; not analysed.
    pub unknown_sites: u64,
    /// User events that were lost.
    pub lost_user_events: u64,
    /// Kernel records that were lost.
    pub lost_kernel_records: u64,
    /// Samples against the time that threads had CPUs.
    #[serde(skip_serializing_if = "Samples::is_none")]
    pub samples: Samples,
    /// Waits for room in the threads' own rings.
    #[serde(skip_serializing_if = "RingWaits::is_none")]
    pub ring_waits: RingWaits,
    /// Threads that counted (`record --counter`).
    #[serde(skip_serializing_if = "Counting::is_none")]
    pub counting: Counting,
    /// What the recording itself did; not known of a trace that does not say who recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
}

/// Samples of observed threads, by the time that they had CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Samples {
    /// So many were to be expected.
    pub expected: u64,
    /// So many of them are missing beyond what chance explains, and no loss counts them.
    pub missing: u64,
}

impl Samples {
    /// Whether there is nothing to say.
    pub fn is_none(&self) -> bool {
        self.missing == 0
    }
}

/// Which threads read counters with their events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counting {
    /// Names of the counters, in the order of the columns `counter0` and `counter1`.
    pub names: Vec<String>,
    /// Threads that did.
    pub threads: u64,
    /// Times that a thread was refused its counters.
    pub refused: u64,
    /// The error of perf_event_open(2) the last time; 0: none was.
    pub errno: i32,
}

impl Counting {
    /// There were neither.
    pub fn is_none(&self) -> bool {
        self.threads == 0 && self.refused == 0
    }
}

pub(crate) fn is_zero(n: &u64) -> bool {
    *n == 0
}
