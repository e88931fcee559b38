//! Against the counters that the kernel keeps itself: `/proc/PID/task/TID/status` and `schedstat`,
//! `/proc/softirqs` and `/proc/interrupts`.

use std::collections::{BTreeMap, BTreeSet};

use ft_trace::store::Trace;
use ft_trace::tables::{
    Counts, CriticalSection, Decomposition, DispatchLatency, Irq, IrqKind, SchedSwitch,
    SchedWaking, UserEvent,
};
use serde_json::Value;

use crate::harness::{self, Stage, gate};
use crate::recomputed::agrees;

/// The kernel takes its times where the scheduler begins to look for the next thread, and where a woken thread
/// is put into a queue. Our records are made at the switch that follows, and at the waking before. Per time
/// on a CPU; measured: about 1 µs.
const SCHEDULER_NS: i64 = 20_000;

/// `/proc/stat` counts in hundredths of a second (`USER_HZ`).
const STEAL_STEP_NS: i64 = 10_000_000;

/// Between two ticks of the timer, at the highest rate that a kernel is built with.
const TICK_NS: i64 = 1_000_000;

/// Times of the marks, by their place; a place may be marked more than once, and the last one counts.
fn marks(trace: &Trace) -> BTreeMap<i64, i64> {
    let events = trace.rows::<UserEvent>().map(|row| row.expect("a row"));
    let marks = events.filter(|e| &*e.event == "counters.mark");
    marks.map(|e| (e.arg[0].expect("a place"), e.ts.0)).collect()
}

/// The numbers in a text.
fn numbers(text: &Value) -> Vec<i64> {
    let words = text.as_str().expect("text").split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

/// How much each number grew from the first reading to the second.
fn growth(truth: &Value, file: &str) -> Vec<i64> {
    let [before, after] = [0, 1].map(|i| numbers(&truth["own"][i][file]));
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}

#[test]
fn switches_and_times_of_a_thread_are_those_of_proc() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&["-k", "default,fault"], &["counters", "200"]);
    let trace = harness::open(&dir);
    let tid = truth["tid"].as_i64().expect("tid") as i32;
    let marks = marks(&trace);
    let within = |ts: i64| marks[&3] < ts && ts < marks[&4];

    let switches: Vec<SchedSwitch> = trace.rows().map(|row| row.expect("a row")).collect();
    let left = |voluntary: bool| {
        let left = |s: &&SchedSwitch| {
            s.prev_tid.0 == tid && within(s.ts.0) && s.prev_state.is_runnable() != voluntary
        };
        switches.iter().filter(left).count() as i64
    };
    let got = switches.iter().filter(|s| s.next_tid.0 == tid && within(s.ts.0)).count() as i64;
    // Some virtual machines hide the switches from a process of their own: another one was given the CPU, and the next
    // switch there is that of this thread away from it.
    let (mut came_unseen, mut unknown) = (0, 0);
    let mut last = BTreeMap::new();
    for switch in &switches {
        if let Some(before) = last.insert(switch.cpu.0, switch)
            && switch.prev_tid.0 == tid
            && before.next_tid.0 != tid
            && within(before.ts.0)
        {
            came_unseen += 1;
            // Since when it ran, and waited, is not known.
            unknown += switch.ts.0 - before.ts.0;
        }
    }
    let (status, schedstat) = (growth(&truth, "status"), growth(&truth, "schedstat"));
    assert_eq!([left(true), left(false)], status[..], "voluntary and other switches in status");
    assert_eq!(got + came_unseen, schedstat[2], "times on a CPU in schedstat");
    // A sleep whose time is over before the kernel is asked is none: a rival, or the virtual machine, may have taken it.
    assert!(
        status[0] >= 100 && status[1] > 0,
        "the subject was not disturbed as planned: {status:?}"
    );

    // A thread that came unseen may have left unseen, too.
    let [around, between] = ["outer", "inner"].map(|lock| counts(&trace, lock));
    for (least, most, kernel) in
        [(between.sleeps, around.sleeps, status[0]), (between.switches, around.switches, status[1])]
    {
        assert!((least..=most).contains(&kernel), "{kernel}, reported {least} to {most}");
    }
    assert_eq!((between.moves, around.moves), (0, 0), "it is bound to one CPU");
    let [touched, faults] = [0, 1].map(|i| truth["faults"][i].as_i64().expect("a number"));
    let [least, most] = [between, around].map(|counts| counts.faults.expect("they are recorded"));
    assert!(
        touched <= least[0] && least[0] <= faults && faults <= most[0],
        "{faults}: {least:?} to {most:?}"
    );
    gate::measured(&format!(
        "page faults of a hold: {} reported, {touched} pages touched, {faults} by getrusage around it",
        least[0]
    ));
    agrees("counts of holds", &dir);

    let (outer, inner) = (hold(&trace, "outer"), hold(&trace, "inner"));
    let runnable = |d: &Decomposition| d.preempted_ns + d.dispatch_ns;
    let on_cpu = |d: &Decomposition| d.total_ns() - runnable(d) - d.blocked_ns;
    let (run, wait) = (schedstat[0], schedstat[1]);
    gate::measured(&format!(
        "against schedstat: run time {run} ns, reported {} to {} ns; wait {wait} ns, reported {} to {} ns in {got} times, \
         {came_unseen} of them unseen ({unknown} ns)",
        inner.running_ns,
        on_cpu(&outer),
        runnable(&inner),
        runnable(&outer),
    ));
    let margin = got * SCHEDULER_NS + unknown;
    // The kernel does not count what a hypervisor takes as run time; here that may be in `running`.
    let stolen = stolen(&trace).max(inner.running_ns / 10);
    assert!(run <= on_cpu(&outer) + margin, "{run} ns");
    assert!(run >= inner.running_ns - stolen - margin, "{run} ns, {stolen} stolen");
    assert!(wait <= runnable(&outer) + margin && wait >= runnable(&inner) - margin);
}

