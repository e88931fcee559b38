//! A `SCHED_FIFO` thread takes the CPU of a thread that holds some locks, or polls, for a known time.
//!
//! ```text
//! victim     FIFO 10  ──hold/poll──────┐              ┌───────────release
//! preemptor  FIFO 50   sleep           └──known time──┘ sleep
//!                                      from           to
//! ```
//!
//! The preemptor reads the clock when it gets the CPU and just before it gives it up; the victim cannot
//! have run in between, so it was off the CPU at least that long. The victim reads the clock all the time; it
//! was off the CPU at most for the gaps in its readings. The truth lies between the two.

use std::thread;
use std::time::Duration;

use ft_user::gap::Poller;
use ft_user::sync::Mutex;
use serde_json::json;

use crate::sched::{self, Start};

/// The victim is inside this long after it was preempted.
const TAIL_NS: i64 = 300_000;

const NAMES: [&str; 4] = ["outer", "second", "third", "inner"];

struct Round {
    /// From the start of the scenario.
    start: i64,
    /// The victim is inside this long before it is preempted.
    lead_ns: i64,
    length_ns: i64,
    /// Locks that the victim holds; it polls when it holds none.
    locks: usize,
}

impl Round {
    fn end(&self) -> i64 {
        self.start + self.lead_ns + self.length_ns + TAIL_NS
    }
}

/// Every length with every number of locks, `repeats` times.
fn plan(lengths_us: &[i64], locks: &[usize], repeats: u64, lead_ns: i64) -> Vec<Round> {
    let mut start = 0;
    let mut rounds = Vec::new();
    for _ in 0..repeats {
        for (length_us, locks) in
            lengths_us.iter().flat_map(|length| locks.iter().map(move |&n| (length, n)))
        {
            let round = Round { start, lead_ns, length_ns: length_us * 1000, locks };
            // Everything else on this CPU must have its share too, or the kernel gives it that.
            start = round.end() + 1_000_000 + round.length_ns / 4;
            rounds.push(round);
        }
    }
    rounds
}

/// Lengths of 0.2 to 20 ms with 0 to 4 locks.
pub(crate) fn all(repeats: u64) -> String {
    run(plan(&[200, 1_000, 5_000, 20_000], &[0, 1, 2, 3, 4], repeats, 400_000))
}

/// One length with one lock, and time enough that no round comes too late.
pub(crate) fn hold(length_us: u64, repeats: u64) -> String {
    run(plan(&[length_us as i64], &[1], repeats, 3_000_000))
}

/// Prints for each round: length and locks; when the preemptor had the CPU; when the victim was inside; how
/// long the victim was off the CPU at most; for how long the preemptor ran. And for how long it ran besides.
fn run(rounds: Vec<Round>) -> String {
    // Measures the counter now, not in the first round.
    ft_user::gap::tsc_hz();
    let start = Start::of(2);
    thread::scope(|s| {
        let preemptor = sched::on_stage(s, "ft-preemptor", 50, || {
            let start = start.wait();
            let take = |round: &Round| {
                sched::sleep_until(start + round.start + round.lead_ns);
                let (from, ran) = (sched::now_ns(), sched::cpu_ns());
                sched::spin_until(from + round.length_ns);
                let ran = sched::cpu_ns() - ran;
                (from, sched::now_ns(), ran)
            };
            let taken: Vec<_> = rounds.iter().map(take).collect();
            // Gives the CPU up at once in the last round too, before it does anything else.
            sched::sleep_until(start + rounds.last().map_or(0, Round::end));
            let outside = sched::cpu_ns() - taken.iter().map(|(.., ran)| ran).sum::<i64>();
            (sched::gettid(), taken, outside)
        });
        let victim = sched::on_stage(s, "ft-victim", 10, || {
            let locks = NAMES.map(|name| Mutex::named(name, ()));
            let start = start.wait();
            let inside: Vec<_> = rounds.iter().map(|round| suffer(round, start, &locks)).collect();
            (sched::gettid(), inside)
        });
        let (victim, inside) = victim.join().expect("victim");
        let (preemptor, taken, outside) = preemptor.join().expect("preemptor");
        let rows =
            rounds.iter().zip(taken.iter().zip(&inside)).map(|(r, ((from, to, ran), inside))| {
                [r.length_ns, r.locks as i64, *from, *to, inside[0], inside[1], inside[2], *ran]
            });
        let rows: Vec<_> = rows.collect();
        json!({ "victim": victim, "preemptor": preemptor, "outside": outside, "rounds": rows })
            .to_string()
    })
}

/// What the victim does in a round: from, to, and how long it did not run.
fn suffer(round: &Round, start: i64, locks: &[Mutex<()>]) -> [i64; 3] {
    sched::sleep_until(start + round.start);
    let held: Vec<_> =
        locks[..round.locks].iter().map(|lock| lock.lock().expect("not poisoned")).collect();
    // Its first reading comes before `from` and its last one after `to`.
    let mut poller = held.is_empty().then(|| Poller::new(Duration::from_micros(100)));
    let mut poll = || {
        if let Some(poller) = &mut poller {
            poller.poll();
        }
    };
    let from = sched::now_ns();
    let lost = sched::spin_with(start + round.end(), &mut poll);
    let to = sched::now_ns();
    poll();
    drop(held);
    [from, to, lost]
}
