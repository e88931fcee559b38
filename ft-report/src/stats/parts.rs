//! Where the time of intervals went, as columns.

use ft_trace::tables::Decomposition;

use crate::document::{Builder, Ns, Share};

type Column = (&'static str, fn(&Decomposition) -> i64);

/// The columns of all tables of parts.
const COLUMNS: [Column; 6] = [
    ("running", |p| p.running_ns),
    ("preempted", |p| p.preempted_ns),
    ("dispatch", |p| p.dispatch_ns),
    ("blocked", |p| p.blocked_ns),
    ("irqs", Decomposition::interrupts_ns),
    ("unexpl.", |p| p.unexplained_ns),
];

/// Adds a column for each part, as durations; empty where nothing is known.
pub(crate) fn durations<T>(t: Builder<T>, of: impl Fn(&T) -> Option<Decomposition>) -> Builder<T> {
    let add = |t: Builder<T>, (title, part): Column| {
        t.column(title, |item| of(item).map(|parts| Ns(part(&parts))))
    };
    COLUMNS.into_iter().fold(t, add)
}

/// Adds a column for each part, as shares of a whole.
pub(crate) fn shares<T>(t: Builder<T>, of: impl Fn(&T) -> (Decomposition, i64)) -> Builder<T> {
    let add = |t: Builder<T>, (title, part): Column| {
        t.column(title, |item| {
            let (parts, whole) = of(item);
            Share(part(&parts), whole)
        })
    };
    COLUMNS.into_iter().fold(t, add)
}
