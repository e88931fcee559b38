//! Loads whose truth is known: what a recording says of them, against what they were made to do, what they say
//! themselves, and a second implementation.

use std::path::PathBuf;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{
    Deadline, Gap, LoadJob, LoadRun, LoadSwitch, LoadWorker, RunEnd, SchedSwitch, SiteRow,
    SwitchKind, SwitchSeen, TimerLatency, UserEvent,
};
use serde_json::Value;

use crate::harness::{self, Stage, assert_success, gate};
use crate::holes::Holes;
use crate::recomputed::agrees;

const MS: i64 = 1_000_000;

/// The known pair repeats itself after this time.
const ROUND: i64 = 24 * MS;

/// Recordings of it, at most.
const ATTEMPTS: usize = 8;

/// A CPU that this process may run on, the last one: interrupts of devices usually go to the first.
fn a_cpu() -> usize {
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as it is said to be.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the numbers are below `CPU_SETSIZE`.
    (0..1024).rfind(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).expect("some CPU")
}

/// Records `ft-load hourglass`; what it says itself, and the trace.
fn record(stage: &Stage, name: &str, load: &str) -> (Value, PathBuf) {
    let dir = stage.path(name);
    let mut agent = harness::agent();
    agent.args(["record", "-k", "sched,irq", "-o"]).arg(&dir).arg("--").arg(harness::load());
    agent.args(["hourglass", "--json"]).args(load.split_whitespace());
    let output = agent.output().expect("the agent starts");
    assert_success(&output);
    (own_words(&output.stdout), dir)
}

/// What a load has said itself.
pub(crate) fn own_words(stdout: &[u8]) -> Value {
    let mut values = serde_json::Deserializer::from_slice(stdout).into_iter::<Value>();
    values.next().expect("what the load says").expect("JSON")
}

/// The rows of a table, by their times.
pub(crate) fn rows<R: ft_trace::store::Row>(trace: &Trace) -> Vec<R> {
    trace.rows().map(|row| row.expect("a row")).collect()
}

/// ```text
/// high, 9 in 24 ms   #########               #########
/// low,  2 in  6 ms            1122  33    44          1122  33    44
///                    |     |     |     |     |     |
/// ```
///
/// By construction the first two jobs of the low worker in each round end 5 and 1 ms too late, and the other two 3 and 4
/// ms before their time; the high one is always in time. A round is judged if all of its jobs are exact, as they must be
/// where no record is missing; none waits for one of the round before; and by the runs the CPU had done all work at most 0.5 ms
/// after the moments at which it is done by construction.
#[test]
fn a_pair_of_known_schedule_hits_and_misses_as_constructed() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let load = format!(
        "-n 2 -d 480ms --cpu {} -t 0 -p RTMED -w PERIODIC 9ms 24ms -i HR -t 1 -p RTLOW -w PERIODIC 2ms 6ms -i HR",
        a_cpu()
    );
    for attempt in 0..ATTEMPTS {
        let (said, dir) = record(&stage, &format!("pair-{attempt}"), &load);
        let trace = harness::open(&dir);
        let (jobs, runs) = (rows::<LoadJob>(&trace), rows::<LoadRun>(&trace));
        as_the_load_says(&said, &trace);
        let zero = rows::<LoadWorker>(&trace)[0].ts.0;
        let holes = Holes::of(&trace);
        let judged = (0..20).filter(|n| judge(zero + n * ROUND, &jobs, &runs, &holes)).count();
        if judged == 20 {
            // Then the sums are known, too.
            let told = rows::<LoadWorker>(&trace);
            let told: Vec<_> = told.iter().map(|w| (w.worker, w.hit, w.missed)).collect();
            assert_eq!(told, [(0, 20, 0), (1, 40, 40)]);
        }
        if judged > 0 {
            gate::measured(&format!("{judged} of 20 rounds of a known schedule could be judged"));
            agrees("a load of known schedule", &dir);
            return;
        }
    }
    gate::skipped("the machine disturbed every round");
}

