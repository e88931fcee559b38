//! What a worker says of itself in a recording, before it begins to work.
//!
//! A recording's analysis sees three whole numbers of an event, so what it needs is told in numbers, several events
//! long; the words beside them are for people.

use ft_user::event;

use super::class::{self, DEADLINE, RECLAIM};
use super::timer::Timer;
use super::worker::Worker;
use super::workload::Workload;
use crate::cpus;

/// Writes who it is and what it is to do, from `start_ns` to `finish_ns` on `CLOCK_MONOTONIC`.
pub(super) fn write(worker: &Worker<'_>, start_ns: u64, finish_ns: u64) {
    let (number, plan) = (worker.number, worker.plan);
    let what = plan.workload.to_string();
    event!(
        "hourglass.worker", worker: u32 = number, workload: u32 = workload(plan.workload), timer: u32 = timer(plan.timer),
        what: &str = &what, name: Option<&str> = plan.name.as_deref(); "worker {worker}: {what}"
    );
    if let Some(own) = class::own() {
        let (policy, is_reserved) = (own.sched_policy, own.sched_policy == DEADLINE);
        let slice_ns = if is_reserved { 0 } else { own.sched_runtime };
        let real_time = policy == libc::SCHED_FIFO as u32 || policy == libc::SCHED_RR as u32;
        let priority = if real_time { own.sched_priority as i32 } else { own.sched_nice };
        event!(
            "hourglass.class", policy: u32, priority: i32, slice_ns: u64, worker: u32 = number;
            "worker {worker}: policy {policy}, priority {priority}"
        );
        if is_reserved {
            event!(
                "hourglass.reserved", amount_ns: u64 = own.sched_runtime, period_ns: u64 = own.sched_period,
                soft: bool = own.sched_flags & RECLAIM != 0, worker: u32 = number;
                "worker {worker} has reserved {amount_ns} in {period_ns}"
            );
        }
    }
    let cpu = match cpus::allowed()[..] {
        [cpu] => cpu as i32,
        _ => -1,
    };
    event!(
        "hourglass.span", start_ns: u64, finish_ns: u64, cpu: i32, worker: u32 = number;
        "worker {worker} from {start_ns} to {finish_ns}"
    );
    let (amount_ns, period_ns, scan_kb) = match plan.workload {
        Workload::Cpu { scan_kb, yield_after_ns } => (yield_after_ns, None, scan_kb),
        Workload::Periodic { amount_ns, period_ns }
        | Workload::CpuPeriodic { amount_ns, period_ns } => {
            (Some(amount_ns), Some(period_ns), None)
        }
        Workload::Latency { period_ns } => (None, Some(period_ns), None),
    };
    event!(
        "hourglass.demand", amount_ns: Option<u64>, period_ns: Option<u64>, scan_kb: Option<u64>, worker: u32 = number;
        "worker {worker} wants {amount_ns} in {period_ns}"
    );
    if let Some(bound_ns) = worker.bound_ns {
        event!("hourglass.bound", bound_ns: u64, worker: u32 = number; "worker {worker} responds within {bound_ns}");
    }
}

/// The place of a workload in the list of Hourglass, appendix A, from 0 on.
fn workload(workload: Workload) -> u32 {
    match workload {
        Workload::Cpu { scan_kb: None, yield_after_ns: None } => 0,
        Workload::Cpu { scan_kb: Some(_), yield_after_ns: None } => 1,
        Workload::Cpu { scan_kb: None, yield_after_ns: Some(_) } => 2,
        Workload::Cpu { scan_kb: Some(_), yield_after_ns: Some(_) } => 3,
        Workload::Periodic { .. } => 4,
        Workload::CpuPeriodic { .. } => 5,
        Workload::Latency { .. } => 6,
    }
}

/// The place of a timer in the table of [`super::timer`], from 0 on.
fn timer(timer: Timer) -> u32 {
    match timer {
        Timer::Native => 0,
        Timer::Hr => 1,
        Timer::Timerfd => 2,
        Timer::Rtc => 3,
    }
}
