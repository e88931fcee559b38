//! What a run has shown: its execution trace, and for each thread its time, its deadlines and its latencies.

use super::class::Class;
use super::scenario::{Plan, Scenario};
use super::tape::{Run, Tape};
use super::worker::{Done, RawJob, Sample};
use super::workload::Workload;
use crate::clock::Clock;

/// What a run has shown.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Puts the counter on `CLOCK_MONOTONIC`.
    pub clock: Clock,
    /// Where the run began, `CLOCK_MONOTONIC`, ns; other times are counted from here.
    pub zero_ns: u64,
    /// How far that line was from readings of both clocks in between, at most, ns.
    pub clock_error_ns: u64,
    /// Runs of all threads by their start.
    pub runs: Vec<Run>,
    /// Runs that found no room; the times of the threads have them all the same.
    pub lost_runs: usize,
    /// The threads, by their number.
    pub threads: Vec<Thread>,
    /// What the machine did not grant, in sentences.
    pub notes: Vec<String>,
}

/// What one thread has shown.
#[derive(Clone, Debug)]
pub struct Thread {
    /// What it was to do.
    pub plan: Plan,
    /// Its time, where it polled.
    pub time: Option<Polled>,
    /// Passes over its array.
    pub passes: u64,
    /// Where it has any.
    pub deadlines: Option<Deadlines>,
    /// Its jobs, in order.
    pub jobs: Vec<Job>,
    /// The sleeps of a latency test, in order.
    pub samples: Vec<Sample>,
    /// How often the kernel has said that its reservation was used up, where it has one. Overruns that follow each other
    /// closely are said once.
    pub overruns: Option<u64>,
}

/// The time of a thread from its first reading of the counter to its last: runs and gaps, which tile it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// The first reading, ns after zero.
    pub first_ns: i64,
    /// The last reading.
    pub last_ns: i64,
    /// Gap-free runs.
    pub runs: u64,
    /// Sum of the runs, ns.
    pub run_ns: u64,
    /// Sum of the gaps between them, ns.
    pub gap_ns: u64,
}

/// How often a thread had its time by the end of its period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    /// In time.
    pub hit: u64,
    /// Too late, or never.
    pub missed: u64,
}

/// A job: times in ns after zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// From 0 on.
    pub number: u64,
    /// When its period began.
    pub release_ns: i64,
    /// When that ended.
    pub due_ns: i64,
    /// When the thread began with it.
    pub start_ns: i64,
    /// When it had its time; `None` where the thread's end came first.
    pub finish_ns: Option<i64>,
}

impl Job {
    /// From release to finish, ns.
    pub fn response_ns(&self) -> Option<u64> {
        Some((self.finish_ns? - self.release_ns).max(0) as u64)
    }
}

impl Outcome {
    pub(super) fn new(
        scenario: &Scenario,
        clock: Clock,
        zero_ns: u64,
        tape: Tape,
        done: Vec<Done>,
        notes: Vec<String>,
    ) -> Self {
        let (runs, lost_runs) = tape.into_runs();
        let readings = done.iter().filter_map(|done| done.reading);
        let clock_error_ns = readings.map(|reading| clock.distance(reading)).max().unwrap_or(0);
        let mut outcome =
            Outcome { clock, zero_ns, clock_error_ns, runs, lost_runs, threads: Vec::new(), notes };
        let mut sums = vec![Sums::default(); scenario.threads.len()];
        for run in &outcome.runs {
            let (start, end) = (outcome.ns(run.start_tsc), outcome.ns(run.end_tsc));
            sums[run.thread as usize].add(start, end);
        }
        for ((plan, done), sums) in scenario.threads.iter().zip(done).zip(sums) {
            let thread = outcome.thread(scenario, plan, done, sums);
            outcome.threads.push(thread);
        }
        outcome
    }

    /// A value of the counter as nanoseconds after zero.
    pub fn ns(&self, tsc: u64) -> i64 {
        self.clock.ns(tsc) - self.zero_ns as i64
    }

