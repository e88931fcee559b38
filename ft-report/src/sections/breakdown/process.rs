//! The time of processes, in parts that sum.

use serde::Serialize;

use ft_trace::tables::{Breakdown, Decomposition, Place};

/// The time of the processes of one name, in parts that sum.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessBreakdown {
    /// Newest name of the first thread, or of another one.
    pub name: String,
    /// Processes of that name.
    pub processes: u64,
    /// Their threads.
    pub threads: u64,
    /// Wall time of all threads together, ns.
    pub wall_ns: i64,
    /// On a CPU, outside of calls and faults, ns.
    pub user_ns: i64,
    /// On a CPU, in system calls, ns.
    pub calls_ns: i64,
    /// On a CPU, in page faults, ns.
    pub faults_ns: i64,
    /// On a CPU, in a call or in none: it is not known, ns.
    pub unknown_ns: i64,
    /// In interrupts, ns.
    pub interrupts_ns: i64,
    /// Preempted, or woken and waiting for a CPU, ns.
    pub runnable_ns: i64,
    /// Blocked in system calls, ns.
    pub blocked_ns: i64,
    /// Blocked in page faults, ns.
    pub fault_blocked_ns: i64,
    /// Off the CPU and outside of calls, or perhaps: stopped, or records are missing, ns.
    pub outside_ns: i64,
    /// Covered by no record, ns.
    pub unexplained_ns: i64,
    /// System calls that were entered.
    pub calls: u64,
    /// Page faults that were served.
    pub page_faults: u64,
}

impl ProcessBreakdown {
    /// One more thread, with its first row.
    pub(super) fn has(&mut self, r: &Breakdown) {
        self.threads += 1;
        if self.name.is_empty() || r.pid.0 == r.tid.0 {
            self.name = r.comm.to_string();
        }
    }

    /// Another process of the name.
    pub(super) fn merge(&mut self, other: &ProcessBreakdown) {
        self.name.clone_from(&other.name);
        self.processes += 1;
        for (mine, others) in [
            (&mut self.wall_ns, other.wall_ns),
            (&mut self.user_ns, other.user_ns),
            (&mut self.calls_ns, other.calls_ns),
            (&mut self.faults_ns, other.faults_ns),
            (&mut self.unknown_ns, other.unknown_ns),
            (&mut self.interrupts_ns, other.interrupts_ns),
            (&mut self.runnable_ns, other.runnable_ns),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.fault_blocked_ns, other.fault_blocked_ns),
            (&mut self.outside_ns, other.outside_ns),
            (&mut self.unexplained_ns, other.unexplained_ns),
        ] {
            *mine += others;
        }
        self.threads += other.threads;
        self.calls += other.calls;
        self.page_faults += other.page_faults;
    }

    pub(super) fn add(&mut self, r: &Breakdown, parts: Decomposition) {
        self.wall_ns += parts.total_ns();
        let (on_cpu, blocked, count) = match (r.fault, r.place) {
            (Some(_), _) => {
                (&mut self.faults_ns, &mut self.fault_blocked_ns, Some(&mut self.page_faults))
            }
            (None, Place::Call) => {
                (&mut self.calls_ns, &mut self.blocked_ns, Some(&mut self.calls))
            }
            (None, Place::User) => (&mut self.user_ns, &mut self.outside_ns, None),
            (None, Place::Unknown) => (&mut self.unknown_ns, &mut self.outside_ns, None),
        };
        *on_cpu += parts.running_ns;
        *blocked += parts.blocked_ns;
        if let Some(count) = count {
            *count += r.count.unsigned_abs();
        }
        self.interrupts_ns += parts.interrupts_ns();
        self.runnable_ns += parts.runnable_ns();
        self.unexplained_ns += parts.unexplained_ns;
    }
}
