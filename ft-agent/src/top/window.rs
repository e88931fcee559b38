//! The last seconds: what each look found, and the tables made of them.

use std::collections::VecDeque;
use std::time::Duration;

use super::view::{Late, LockRow, Preempted, View};
use ft_analysis::{Mark, Rows};
use ft_report::stats::{Groups, IDLE, Top};
use ft_trace::ids::{Name, Pid};
use ft_trace::spool::News;

/// Looks that are summed up.
const LOOKS: usize = 10;

/// Locks of one look that are distinguished; further ones are one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `memory_is_bounded` in `top/window.rs`.
const MAX_LOCKS: usize = 1024;

/// Preemptions and wake-ups of one look that are kept: the longest.
///
/// Limit: the longest are shown, and no others.
/// Shown by: no figure: which rows are on the screen; the share is averaged by definition.
const KEPT: usize = 32;

/// Rows of each table.
const ROWS: usize = 64;

/// What one look found.
#[derive(Debug, Default)]
pub(super) struct Glance {
    /// Since the look before; zero for the first.
    of: Duration,
    bytes: u64,
    kept_bytes: u64,
    left_bytes: u64,
    lost: u64,
    skipped: bool,
    is_unread: bool,
    /// Events and records in what was read, also those of which not all was there.
    decoded: u64,
    covered_ns: i64,
    locks: Groups<MAX_LOCKS, (Pid, Name, Name), Sums>,
    preempted: Top<Preempted>,
    late: Top<Late>,
}

/// Sums of one lock.
#[derive(Clone, Debug, Default)]
struct Sums {
    waits: u64,
    waited_ns: i64,
    longest_wait_ns: i64,
    holds: u64,
    held_ns: i64,
    longest_hold_ns: i64,
    /// Of the longest wait, who held the lock longest.
    holder: Option<Name>,
    place: Option<Name>,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.waits += other.waits;
        self.waited_ns += other.waited_ns;
        self.holds += other.holds;
        self.held_ns += other.held_ns;
        self.longest_hold_ns = self.longest_hold_ns.max(other.longest_hold_ns);
        if other.longest_wait_ns > self.longest_wait_ns {
            self.longest_wait_ns = other.longest_wait_ns;
            (self.holder, self.place) = (other.holder.clone(), other.place.clone());
        }
    }
}

impl Glance {
    /// Of what came in this time; nothing of it was analysed yet.
    pub(super) fn of(elapsed: Duration, news: &News) -> Glance {
        Glance {
            of: elapsed,
            bytes: news.bytes,
            kept_bytes: news.kept_bytes,
            left_bytes: news.left_bytes,
            lost: news.lost,
            skipped: news.skipped,
            is_unread: news.is_unread,
            ..Glance::default()
        }
    }

    /// Takes the rows of intervals that ended.
    pub(super) fn take(&mut self, rows: Rows, decoded: u64, covered_ns: i64) {
        (self.decoded, self.covered_ns) = (decoded, covered_ns);
        for r in &rows.critical_sections {
            let one = Sums { holds: 1, held_ns: r.dur, longest_hold_ns: r.dur, ..Sums::default() };
            self.locks.entry((r.pid, r.lock_name.clone(), r.kind.clone())).add(&one);
        }
        for r in &rows.lock_waits {
            let one = Sums {
                waits: 1,
                waited_ns: r.dur,
                longest_wait_ns: r.dur,
                holder: r.root_comm.clone().or_else(|| r.holder_comm.clone()),
                place: r.root_place.clone().or_else(|| r.holder_place.clone()),
                ..Sums::default()
            };
            self.locks.entry((r.pid, r.lock_name.clone(), r.kind.clone())).add(&one);
        }
        for r in rows.lock_preemptions.iter().filter(|r| r.innermost) {
            self.preempted.offer(KEPT, r.dur, || Preempted {
                ts: r.ts.0,
                dur_ns: r.dur,
                lock: r.lock_name.to_string(),
                place: r.place.to_string(),
                holder: r.comm.to_string(),
                cause: r.cause,
                by: behind(r.preemptor_tid, r.preemptor_comm.as_ref()),
                waiters: r.waiters,
                delayed_ns: r.delayed_ns,
                mark: r.mark,
            });
        }
        for r in rows.dispatch_latency.iter().filter(|r| r.mark != Mark::Censored) {
            self.late.offer(KEPT, r.dur, || Late {
                ts: r.ts.0,
                dur_ns: r.dur,
                thread: r.comm.to_string(),
                tid: r.tid.0,
                cpu: r.cpu.0,
                behind: behind(r.running_tid, r.running_comm.as_ref()),
                mark: r.mark,
            });
        }
    }
}

