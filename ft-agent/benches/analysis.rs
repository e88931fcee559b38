//! Events per second that the analyses take, without reading and writing files.
//!
//! The stream: 8 observed threads on 4 CPUs that take two nested locks, are interrupted, preempted by
//! other threads, sleep, and are woken. `cargo bench -p ft-agent --bench analysis`.

use std::hint::black_box;
use std::time::Instant;

use ft_agent::analysis::{Analysis, Context};
use ft_agent::event::{Event, LeanUserEvent};
use ft_agent::model::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use ft_agent::store::rows::{Irq, SchedSwitch, SchedWaking, SiteRow, ThreadRow};

const ROUNDS: i64 = 20_000;
const REPEATS: usize = 7;

fn context() -> Context {
    let site = |(kind, event): (&str, &str), site| SiteRow {
        site: SiteId(site),
        pid: Pid(1),
        event: event.into(),
        category: "lock".into(),
        kind: kind.into(),
        file: "".into(),
        line: 0,
        args: "".into(),
        format: "".into(),
        triggers: 1,
    };
    let sites = [
        site(("lock_acquire", "lock.mutex_acquire"), 0),
        site(("lock_release", "lock.mutex_release"), 1),
    ];
    let thread = ThreadRow {
        ts: Nanos(0),
        tid: Tid(1),
        pid: Pid(1),
        name: "worker".into(),
        process: "worker".into(),
        prio: None,
        observed: true,
    };
    Context::new(true, 100, &[thread], &sites, &[])
}

/// 18 events a thread and round: 8 of locks, 4 switches, 4 interrupts, 2 wakings.
fn stream() -> Vec<Event> {
    let [worker, other, sleeping, preempted, vector, timer]: [Name; 6] =
        ["worker", "other", "S", "R+", "vector", "local_timer"].map(Into::into);
    let mut events = Vec::new();
    let mut ts = 0;
    for round in 0..ROUNDS {
        for thread in 0..8 {
            let (tid, cpu) = (Tid(10 + thread), Cpu(thread % 4));
            let mut at = |make: &dyn Fn(Nanos) -> Event| {
                ts += 200;
                events.push(make(Nanos(ts)));
            };
            let switch = |out: bool, state: &Name| {
                let (mine, foreign) = ((tid, Pid(1), &worker), (Tid(99), Pid(9), &other));
                let (prev, next) = if out { (mine, foreign) } else { (foreign, mine) };
                let state = state.clone();
                move |ts| {
                    Event::Switch(SchedSwitch {
                        ts,
                        cpu,
                        prev_tid: prev.0,
                        prev_pid: prev.1,
                        prev_comm: prev.2.clone(),
                        prev_prio: 120,
                        prev_state: state.clone(),
                        next_tid: next.0,
                        next_pid: next.1,
                        next_comm: next.2.clone(),
                        next_prio: 120,
                    })
                }
            };
            let lock = |site, lock| {
                let (site, arg) = (SiteId(site), [lock, 0, 0]);
                move |ts| Event::User(LeanUserEvent { ts, pid: Pid(1), tid, cpu, site, arg })
            };
            let irq = |ts| {
                let (kind, name) = (vector.clone(), timer.clone());
                Event::Irq(Irq { ts, dur: 150, cpu, kind, number: 1, name, tid, pid: Pid(1) })
            };
            let waking = |ts| {
                let (waker_tid, pid, target_cpu) = (Tid(99), Pid(1), cpu);
                Event::Waking(SchedWaking {
                    ts,
                    cpu,
                    waker_tid,
                    tid,
                    pid,
                    prio: 120,
                    target_cpu,
                    is_new: false,
                })
            };
            let (outer, inner) = (0x1000 + round % 4, 0x2000 + i64::from(thread));
            at(&waking);
            at(&switch(false, &sleeping));
            for _ in 0..2 {
                at(&lock(0, outer));
                at(&irq);
                at(&lock(0, inner));
                at(&irq);
                at(&lock(1, inner));
                at(&lock(1, outer));
            }
            at(&switch(true, &preempted));
            at(&switch(false, &sleeping));
            at(&switch(true, &sleeping));
            at(&waking);
        }
    }
    events
}

fn main() {
    let events = stream();
    let mut rates = Vec::new();
    for _ in 0..REPEATS {
        let mut analysis = Analysis::new(context());
        let start = Instant::now();
        for event in &events {
            analysis.push(event);
            if analysis.pending() >= 4096 {
                black_box(analysis.take_rows());
            }
        }
        let (_, tally) = analysis.finish();
        rates.push(events.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
        assert_eq!(tally.holds as i64, ROUNDS * 8 * 4);
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{} events: {:.1} M events/s (median of {REPEATS}; {:.1} to {:.1})",
        events.len(),
        rates[REPEATS / 2],
        rates[0],
        rates[REPEATS - 1]
    );
}
