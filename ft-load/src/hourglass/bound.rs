//! How long the jobs of a periodic worker take at worst, by the analysis of response times (Hourglass, section 5.5).
//!
//! It is of one CPU and fixed priorities, so there is a bound for a `PERIODIC` worker of `SCHED_FIFO` that may run on one
//! CPU alone, if everything of the run that can take that CPU from it is known to be such a worker, too. Who has the same
//! priority is counted as one above: the CPU is not shared between them, and either may have to wait for the other.
//! Switches, interrupts and what is not of the run are not in it: what a response has beyond the bound is theirs.
//!
//! For others there is none:
//! - `CPU_PERIODIC`: a job is released by the end of the one before it, so nothing limits how many come in a time.
//! - Reservations: on several CPUs, which a reservation needs all of, `SCHED_DEADLINE` bounds how late a job is, and does not
//!   say that it is in time (`Documentation/scheduler/sched-deadline.rst`, section 3.3); and it charges interrupts to
//!   the job that they interrupt, so what a job is charged for is more than its amount, by a time that no one knows before.
//! - Ordinary priorities: what a thread gets depends on all other threads of the machine.

use super::class::{Class, Priority};
use super::scenario::Plan;
use super::workload::Workload;
use crate::response::{Response, Task, analyse};

/// The bound of worker `number`, ns; `allowed` are the CPUs of a worker that says nothing of them.
pub(super) fn of(number: usize, plans: &[Plan], allowed: &[usize]) -> Option<u64> {
    let cpus = |plan: &Plan| match &plan.cpus[..] {
        [] => allowed.to_vec(),
        some => some.to_vec(),
    };
    let plan = &plans[number];
    let Class::Priority(Priority::Fifo(own)) = plan.class? else { return None };
    let [cpu] = cpus(plan)[..] else { return None };
    // The highest first; among equals the one that is asked about last.
    let mut tasks = vec![task(plan)?];
    for (_, other) in plans.iter().enumerate().filter(|(n, _)| *n != number) {
        let takes_the_cpu = match other.class {
            Some(Class::Reservation { .. }) => true,
            Some(Class::Priority(Priority::Fifo(priority))) => priority >= own,
            _ => false,
        };
        match (takes_the_cpu, &cpus(other)[..]) {
            (true, [other_cpu]) if *other_cpu == cpu => tasks.insert(0, task(other)?),
            (true, others) if others.contains(&cpu) => return None,
            _ => {}
        }
    }
    match analyse(&tasks, 0).last() {
        Some(Response::Within(ns)) => Some(*ns),
        _ => None,
    }
}

fn task(plan: &Plan) -> Option<Task> {
    match (plan.workload, plan.class) {
        (Workload::Periodic { amount_ns, period_ns }, Some(Class::Priority(Priority::Fifo(_)))) => {
            Some(Task { cost_ns: amount_ns, period_ns, jitter_ns: 0, blocking_ns: 0 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hourglass::scenario;

    fn bounds(line: &str, allowed: &[usize]) -> Vec<Option<u64>> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let plans = scenario(&words).expect(line).threads;
        (0..plans.len()).map(|n| of(n, &plans, allowed)).collect()
    }

    const PAIR: &str =
        "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i HR";
    const MS: u64 = 1_000_000;

    #[test]
    fn the_papers_pair_has_the_papers_bounds_on_one_cpu() {
        assert_eq!(bounds(PAIR, &[1]), [Some(3 * MS), Some(29 * MS)]);
        assert_eq!(bounds(&format!("{PAIR} -a --cpu 0"), &[0, 1]), [Some(3 * MS), Some(29 * MS)]);
        assert_eq!(bounds(PAIR, &[0, 1]), [None, None], "either may run beside the other");
    }

    #[test]
    fn who_may_take_the_cpu_and_is_not_periodic_leaves_no_bound() {
        for (third, expected) in [
            ("-p fifo:5 -w CPU", [Some(3 * MS), Some(29 * MS)]),
            ("-p HIGHEST -w CPU", [Some(3 * MS), Some(29 * MS)]),
            ("-p fifo:20 -w CPU", [Some(3 * MS), None]),
            ("-p fifo:99 -w LAT 1ms", [None, None]),
            ("-rh 1ms 10ms -w PERIODIC 1ms 10ms", [None, None]),
        ] {
            let line = PAIR.replace("-n 2", "-n 3") + " -t 2 " + third;
            assert_eq!(bounds(&line, &[0])[..2], expected, "{third}");
        }
    }

    #[test]
    fn equals_wait_for_each_other_and_too_much_has_no_bound() {
        let equals = "-n 2 -a -p fifo:7 -t 0 -w PERIODIC 3ms 10ms -t 1 -w PERIODIC 4ms 10ms";
        assert_eq!(bounds(equals, &[3]), [Some(7 * MS), Some(7 * MS)]);
        let too_much = "-n 2 -a -p fifo:7 -w PERIODIC 6ms 10ms -t 0 -p fifo:9";
        assert_eq!(bounds(too_much, &[3]), [Some(6 * MS), None]);
    }
}
