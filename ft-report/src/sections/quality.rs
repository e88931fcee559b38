//! How far a trace can be believed: the clock's bound, and what is missing where.

use serde::Serialize;

use crate::document::{Id, N, Ns, Share, Text};
use crate::text;
use ft_trace::tables::{ClockRow, LossOrigin, LossReason, LossRow};

/// Losses that are listed one by one.
const PLACES: usize = 5;

/// What the tables `clock` and `loss` say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Median of the clock's bound over its segments, ns.
    pub clock_bound_median_ns: i64,
    /// Largest of them, ns.
    pub clock_bound_max_ns: i64,
    /// Segments of the clock: one for each sample.
    pub clock_segments: u64,
    /// Time in which some stream was not whole, ns: losses that overlap count once.
    pub not_whole_ns: i64,
    /// Time of the recording, ns.
    pub recorded_ns: i64,
    /// Share of the recording in which every stream was whole, by the losses that were reported; null for a
    /// recording of no length.
    pub coverage: Option<f64>,
    /// Places of losses.
    pub loss_places: u64,
    /// Those of them where it is not known how many were lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown_places: u64,
    /// Those with the most records, most first; before them those of which the number is not known.
    pub losses: Vec<LossPlace>,
}

/// One loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossPlace {
    /// Where it happened.
    pub origin: LossOrigin,
    /// What was lost: a program or a reason.
    pub what: String,
    /// CPU, -1 when it does not apply.
    pub cpu: i32,
    /// Process, -1 when it does not apply.
    pub pid: i32,
    /// Thread, -1 when it does not apply.
    pub tid: i32,
    /// First loss, CLOCK_MONOTONIC ns.
    pub from_ns: i64,
    /// Last loss, CLOCK_MONOTONIC ns.
    pub to_ns: i64,
    /// Begin, counted from that of the recording, ns.
    pub after_ns: i64,
    /// How many; 0 where that is not known.
    pub count: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Quality {
    /// Of a recording from `start` to `end` (CLOCK_MONOTONIC ns), from its clock samples and from its
    /// losses, sorted by their begin.
    pub fn new<E>(
        start: i64,
        end: i64,
        clock: impl Iterator<Item = Result<ClockRow, E>>,
        losses: impl Iterator<Item = Result<LossRow, E>>,
    ) -> Result<Quality, E> {
        let bounds = clock.map(|row| row.map(|row| row.bound_ns));
        let mut bounds = bounds.collect::<Result<Vec<i64>, E>>()?;
        bounds.sort_unstable();
        let mut q = Quality {
            clock_bound_median_ns: bounds.get(bounds.len() / 2).copied().unwrap_or(0),
            clock_bound_max_ns: bounds.last().copied().unwrap_or(0),
            clock_segments: bounds.len() as u64,
            recorded_ns: (end - start).max(0),
            ..Quality::default()
        };
        let mut whole_from = start;
        for row in losses {
            let row = row?;
            let (from, to) = (row.ts.0, row.ts.0.saturating_add(row.dur.max(0)));
            let (missing_from, missing_to) = (from.max(whole_from), to.min(end));
            q.not_whole_ns += (missing_to - missing_from).max(0);
            whole_from = whole_from.max(missing_to);
            q.loss_places += 1;
            q.unknown_places += u64::from(row.is_of_unknown_number());
            q.place(LossPlace {
                origin: row.origin,
                what: row.what.to_string(),
                cpu: row.cpu.0,
                pid: row.pid.0,
                tid: row.tid.0,
                from_ns: from,
                to_ns: to,
                after_ns: from - start,
                count: row.count.max(0).unsigned_abs(),
            });
        }
        let whole = q.recorded_ns - q.not_whole_ns;
        q.coverage = (q.recorded_ns > 0).then(|| whole as f64 / q.recorded_ns as f64);
        Ok(q)
    }

    fn place(&mut self, place: LossPlace) {
        let at = self.losses.partition_point(|p| p.most() >= place.most());
        if at < PLACES {
            self.losses.truncate(PLACES - 1);
            self.losses.insert(at, place);
        }
    }

    /// The share of the recording in which every stream was whole; never all of it when something was lost, and nothing
    /// for a recording of no length.
    pub(super) fn complete(&self) -> Option<Share> {
        let whole = self.recorded_ns - self.not_whole_ns;
        let most = self.recorded_ns - i64::from(self.loss_places > 0);
        (self.recorded_ns > 0).then(|| Share(whole.min(most), self.recorded_ns))
    }
}

impl LossPlace {
    /// How many it can have been.
    fn most(&self) -> u64 {
        if self.is_of_unknown_number() { u64::MAX } else { self.count }
    }

    fn is_of_unknown_number(&self) -> bool {
        self.origin.is_of_unknown_number() || LossReason::of(&self.what) == LossReason::Damaged
    }