/// Who had the CPU; each CPU's idle task has a name of its own.
fn behind(tid: Option<i32>, comm: Option<&Name>) -> Option<String> {
    comm.map(|comm| if tid == Some(0) { IDLE.to_owned() } else { comm.to_string() })
}

/// The looks of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Window(VecDeque<Glance>);

impl Window {
    pub(super) fn push(&mut self, glance: Glance) {
        self.0.push_back(glance);
        if self.0.len() > LOOKS {
            self.0.pop_front();
        }
    }

    /// The tables.
    pub(super) fn view(&self) -> View {
        let newest = self.0.back();
        let of_ns: u64 = self.0.iter().map(|g| g.of.as_nanos() as u64).sum();
        let covered_ns: i64 = self.0.iter().map(|g| g.covered_ns).sum();
        let mut locks: Groups<MAX_LOCKS, (Pid, Name, Name), Sums> = Groups::default();
        let (mut preempted, mut late) = (Top::default(), Top::default());
        for glance in &self.0 {
            let all = glance.locks.clone().into_ranked(|group| group, |_| ());
            all.into_iter().for_each(|(key, sums)| locks.entry(key).add(&sums));
            let all = glance.preempted.clone().into_sorted();
            all.into_iter().for_each(|p| preempted.offer(ROWS, p.dur_ns, || p));
            let all = glance.late.clone().into_sorted();
            all.into_iter().for_each(|l| late.offer(ROWS, l.dur_ns, || l));
        }
        let mut locks = locks.into_ranked(
            |((pid, lock, kind), s)| LockRow {
                pid: pid.0,
                lock: lock.to_string(),
                kind: kind.to_string(),
                waits: s.waits,
                waited_ns: s.waited_ns,
                longest_wait_ns: s.longest_wait_ns,
                holds: s.holds,
                held_ns: s.held_ns,
                longest_hold_ns: s.longest_hold_ns,
                behind: s.holder.map(|name| name.to_string()),
                behind_place: s.place.map(|place| place.to_string()),
            },
            |row| (-row.waited_ns, -row.held_ns, row.lock.clone(), row.kind.clone(), row.pid),
        );
        locks.truncate(ROWS);
        let (events, kept) =
            self.0.iter().fold((0, 0), |(e, k), g| (e + g.decoded, k + g.kept_bytes));
        // In what was skipped, as many as in the rest.
        let per_byte = (kept > 0).then(|| events as f64 / kept as f64);
        let known = newest.filter(|g| !g.of.is_zero());
        let bytes_per_s = known.map(|g| g.bytes as f64 / g.of.as_secs_f64());
        let left = newest.map_or(0, |g| g.left_bytes) as f64;
        let behind_s = bytes_per_s.map_or(0.0, |bytes| left / bytes.max(1.0));
        View {
            is_over: false,
            age_ns: 0,
            window_ns: of_ns,
            covered_ns: covered_ns.clamp(0, i64::try_from(of_ns).unwrap_or(i64::MAX)),
            kept_bytes: kept,
            bytes_per_s,
            events_per_s: bytes_per_s.zip(per_byte).map(|(bytes, per_byte)| bytes * per_byte),
            skipped: newest.is_some_and(|g| g.skipped || g.left_bytes > 0),
            behind_ns: (1e9 * behind_s) as u64,
            is_unread: newest.is_some_and(|g| g.is_unread),
            lost: 0,
            lost_now: newest.map_or(0, |g| g.lost),
            own_share: 0.0,
            locks,
            preempted: preempted.into_sorted(),
            late: late.into_sorted(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::{hold, run};
    use ft_trace::tables::PreemptionCause;

    /// `a` holds L while it is preempted, and `b` waits for it.
    const TIMELINE: &str = "
        0 0 .>a S
        0 1 .>b S
        100 acquire a L 3
        200 0 a>X R+
        300 wait b L 4
        900 0 X>a S
        1000 release a L
        1000 acquire b L 4
        1100 release b L
        1200 0 a>X S
        1300 wake X a 0
        1900 0 X>a S";

    fn glance() -> Glance {
        let (rows, _) = run(true, TIMELINE);
        let mut glance = Glance {
            of: Duration::from_secs(1),
            bytes: 1000,
            kept_bytes: 250,
            skipped: true,
            ..Glance::default()
        };
        glance.take(rows, 12, 1900);
        glance
    }

    #[test]
    fn what_was_found_is_ranked_and_summed_over_looks() {
        let mut window = Window::default();
        window.push(glance());
        let view = window.view();
        let lock = &view.locks[0];
        assert_eq!((lock.waits, lock.waited_ns, lock.holds, lock.held_ns), (1, 700, 2, 1000));
        assert_eq!(
            (lock.behind.as_deref(), lock.behind_place.as_deref()),
            (Some("a"), Some("x.rs:3"))
        );
        let preempted = &view.preempted[0];
        assert_eq!(
            (preempted.dur_ns, preempted.cause, preempted.by.as_deref(), preempted.waiters),
            (700, PreemptionCause::Preempted, Some("X"), 1)
        );
        assert_eq!((view.late[0].dur_ns, view.late[0].behind.as_deref()), (600, Some("X")));
        assert_eq!((view.covered_ns, view.skipped), (1900, true));
        // A quarter of the bytes had twelve events.
        assert_eq!((view.events_per_s, view.bytes_per_s), (Some(48.0), Some(1000.0)));
        window.push(glance());
        assert_eq!(window.view().locks[0].waited_ns, 1400);
    }

    /// A holder that slept waits for a CPU on which nothing runs: nobody has taken one from it.
    #[test]
    fn a_holder_that_is_woken_is_not_preempted_by_an_idle_cpu() {
        let woken = "
            0 0 .>a S
            100 acquire a L 3
            200 0 a>. S
            300 wake . a 0
            900 0 .>a S
            1000 release a L";
        let mut glance = Glance::default();
        glance.take(run(true, woken).0, 6, 1000);
        let [held_up] = &glance.preempted.into_sorted()[..] else { panic!("one interval") };
        assert_eq!((held_up.cause, held_up.by.as_deref()), (PreemptionCause::Woken, Some(IDLE)));
        let [late] = &glance.late.into_sorted()[..] else { panic!("one wake-up") };
        assert_eq!(late.behind.as_deref(), Some(IDLE));
    }

    #[test]
    fn rates_are_known_of_what_nothing_else_can_be_said() {
        let mut window = Window::default();
        // Of the first look nobody knows since when.
        window.push(Glance { kept_bytes: 250, decoded: 12, ..Glance::default() });
        let view = window.view();
        assert_eq!((view.bytes_per_s, view.events_per_s, view.behind_ns), (None, None, 0));
        window.push(Glance {
            of: Duration::from_secs(1),
            bytes: 1_000_000,
            left_bytes: 500_000,
            kept_bytes: 250,
            decoded: 13,
            ..Glance::default()
        });
        let view = window.view();
        assert_eq!((view.bytes_per_s, view.events_per_s), (Some(1e6), Some(50_000.0)));
        assert_eq!((view.covered_ns, view.kept_bytes), (0, 500));
        assert_eq!((view.behind_ns, view.skipped), (500_000_000, true));
    }

    #[test]
    fn what_is_old_goes() {
        let mut window = Window::default();
        window.push(glance());
        for _ in 0..LOOKS {
            window.push(Glance { of: Duration::from_secs(1), ..Glance::default() });
        }
        let view = window.view();
        assert!(view.locks.is_empty() && view.preempted.is_empty() && view.late.is_empty());
        assert_eq!((view.window_ns, view.covered_ns), (10_000_000_000, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let rows = (0..3 * MAX_LOCKS).map(|n| {
            let lock_name: Name = format!("lock {n}").into();
            ft_trace::tables::CriticalSection { lock_name, ..hold(10) }
        });
        let mut glance = Glance::default();
        glance.take(Rows { critical_sections: rows.collect(), ..Rows::default() }, 0, 0);
        let mut window = Window::default();
        window.push(glance);
        let view = window.view();
        assert_eq!(view.locks.len(), ROWS);
        // What has no row of its own is with the others, which are one of those in the sum of all looks.
        assert_eq!(view.locks[0].lock, ft_report::stats::OTHERS);
        assert_eq!(view.locks[0].holds, 2 * MAX_LOCKS as u64 + 1);
    }
}
