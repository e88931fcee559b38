//! Waits for room in a thread's own ring (`record --on-full wait`): what the tracer itself does to a program.
//!
//! **Rule.** The event of such a wait comes at its begin, and tells where it ended. The next own event of the thread is the
//! one that had to wait, so its time is late: a lock that it says was acquired was acquired before. An interval is
//! *disturbed* when such a wait, or an event that waited, lies in it. Its length is what happened; without the tracer it
//! would have been another.
//!
//! Signal handlers may wait while their thread does: time that two waits tell is counted once.

use ft_trace::Mark;
use serde::{Deserialize, Serialize};

/// Such waits of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RingWaits {
    /// How many there were.
    pub waits: u64,
    /// Their time, ns.
    pub total_ns: i64,
    /// The longest, ns.
    pub longest_ns: i64,
}

impl RingWaits {
    /// Whether there was none.
    pub fn is_none(&self) -> bool {
        self.waits == 0
    }

    /// Counts a wait of `ns`, of which `new_ns` were not counted before.
    fn add(&mut self, ns: i64, new_ns: i64) {
        self.waits += 1;
        // A program tells these times, and may tell anything.
        self.total_ns = self.total_ns.saturating_add(new_ns);
        self.longest_ns = self.longest_ns.max(ns);
    }
}

/// Those of one thread.
#[derive(Debug)]
pub(crate) struct Disturbed {
    /// Where the latest one ended.
    until: i64,
    /// Time of the event that waited last.
    event: i64,
    /// The next own event is one that waited.
    awaited: bool,
}

impl Default for Disturbed {
    fn default() -> Disturbed {
        Disturbed { until: i64::MIN, event: i64::MIN, awaited: false }
    }
}

impl Disturbed {
    /// The thread waits from now on until `until`.
    pub(crate) fn waits(&mut self, now: i64, until: i64, all: &mut RingWaits) {
        let from = now.max(self.until);
        all.add(until.saturating_sub(now).max(0), until.saturating_sub(from).max(0));
        self.until = self.until.max(until);
        self.awaited = true;
    }

    /// The thread writes another event.
    pub(crate) fn own_event(&mut self, now: i64) {
        if std::mem::take(&mut self.awaited) {
            self.event = now;
        }
    }

    /// Whether the tracer held the thread up at `since` or later.
    pub(crate) fn since(&self, since: i64) -> bool {
        self.until > since || self.event >= since
    }

    /// `disturbed` if the tracer held the thread up since then, else `exact`.
    pub(crate) fn mark(&self, since: i64) -> Mark {
        if self.since(since) { Mark::Disturbed } else { Mark::Exact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_two_waits_tell_is_counted_once() {
        let (mut all, mut thread) = (RingWaits::default(), Disturbed::default());
        thread.waits(10, 30, &mut all);
        thread.waits(15, 25, &mut all);
        thread.waits(28, 40, &mut all);
        assert_eq!(all, RingWaits { waits: 3, total_ns: 30, longest_ns: 20 });
        // Whatever a program says.
        thread.waits(50, i64::MIN, &mut all);
        thread.waits(i64::MIN, i64::MAX, &mut all);
        thread.waits(i64::MIN, i64::MAX, &mut all);
        assert_eq!((all.waits, all.longest_ns), (6, i64::MAX));
    }

    #[test]
    fn the_event_that_waited_is_disturbed_and_the_next_is_not() {
        let (mut all, mut thread) = (RingWaits::default(), Disturbed::default());
        assert!(!thread.since(i64::MIN + 1));
        thread.own_event(5);
        assert!(!thread.since(0));
        thread.waits(10, 30, &mut all);
        assert!(thread.since(29) && !thread.since(30));
        thread.own_event(31);
        assert!(thread.since(31) && !thread.since(32));
        thread.own_event(40);
        assert!(!thread.since(32));
    }

    /// a holds L, waits for room in its ring, and b waits for L meanwhile.
    #[test]
    fn what_the_tracer_held_up_is_disturbed_and_named() {
        let (rows, tally) = crate::timeline::run(
            true,
            "0 0 .>Z R
             0 new Z a 0
             1 0 Z>a R
             5 acquire a M
             8 release a M
             10 acquire a L
             12 1 .>b R
             15 wait b L
             16 1 b>. S
             20 full a 60
             25 0 a>Z S
             50 wake Z a 0
             55 0 Z>a R
             65 release a L
             66 wake a b 1
             70 1 .>b R
             72 acquire b L
             80 release b L
             90 0 a>Z X
             95 1 b>. X",
        );
        let marks: Vec<_> = rows.critical_sections.iter().map(|h| (h.dur, h.mark.word())).collect();
        assert_eq!(marks, [(3, "exact"), (55, "disturbed"), (8, "exact")]);
        let wait = &rows.lock_waits[0];
        assert_eq!((wait.dur, wait.mark.word()), (57, "disturbed"));
        let woken: Vec<_> = rows.dispatch_latency.iter().map(|d| (d.ts.0, d.mark.word())).collect();
        assert_eq!(woken[1..], [(50, "disturbed"), (66, "exact")]);
        let of = |tid: char| rows.thread_time.iter().filter(move |t| t.tid.0 == tid as i32);
        assert!(of('a').all(|t| t.mark == Mark::Disturbed));
        assert!(of('b').all(|t| t.mark != Mark::Disturbed));
        let blocked: Vec<_> = of('a').filter(|t| t.part.word() == "blocked").collect();
        assert_eq!(blocked.len(), 1);
        assert_eq!((blocked[0].culprit.as_deref(), blocked[0].spent_ns), (Some("full ring"), 25));
        assert_eq!(tally.ring_waits, RingWaits { waits: 1, total_ns: 40, longest_ns: 40 });
    }

    /// a holds L and has no CPU: while it waits for room in its ring, and before that.
    #[test]
    fn a_holder_that_lost_its_cpu_in_such_a_wait_is_disturbed() {
        let (rows, _) = crate::timeline::run(
            true,
            "0 0 .>a R
             5 acquire a L
             10 0 a>X R
             15 0 X>a R
             20 full a 60
             25 0 a>X R
             30 0 X>a R
             65 release a L",
        );
        let found: Vec<_> =
            rows.lock_preemptions.iter().map(|p| (p.ts.0, p.dur, p.mark.word())).collect();
        assert_eq!(found, [(10, 5, "exact"), (25, 5, "disturbed")]);
    }

    /// An acquisition whose event waits was earlier than the event says.
    #[test]
    fn a_hold_whose_first_event_waited_is_disturbed() {
        let (rows, _) = crate::timeline::run(
            false,
            "10 full a 30
             31 acquire a L
             40 release a L
             41 acquire a L
             50 release a L",
        );
        let marks: Vec<_> = rows.critical_sections.iter().map(|h| h.mark.word()).collect();
        assert_eq!(marks, ["disturbed", "exact"]);
    }

    #[test]
    fn a_gap_that_the_tracer_made_says_so() {
        let (rows, _) = crate::timeline::run(
            true,
            "0 0 .>a R
             1 poll a 0
             10 full a 90
             12 0 a>. S
             85 wake Z a 0
             86 0 .>a R
             95 gap a 0 9 94
             96 end a",
        );
        let gap = &rows.gaps[0];
        assert_eq!(
            (gap.cause.map(|cause| cause.word()), gap.culprit.as_deref()),
            (Some("blocked"), Some("full ring"))
        );
        assert_eq!(gap.mark, Mark::Disturbed);
    }
}
