//! A thread of the load: it does its work, polls the counter, and takes down what happened to it.
//!
//! Nothing here allocates or prints while the load runs. Every loop ends when the thread's time is over, whatever the
//! scheduler did: a thread of a high priority is never left spinning.

use ft_user::gap::Poller;
use ft_user::{Tsc, event, scope};

use super::scenario::{Plan, Scenario};
use super::tape::{Ended, Run, Tape};
use super::timer::{Sleeper, sleep_until};
use super::workload::Workload;
use super::{announce, bound, overrun};
use crate::clock::{Clock, Reading, monotonic_ns};
use crate::{Error, cpus};

/// What a thread needs before it starts, made ahead of the run.
pub(super) struct Worker<'a> {
    pub(super) number: u32,
    pub(super) plan: &'a Plan,
    /// The longest response of its jobs by analysis, ns.
    pub(super) bound_ns: Option<u64>,
    tape: &'a Tape,
    gap_ns: u64,
    duration_ns: u64,
    sleeper: Sleeper,
    array: Vec<u64>,
    done: Done,
}

/// What a thread has taken down.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// First and last reading of the counter; `None` for a latency test, which does not poll.
    pub(super) polled: Option<(u64, u64)>,
    /// Gap-free runs, in cycles and in number.
    pub(super) run_cycles: u64,
    pub(super) runs: u64,
    /// Whole passes over the array.
    pub(super) passes: u64,
    pub(super) jobs: Vec<RawJob>,
    pub(super) samples: Vec<Sample>,
    /// How often it slept.
    sleeps: u64,
    /// How often the kernel has told it that its reservation was used up.
    pub(super) overruns: u64,
    /// Both clocks at the end, to check the line between begin and end of all.
    pub(super) reading: Option<Reading>,
}

/// A job as its thread sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawJob {
    pub(super) number: u64,
    /// `CLOCK_MONOTONIC`; `None` for a job that is released by its start.
    pub(super) release_ns: Option<u64>,
    pub(super) start_tsc: u64,
    /// `None` for one that did not get its time before the thread's end.
    pub(super) finish_tsc: Option<u64>,
}

/// One sleep of a latency test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Until when it was to last, `CLOCK_MONOTONIC`, ns.
    pub due_ns: u64,
    /// When the thread ran again.
    pub woke_ns: u64,
}

/// Bytes of a line of the cache, in words of the array.
const LINE_WORDS: usize = 8;

impl<'a> Worker<'a> {
    /// Opens the timer and makes room for what will be taken down.
    ///
    /// # Errors
    ///
    /// When there is no such timer, or not as much memory.
    pub(super) fn new(
        number: usize,
        scenario: &'a Scenario,
        tape: &'a Tape,
    ) -> Result<Self, Error> {
        let plan = &scenario.threads[number];
        let kb = match plan.workload {
            Workload::Cpu { scan_kb, .. } => scan_kb.unwrap_or(0),
            _ => 0,
        };
        let room = plan.most_jobs(scenario) as usize;
        let mut done = Done::default();
        let is_latency = matches!(plan.workload, Workload::Latency { .. });
        let reserved = match is_latency {
            true => reserve(&mut done.samples, room, Sample { due_ns: 0, woke_ns: 0 }),
            false => {
                let job = RawJob { number: 0, release_ns: None, start_tsc: 0, finish_tsc: None };
                reserve(&mut done.jobs, room, job)
            }
        };
        let mut array = Vec::new();
        if !reserved || array.try_reserve_exact(kb as usize * 128).is_err() {
            return Err(Error::refused(format!(
                "there is not enough memory for thread {number}; make its array smaller, or its jobs fewer"
            )));
        }
        array.resize(kb as usize * 128, 1);
        Ok(Worker {
            number: number as u32,
            plan,
            bound_ns: bound::of(number, &scenario.threads, &cpus::allowed()),
            tape,
            gap_ns: scenario.gap_ns,
            duration_ns: plan.finish_ns(scenario),
            sleeper: Sleeper::open(plan.timer)?,
            array,
            done,
        })
    }