    /// One line.
    pub(super) fn text(&self) -> Text {
        let whose = match (self.cpu, self.tid, self.pid) {
            (cpu @ 0.., _, _) => text!("CPU {}", Id(cpu)),
            (_, tid @ 0.., _) => text!("thread {}", Id(tid)),
            (_, _, pid @ 0..) => text!("process {}", Id(pid)),
            _ => text!("everything"),
        };
        // A reason may name its place itself.
        let origin = self.origin.word().replace('-', " ");
        let what = match self.what.starts_with(&origin) {
            true => self.what.clone(),
            false => format!("{origin} {}", self.what),
        };
        let number = match self.is_of_unknown_number() {
            true => text!("an unknown number"),
            false => text!("{}", N(self.count)),
        };
        let text = text!("{}: {} of {}, after {}", &*what, number, whose, Ns(self.after_ns));
        match self.to_ns - self.from_ns {
            0 => text,
            ns => text!("{} for {}", text, Ns(ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::IntoText;
    use crate::render::text::sentence;
    use ft_trace::ids::{Cpu, Nanos, Pid, Tid};

    fn loss(ts: i64, dur: i64, count: i64) -> LossRow {
        LossRow {
            ts: Nanos(ts),
            dur,
            origin: LossOrigin::Kernel,
            what: "sched_switch".into(),
            cpu: Cpu(1),
            pid: Pid(-1),
            tid: Tid(-1),
            count,
        }
    }

    fn sample(bound_ns: i64) -> ClockRow {
        ClockRow {
            ts: Nanos(0),
            tsc: 0,
            bracket_ns: 0,
            residual_ns: 0,
            bound_ns,
            realtime_offset_ns: 0,
            boottime_offset_ns: 0,
            cpu: Cpu(0),
        }
    }

    fn quality(bounds: &[i64], losses: &[LossRow]) -> Quality {
        let clock = bounds.iter().map(|b| Ok::<_, ()>(sample(*b)));
        Quality::new(1000, 2000, clock, losses.iter().cloned().map(Ok)).unwrap()
    }

    #[test]
    fn losses_that_overlap_count_once_and_only_within_the_recording() {
        let check = |losses: &[LossRow], not_whole: i64, coverage: &str| {
            let q = quality(&[], losses);
            let complete = q.complete().expect("it has a length").into_text();
            assert_eq!((q.not_whole_ns, &*sentence(&complete)), (not_whole, coverage));
        };
        check(&[], 0, "100 %");
        check(&[loss(1100, 100, 1)], 100, "90.0 %");
        check(&[loss(1100, 100, 1), loss(1150, 100, 1)], 150, "85.0 %");
        check(&[loss(1100, 300, 1), loss(1150, 100, 1), loss(1300, 200, 1)], 400, "60.0 %");
        check(&[loss(900, 200, 1), loss(1900, 500, 1)], 200, "80.0 %");
        check(&[loss(1500, 0, 1)], 0, "99.9 %");
        check(&[loss(0, 5000, 1)], 1000, "0 %");
    }

    #[test]
    fn the_bound_is_given_by_its_median_and_its_worst() {
        let q = quality(&[90, 500, 80], &[]);
        assert_eq!((q.clock_bound_median_ns, q.clock_bound_max_ns, q.clock_segments), (90, 500, 3));
        assert_eq!(quality(&[], &[]).clock_bound_max_ns, 0);
    }

    #[test]
    fn the_largest_losses_are_listed_with_their_places() {
        let losses: Vec<LossRow> = (0..9).map(|i| loss(1100 + i, 10, i % 5)).collect();
        let q = quality(&[], &losses);
        assert_eq!(q.loss_places, 9);
        assert_eq!(q.losses.iter().map(|l| l.count).collect::<Vec<_>>(), [4, 3, 3, 2, 2]);
        let text = sentence(&q.losses[0].text());
        assert_eq!(text, "kernel sched_switch: 4 of CPU 1, after 104 ns for 10 ns");
    }

    #[test]
    fn a_place_is_named_once() {
        let text = |origin, what: &str| {
            let row = LossRow { origin, what: what.into(), ..loss(1100, 10, 4) };
            sentence(&quality(&[], &[row]).losses[0].text())
        };
        let expected = ": 4 of CPU 1, after 100 ns for 10 ns";
        for (origin, what, name) in [
            (LossOrigin::Ring, "ring full", "ring full"),
            (LossOrigin::SharedRing, "shared ring full", "shared ring full"),
            (LossOrigin::Directory, "directory full", "directory full"),
            (LossOrigin::Ring, "slots never committed", "ring slots never committed"),
            (LossOrigin::KernelSkipped, "sys_exit", "kernel skipped sys_exit"),
        ] {
            assert_eq!(text(origin, what), format!("{name}{expected}"));
        }
    }

    #[test]
    fn losses_of_unknown_number_come_first_and_are_not_called_none() {
        let site = LossRow {
            origin: LossOrigin::Site,
            what: "order.placed".into(),
            cpu: Cpu(-1),
            pid: Pid(7),
            ..loss(1100, 10, 0)
        };
        let q = quality(&[], &[loss(1050, 10, 9), site]);
        assert_eq!((q.loss_places, q.unknown_places), (2, 1));
        let text = sentence(&q.losses[0].text());
        assert_eq!(
            text,
            "site order.placed: an unknown number of process 7, after 100 ns for 10 ns"
        );
        assert_eq!(q.not_whole_ns, 20);
    }
}
