//! Loads on the running kernel, held against what must be so.

mod common;

use common::{alone, command, played, ran, real_time_or_skip, skipped, words};
use ft_load::hourglass::{Ended, Job, Outcome, Run, Workload, play, scenario};

const MS: i64 = 1_000_000;

/// The pair repeats itself after this time.
const ROUND: i64 = 24 * MS;

/// How many rounds are played.
const ROUNDS: i64 = 12;

/// A CPU that this process may run on, the last one: interrupts of devices usually go to the first.
fn a_cpu() -> usize {
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as it is said to be.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the numbers are below `CPU_SETSIZE`.
    (0..1024).rfind(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).expect("some CPU")
}

/// The time between `from` and `to` in which one of the threads ran.
fn busy(outcome: &Outcome, from: i64, to: i64) -> i64 {
    let run = |run: &Run| {
        let (start, end) = (outcome.ns(run.start_tsc), outcome.ns(run.end_tsc));
        (end.min(to) - start.max(from)).max(0)
    };
    outcome.runs.iter().map(run).sum()
}

/// ```text
/// high, 9 in 24 ms   #########               #########
/// low,  2 in  6 ms            1122  33    44          1122  33    44
///                    |     |     |     |     |     |
/// ```
///
/// By construction the first two jobs of the low thread in each round end 5 and 1 ms too late, and the other two 3 and
/// 4 ms before their time; the high thread is always in time. A machine takes time of its own, so a round is judged if
/// nothing was left over from the one before, the high thread began within 0.5 ms, and the CPU did our work for all but
/// 0.5 ms of the times in which there is some, by the execution trace: then no job can end more than 1 ms later than
/// constructed, and none earlier, whatever the deadlines say.
#[test]
fn a_pair_of_known_schedule_hits_and_misses_as_constructed() {
    let _alone = alone();
    if !real_time_or_skip() {
        return;
    }
    let mut judged = 0;
    for _attempt in 0..8 {
        let outcome = played(&format!(
            "-n 2 -d {}ms --cpu {} -t 0 -p RTMED -w PERIODIC 9ms 24ms -i HR -t 1 -p RTLOW -w PERIODIC 2ms 6ms -i HR",
            ROUND / MS * ROUNDS,
            a_cpu()
        ));
        for n in 0..ROUNDS {
            let at = |ms| n * ROUND + ms * MS;
            let jobs = |thread: usize| &outcome.threads[thread].jobs;
            let done = |thread: usize, count: i64| {
                let done = |job: &&Job| job.finish_ns.is_some_and(|finish| finish < at(0));
                jobs(thread).iter().take_while(done).count() as i64 == count
            };
            let nothing_left = done(0, n) && done(1, 4 * n);
            let begun = jobs(0).get(n as usize).is_some_and(|job| job.start_ns < at(0) + MS / 2);
            // Each 2 ms of work have room to be late in.
            let lost = [(0, 13, 13), (13, 16, 2), (18, 21, 2)]
                .map(|(from, to, work)| work * MS - busy(&outcome, at(from), at(to)));
            if !nothing_left || !begun || lost.iter().any(|ns| *ns > MS / 2) {
                continue;
            }
            judged += 1;
            let in_time = |thread: usize, number: i64| {
                let job = jobs(thread).iter().find(|job| job.number == number as u64);
                job.is_some_and(|job| job.finish_ns.is_some_and(|finish| finish <= job.due_ns))
            };
            assert!(in_time(0, n), "round {n}: {:?}", outcome.threads[0].jobs);
            let low = [0, 1, 2, 3].map(|k| in_time(1, 4 * n + k));
            assert_eq!(low, [false, false, true, true], "round {n}: {:?}", outcome.threads[1].jobs);
        }
        let deadlines = |n: usize| outcome.threads[n].deadlines.expect("a periodic thread");
        if judged == ROUNDS {
            // A whole attempt without disturbance: then the sums are known, too.
            assert_eq!((deadlines(0).hit, deadlines(0).missed), (ROUNDS as u64, 0));
            assert_eq!(
                (deadlines(1).hit, deadlines(1).missed),
                (2 * ROUNDS as u64, 2 * ROUNDS as u64)
            );
        }
        if judged > 0 {
            return;
        }
    }
    skipped("the machine disturbed every round");
}

