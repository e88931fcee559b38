//! Where the time of intervals went, as columns.

use ft_trace::tables::Decomposition;

use crate::document::{Builder, Ns, Section, Share};

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

/// What only intervals of tasks have, so that most tables are without it.
const PARKED: Column = ("parked", |p| p.parked_ns);

/// Says what *parked* is, where there is any.
pub(crate) fn explain<'a>(s: &mut Section, all: impl IntoIterator<Item = &'a Decomposition>) {
    if all.into_iter().any(|parts| parts.parked_ns > 0) {
        s.say(
            "*parked*: no thread ran the task in which it began (a fiber that was switched out, an async task between polls).",
        );
    }
}

/// Adds a column for each part, as durations; empty where nothing is known.
pub(crate) fn durations<T>(t: Builder<T>, of: impl Fn(&T) -> Option<Decomposition>) -> Builder<T> {
    let add = |t: Builder<T>, (title, part): Column| {
        t.column(title, |item| of(item).map(|parts| Ns(part(&parts))))
    };
    let any = t.any(|item| of(item).is_some_and(|parts| parts.parked_ns > 0));
    COLUMNS.into_iter().chain(any.then_some(PARKED)).fold(t, add)
}

/// Adds a column for each part, as shares of a whole.
pub(crate) fn shares<T>(t: Builder<T>, of: impl Fn(&T) -> (Decomposition, i64)) -> Builder<T> {
    let add = |t: Builder<T>, (title, part): Column| {
        t.column(title, |item| {
            let (parts, whole) = of(item);
            Share(part(&parts), whole)
        })
    };
    let any = t.any(|item| of(item).0.parked_ns > 0);
    COLUMNS.into_iter().chain(any.then_some(PARKED)).fold(t, add)
}
