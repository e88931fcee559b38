//! Nobody's events change another's rows.
//!
//! Process 1 is recorded alone, and beside process 2, which writes any events, under any thread numbers: those of
//! process 1, too. Its rings lose events, of any thread that it names. What the kernel says of process 2 is left
//! out, because who has a CPU is everybody's affair.

use proptest::prelude::*;

use super::simulated::Machine;
use crate::timeline::{SITES, events, sites, threads};
use crate::{Context, Rows, Run};
use ft_trace::event::{Event, LeanUserEvent};
use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use ft_trace::tables::{LossOrigin, LossRow};

const HONEST: Pid = Pid(1);
const HOSTILE: Pid = Pid(2);

/// Longer than what [`Machine`] makes.
const END: i64 = 60_000;

fn argument() -> impl Strategy<Value = i64> {
    // The locks of process 1, times of the trace, and whatever.
    prop_oneof![Just(75), Just(76), Just(77), 0..END, any::<i64>()]
}

/// An event that a program can write of itself.
fn user(pid: Pid) -> impl Strategy<Value = Event> {
    let cpu = prop_oneof![-1..4, any::<i32>()];
    let arg = prop::array::uniform3(argument());
    (0..END, 97..102, cpu, -1..SITES.len() as i32, arg).prop_map(
        move |(ts, tid, cpu, site, arg)| {
            Event::User(LeanUserEvent {
                ts: Nanos(ts),
                pid,
                tid: Tid(tid),
                cpu: Cpu(cpu),
                site: SiteId(site),
                arg,
            })
        },
    )
}

/// A loss that concerns the hostile process, which tells the thread and the count.
fn loss() -> impl Strategy<Value = Event> {
    (0..END, 0..END, prop_oneof![Just(-1), 97..102], any::<i64>()).prop_map(
        |(ts, dur, tid, count)| {
            Event::Loss(LossRow {
                ts: Nanos(ts),
                dur,
                origin: LossOrigin::Ring,
                what: "ring full".into(),
                cpu: Cpu(-1),
                pid: HOSTILE,
                tid: Tid(tid),
                count,
            })
        },
    )
}

/// The rows of process 1.
fn rows(mut events: Vec<Event>) -> Rows {
    events.sort_by_key(|e| (e.ts(), e.rank()));
    let mut analysis = Run::new(Context::new(true, 10, &threads(), &sites(), &[]));
    events.iter().for_each(|event| analysis.push(event));
    let (mut rows, _) = analysis.finish();
    rows.critical_sections.retain(|r| r.pid == HONEST);
    rows.dispatch_latency.retain(|r| r.pid == HONEST);
    rows.gaps.retain(|r| r.pid == HONEST);
    rows.thread_time.retain(|r| r.pid == HONEST);
    rows.lock_waits.retain(|r| r.pid == HONEST);
    rows.unfinished_waits.retain(|r| r.pid == HONEST);
    rows.lock_preemptions.retain(|r| r.pid == HONEST);
    rows.lock_order.retain(|r| r.pid == HONEST);
    rows.scopes.retain(|r| r.pid == HONEST);
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nobodys_events_change_anothers_rows(
        seed in 1u64..1_000_000,
        more in prop::collection::vec(user(HONEST), 0..60),
        hostile in prop::collection::vec(prop_oneof![9 => user(HOSTILE), 1 => loss()], 1..120),
    ) {
        let mut alone: Vec<Event> = events(&Machine::new(seed).run().0).collect();
        alone.extend(more);
        alone.extend(events(&format!("{END} wake X a 0")));
        let beside = [&alone[..], &hostile[..]].concat();
        let (alone, beside) = (rows(alone), rows(beside));
        prop_assert!(!alone.thread_time.is_empty());
        prop_assert_eq!(alone.critical_sections, beside.critical_sections);
        prop_assert_eq!(alone.dispatch_latency, beside.dispatch_latency);
        prop_assert_eq!(alone.gaps, beside.gaps);
        prop_assert_eq!(alone.thread_time, beside.thread_time);
        prop_assert_eq!(alone.lock_waits, beside.lock_waits);
        prop_assert_eq!(alone.unfinished_waits, beside.unfinished_waits);
        prop_assert_eq!(alone.lock_preemptions, beside.lock_preemptions);
        prop_assert_eq!(alone.lock_order, beside.lock_order);
        prop_assert_eq!(alone.scopes, beside.scopes);
    }
}