/// Runs and gaps are what a thread's time consists of, whatever it does and however busy the machine is.
#[test]
fn runs_and_gaps_tile_the_time_of_each_thread_to_the_nanosecond() {
    let _alone = alone();
    ran();
    let outcome = played(
        "-n 7 -d 200ms --gap 2us -t 0 -w CPU_YIELD 1ms -t 1 -w CPU_SCAN 64 -t 2 -w CPU_SCAN_YIELD 16 0.5ms \
         -t 3 -w PERIODIC 1ms 10ms -i HR -t 4 -w PERIODIC 1ms 7ms -i TIMERFD -s 20ms -f 160ms \
         -t 5 -w CPU_PERIODIC 1ms 20ms -t 6 -w CPU -p IDLE",
    );
    assert_eq!(outcome.lost_runs, 0);
    for (n, thread) in outcome.threads.iter().enumerate() {
        let time = thread.time.expect("it polls");
        let own: Vec<_> = outcome.runs.iter().filter(|run| run.thread == n as u32).collect();
        let ends: Vec<(i64, i64)> =
            own.iter().map(|run| (outcome.ns(run.start_tsc), outcome.ns(run.end_tsc))).collect();
        assert_eq!(ends[0].0, time.first_ns, "thread {n} begins with a run");
        assert_eq!(ends.last().unwrap().1, time.last_ns, "and ends with one");
        let ran: i64 = ends.iter().map(|(start, end)| end - start).sum();
        let gone: i64 = ends.windows(2).map(|pair| pair[1].0 - pair[0].1).sum();
        assert_eq!((ran as u64, gone as u64), (time.run_ns, time.gap_ns));
        assert_eq!(ran + gone, time.last_ns - time.first_ns, "thread {n}");
        assert_eq!(time.runs, ends.len() as u64);
        assert!(ends.iter().all(|(start, end)| start <= end));
        let longest_between_runs = ends.windows(2).map(|pair| pair[1].0 - pair[0].1).min();
        assert!(longest_between_runs.is_none_or(|ns| ns >= 1_999), "no gap is below the threshold");
        // It neither starts before its start nor stops before its finish, as far as its clock knows.
        let start = thread.plan.start_ns as i64;
        assert!(time.first_ns >= start - outcome.clock_error_ns as i64, "thread {n}: {time:?}");
        if matches!(thread.plan.workload, Workload::Cpu { .. }) {
            assert!(time.last_ns > 199 * MS, "thread {n}: {time:?}");
        }
        let (finished, last) = (Ended::Finished, own.last().unwrap().ended);
        assert_eq!(own.iter().filter(|run| run.ended == finished).count(), 1);
        assert_eq!(last, finished);
    }
    // 140 ms of its own have room for twenty periods.
    assert!(outcome.threads[4].jobs.len() <= 20);
}

/// On one CPU there is one thread at a time.
#[test]
fn runs_on_one_cpu_do_not_overlap() {
    let _alone = alone();
    ran();
    let cpu = a_cpu();
    let outcome = played(&format!("-n 3 -d 100ms --cpu {cpu} -w CPU_YIELD 0.3ms"));
    assert!(outcome.runs.len() >= 3, "each has one at least");
    assert!(outcome.runs.iter().all(|run| usize::from(run.cpu) == cpu));
    let mut before = 0;
    for run in &outcome.runs {
        assert!(run.start_tsc >= before, "{run:?}");
        before = run.end_tsc;
    }
}

