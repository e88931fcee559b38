//! What only a page has room for: how the lengths of the waits are distributed, and who waited for what.

use super::super::apart::{apart, locks_apart};
use super::{LockWaits, SHOWN, ThreadWaits, WaitsReport};
use crate::document::{Data, Histogram, Lock, Section, Thread, Typed, Value};
use crate::stats::OTHERS;

/// Locks and threads of the matrix; further ones are in a row and a column of others.
const DRAWN: usize = 20;

/// Adds the figures.
pub(super) fn add(report: &WaitsReport, s: &mut Section) {
    let each = if report.locks.len() > 1 { SHOWN } else { 0 };
    let drawn = || [&report.all].into_iter().chain(report.locks.iter().take(each));
    let names = locks_apart(drawn().map(|l| (&*l.lock, &*l.kind, l.pid)));
    let histogram = |(l, name): (&LockWaits, String)| Histogram {
        of: Lock::named(&name).value(),
        bins: l.histogram_100ns.clone(),
    };
    let each = drawn().zip(names).map(histogram).collect();
    s.figure("Distribution of the waits", Data::Histograms { counted: "waits", each });
    s.figure("Who waited for which lock, and how long in all", matrix(&report.by_thread));
}

/// Locks by threads.
fn matrix(waits: &[ThreadWaits]) -> Data {
    let locks = ranked(waits, |w| (w.pid, &*w.lock));
    let threads = ranked(waits, |w| (w.pid, w.tid));
    let at = |found: Option<usize>| found.unwrap_or(DRAWN).min(DRAWN);
    let mut cells = std::collections::BTreeMap::<(usize, usize), (u64, i64)>::new();
    for w in waits {
        let lock = at(locks.iter().position(|key| *key == (w.pid, &*w.lock)));
        let thread = at(threads.iter().position(|key| *key == (w.pid, w.tid)));
        let (n, ns) = cells.entry((lock, thread)).or_default();
        *n += w.waits;
        *ns = ns.saturating_add(w.total_ns);
    }
    let named = |(pid, tid): (i32, i32)| {
        let comm = waits.iter().find(|w| (w.pid, w.tid) == (pid, tid)).map_or("", |w| &w.comm);
        if tid == 0 { OTHERS.to_owned() } else { format!("{comm} {tid}") }
    };
    let names = apart(locks.iter().take(DRAWN).map(|(pid, lock)| (*lock, *pid)), "pid ");
    let mut rows: Vec<Value> = names.iter().map(|name| Lock::named(name).value()).collect();
    let mut columns: Vec<Value> =
        threads.iter().take(DRAWN).map(|key| Thread::named(&named(*key)).value()).collect();
    if locks.len() > DRAWN {
        rows.push(Lock::named(OTHERS).value());
    }
    if threads.len() > DRAWN {
        columns.push(Thread::named(OTHERS).value());
    }
    Data::Matrix {
        rows: ("lock", rows),
        columns: ("thread", columns),
        cells: cells.into_iter().map(|((row, column), (n, ns))| (row, column, n, ns)).collect(),
        counted: "waits",
    }
}

/// Everything that the rows are about, the longest total first.
fn ranked<'a, K: Ord + Copy>(
    waits: &'a [ThreadWaits],
    key: impl Fn(&'a ThreadWaits) -> K,
) -> Vec<K> {
    let mut sums = std::collections::BTreeMap::<K, i64>::new();
    for w in waits {
        let sum = sums.entry(key(w)).or_default();
        *sum = sum.saturating_add(w.total_ns);
    }
    let mut keys: Vec<(K, i64)> = sums.into_iter().collect();
    keys.sort_by_key(|&(key, ns)| (std::cmp::Reverse(ns), key));
    keys.into_iter().map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_one_name_in_two_processes_are_told_apart() {
        let wait = |pid: i32| ThreadWaits {
            pid,
            lock: "book".into(),
            tid: pid,
            comm: "t".into(),
            waits: 1,
            total_ns: i64::from(pid),
            max_ns: 1,
        };
        let Data::Matrix { rows: (_, rows), .. } = matrix(&[wait(7), wait(8)]) else {
            panic!("a matrix")
        };
        let named = |name: &str| Lock::named(name).value();
        assert_eq!(rows, [named("book pid 8"), named("book pid 7")]);
    }

    #[test]
    fn no_wait_is_missing_from_the_matrix() {
        let wait = |tid: i32, lock: usize| ThreadWaits {
            pid: 1,
            lock: format!("lock {lock:02}"),
            tid,
            comm: "t".into(),
            waits: 1,
            total_ns: 1_000 - i64::from(tid) - lock as i64,
            max_ns: 1,
        };
        let waits: Vec<ThreadWaits> =
            (1..=30).flat_map(|tid| (0..25).map(move |lock| wait(tid, lock))).collect();
        let Data::Matrix { rows: (_, rows), columns: (_, columns), cells, .. } = matrix(&waits)
        else {
            panic!("a matrix")
        };
        assert_eq!((rows.len(), columns.len(), cells.len()), (21, 21, 21 * 21));
        assert_eq!(
            (&rows[0], &columns[0]),
            (&Lock::named("lock 00").value(), &Thread::named("t 1").value())
        );
        assert_eq!(rows[20], Lock::named(OTHERS).value());
        assert_eq!(cells.iter().map(|cell| cell.2).sum::<u64>(), 750);
        assert_eq!(
            cells.iter().map(|cell| cell.3).sum::<i64>(),
            waits.iter().map(|w| w.total_ns).sum::<i64>()
        );
        assert_eq!(cells[20], (0, 20, 10, (21..=30).map(|tid| 1_000 - tid).sum::<i64>()));
    }
}