    fn thread(&self, scenario: &Scenario, plan: &Plan, done: Done, sums: Sums) -> Thread {
        let time = done.polled.map(|(first, last)| {
            let (first_ns, last_ns) = (self.ns(first), self.ns(last));
            let (run_ns, gap_ns) = match self.lost_runs {
                0 => (sums.run_ns, sums.gap_ns),
                // Of runs that are not there only the sum of their cycles is known.
                _ => {
                    let run_ns = (done.run_cycles as f64 * 1e9 / self.clock.hz()).round() as u64;
                    (run_ns, ((last_ns - first_ns) as u64).saturating_sub(run_ns))
                }
            };
            Polled { first_ns, last_ns, runs: done.runs, run_ns, gap_ns }
        });
        let period_ns = match plan.workload {
            Workload::Periodic { period_ns, .. } | Workload::CpuPeriodic { period_ns, .. } => {
                Some(period_ns)
            }
            Workload::Cpu { .. } | Workload::Latency { .. } => None,
        };
        let job = |raw: &RawJob, period_ns: u64| {
            let start_ns = self.ns(raw.start_tsc);
            let release_ns = raw.release_ns.map_or(start_ns, |ns| ns as i64 - self.zero_ns as i64);
            Job {
                number: raw.number,
                release_ns,
                due_ns: release_ns + period_ns as i64,
                start_ns,
                finish_ns: raw.finish_tsc.map(|tsc| self.ns(tsc)),
            }
        };
        let jobs: Vec<Job> =
            period_ns.iter().flat_map(|ns| done.jobs.iter().map(|raw| job(raw, *ns))).collect();
        let deadlines = period_ns.map(|period_ns| match plan.workload {
            Workload::Periodic { .. } => {
                periodic(&jobs, (plan.finish_ns(scenario) - plan.start_ns) / period_ns)
            }
            _ => back_to_back(&jobs, period_ns, time.map_or(0, |time| time.last_ns)),
        });
        let (passes, samples) = (done.passes, done.samples);
        let overruns =
            matches!(plan.class, Some(Class::Reservation { .. })).then_some(done.overruns);
        Thread { plan: plan.clone(), time, passes, deadlines, jobs, samples, overruns }
    }
}

/// Runs and gaps of one thread, one after the other.
#[derive(Clone, Copy, Default)]
struct Sums {
    last_end: Option<i64>,
    run_ns: u64,
    gap_ns: u64,
}

impl Sums {
    fn add(&mut self, start: i64, end: i64) {
        self.run_ns += (end - start).max(0) as u64;
        self.gap_ns += (start - self.last_end.unwrap_or(start)).max(0) as u64;
        self.last_end = Some(end);
    }
}

/// Each of the `periods` that are whole has a deadline: hit where its job had its time by then.
fn periodic(jobs: &[Job], periods: u64) -> Deadlines {
    let in_time = |job: &&Job| {
        job.number < periods && job.finish_ns.is_some_and(|finish| finish <= job.due_ns)
    };
    let hit = jobs.iter().filter(in_time).count() as u64;
    Deadlines { hit, missed: periods - hit }
}

/// Each job begins a period, and each further period that goes by without its end is a deadline missed; the thread's
/// last reading was `last_ns`.
fn back_to_back(jobs: &[Job], period_ns: u64, last_ns: i64) -> Deadlines {
    let mut deadlines = Deadlines::default();
    for job in jobs {
        match job.response_ns() {
            Some(response_ns) => {
                deadlines.hit += 1;
                deadlines.missed += response_ns.saturating_sub(1) / period_ns;
            }
            None => deadlines.missed += (last_ns - job.release_ns).max(0) as u64 / period_ns,
        }
    }
    deadlines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u64, release_ns: i64, finish_ns: Option<i64>) -> Job {
        Job { number, release_ns, due_ns: release_ns + 10, start_ns: release_ns, finish_ns }
    }

    #[test]
    fn every_whole_period_has_one_deadline() {
        let jobs = [
            job(0, 0, Some(10)),
            job(1, 10, Some(21)),
            job(2, 20, Some(24)),
            // Of the period that the end cuts off nobody can say.
            job(3, 30, Some(33)),
        ];
        assert_eq!(periodic(&jobs, 3), Deadlines { hit: 2, missed: 1 });
        // A job that never began misses as one that never ended does.
        assert_eq!(periodic(&[job(0, 0, None)], 3), Deadlines { hit: 0, missed: 3 });
    }

    #[test]
    fn a_frame_that_takes_two_periods_and_a_half_misses_two() {
        let late = [job(0, 0, Some(25)), job(1, 25, Some(35)), job(2, 35, None)];
        assert_eq!(back_to_back(&late, 10, 44), Deadlines { hit: 2, missed: 2 });
        assert_eq!(back_to_back(&late, 10, 45), Deadlines { hit: 2, missed: 3 });
    }
}