/// Each period that is whole is one deadline, hit or missed, and the work of a job is what was asked for.
#[test]
fn every_whole_period_is_judged_once_however_busy_the_machine_is() {
    let _alone = alone();
    ran();
    let outcome = played(
        "-n 3 -d 150ms -t 0 -w PERIODIC 1ms 8ms -i HR -t 1 -w PERIODIC 9ms 10ms -s 5ms -t 2 -w CPU_PERIODIC 2ms 4ms",
    );
    for (n, periods) in [(0, 18), (1, 14)] {
        let deadlines = outcome.threads[n].deadlines.unwrap();
        assert_eq!(deadlines.hit + deadlines.missed, periods, "thread {n}");
    }
    for (thread, amount) in outcome.threads.iter().zip([1, 9, 2]) {
        for job in &thread.jobs {
            let clock = 100 + outcome.clock_error_ns as i64;
            assert!(job.start_ns >= job.release_ns - clock, "{job:?}");
            let Some(finish) = job.finish_ns else { continue };
            assert!(finish - job.start_ns >= amount * MS - 1_000, "it had its time: {job:?}");
        }
        // A backlog is worked off in order, and nothing of it is dropped.
        assert!(thread.jobs.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
        assert!(
            thread
                .jobs
                .windows(2)
                .all(|pair| pair[0].finish_ns.is_some_and(|f| f <= pair[1].start_ns))
        );
    }
    let frames = outcome.threads[2].deadlines.unwrap();
    let finished = outcome.threads[2].jobs.iter().filter(|job| job.finish_ns.is_some()).count();
    assert_eq!(frames.hit, finished as u64);
}

/// The kernel's own word on reservations, beside what the threads saw: one that always wants more than it has reserved is told,
/// within its gaps; one that wants a small part of it is told only if a job took as long as all of it.
#[test]
fn the_kernel_tells_who_has_used_up_a_reservation() {
    let _alone = alone();
    if !real_time_or_skip() {
        return;
    }
    let line = "-n 3 -d 400ms -t 0 -w CPU -rh 1ms 20ms -t 1 -w PERIODIC 1ms 20ms -i HR -rh 10ms 20ms -t 2 -w LAT 10ms -i HR";
    let scenario = scenario(&words(line)).expect(line);
    let outcome = match play(&scenario) {
        Ok(outcome) => outcome,
        Err(error) => return skipped(&format!("no reservation: {error}")),
    };
    let told = outcome.threads.iter().map(|thread| thread.overruns).collect::<Vec<_>>();
    let [Some(greedy), Some(modest), None] = told[..] else { panic!("{told:?}") };
    let runs = outcome.threads[0].time.expect("it polls").runs;
    assert!((1..runs).contains(&greedy), "{greedy} of {runs} runs");
    // The kernel charges what interrupts and hosts take, too, and so does the time between start and finish.
    let took = |job: &Job| job.finish_ns.map_or(i64::MAX, |finish| finish - job.start_ns);
    let long = outcome.threads[1].jobs.iter().filter(|job| took(job) >= 9 * MS).count() as u64;
    assert!(modest <= long, "{modest} overruns, {long} jobs took as long as that");
    // Whoever sends the signal for another reason finds everything as it was.
    // SAFETY: zeroes are a value; the kernel writes as much as the type has.
    let now = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGXCPU, std::ptr::null(), &raw mut now);
        now.sa_sigaction
    };
    assert_eq!(now, libc::SIG_DFL);
}

/// A thread never wakes before it is due, with any timer.
#[test]
fn no_timer_wakes_early() {
    let _alone = alone();
    ran();
    let outcome = played("-n 3 -d 100ms -a -w LAT 2ms -t 0 -i NATIVE -t 1 -i HR -t 2 -i TIMERFD");
    for (n, thread) in outcome.threads.iter().enumerate() {
        for pair in thread.samples.windows(2) {
            assert_eq!(
                pair[1].due_ns,
                pair[0].woke_ns + 2_000_000,
                "each period begins with a wake-up"
            );
        }
        assert!(thread.samples.iter().all(|sample| sample.woke_ns >= sample.due_ns), "thread {n}");
        assert!(thread.time.is_none() && thread.deadlines.is_none());
    }
}

