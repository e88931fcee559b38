//! Numbers of threads that nobody could ask for: the kernel's records have them.
//!
//! A thread of another PID namespace that ended before the agent looked stands under minus its own number
//! (see `unnumbered` of the agent's collector). Each of its events tells a CPU and a time, and the
//! switches tell which thread of its process ran there then. It is that one when all its events say so and no
//! other thread is taken for the same. An event within the clock bound of a switch says nothing, nor does one
//! in a run whose end does not fit its begin, for then a switch was lost.

use std::collections::{HashMap, HashSet};

use crate::ids::{Cpu, Nanos, Pid, Tid};
use crate::tables::SchedSwitch;

/// A time in which one thread had a CPU.
struct Run {
    from: Nanos,
    to: Nanos,
    pid: Pid,
    tid: Tid,
}

/// The threads whose numbers are known now: place in `threads`, and number. `events` have a time, the place of
/// their thread, and a CPU.
pub(super) fn numbers(
    threads: &[(Pid, Tid)],
    events: impl Iterator<Item = (Nanos, u32, Cpu)>,
    switches: &[SchedSwitch],
    bound_ns: i64,
) -> Vec<(u32, Tid)> {
    let is_wanted = |place: u32| threads[place as usize].1.0 < 0;
    let pids: HashSet<Pid> = threads.iter().filter(|t| t.1.0 < 0).map(|t| t.0).collect();
    if pids.is_empty() || switches.is_empty() {
        return Vec::new();
    }
    let runs = runs(switches, &pids);
    // `None` for a thread whose events do not agree.
    let mut found: HashMap<u32, Option<Tid>> = HashMap::new();
    for (ts, place, cpu) in events.filter(|&(_, place, _)| is_wanted(place)) {
        let Some(runs) = runs.get(&cpu) else { continue };
        let behind = runs.partition_point(|run| run.from <= ts);
        let Some(run) = behind.checked_sub(1).map(|i| &runs[i]) else { continue };
        let inside = ts - run.from > bound_ns && run.to - ts > bound_ns;
        if inside && run.pid == threads[place as usize].0 {
            let number = found.entry(place).or_insert(Some(run.tid));
            *number = number.filter(|&tid| tid == run.tid);
        }
    }
    let mut taken: HashMap<(Pid, Tid), u32> = HashMap::new();
    let key = |place: u32, tid| (threads[place as usize].0, tid);
    let known: Vec<(u32, Tid)> = found.into_iter().filter_map(|(n, tid)| Some((n, tid?))).collect();
    known.iter().for_each(|&(n, tid)| *taken.entry(key(n, tid)).or_default() += 1);
    known.into_iter().filter(|&(n, tid)| taken[&key(n, tid)] == 1).collect()
}

/// The runs of the threads of these processes on each CPU, in order.
fn runs(switches: &[SchedSwitch], pids: &HashSet<Pid>) -> HashMap<Cpu, Vec<Run>> {
    let mut order: Vec<&SchedSwitch> = switches.iter().collect();
    order.sort_by_key(|switch| (switch.cpu, switch.ts));
    let mut runs: HashMap<Cpu, Vec<Run>> = HashMap::new();
    for pair in order.windows(2) {
        let (came, left) = (pair[0], pair[1]);
        let whole = came.cpu == left.cpu && came.next_tid == left.prev_tid;
        if whole && pids.contains(&came.next_pid) {
            let (pid, tid) = (came.next_pid, came.next_tid);
            runs.entry(came.cpu).or_default().push(Run { from: came.ts, to: left.ts, pid, tid });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TaskState;

    /// A switch of CPU 0 at `ts` from thread `prev` to thread `next`, all of process 7 but 0.
    fn switch(ts: i64, prev: i32, next: i32) -> SchedSwitch {
        let pid = |tid| Pid(if tid == 0 { 0 } else { 7 });
        SchedSwitch {
            ts: Nanos(ts),
            cpu: Cpu(0),
            prev_tid: Tid(prev),
            prev_pid: pid(prev),
            prev_comm: "".into(),
            prev_prio: 120,
            prev_state: TaskState::Sleeping,
            prev_woken: false,
            next_tid: Tid(next),
            next_pid: pid(next),
            next_comm: "".into(),
            next_prio: 120,
        }
    }

    /// Thread 100 runs from 1000 to 2000 and from 3000 to 4000, thread 101 from 2000 to 3000; then a switch is
    /// missing.
    #[track_caller]
    fn check(threads: &[i32], events: &[(i64, u32)], expected: &[(u32, i32)]) {
        let switches = [
            switch(4000, 100, 0),
            switch(1000, 0, 100),
            switch(2000, 100, 101),
            switch(3000, 101, 100),
            switch(6000, 0, 102),
            switch(7000, 103, 0),
        ];
        let threads: Vec<_> = threads.iter().map(|&tid| (Pid(7), Tid(tid))).collect();
        let events = events.iter().map(|&(ts, place)| (Nanos(ts), place, Cpu(0)));
        let mut found = numbers(&threads, events, &switches, 50);
        found.sort();
        let expected: Vec<_> = expected.iter().map(|&(place, tid)| (place, Tid(tid))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_thread_is_the_one_that_ran_where_its_events_are() {
        check(&[-17, -18], &[(1500, 0), (2500, 1), (3500, 0)], &[(0, 100), (1, 101)]);
        check(&[55, -18], &[(1500, 0), (2500, 1)], &[(1, 101)]);
    }

    #[test]
    fn what_is_doubtful_stays_unknown() {
        // Two answers; one answer for two; at a switch; idle; in a hole; outside.
        check(&[-17], &[(1500, 0), (2500, 0)], &[]);
        check(&[-17, -18], &[(1500, 0), (3500, 1)], &[]);
        check(&[-17], &[(2040, 0), (4500, 0), (6500, 0), (500, 0), (9000, 0)], &[]);
    }
}
