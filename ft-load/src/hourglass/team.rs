//! The threads of a run: all are made ready, then all start, and all are gone when this returns.

use std::sync::{OnceLock, mpsc};
use std::thread;

use super::class;
use super::outcome::Outcome;
use super::overrun::Heeded;
use super::scenario::Scenario;
use super::tape::Tape;
use super::timer::sleep_until;
use super::worker::{Done, Worker};
use crate::Error;
use crate::clock::{Clock, Reading, monotonic_ns};
use crate::memory;

/// From opening the gate until the run begins: time to get to sleep in.
const LEAD_NS: u64 = 20_000_000;

/// Between two readings of both clocks before the run: makes a frequency good to a part in a million.
const CALIBRATION_NS: u64 = 50_000_000;

/// Room for the deepest call of a worker, many times over; locked memory pays for all of it.
const STACK_BYTES: usize = 256 << 10;

/// Slots of all rings together, where nobody asks for another size (`FT_RING_SLOTS`): 64 MiB of memory that is locked.
const RING_SLOTS: u32 = 1 << 21;

/// Slots of one ring: a worker writes thousands of events a second, not millions.
const RING_SLOTS_EACH: std::ops::RangeInclusive<u32> = 1 << 12..=1 << 16;

/// How often a ready thread looks whether it may start, ns.
const LOOK_NS: u64 = 1_000_000;

/// Where ready threads wait: for the time that is called 0, or for being sent home.
///
/// They look for themselves, so that no real-time thread waits for one without priority to wake it or to let go of
/// a lock: on a busy machine that would be tens of milliseconds, and the run would begin without it.
#[derive(Default)]
struct Gate(OnceLock<Option<(u64, Clock)>>);

impl Gate {
    /// The first decision holds.
    fn decide(&self, start: Option<(u64, Clock)>) {
        self.0.get_or_init(|| start);
    }

    fn wait(&self) -> Option<(u64, Clock)> {
        loop {
            match self.0.get() {
                Some(decided) => return *decided,
                None => sleep_until(monotonic_ns() + LOOK_NS),
            }
        }
    }
}

/// Whoever waits is sent home when the run does not come about, for whatever reason.
struct Keeper<'a>(&'a Gate);

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.0.decide(None);
    }
}

/// Runs the scenario. Takes as long as it says, and a tenth of a second.
///
/// # Errors
///
/// A sentence with the remedy for the first request that the machine refuses. No thread is left then, and none has begun
/// to work.
pub fn run(scenario: &Scenario) -> Result<Outcome, Error> {
    let threads = scenario.threads.len();
    let rings = threads as u32 + 2;
    let ring_slots = (RING_SLOTS / rings).clamp(*RING_SLOTS_EACH.start(), *RING_SLOTS_EACH.end());
    let tracing =
        ft_user::init_with(ft_user::Config { rings, ring_slots, ..ft_user::Config::default() });
    let traced =
        tracing.is_ok_and(|status| status.enabled > 0 || status.agent != ft_user::Agent::Absent);
    let calibration = Reading::now();
    let tape = Tape::new(scenario.records).ok_or_else(|| {
        Error::refused(format!(
            "there is no memory for {} records; ask for fewer with -e",
            scenario.records
        ))
    })?;
    // Before a thread can be told, and until all are gone.
    let _heeded = Heeded::of(scenario);
    let gate = Gate::default();
    let mut notes = Vec::new();
    let (started, done) = thread::scope(|scope| {
        let keeper = Keeper(&gate);
        let (tell, told) = mpsc::channel();
        let mut workers = Vec::new();
        let spawned = (0..threads).try_for_each(|number| {
            let (tell, gate, tape) = (tell.clone(), &gate, &tape);
            let name = scenario.threads[number].name.clone();
            let builder = thread::Builder::new()
                .name(name.unwrap_or_else(|| format!("hourglass/{number}")))
                .stack_size(STACK_BYTES);
            let body = move || {
                let worker = prepare(number, scenario, tape, traced);
                // The other end waits for one answer of each, and is gone where another has refused.
                let _ = tell.send(worker.as_ref().map(drop).map_err(Error::clone));
                drop(tell);
                match (gate.wait(), worker) {
                    (Some((zero_ns, clock)), Ok(worker)) => worker.run(zero_ns, clock),
                    _ => Ok(Done::default()),
                }
            };
            let worker = builder.spawn_scoped(scope, body).map_err(|error| {
                Error::refused(format!(
                    "only {number} of {threads} threads could be started ({error}); ask for fewer, or raise `ulimit -u`"
                ))
            })?;
            workers.push(worker);
            Ok(())
        });
        drop(tell);
        let started = spawned.and_then(|()| {
            for _ in 0..threads {
                let lost = |_| Err(Error::refused("a thread ended before it was ready; try again"));
                told.recv().unwrap_or_else(lost)?;
            }
            lock_memory(scenario, &mut notes)?;
            sleep_until(calibration.ns + CALIBRATION_NS);
            let begin = Reading::now();
            let zero_ns = monotonic_ns() + LEAD_NS;
            event_zero(zero_ns, scenario);
            gate.decide(Some((zero_ns, Clock::between(calibration, begin))));
            Ok((begin, zero_ns))
        });
        drop(keeper);
        // Each is gone before anything is told, whatever has happened.
        let done: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        (started, done)
    });
    memory::unlock();
    let (begin, zero_ns) = started?;
    let worked =
        |done: thread::Result<_>| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let done = done.into_iter().map(worked).collect::<Result<Vec<Done>, Error>>()?;
    let clock = Clock::between(begin, Reading::now());
    Ok(Outcome::new(scenario, clock, zero_ns, tape, done, notes))
}

/// Locks what there is now; where that is refused, it is an error or a note.
fn lock_memory(scenario: &Scenario, notes: &mut Vec<String>) -> Result<(), Error> {
    let Err(error) = memory::lock() else { return Ok(()) };
    if scenario.lock_memory {
        return Err(error);
    }
    notes.push(format!("{error}; its pages were touched instead"));
    Ok(())
}

/// What a thread does before the run: room and timers first, its class last, so that it is fast until then.
fn prepare<'a>(
    number: usize,
    scenario: &'a Scenario,
    tape: &'a Tape,
    traced: bool,
) -> Result<Worker<'a>, Error> {
    let worker = Worker::new(number, scenario, tape)?;
    if traced {
        // Not by the first event, which would make system calls.
        ft_user::thread_init();
    }
    class::apply(&scenario.threads[number])?;
    Ok(worker)
}

/// Writes where the times of the run are counted from.
fn event_zero(zero_ns: u64, scenario: &Scenario) {
    let threads = scenario.threads.len();
    ft_user::event!(
        "hourglass.zero", zero_ns: u64, workers: usize = threads, duration_ns: u64 = scenario.duration_ns,
        gap_ns: u64 = scenario.gap_ns; "{workers} workers start at {zero_ns}"
    );
}