/// What the hypervisor took of all CPUs in the recording, at most, by the kernel's count, which grows by steps.
fn stolen(trace: &Trace) -> i64 {
    let meta = trace.meta();
    let end = meta.end.as_ref().expect("it has ended");
    let of_cpus = meta.start.steal_ns.iter().zip(&end.steal_ns);
    let grew = of_cpus.filter_map(|(before, after)| Some(after.as_ref()? - before.as_ref()?));
    grew.filter(|&ns| ns > 0).map(|ns| ns + STEAL_STEP_NS).sum()
}

/// The hold of a lock that is taken once.
fn held(trace: &Trace, lock: &str) -> CriticalSection {
    let mut holds = trace.rows::<CriticalSection>().map(|row| row.expect("a row"));
    holds.find(|hold| &*hold.lock_name == lock).expect("the hold")
}

/// Its parts.
fn hold(trace: &Trace, lock: &str) -> Decomposition {
    held(trace, lock).parts.expect("parts")
}

/// What is counted in it.
fn counts(trace: &Trace, lock: &str) -> Counts {
    held(trace, lock).counts.expect("a kernel stream")
}

/// Recordings in which the thread may be woken on its way to sleep. Measured: in 1 to 25 of 1,500 rounds, the more the busier the
/// machine is; one wake-up without a row is enough to fail.
const RACES: u32 = 6;

/// The wake-ups of a thread between the marks.
struct WakeUps {
    all: usize,
    /// Lengths of those that begin where it left its CPU.
    raced: Vec<i64>,
    /// How long the CPU had nothing to do meanwhile. The kernel counts a wait from when the thread is put into the queue,
    /// and a CPU that sleeps does that itself, when it has woken: tens of µs later on a virtual machine.
    idle_ns: i64,
}

fn wake_ups(truth: &Value, trace: &Trace) -> WakeUps {
    let (tid, marks) = (truth["tid"].as_i64().expect("tid") as i32, marks(trace));
    let switches = trace.rows::<SchedSwitch>().map(|row| row.expect("a row"));
    let on_the_way = switches.filter(|s| s.prev_woken && s.prev_tid.0 == tid).map(|s| s.ts);
    let on_the_way: BTreeSet<_> = on_the_way.collect();
    let wakes = trace.rows::<DispatchLatency>().map(|row| row.expect("a row"));
    let within = |w: &DispatchLatency| marks[&3] < w.ts.0 && w.ts.0 < marks[&4];
    let wakes: Vec<_> = wakes.filter(|w| w.tid.0 == tid && within(w)).collect();
    let raced = wakes.iter().filter(|w| on_the_way.contains(&w.ts)).map(|w| w.dur).collect();
    let idle = wakes.iter().filter(|w| w.running_tid == Some(0));
    WakeUps { all: wakes.len(), raced, idle_ns: idle.filter_map(|w| w.running_ns).sum() }
}

/// How many of these wake-ups cannot have a row: by the raw tables nobody woke the thread, or no switch gave it a CPU,
/// since some virtual machines hide a process of their own, and with it what it does and what strikes it.
fn without_row(truth: &Value, trace: &Trace) -> usize {
    let (tid, marks) = (truth["tid"].as_i64().expect("tid") as i32, marks(trace));
    let wakings = trace.rows::<SchedWaking>().map(|row| row.expect("a row"));
    let wakings: Vec<i64> = wakings.filter(|w| w.tid.0 == tid).map(|w| w.ts.0).collect();
    let switches = trace.rows::<SchedSwitch>().map(|row| row.expect("a row"));
    let own: Vec<_> = switches.filter(|s| [s.prev_tid.0, s.next_tid.0].contains(&tid)).collect();
    let cannot = |records: &&[SchedSwitch]| {
        let [before, left, came] = records else { unreachable!("windows of three") };
        let slept = left.prev_tid.0 == tid && !left.prev_state.is_runnable();
        // A waking of a thread that then came unseen led to that coming.
        let since = if before.next_tid.0 == tid { before.ts.0 } else { left.ts.0 };
        let after = wakings.partition_point(|&ts| ts < since);
        let woken = wakings.get(after).is_some_and(|&ts| ts <= came.ts.0);
        marks[&3] < left.ts.0
            && left.ts.0 < marks[&4]
            && slept
            && !(woken && came.next_tid.0 == tid)
    };
    own.windows(3).filter(cannot).count()
}

