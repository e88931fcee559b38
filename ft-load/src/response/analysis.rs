//! Worst-case response times under fixed-priority preemptive scheduling on one CPU.
//!
//! The analysis of Tindell, Burns and Wellings ("An extendible approach for analysing fixed priority hard real-time
//! tasks", Real-Time Systems 6(2), 1994), which Hourglass uses in section 5.5, with release jitter, blocking and the
//! cost of context switches. Task `i` is ready at most `J` after its release and then needs `C`; of lower tasks it
//! waits for at most `B`. The windows of its jobs `q = 0, 1, …` in one busy period are the smallest solutions of
//!
//! ```text
//! w(q) = (q + 1) C + B + Σ over higher tasks j of ⌈(w(q) + Jj) / Tj⌉ Cj
//! ```
//!
//! and the response is the largest `J + w(q) − q T`. The busy period ends with the first `q` whose window closes before
//! the next job can be ready, `w(q) + J ≤ (q + 1) T`. Times are whole nanoseconds, and so are the results: nothing is
//! rounded.

/// Windows that are looked at for one task before the analysis gives up: about a second of work.
///
/// Only a set that leaves (almost) no time free has busy periods that long.
///
/// Limit: the task has no bound (`not found`): the set leaves almost no time free.
/// Shown by: `lengths_that_no_machine_has_do_not_overflow`.
const MAX_STEPS: u32 = 2_000_000;

/// A periodic or sporadic task. All times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Longest execution time of a job, without context switches; not zero.
    pub cost_ns: u64,
    /// Shortest time between two releases, and the time within which a job should be done; not zero.
    pub period_ns: u64,
    /// Longest time from a release until the job is ready to run.
    pub jitter_ns: u64,
    /// Longest time for which a task of lower priority keeps it waiting.
    pub blocking_ns: u64,
}

/// How long the jobs of a task can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// At most this long from release to completion, ns. It can be reached: by the releases that come together worst.
    Within(u64),
    /// There is no bound: this task and those above it ask for more than all time.
    Unbounded,
    /// None was found within two million windows; the set leaves almost no time free.
    NotFound,
}

/// The response time of each of `tasks`, which stand in the order of their priority, the highest first.
///
/// Each job costs two context switches of `switch_ns`: to it, and from it back to whom it took the CPU from.
pub fn analyse(tasks: &[Task], switch_ns: u64) -> Vec<Response> {
    let tasks: Vec<Wide> = tasks.iter().map(|task| Wide::new(task, switch_ns)).collect();
    (0..tasks.len()).map(|i| response(&tasks[i], &tasks[..i])).collect()
}

/// The share of the CPU that `tasks` ask for, with context switches; above 1 it is more than there is.
pub fn utilisation(tasks: &[Task], switch_ns: u64) -> f64 {
    tasks
        .iter()
        .map(|task| Wide::new(task, switch_ns))
        .map(|t| t.cost as f64 / t.period as f64)
        .sum()
}

/// A task with room to calculate, and with its switches.
struct Wide {
    cost: u128,
    period: u128,
    jitter: u128,
    blocking: u128,
}

impl Wide {
    fn new(task: &Task, switch_ns: u64) -> Self {
        Wide {
            cost: u128::from(task.cost_ns) + 2 * u128::from(switch_ns),
            period: task.period_ns.into(),
            jitter: task.jitter_ns.into(),
            blocking: task.blocking_ns.into(),
        }
    }
}

fn response(task: &Wide, higher: &[Wide]) -> Response {
    if asks_for_too_much(task, higher) {
        return Response::Unbounded;
    }
    let (mut worst, mut window, mut q) = (0, 0, 0);
    for _ in 0..MAX_STEPS {
        let interference = |h: &Wide| (window + h.jitter).div_ceil(h.period) * h.cost;
        let next =
            (q + 1) * task.cost + task.blocking + higher.iter().map(interference).sum::<u128>();
        if next != window {
            // Windows only grow, so the one of a job is where to begin with the next.
            window = next;
            continue;
        }
        worst = worst.max(task.jitter + window - q * task.period);
        if window + task.jitter <= (q + 1) * task.period {
            return u64::try_from(worst).map_or(Response::NotFound, Response::Within);
        }
        q += 1;
    }
    Response::NotFound
}

/// Whether the shares of all of them sum to more than 1. Where a `u128` has no room to say that exactly, an `f64` does,
/// and leaves to the windows what is too close to tell.
fn asks_for_too_much(task: &Wide, higher: &[Wide]) -> bool {
    let all = || higher.iter().chain([task]);
    let exact = all().try_fold((0u128, 1u128), |(part, whole), t| {
        let common = whole.checked_mul(t.period / gcd(whole, t.period))?;
        let sum = part
            .checked_mul(common / whole)?
            .checked_add(t.cost.checked_mul(common / t.period)?)?;
        Some((sum, common))
    });
    match exact {
        Some((part, whole)) => part > whole,
        None => all().map(|t| t.cost as f64 / t.period as f64).sum::<f64>() > 1.0 + 1e-9,
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
