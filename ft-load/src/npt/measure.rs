//! The loop: a thread on one CPU that reads the counter in each pass and counts how long each took.

use std::thread;
use std::time::Duration;

use ft_user::event;
use ft_user::gap::{Poller, tsc_hz};

use super::pass_lengths::PassLengths;
use crate::clock::{Clock, Reading, monotonic_ns, tsc};
use crate::hourglass::{Class, Priority};
use crate::{Error, cpus, memory};

use super::wake::Wake;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Passes that count.
    pub loops: u64,
    /// The CPU; `None`: the last one that is isolated, or else that the process may run on, because device interrupts
    /// usually go to the first.
    pub cpu: Option<usize>,
    /// `SCHED_FIFO` with this priority, 1 to 99; `None`: scheduled as the process is.
    pub real_time: Option<u32>,
    /// Passes before those, which are discarded.
    pub warm_up: u64,
    /// Whether to keep the CPU busy for half a second and measure the counter's frequency meanwhile, not for 2 ms.
    pub eval_cpu_speed: bool,
    /// Whether memory is locked.
    pub lock_memory: bool,
    /// Whether each pass has a trace point in it.
    pub tracepoint: bool,
    /// At most that many trace points a second.
    pub rate: Option<u64>,
    /// Passes that are longer are peaks, ns.
    pub peak_ns: u64,
    /// The loop ends after this time, whether it is done or not, ns.
    pub max_time_ns: u64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    pub(super) cpu: usize,
    /// The kernel keeps others from the CPU.
    pub(super) isolated: bool,
    pub(super) hz: f64,
    /// The shortest pass of those before the loop, cycles.
    pub(super) own_cycles: u64,
    pub(super) lengths: PassLengths,
    /// How many passes were longer than asked for.
    pub peaks: u64,
    /// The longest of these, the longest first.
    pub(super) longest: Vec<Peak>,
}

/// A pass that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peak {
    pub(super) pass: u64,
    pub(super) cycles: u64,
}

/// Peaks that are told one by one.
///
/// Limit: all are counted; a recording has each.
/// Shown by: `a_recording_has_every_pass_and_peak`.
const KEPT: usize = 10;

/// Passes before the warm-up, without a trace point: the shortest is what a pass takes that nothing disturbs.
const UNDISTURBED: u64 = 1000;

/// How long the recording may take to make room for what is told behind the loop.
const ROOM: Duration = Duration::from_millis(20);

/// How long the CPU is kept busy where its speed is evaluated.
const STRESS_NS: u64 = 500_000_000;