/// Whether the round that begins then could be judged; it must be as constructed if so.
fn judge(begin: i64, jobs: &[LoadJob], runs: &[LoadRun], holes: &Holes) -> bool {
    let within = |job: &&LoadJob| (begin..begin + ROUND).contains(&job.ts.0);
    let of = |worker: i32| {
        let mut of_it: Vec<_> = jobs.iter().filter(within).filter(|j| j.worker == worker).collect();
        of_it.sort_by_key(|job| job.number);
        of_it
    };
    let (high, low) = (of(0), of(1));
    let all = || high.iter().chain(&low);
    if high.len() != 1 || low.len() != 4 || all().any(|job| job.finish.is_none()) {
        return false;
    }
    // Of a worker that begins too late, what was before is not known.
    let of_first = all().any(|job| job.number == 0 && job.mark != Mark::Exact);
    if of_first || !all().all(|job| holes.judged(job.mark, job.ts.0, job.dur)) {
        return false;
    }
    let busy = |from: i64, to: i64| -> i64 {
        let run = |r: &LoadRun| (r.ts.0 + r.dur).min(begin + to) - r.ts.0.max(begin + from);
        runs.iter().map(|r| run(r).max(0)).sum()
    };
    let is_done = |from: i64, to: i64| busy(from * MS, to * MS + MS / 2) >= (to - from) * MS;
    let is_late = [(0, 13), (0, 15), (18, 20)].into_iter().any(|(from, to)| !is_done(from, to));
    if high[0].start.0 > begin + MS / 2 || low[0].backlog_ns > 0 || is_late {
        return false;
    }
    use Deadline::{Hit, Missed};
    assert_eq!(high[0].deadline, Hit, "{high:?}");
    let found: Vec<Deadline> = low.iter().map(|job| job.deadline).collect();
    assert_eq!(found, [Missed, Missed, Hit, Hit], "{low:?}");
    // Whose fault that is: the high one had the CPU, and the second had to wait for the first.
    assert_eq!(low[0].culprit.as_deref(), Some("hourglass/0"), "{low:?}");
    let parts = low[0].parts.expect("a kernel stream");
    assert!(parts.preempted_ns + parts.dispatch_ns >= 8 * MS, "{low:?}");
    assert!(low[1].backlog_ns >= 4 * MS, "{low:?}");
    true
}

/// Runs and gaps tile each worker's time, to the nanosecond; jobs are what their runs gave them; and all is as the load
/// itself says, whatever it does and however busy the machine is.
#[test]
fn runs_and_gaps_of_a_recording_tile_each_workers_time_to_the_nanosecond() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (said, dir) = record(
        &stage,
        "all",
        "-n 7 -d 300ms -t 0 -w CPU_YIELD 1ms -t 1 -w CPU_SCAN 64 -t 2 -w LAT 3ms -i HR -t 3 -w PERIODIC 1ms 10ms -i HR \
         -t 4 -w PERIODIC 1ms 7ms -i TIMERFD -s 20ms -f 160ms -t 5 -w CPU_PERIODIC 1ms 20ms -t 6 -w CPU -p IDLE",
    );
    let trace = harness::open(&dir);
    as_the_load_says(&said, &trace);
    let workers = rows::<LoadWorker>(&trace);
    assert_eq!(workers.len(), 7);
    let words: Vec<&str> = workers.iter().map(|w| w.workload.word()).collect();
    for word in ["CPU_YIELD", "CPU_SCAN", "LAT", "PERIODIC", "CPU_PERIODIC", "CPU"] {
        assert!(words.contains(&word), "{words:?}");
    }
    assert!(workers.iter().any(|w| w.policy.word() == "SCHED_IDLE"), "{workers:?}");
    agrees("every workload of a load", &dir);
}