    /// Does its work from its start to its finish; `zero_ns` is where the run begins, on `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    ///
    /// When its timer fails.
    pub(super) fn run(mut self, zero_ns: u64, clock: Clock) -> Result<Done, Error> {
        let (begin_ns, end_ns) = (zero_ns + self.plan.start_ns, zero_ns + self.duration_ns);
        announce::write(&self, begin_ns, end_ns);
        sleep_until(begin_ns);
        let result = match self.plan.workload {
            Workload::Latency { period_ns } => self.latency(period_ns, end_ns),
            workload => {
                let mut pace = Pace::new(&mut self, &clock, end_ns);
                let result = pace.work(workload, begin_ns, end_ns);
                pace.finish();
                result
            }
        };
        self.done.reading = Some(Reading::now());
        self.done.overruns = overrun::told();
        let jobs = self.done.jobs.len() as u64;
        event!(
            "hourglass.done", runs: u64 = self.done.runs, jobs: u64, sleeps: u64 = self.done.sleeps, passes: u64 = self.done.passes,
            worker: u32 = self.number; "worker {worker} is done: {runs} runs, {jobs} jobs, {sleeps} sleeps"
        );
        result.map(|()| self.done)
    }

    /// Sleeps for a period, again and again. Each period begins when the thread runs, as the paper has it, so
    /// that one late wake-up does not make the next one early.
    fn latency(&mut self, period_ns: u64, end_ns: u64) -> Result<(), Error> {
        let mut due_ns = monotonic_ns() + period_ns;
        while due_ns < end_ns {
            let woke_ns = self.sleep(due_ns)?;
            self.done.samples.push(Sample { due_ns, woke_ns });
            due_ns = woke_ns + period_ns;
        }
        Ok(())
    }

    /// Sleeps until then, and returns when it runs again.
    fn sleep(&mut self, due_ns: u64) -> Result<u64, Error> {
        let worker = self.number;
        event!("hourglass.sleep", due_ns: u64, worker: u32; "worker {worker} sleeps until {due_ns}");
        let result = self.sleeper.sleep_until(due_ns);
        let woke_ns = monotonic_ns();
        self.done.sleeps += 1;
        event!("hourglass.woke", due_ns: u64, woke_ns: u64, worker: u32; "worker {worker} was due at {due_ns}");
        result.map(|()| woke_ns)
    }
}

/// A thread while it polls.
struct Pace<'w, 'a> {
    worker: &'w mut Worker<'a>,
    clock: &'w Clock,
    poller: Poller,
    end_tsc: u64,
    cpu: u16,
    /// Where the present run began.
    run_tsc: u64,
    /// Since when the time that it received is counted: where the job or the present run began.
    since_tsc: u64,
    /// What it received of the job's time before that.
    received: u64,
    /// The next word of the array to be read.
    next: usize,
    /// What the kernel has told of overruns.
    overruns: u64,
}

impl<'w, 'a> Pace<'w, 'a> {
    fn new(worker: &'w mut Worker<'a>, clock: &'w Clock, end_ns: u64) -> Self {
        let (end_tsc, cpu) = (clock.tsc(end_ns), cpus::current());
        let poller = Poller::with_threshold_tsc(clock.cycles(worker.gap_ns));
        let first = poller.last().0;
        event!("hourglass.first", reading: Tsc = Tsc(first), worker: u32 = worker.number; "worker {worker} begins");
        worker.done.polled = Some((first, first));
        Pace {
            worker,
            clock,
            poller,
            end_tsc,
            cpu,
            run_tsc: first,
            since_tsc: first,
            received: 0,
            next: 0,
            overruns: 0,
        }
    }

    fn work(&mut self, workload: Workload, begin_ns: u64, end_ns: u64) -> Result<(), Error> {
        match workload {
            Workload::Cpu { yield_after_ns: None, .. } => {
                while self.goes_on() {
                    self.step();
                }
            }
            Workload::Cpu { yield_after_ns: Some(ns), .. } => {
                let cycles = self.clock.cycles(ns);
                while self.receive(cycles) {
                    self.yield_now();
                }
            }
            Workload::CpuPeriodic { amount_ns, period_ns } => {
                let cycles = self.clock.cycles(amount_ns);
                let mut number = 0;
                while self.job(number, None, period_ns, cycles) {
                    number += 1;
                }
            }
            Workload::Periodic { amount_ns, period_ns } => {
                let cycles = self.clock.cycles(amount_ns);
                let releases = (begin_ns..end_ns).step_by(period_ns as usize);
                for (number, release_ns) in (0..).zip(releases) {
                    // Read the counter behind the clock: no job begins before its release.
                    if monotonic_ns() < release_ns {
                        self.worker.sleep(release_ns)?;
                        self.look(Ended::Slept);
                    } else {
                        self.look(Ended::Unasked);
                    }
                    if !self.job(number, Some(release_ns), period_ns, cycles) {
                        break;
                    }
                }
            }
            Workload::Latency { .. } => {}
        }
        Ok(())
    }

