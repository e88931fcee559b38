//! What the recording itself did to the threads that it recorded.
//!
//! The agent's threads are in the trace like all others: as whoever has a CPU. What they had of the waits of recorded
//! threads is summed up here, what they had of CPUs in [`super::cpus`]. Threads of the agent that are recorded themselves
//! (`-a`) do not count as recorded ones.

use serde::{Deserialize, Serialize};

use super::account::State;
use super::cpus::{AgentTime, Cpus, Shares};
use ft_trace::tables::Decomposition;

/// How often, and how long, threads of the agent had the CPU while recorded ones could run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldUp {
    /// Waits for a CPU in which the agent had it for some time.
    pub times: u64,
    /// How long it had it in these.
    pub total_ns: i64,
    /// Of one wait, at most.
    pub longest_ns: i64,
}

/// What the recording itself did, by the scheduler's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// CPU time of the agent's threads, ns.
    pub cpu_ns: i64,
    /// Of this, on CPUs on which recorded threads ran, too.
    pub shared_ns: i64,
    /// Recorded threads had to leave the CPU.
    pub preempted: HeldUp,
    /// Recorded threads had been woken, and waited for the CPU.
    pub woken: HeldUp,
    /// Time of the recorded threads on a CPU, outside interrupts, ns.
    pub running_ns: i64,
}

/// What is summed up as the trace goes on.
#[derive(Debug, Default)]
pub(super) struct Sums(Overhead);

impl Sums {
    /// A recorded thread has a CPU again, after it was in this state.
    pub(super) fn waited(&mut self, after: State, shares: &Shares, cpus: &Cpus) {
        let ns = shares.of(|who| cpus.is_agents(who.thread));
        if ns > 0 {
            let woken = after == State::Woken;
            let held_up = if woken { &mut self.0.woken } else { &mut self.0.preempted };
            held_up.times += 1;
            held_up.total_ns += ns;
            held_up.longest_ns = held_up.longest_ns.max(ns);
        }
    }

    /// A recorded thread has ended, or the trace has.
    pub(super) fn ended(&mut self, account: &Decomposition) {
        self.0.running_ns = self.0.running_ns.saturating_add(account.running_ns);
    }

    /// All of it.
    pub(super) fn total(&self, time: AgentTime) -> Overhead {
        Overhead { cpu_ns: time.all_ns, shared_ns: time.shared_ns, ..self.0 }
    }
}