/// Workers with reservations: what they have reserved is told as the kernel has it, their times tile as those of others, and
/// each overrun that the kernel tells of by its signal is an event in a gap.
///
/// The kernel tells of it at a clock interrupt that strikes the thread. So the period is no multiple of a tick, be it of 1,
/// 4 or 10 ms: otherwise each tick could fall between two jobs, all through the recording.
#[test]
fn reserved_workers_are_recorded_with_what_the_kernel_says_of_them() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (said, dir) = record(
        &stage,
        "reserved",
        "-n 3 -d 500ms -t 0 -w PERIODIC 3ms 7ms -i HR -rh 3ms 7ms -t 1 -w CPU -rs 2ms 20ms -t 2 -w CPU_PERIODIC 1ms 5ms",
    );
    let trace = harness::open(&dir);
    as_the_load_says(&said, &trace);
    let mut workers = rows::<LoadWorker>(&trace);
    workers.sort_by_key(|w| w.worker);
    let told: Vec<_> =
        workers.iter().map(|w| (w.policy.word(), w.reserved_ns, w.reserved_period_ns)).collect();
    let expected = [
        ("SCHED_DEADLINE", Some(3 * MS), Some(7 * MS)),
        ("SCHED_DEADLINE", Some(2 * MS), Some(20 * MS)),
        ("SCHED_OTHER", None, None),
    ];
    assert_eq!(told, expected);
    let gaps = rows::<Gap>(&trace);
    let sites = rows::<SiteRow>(&trace);
    let site = sites.iter().find(|site| &*site.event == "hourglass.overrun");
    let events: Vec<UserEvent> = rows(&trace);
    for worker in &workers[..2] {
        let own =
            events.iter().filter(|e| e.tid == worker.tid && site.is_some_and(|s| s.site == e.site));
        let overruns =
            said["threads"][worker.worker as usize]["overruns"].as_i64().expect("a count");
        let own_gaps: Vec<&Gap> = gaps.iter().filter(|gap| gap.tid == worker.tid).collect();
        // Gaps behind which one was told, and how many were.
        let (mut gaps, mut told) = (0, 0);
        for event in own {
            // It is told behind the gap in which the signal came, before another one has ended.
            let ended = |gap: &&Gap| gap.ts.0 + gap.dur <= event.ts.0;
            let before = own_gaps.iter().filter(|gap| ended(gap)).count();
            let counted = event.arg[0].expect("how many");
            assert!(before > gaps && counted > told, "{before} {gaps} {told}: {event:?}");
            (gaps, told) = (before, counted);
        }
        assert!(told <= overruns, "{told} of {overruns}");
        // The one that has reserved exactly what it needs is charged for more, as far as its jobs are struck by ticks; the
        // other one wants all that it can get.
        assert!(told > 0, "{worker:?}: {said}");
    }
    agrees("workers with reservations", &dir);
}

/// Two workers that hand a CPU to each other: each switch that is inferred is one that the kernel recorded, between the two
/// runs, as far as nothing else had the CPU; and the times around it sum.
#[test]
fn inferred_switches_are_those_of_the_kernel() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let load = format!("-n 2 -d 300ms -a --cpu {} -p RTLOW -w CPU_YIELD 1ms", a_cpu());
    let (said, dir) = record(&stage, "turns", &load);
    let trace = harness::open(&dir);
    as_the_load_says(&said, &trace);
    let kernel = rows::<SchedSwitch>(&trace);
    let switches = rows::<LoadSwitch>(&trace);
    let holes = Holes::of(&trace);
    let mut judged = 0;
    for row in switches.iter().filter(|row| holes.judged(row.mark, row.ts.0, row.dur)) {
        let recorded = |slack: i64| {
            let within = row.ts.0 - slack..=row.ts.0 + row.dur + slack;
            kernel.iter().filter(|s| s.cpu == row.cpu && within.contains(&s.ts.0)).count()
        };
        // At its very ends the two clocks may be in doubt.
        let bound = trace.meta().clock.bound_ns;
        let between = recorded(-bound)..=recorded(bound);
        let expected = match row.kernel.expect("a kernel stream") {
            SwitchSeen::None => 0..=0,
            SwitchSeen::Switch => 1..=1,
            SwitchSeen::Others => 2..=usize::MAX,
        };
        let agree = between.start() <= expected.end() && between.end() >= expected.start();
        assert!(agree, "{row:?}: {between:?} switches");
        let parts: Vec<i64> =
            [row.out_ns, row.others_ns, row.in_ns].into_iter().flatten().collect();
        assert!(parts.is_empty() || parts.iter().sum::<i64>() == row.dur, "{row:?}");
        let handed_over = row.inferred == SwitchKind::Voluntary;
        judged += usize::from(handed_over && row.kernel == Some(SwitchSeen::Switch));
        // Between two workers there is no way without a switch.
        assert!(row.from_tid == row.tid || row.kernel != Some(SwitchSeen::None), "{row:?}");
    }
    // Each of some 300 ms of work ends with a yield to the other one.
    assert!(judged >= 50, "{judged} of {} switches by a yield", switches.len());
    let says = harness::agent().arg("report").arg(&dir).args(["switches", "agreement"]).output();
    let says = says.expect("the agent starts");
    assert_success(&says);
    let text = String::from_utf8_lossy(&says.stdout);
    assert!(text.contains("voluntary") && text.contains("precision"), "{text}");
    agrees("switches between workers", &dir);
}