/// What finds no room in the trace is counted, and the times of the threads have it all the same.
#[test]
fn runs_without_room_are_counted() {
    let _alone = alone();
    ran();
    let outcome = played("-n 2 -d 50ms -e 2 -w CPU_YIELD 0.5ms");
    let time = |n: usize| outcome.threads[n].time.unwrap();
    assert_eq!(outcome.runs.len() as u64 + outcome.lost_runs as u64, time(0).runs + time(1).runs);
    for n in [0, 1] {
        let whole = (time(n).last_ns - time(n).first_ns) as u64;
        assert_eq!(time(n).run_ns + time(n).gap_ns, whole);
    }
}

/// What is printed is the run: every line of the trace, the sums of the threads, and the same as JSON.
#[test]
fn what_is_printed_adds_up() {
    let _alone = alone();
    ran();
    let output =
        command("hourglass -n 2 -d 40ms -c -t 0 -w CPU_YIELD 2ms -t 1 -w PERIODIC 1ms 10ms");
    let text = String::from_utf8(output.stdout).unwrap();
    let ns = |ms: &str| ms.parse::<f64>().map(|ms| (ms * 1e6).round() as i64).unwrap();
    let trace = |n: &str| -> Vec<Vec<&str>> {
        let lines = text.lines().filter(|line| line.split(' ').next() == Some(n));
        lines.map(|line| line.split(' ').collect()).collect()
    };
    for n in ["0", "1"] {
        let runs = trace(n);
        let sum: i64 = runs.iter().map(|words| ns(words[2]) - ns(words[1])).sum();
        assert!(runs.iter().all(|words| ns(words[2]) - ns(words[1]) == ns(words[3])), "{text}");
        // thread 0: CPU_YIELD 2 ms, as the process: 40.1 ms, of it 39.0 in 5 runs and 1.1 in gaps
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("thread {n}: ")) && line.contains(" of it "));
        let (head, figures) =
            line.and_then(|line| line.split_once(" ms, of it ")).expect("a line of the thread");
        let all = ns(head.rsplit(' ').next().unwrap());
        let words: Vec<&str> = figures.split(' ').collect();
        assert_eq!((ns(words[0]), words[2]), (sum, &*runs.len().to_string()), "{text}");
        assert_eq!(ns(words[0]) + ns(words[5]), all, "{text}");
    }
    let cycles = text.lines().filter(|line| line.starts_with("cycles: ")).count();
    assert_eq!(cycles, trace("0").len() + trace("1").len());

    let output = command("hourglass -n 2 -d 20ms --json -w CPU_PERIODIC 1ms 5ms");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = json["runs"].as_array().unwrap();
    for n in [0, 1] {
        let own = runs.iter().filter(|run| run["thread"] == n);
        let sum: i64 = own
            .map(|run| run["end_ns"].as_i64().unwrap() - run["start_ns"].as_i64().unwrap())
            .sum();
        assert_eq!(json["threads"][n]["run_ns"], sum);
        assert_eq!(json["threads"][n]["workload"], "CPU_PERIODIC 1 ms 5 ms");
        let jobs = json["jobs"].as_array().unwrap().iter().filter(|job| job["thread"] == n);
        let finished = jobs.filter(|job| !job["finish_ns"].is_null()).count();
        assert_eq!(json["threads"][n]["hit"], finished);
    }
    assert_eq!(json["samples"], serde_json::json!([]));

    let output = command("hourglass -n 1 -d 20ms --json -w LAT 2ms -i HR");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ns = |sample: &serde_json::Value, key: &str| sample[key].as_i64().unwrap();
    let samples = json["samples"].as_array().unwrap();
    let late: Vec<i64> = samples.iter().map(|s| ns(s, "woke_ns") - ns(s, "due_ns")).collect();
    let lateness = &json["threads"][0]["lateness"];
    assert_eq!(lateness["count"].as_u64().unwrap_or(0), late.len() as u64);
    assert_eq!(lateness["max_ns"].as_i64(), late.iter().max().copied());
    // Each is due a period after the thread ran, the first one after its begin.
    assert!(samples.first().is_none_or(|first| ns(first, "due_ns") >= 2 * MS), "{json}");
    for pair in samples.windows(2) {
        assert_eq!(ns(&pair[1], "due_ns"), ns(&pair[0], "woke_ns") + 2 * MS);
    }
}