    /// Does a job; `false` when the thread's time is over before the job has had its own.
    fn job(&mut self, number: u64, release_ns: Option<u64>, period_ns: u64, cycles: u64) -> bool {
        let start_tsc = self.poller.last().0;
        let _job = scope!(
            "hourglass.job", number: u64, start: Tsc = Tsc(start_tsc), release_ns: u64 = release_ns.unwrap_or(0),
            due_ns: u64 = release_ns.map_or(0, |ns| ns + period_ns), worker: u32 = self.worker.number;
            "job {number} of worker {worker}"
        );
        let finished = self.receive(cycles);
        let finish_tsc = finished.then(|| self.poller.last().0);
        if finished {
            event!(
                "hourglass.finish", number: u64, finish: Tsc = self.poller.last(), worker: u32 = self.worker.number;
                "job {number} of worker {worker}"
            );
        }
        self.worker.done.jobs.push(RawJob { number, release_ns, start_tsc, finish_tsc });
        finished
    }

    /// Runs until it has had that many cycles more; `false` when its time is over before.
    fn receive(&mut self, cycles: u64) -> bool {
        (self.received, self.since_tsc) = (0, self.poller.last().0);
        while self.received + self.poller.last().0.saturating_sub(self.since_tsc) < cycles {
            if !self.goes_on() {
                return false;
            }
            self.step();
        }
        true
    }

    fn goes_on(&self) -> bool {
        self.poller.last().0 < self.end_tsc
    }

    /// A pass of the loop: a line of the array, if there is one, and a reading of the counter.
    #[inline]
    fn step(&mut self) {
        if let Some(word) = self.worker.array.get(self.next) {
            std::hint::black_box(*word);
            self.next += LINE_WORDS;
            if self.next >= self.worker.array.len() {
                self.next = 0;
                self.worker.done.passes += 1;
            }
        }
        self.look(Ended::Unasked);
    }

    /// Yields the CPU; where nobody took it for long enough to be seen, the run goes on.
    fn yield_now(&mut self) {
        event!("hourglass.yield", worker: u32 = self.worker.number; "worker {worker} yields");
        std::thread::yield_now();
        self.look(Ended::Yielded);
    }

    /// Reads the counter; what ended the run is told, should there be a gap.
    #[inline]
    fn look(&mut self, ended: Ended) {
        let Some(gap) = self.poller.poll() else { return };
        self.received += gap.before.0.saturating_sub(self.since_tsc);
        self.since_tsc = gap.after.0;
        self.close(gap.before.0, ended);
        self.run_tsc = gap.after.0;
        self.cpu = cpus::current();
        self.heed();
    }

    /// Tells of overruns that the kernel has told of.
    fn heed(&mut self) {
        let (overruns, worker) = (overrun::told(), self.worker.number);
        if overruns != self.overruns {
            self.overruns = overruns;
            event!("hourglass.overrun", overruns: u64, worker: u32; "worker {worker} had used up its reservation, {overruns} times");
        }
    }

    fn close(&mut self, end_tsc: u64, ended: Ended) {
        self.worker.done.run_cycles += end_tsc.saturating_sub(self.run_tsc);
        self.worker.done.runs += 1;
        let (thread, cpu, start_tsc) = (self.worker.number, self.cpu, self.run_tsc);
        self.worker.tape.push(Run { thread, cpu, start_tsc, end_tsc, ended });
    }

    /// Ends the last run with the last reading.
    fn finish(mut self) {
        let last = self.poller.last().0;
        event!("hourglass.last", reading: Tsc = Tsc(last), worker: u32 = self.worker.number; "worker {worker} ends");
        self.close(last, Ended::Finished);
        if let Some((_, end)) = &mut self.worker.done.polled {
            *end = last;
        }
    }
}

/// Makes room for all that can come, and touches it; whether there was as much memory.
fn reserve<T: Copy>(list: &mut Vec<T>, room: usize, filler: T) -> bool {
    if list.try_reserve_exact(room).is_err() {
        return false;
    }
    list.resize(room, filler);
    list.clear();
    true
}