/// The tables against each other, and against what the load says of itself: its clock is another line through the same
/// counter, so times may differ by the error of both.
fn as_the_load_says(said: &Value, trace: &Trace) {
    let (runs, jobs) = (rows::<LoadRun>(trace), rows::<LoadJob>(trace));
    let (gaps, sleeps) = (rows::<Gap>(trace), rows::<TimerLatency>(trace));
    let number = |value: &Value| value.as_i64().expect("a number");
    let bound = 2 * trace.meta().clock.bound_ns + number(&said["clock_error_ns"]) + 1_000;
    for worker in rows::<LoadWorker>(trace) {
        assert_eq!(worker.mark, Mark::Exact, "{worker:?}");
        let thread = &said["threads"][worker.worker as usize];
        let own: Vec<&LoadRun> = runs.iter().filter(|run| run.tid == worker.tid).collect();
        let mut own_gaps = gaps.iter().filter(|gap| gap.tid == worker.tid);
        for pair in own.windows(2) {
            let gap = own_gaps.next().expect("a gap behind it");
            assert_eq!(pair[0].ts.0 + pair[0].dur, gap.ts.0, "{pair:?}");
            assert_eq!(gap.ts.0 + gap.dur, pair[1].ts.0, "{pair:?}");
            assert_eq!(pair[0].gap_ns, Some(gap.dur));
        }
        assert!(own_gaps.next().is_none(), "a gap behind the last run");
        assert_eq!(worker.runs, own.len() as i64);
        if let (Some(first), Some(last)) = (own.first(), own.last()) {
            assert_eq!(last.ended, RunEnd::Finished);
            assert_eq!(worker.run_ns + worker.gap_ns, last.ts.0 + last.dur - first.ts.0);
            assert!((worker.run_ns - number(&thread["run_ns"])).abs() <= bound, "{thread}");
        }
        let own: Vec<&LoadJob> = jobs.iter().filter(|job| job.tid == worker.tid).collect();
        for job in &own {
            let parts = job.parts.expect("a kernel stream");
            assert_eq!(parts.total_ns() + job.backlog_ns, job.dur, "{job:?}");
            assert!(parts.to_array().iter().all(|ns| *ns >= 0), "{job:?}");
            // What it needs is what it had between gaps, and a pass of the loop more.
            let had = parts.running_ns + parts.interrupts_ns();
            let needs = worker.amount_ns.expect("a periodic worker");
            assert!(job.finish.is_none() || had + bound >= needs, "{job:?}");
        }
        let slept: Vec<&TimerLatency> = sleeps.iter().filter(|s| s.tid == worker.tid).collect();
        assert_eq!(worker.sleeps, slept.len() as i64);
        for sleep in slept {
            let parts = [sleep.timer_ns, sleep.interrupt_ns, sleep.dispatch_ns, sleep.return_ns];
            let known: Vec<i64> = parts.into_iter().flatten().collect();
            let divided = known.len() == 4 && known.iter().sum::<i64>() == sleep.dur;
            // Where it was not woken it was too late to sleep.
            assert!(divided || known.is_empty() && sleep.cpu.is_none(), "{sleep:?}");
            assert!(known.iter().all(|ns| *ns >= 0), "{sleep:?}");
        }
        if let (Some(hit), Some(missed)) = (thread["hit"].as_i64(), thread["missed"].as_i64()) {
            // One that was missed or met by less than the clocks' error is nobody's fault.
            let close = own
                .iter()
                .any(|job| job.finish.is_some_and(|finish| (finish - job.due.0).abs() <= bound));
            assert!(close || (worker.hit, worker.missed) == (hit, missed), "{worker:?} {thread}");
        }
    }
}
