//! What waiters did while nobody held their lock: asleep until somebody woke them, without a CPU, or on the way.

use serde::Serialize;

use super::{LockWaits, SHOWN};
use crate::document::{Lock, MeanNs, N, Ns, Section, Share, Table, Text, Thread, Word};
use crate::text;
use ft_trace::tables::LockWait;

/// Names behind which waiters waited that are shown.
const SHOWN_BEHIND: usize = 5;

/// The waiters' own time while nobody held the lock; the four sum to that.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Free {
    /// Asleep: nobody had woken them yet, ns.
    pub asleep_ns: i64,
    /// They could run, and waited for a CPU, ns.
    pub runnable_ns: i64,
    /// They had a CPU, interrupts included, ns.
    pub running_ns: i64,
    /// Covered by no record of theirs, ns.
    pub unknown_ns: i64,
    /// Waits whose last wake-up came while the lock was free, and from when it was free until then in all, and at most, ns.
    pub woken: u64,
    /// In all.
    pub woken_after_ns: i64,
    /// At most.
    pub woken_after_max_ns: i64,
    /// How often others took the lock first that had begun to wait later, or did not wait at all.
    pub overtaken: u64,
    /// Waits in which that happened.
    pub waits_overtaken: u64,
}

impl Free {
    /// Counts a wait.
    pub(super) fn add(&mut self, r: &LockWait) {
        self.asleep_ns += r.free_asleep_ns.unwrap_or(0);
        self.runnable_ns += r.free_runnable_ns.unwrap_or(0);
        self.running_ns += r.free_running_ns.unwrap_or(0);
        self.unknown_ns += r.free_unknown_ns.unwrap_or(0);
        if let Some(ns) = r.woken_after_ns {
            self.woken += 1;
            self.woken_after_ns += ns;
            self.woken_after_max_ns = self.woken_after_max_ns.max(ns);
        }
        self.overtaken += u64::from(r.overtaken.unsigned_abs());
        self.waits_overtaken += u64::from(r.overtaken > 0);
    }
}

/// Behind whom waiters waited for a CPU while nobody held their lock, by name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Behind {
    /// Name of the thread that had the CPU longest, in each wait.
    pub comm: String,
    /// Waits.
    pub waits: u64,
    /// How long it had it in these, ns; at least.
    pub total_ns: i64,
}

impl Behind {
    /// Counts a wait.
    pub(super) fn add(&mut self, ns: i64) {
        self.waits += 1;
        self.total_ns += ns;
    }
}

/// Says it, by lock.
pub(super) fn say(
    locks: &[LockWaits],
    total: Option<&LockWaits>,
    behind: &[Behind],
    s: &mut Section,
) {
    let t = Table::first(SHOWN, locks)
        .total(total)
        .column("lock", |l| Lock::named(&l.lock))
        .column("kind", |l| Word(&l.kind))
        .processes(|l| l.pid)
        .column("no holder", |l| Ns(l.no_holder_ns))
        .column("asleep", |l| Share(l.free.asleep_ns, l.no_holder_ns))
        .column("runnable", |l| Share(l.free.runnable_ns, l.no_holder_ns))
        .column("running", |l| Share(l.free.running_ns, l.no_holder_ns))
        .column("unknown", |l| Share(l.free.unknown_ns, l.no_holder_ns))
        .column("woken after", |l| {
            let mean = l.free.woken_after_ns as f64 / l.free.woken as f64;
            (l.free.woken > 0).then_some(MeanNs(mean))
        })
        .column("max", |l| (l.free.woken > 0).then_some(Ns(l.free.woken_after_max_ns)))
        .column("overtaken", |l| N(l.free.overtaken))
        .column("waits", |l| N(l.free.waits_overtaken));
    s.table(t.titled(
        "What its waiters did while nobody held the lock: asleep, and how long after its release they were woken (mean, \
         max); runnable, without a CPU; running, on their way. Overtaken: how often others that came later took it first, \
         and in how many waits",
    ));
    if !behind.is_empty() {
        let t = Table::first(SHOWN_BEHIND, behind)
            .column("thread", |b| Thread::named(&b.comm))
            .column("waits", |b| N(b.waits))
            .column("total", |b| Ns(b.total_ns))
            .counted("names");
        s.table(
            t.titled("Who had the CPU then, while waiters could run: the longest in each wait"),
        );
    }
}

/// The same of all locks in a sentence; nothing where somebody held them nearly all the time, or the kernel was not recorded.
pub(in crate::sections) fn sentence(all: &LockWaits) -> Option<Text> {
    let (f, free) = (&all.free, all.no_holder_ns);
    let known = f.asleep_ns + f.runnable_ns + f.running_ns;
    (known > 0 && free > all.total_ns / 100).then(|| {
        text!(
            "{} of it while nobody held the lock: the waiter asleep {}, without a CPU {}, on its way {}",
            Share(free, all.total_ns),
            Share(f.asleep_ns, free),
            Share(f.runnable_ns, free),
            Share(f.running_ns, free)
        )
    })
}