/// Measures, on a thread of its own, which is gone when this returns.
///
/// # Errors
///
/// A sentence with the remedy where CPU, priority or locked memory are refused; then no pass was made.
pub fn measure(plan: &Plan) -> Result<Measured, Error> {
    let tracing = ft_user::init_with(ft_user::Config { rings: 4, ..ft_user::Config::default() });
    let traced =
        tracing.is_ok_and(|status| status.enabled > 0 || status.agent != ft_user::Agent::Absent);
    let slots = tracing.map_or(0, |status| status.config.ring_slots);
    let result = thread::scope(|scope| {
        let body = || on_its_thread(plan, traced, Wake::asked_for(slots));
        let thread = thread::Builder::new().name("npt".into()).spawn_scoped(scope, body);
        let thread = thread.map_err(|error| {
            Error::refused(format!("no thread could be started ({error}); raise `ulimit -u`"))
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    memory::unlock();
    result
}

fn on_its_thread(plan: &Plan, traced: bool, wake: Option<Wake>) -> Result<Measured, Error> {
    let isolated = cpus::isolated();
    let cpu = match plan.cpu {
        Some(cpu) => cpu,
        None => *isolated.last().or(cpus::allowed().last()).ok_or_else(|| {
            Error::refused("the kernel does not say which CPUs there are; name one with --cpu")
        })?,
    };
    cpus::pin(&[cpu])?;
    if traced {
        // Not by the first event, which would make system calls.
        ft_user::thread_init();
    }
    let hz = if plan.eval_cpu_speed { evaluated_hz() } else { tsc_hz() as f64 };
    let cycles = |ns: u64| (ns as f64 * hz / 1e9) as u64;
    let mut run = Run {
        lengths: PassLengths::new(),
        peaks: 0,
        longest: Vec::with_capacity(KEPT),
        poller: Poller::with_threshold_tsc(cycles(plan.peak_ns)),
        every: plan.rate.map_or(0, |rate| (hz / rate as f64) as u64),
        next: 0,
        max_cycles: cycles(plan.max_time_ns),
        own_cycles: u64::MAX,
        wake,
        hz: hz as u64,
    };
    if plan.lock_memory {
        memory::lock()
            .map_err(|error| Error::refused(format!("{error}, or do without: --no-lock-memory")))?;
    }
    if let Some(priority) = plan.real_time {
        Class::Priority(Priority::Fifo(priority)).enter(true)?;
    }
    if plan.tracepoint {
        run.passes::<true>(plan)
    } else {
        run.passes::<false>(plan)
    }
    if traced {
        run.tell();
    }
    let Run { own_cycles, lengths, peaks, longest, .. } = run;
    let isolated = isolated.contains(&cpu);
    Ok(Measured { cpu, isolated, hz, own_cycles, lengths, peaks, longest })
}

struct Run {
    lengths: PassLengths,
    peaks: u64,
    longest: Vec<Peak>,
    poller: Poller,
    /// Cycles between two trace points.
    every: u64,
    next: u64,
    max_cycles: u64,
    own_cycles: u64,
    hz: u64,
    wake: Option<Wake>,
}

impl Run {
    fn passes<const TRACEPOINT: bool>(&mut self, plan: &Plan) {
        let end = tsc().saturating_add(self.max_cycles);
        self.undisturbed();
        for pass in 0..plan.warm_up {
            if TRACEPOINT {
                self.tracepoint(pass);
            }
            self.poller.poll();
            if self.poller.last().0 >= end {
                return;
            }
        }
        event!(
            "npt.begin", loops: u64 = plan.loops, own: u64 = self.own_cycles, hz: u64 = self.hz,
            warm_up: u64 = plan.warm_up, peak_ns: u64 = plan.peak_ns, priority: Option<u32> = plan.real_time;
            "{loops} passes begin, of which each takes {own} cycles of {hz} Hz by itself"
        );
        self.poller.poll();
        let mut before = self.poller.last().0;
        for pass in 0..plan.loops {
            if TRACEPOINT {
                self.tracepoint(pass);
            }
            let gap = self.poller.poll();
            let now = self.poller.last().0;
            let cycles = now.saturating_sub(before);
            before = now;
            self.lengths.add(cycles);
            if gap.is_some() {
                self.peak(Peak { pass, cycles });
            }
            // Whatever the loop was told: a real-time thread ends.
            if now >= end {
                break;
            }
        }
    }

    /// The trace point, unless the last one was too short a while ago.
    #[inline(always)]
    fn tracepoint(&mut self, pass: u64) {
        if self.every > 0 {
            let now = self.poller.last().0;
            if now < self.next {
                return;
            }
            self.next = now + self.every;
        }
        event!("npt.pass", pass: u64; "pass {pass}");
        if let Some(wake) = &mut self.wake {
            wake.written();
        }
    }

    /// Finds out what a pass takes by itself.
    fn undisturbed(&mut self) {
        self.poller.poll();
        for _ in 0..UNDISTURBED {
            let before = self.poller.last().0;
            self.poller.poll();
            self.own_cycles = self.own_cycles.min(self.poller.last().0.saturating_sub(before));
        }
    }

    /// Tells a recording that the loop is over, and the histogram.
    fn tell(&self) {
        // The loop may have filled the ring.
        thread::sleep(ROOM);
        let bins = self.lengths.bins().count() as u64;
        event!(
            "npt.end", passes: u64 = self.lengths.passes(), peaks: u64 = self.peaks, bins: u64 = bins;
            "{passes} passes were made, {peaks} of them took long"
        );
        for (from, to, passes) in self.lengths.bins() {
            event!(
                "npt.bin", from: u64 = from, to: u64 = to, passes: u64 = passes;
                "{passes} passes took {from} cycles or more, and fewer than {to}"
            );
        }
    }

    #[cold]
    fn peak(&mut self, peak: Peak) {
        event!("npt.peak", pass: u64 = peak.pass, cycles: u64 = peak.cycles; "pass {pass} took {cycles} cycles");
        self.peaks += 1;
        let place = self.longest.partition_point(|other| other.cycles >= peak.cycles);
        if place < KEPT {
            self.longest.truncate(KEPT - 1);
            self.longest.insert(place, peak);
        }
    }
}

/// The counter's frequency, measured while the CPU is kept busy.
fn evaluated_hz() -> f64 {
    let from = Reading::now();
    while monotonic_ns() < from.ns + STRESS_NS {
        std::hint::spin_loop();
    }
    Clock::between(from, Reading::now()).hz()
}
