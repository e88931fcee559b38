//! Tasks that compute in turns (the paper's Figure 2), alone or beside one that listens for messages (Figure 3).

use serde::Serialize;

use super::executor::{self, Queues, worker, yields};
use super::messages::{Listener, Message, Network};
use crate::Error;
use crate::clock::monotonic_ns;

/// What is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) workers: usize,
    pub(super) queues: Queues,
    pub(super) tasks: usize,
    /// How long a task computes before it lets others run, ns.
    pub(super) quantum_ns: u64,
    pub(super) time_ns: u64,
    pub(super) listener: Option<Listener>,
}

/// What a task did: how often it was polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Turns {
    pub(super) turns: u64,
    /// Turns on another worker than the one before.
    pub(super) moves: u64,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Seen {
    pub(super) tasks: Vec<Turns>,
    pub(super) messages: Vec<Message>,
}

/// Runs it.
///
/// # Errors
///
/// When a thread or a socket is refused.
pub(super) fn run(plan: Plan) -> Result<Seen, Error> {
    let end = monotonic_ns() + plan.time_ns;
    // One turn of all tasks.
    let round_ns = plan.quantum_ns * plan.tasks.div_ceil(plan.workers) as u64;
    let network = plan.listener.map(|how| Network::start(how, round_ns, end)).transpose()?;
    executor::run(plan.workers, plan.queues, move |executor| async move {
        let listens = network.map(|network| network.listens(&executor));
        let mut joins = Vec::new();
        for n in 0..plan.tasks {
            // As long as the program runs.
            let name: &'static str = format!("work/{n}").leak();
            joins.push(executor.spawn(name, computes(plan.quantum_ns, end)));
        }
        let mut seen = Seen { tasks: Vec::new(), messages: Vec::new() };
        for join in joins {
            seen.tasks.push(join.await);
        }
        if let Some(listens) = listens {
            seen.messages = listens.await;
        }
        seen
    })
}

async fn computes(quantum_ns: u64, end: u64) -> Turns {
    let (mut seen, mut last) = (Turns::default(), None);
    loop {
        let moved = last.replace(worker()).is_some_and(|last| last != worker());
        seen.moves += u64::from(moved);
        seen.turns += 1;
        if monotonic_ns() >= end {
            return seen;
        }
        let until = monotonic_ns() + quantum_ns;
        while monotonic_ns() < until {
            std::hint::spin_loop();
        }
        yields().await;
    }
}
