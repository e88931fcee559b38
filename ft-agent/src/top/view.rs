//! What `ft-agent top` shows, on the screen and as JSON.

use serde::Serialize;

use ft_analysis::Mark;
use ft_trace::tables::PreemptionCause;

/// What is shown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct View {
    /// Nothing more comes: the recording has ended.
    pub is_over: bool,
    /// How long it was watched, ns.
    pub age_ns: u64,
    /// The time that the tables are of, ns.
    pub window_ns: u64,
    /// Of it, what was looked at, ns.
    pub covered_ns: i64,
    /// Bytes that were read in this time; of those after a gap only what is surely all there counts as looked at.
    pub kept_bytes: u64,
    /// Bytes that the recording writes in a second, null at the first look.
    pub bytes_per_s: Option<f64>,
    /// Events and records in a second; estimated where bytes were skipped, null before anything was read.
    pub events_per_s: Option<f64>,
    /// Bytes were skipped in the last look, or are left for the next.
    pub skipped: bool,
    /// How old the last look's newest is, ns, by the bytes that have come since: there was no time to skip all of them.
    pub behind_ns: u64,
    /// Losses may have been skipped, too.
    pub is_unread: bool,
    /// Events and records that were lost since it watches.
    pub lost: u64,
    /// Of these, in the last look.
    pub lost_now: u64,
    /// What watching takes of one CPU.
    pub own_share: f64,
    /// Locks, most waiting time first.
    pub locks: Vec<LockRow>,
    /// Holders that could have run and did not, the longest first.
    pub preempted: Vec<Preempted>,
    /// Wake-ups, the latest first.
    pub late: Vec<Late>,
}

/// One lock, in what was looked at.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockRow {
    /// Process.
    pub pid: i32,
    /// Name, or address.
    pub lock: String,
    /// `mutex`, …
    pub kind: String,
    /// Waits that ended with the lock.
    pub waits: u64,
    /// Their sum, ns.
    pub waited_ns: i64,
    /// The longest, ns.
    pub longest_wait_ns: i64,
    /// Holds that ended.
    pub holds: u64,
    /// Their sum, ns.
    pub held_ns: i64,
    /// The longest, ns.
    pub longest_hold_ns: i64,
    /// Who was to blame for most of the longest wait.
    pub behind: Option<String>,
    /// Where that one had acquired its lock.
    pub behind_place: Option<String>,
}

/// A holder that could have run and did not.
#[derive(Clone, Debug, Serialize)]
pub struct Preempted {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// The lock acquired last.
    pub lock: String,
    /// Where.
    pub place: String,
    /// Holder.
    pub holder: String,
    /// Why it did not run.
    pub cause: PreemptionCause,
    /// Who had the CPU longest.
    pub by: Option<String>,
    /// Waiters for the lock.
    pub waiters: i32,
    /// What that delayed them in all, ns.
    pub delayed_ns: i64,
    /// How far it can be believed.
    pub mark: Mark,
}

/// A wake-up.
#[derive(Clone, Debug, Serialize)]
pub struct Late {
    /// Since when it could run, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Until it ran, ns.
    pub dur_ns: i64,
    /// Thread.
    pub thread: String,
    /// Its number.
    pub tid: i32,
    /// CPU on which it then ran.
    pub cpu: i32,
    /// Who had the CPU longest.
    pub behind: Option<String>,
    /// How far it can be believed.
    pub mark: Mark,
}
