//! Where the time of intervals went.

use ft_trace::tables::Decomposition;
use serde::Serialize;

use crate::document::{Builder, Ns, Share};

/// Sums of [`Decomposition`]s, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// On a CPU, in the thread itself.
    pub running_ns: i64,
    /// Runnable, after the CPU was taken away.
    pub preempted_ns: i64,
    /// Woken, and waiting for a CPU.
    pub dispatch_ns: i64,
    /// Asleep.
    pub blocked_ns: i64,
    /// In hardware interrupts.
    pub hardirq_ns: i64,
    /// In soft interrupts.
    pub softirq_ns: i64,
    /// In interrupts of the kernel's own vectors.
    pub vector_ns: i64,
    /// Whatever the records do not explain.
    pub unexplained_ns: i64,
}

/// The columns of all tables of parts.
type Column = (&'static str, fn(&Parts) -> i64);
const COLUMNS: [Column; 6] = [
    ("running", |p| p.running_ns),
    ("preempted", |p| p.preempted_ns),
    ("dispatch", |p| p.dispatch_ns),
    ("blocked", |p| p.blocked_ns),
    ("irqs", Parts::interrupts_ns),
    ("unexpl.", |p| p.unexplained_ns),
];

impl Parts {
    /// Time in any interrupt, ns.
    pub fn interrupts_ns(&self) -> i64 {
        self.hardirq_ns + self.softirq_ns + self.vector_ns
    }

    /// Sum of all parts, ns.
    pub fn total_ns(&self) -> i64 {
        COLUMNS.iter().map(|(_, part)| part(self)).sum()
    }

    /// Adds those of an interval.
    pub fn add(&mut self, d: &Decomposition) {
        self.running_ns += d.running_ns;
        self.preempted_ns += d.preempted_ns;
        self.dispatch_ns += d.dispatch_ns;
        self.blocked_ns += d.blocked_ns;
        self.hardirq_ns += d.hardirq_ns;
        self.softirq_ns += d.softirq_ns;
        self.vector_ns += d.vector_ns;
        self.unexplained_ns += d.unexplained_ns;
    }

    /// Adds a column for each part, as durations; empty where nothing is known.
    pub(crate) fn durations<T>(t: Builder<T>, of: impl Fn(&T) -> Option<Parts>) -> Builder<T> {
        let add = |t: Builder<T>, (title, part): Column| {
            t.column(title, |item| of(item).map(|parts| Ns(part(&parts))))
        };
        COLUMNS.into_iter().fold(t, add)
    }

    /// Adds a column for each part, as shares of `whole`.
    pub(crate) fn shares<T>(t: Builder<T>, of: impl Fn(&T) -> (Parts, i64)) -> Builder<T> {
        let add = |t: Builder<T>, (title, part): Column| {
            t.column(title, |item| {
                let (parts, whole) = of(item);
                Share(part(&parts), whole)
            })
        };
        COLUMNS.into_iter().fold(t, add)
    }
}

impl From<&Decomposition> for Parts {
    fn from(d: &Decomposition) -> Self {
        let mut parts = Parts::default();
        parts.add(d);
        parts
    }
}