#[test]
fn who_is_woken_on_the_way_to_sleep_waits_for_a_cpu() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let mut races = 0;
    let (truth, dir) = stage.record_until(&[], &["raced", "3000"], |truth, trace| {
        races += 1;
        trace.meta().lost.is_empty() && (races >= RACES || !wake_ups(truth, trace).raced.is_empty())
    });
    let trace = harness::open(&dir);
    let WakeUps { all, raced, idle_ns } = wake_ups(&truth, &trace);
    if raced.is_empty() {
        gate::skipped("the machine let no thread be woken on its way to sleep");
    }
    let (status, schedstat) = (growth(&truth, "status"), growth(&truth, "schedstat"));
    let missing = without_row(&truth, &trace);
    let slept = status[0] as usize;
    let rows = slept - missing..=slept;
    assert!(rows.contains(&all), "{all} rows for {slept} times that it slept, {missing} hidden");

    let runnable = |d: Decomposition| d.preempted_ns + d.dispatch_ns;
    let (outer, inner) = (hold(&trace, "outer"), hold(&trace, "inner"));
    let (wait, times) = (schedstat[1], schedstat[2]);
    gate::measured(&format!(
        "woken on the way to sleep: {} of {all} wake-ups, {} ns of the wait; by schedstat {wait} ns in {times} times, \
         reported {} to {} ns, {idle_ns} ns of it behind nobody",
        raced.len(),
        raced.iter().sum::<i64>(),
        runnable(inner),
        runnable(outer),
    ));
    let margin = times * SCHEDULER_NS;
    let unknown = if missing > 0 { outer.unexplained_ns } else { 0 };
    assert!(wait <= runnable(outer) + unknown + margin);
    assert!(wait >= runnable(inner) - idle_ns - margin);
}

/// Sums over the CPUs of a table of `/proc`, by the first word of a line.
fn table(text: &Value) -> BTreeMap<String, i64> {
    let sum = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts = counts.split_whitespace().map_while(|word| word.parse::<i64>().ok());
        Some((name.trim().to_owned(), counts.sum()))
    };
    text.as_str().expect("text").lines().filter_map(sum).collect()
}

/// Under which name `/proc` counts an interrupt.
fn line(irq: &Irq) -> (&'static str, String) {
    let vector = |name: &str| match name {
        "local_timer" => "LOC",
        "reschedule" => "RES",
        "irq_work" => "IWI",
        _ => "CAL",
    };
    match irq.kind {
        IrqKind::Soft => ("softirqs", irq.name.to_string()),
        IrqKind::Hard => ("interrupts", irq.number.to_string()),
        IrqKind::Vector => ("interrupts", vector(&irq.name).into()),
    }
}

#[test]
fn interrupts_of_the_machine_are_those_of_proc() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&["-a", "-k", "irq"], &["counters", "200"]);
    let trace = Trace::open(&dir).expect("a whole trace");
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    let marks = marks(&trace);

    // Surely between the readings, and perhaps between them.
    let mut recorded: BTreeMap<_, [i64; 2]> = BTreeMap::new();
    for irq in trace.rows::<Irq>() {
        let irq = irq.expect("a row");
        let within = |from, to| marks[&from] < irq.ts.0 && irq.ts.0 < marks[&to];
        let counts = recorded.entry(line(&irq)).or_default();
        counts[0] += i64::from(within(2, 5));
        counts[1] += i64::from(within(1, 6));
    }
    let counted = |file: &str, name: &str| {
        let [before, after] = [0, 1].map(|i| table(&truth["machine"][i][file])[name]);
        after - before
    };
    // Some virtual machines hide their first process from every tracer, and with it what strikes it: each time that
    // it runs an interrupt, and its ticks; and of all else no more than of the timer's.
    let ticks = ("interrupts", "LOC".to_owned());
    let [least, most] = recorded[&ticks];
    let missed = counted(ticks.0, &ticks.1) - least;
    let first = |what: usize| {
        let [before, after] = [0, 1].map(|i| &truth["machine"][i]["first_process"][what]);
        after.as_i64().expect("a number") - before.as_i64().expect("a number")
    };
    let struck = first(0) / TICK_NS + first(1);
    assert!(
        missed <= most - least + struck,
        "{missed} ticks more than {least} to {most}, of which {struck} may have struck the first process"
    );
    let mut told = Vec::new();
    for ((file, name), [least, most]) in recorded {
        let counted = counted(file, &name);
        told.push(format!("{name} {counted} ({least} to {most})"));
        let all = least..=most + missed.max(2);
        assert!(all.contains(&counted), "{file}: {}", told.join(", "));
    }
    assert!(told.iter().any(|one| one.starts_with("LOC")) && told.len() >= 3, "{told:?}");
    gate::measured(&format!("against /proc, counted (recorded): {}", told.join(", ")));
}
