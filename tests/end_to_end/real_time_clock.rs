//! Ticks of the real-time clock wake a worker of a load. Most virtual machines in a cloud have no such clock: QEMU's guests do,
//! in which `cargo xtask kernels` records this.

use std::path::Path;

use ft_trace::Mark;
use ft_trace::tables::{LoadWorker, SchedSwitch, SchedWaking, TimerLatency};

use crate::harness::{self, Stage, gate};
use crate::holes::Holes;
use crate::loads::{own_words, rows};
use crate::recomputed::agrees;

/// The highest rate that everybody may have, a second (rtc(4)), which is that of the paper.
const HZ: i64 = 1024;

/// What the worker sleeps for, again and again; it reads no clock in between, which takes an emulated machine long.
const PERIOD: i64 = 20_000_000;

/// A worker that gets its CPU too late, beside whatever else the machine does, sleeps seldom or never: the load runs again, twice
/// as long, until it has slept ten times. In the first run it cannot.
const LOAD: &str = r#"ms=100 said=
until [ "$(echo "$said" | grep -o due_ns | wc -l)" -ge 10 ]; do
    ms=$((2 * ms))
    said=$("$0" hourglass --json -n 1 -d ${ms}ms -t 0 -w LAT 20ms -i RTC) || exit
done
echo "$said""#;

#[test]
fn ticks_of_the_real_time_clock_wake_a_worker() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if !harness::has_real_time_clock() {
        return gate::skipped(
            "there is no /dev/rtc0; `cargo xtask kernels` records this in a guest",
        );
    }
    let words = ["-c", LOAD, harness::load().to_str().expect("text")];
    let (said, dir) = stage.record_program(&["-k", "sched,irq"], Path::new("sh"), &words);
    let trace = harness::open(&dir);
    // Programs that the kernel did not run may be of a softirq or of a threaded interrupt, which can be preempted.
    let lost = &trace.meta().lost;
    assert!(lost.keys().all(|origin| origin == "kernel-skipped"), "{lost:?}");
    let holes = Holes::of(&trace);
    let own = own_words(&said);
    let workers = rows::<LoadWorker>(&trace);
    let worker = workers.last().expect("a worker");
    assert!(workers.len() > 1, "a run of 200 ms has no ten sleeps of 20 ms");
    assert_eq!(worker.timer.word(), "RTC");

    let mine = |waking: &SchedWaking| waking.tid == worker.tid;
    let wakings: Vec<i64> = rows(&trace).iter().filter(|w| mine(w)).map(|w| w.ts.0).collect();
    let within = |from: i64, to: i64| wakings.iter().filter(move |ts| (from..=to).contains(*ts));
    let bound = trace.meta().clock.bound_ns;
    let its = |sleep: &TimerLatency| sleep.tid == worker.tid;
    let sleeps: Vec<TimerLatency> = rows(&trace).into_iter().filter(its).collect();
    let number = |value: &serde_json::Value| value.as_i64().expect("a number");
    let samples = own["samples"].as_array().expect("samples").iter();
    let zero = number(&own["zero_ns"]);
    let samples: Vec<_> =
        samples.map(|s| [&s["due_ns"], &s["woke_ns"]].map(|ns| zero + number(ns))).collect();
    let told: Vec<_> = sleeps.iter().map(|sleep| [sleep.ts.0, sleep.ts.0 + sleep.dur]).collect();
    assert_eq!(told, samples);
    // One that a tick has woken before it was due, and that waited behind several threads, does not know which had the CPU since.
    let judged = |sleep: &&TimerLatency| {
        let until = sleep.ts.0 + sleep.dur + bound;
        let whole = !holes.touch(sleep.ts.0 - PERIOD - bound, until);
        whole && sleep.cpu.is_some() && sleep.mark == Mark::Exact
    };
    let slept: Vec<&TimerLatency> = sleeps.iter().filter(judged).collect();
    assert!(!slept.is_empty(), "{sleeps:?}");
    let mut ticks = Vec::new();
    for sleep in &slept {
        let parts = [sleep.timer_ns, sleep.interrupt_ns, sleep.dispatch_ns, sleep.return_ns];
        assert_eq!(parts.into_iter().sum::<Option<i64>>(), Some(sleep.dur), "{sleep:?}");
        // A period begins when the one before is over, and nothing but ticks ends a sleep.
        let (due, until) = (sleep.ts.0, sleep.ts.0 + sleep.dur + bound);
        let woken = within(due - PERIOD - bound, until).copied().collect::<Vec<_>>();
        assert!(!woken.is_empty(), "no tick woke it: {sleep:?} {wakings:?}");
        // The first that comes when the time is over is the last that it waits for.
        let behind = within(due + bound, until - 2 * bound).count();
        assert!(behind <= 1, "{behind} ticks behind {due}: {sleep:?} {wakings:?}");
        ticks.extend(woken);
    }
    ticks.dedup();
    // However late some come, there are no more than the clock makes from the begin of the program on.
    let of_program = |switch: &SchedSwitch| switch.next_tid.0 == worker.pid.0;
    let switches: Vec<SchedSwitch> = rows(&trace);
    let started = switches.iter().find(|s| of_program(s)).expect("it has run").ts.0;
    let time = ticks.last().expect("a tick") - started;
    let most = time * HZ / 1_000_000_000 + 1;
    assert!(ticks.len() as i64 <= most, "{} ticks in {time} ns", ticks.len());
    agrees("a load on the real-time clock", &dir);
    let over = ticks.last().expect("a tick") - ticks[0];
    gate::measured(&format!(
        "{} ticks of the real-time clock in {over} ns ended {} sleeps of a worker",
        ticks.len(),
        slept.len()
    ));
}
