use super::options::{Asked, read};
use super::print::{View, text};
use super::*;
use crate::{Clock, Reading};

const MS: u64 = 1_000_000;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn parsed(line: &str) -> Scenario {
    scenario(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn periodic(amount_ns: u64, period_ns: u64) -> Workload {
    Workload::Periodic { amount_ns, period_ns }
}

/// Runs of one line each, `THREAD@CPU START END` and how it ended: `!` unasked, `y` yielded, `z` slept, `.` finished.
/// A cycle is a nanosecond.
pub(super) fn outcome(classes: &[Option<Class>], timeline: &str) -> Outcome {
    let run = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (thread, cpu) = words[0].split_once('@').unwrap();
        let ended = match words[3] {
            "!" => Ended::Unasked,
            "y" => Ended::Yielded,
            "z" => Ended::Slept,
            _ => Ended::Finished,
        };
        let (start_tsc, end_tsc) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        let (thread, cpu) = (thread.parse().unwrap(), cpu.parse().unwrap());
        Run { thread, cpu, start_tsc, end_tsc, ended }
    };
    let thread = |class: &Option<Class>| Thread {
        plan: Plan { class: *class, ..Plan::default() },
        time: None,
        passes: 0,
        deadlines: None,
        jobs: Vec::new(),
        samples: Vec::new(),
        overruns: None,
    };
    let mut runs: Vec<Run> = timeline.lines().map(run).collect();
    runs.sort_by_key(|run| run.start_tsc);
    Outcome {
        clock: Clock::between(Reading { tsc: 0, ns: 0 }, Reading { tsc: 1_000, ns: 1_000 }),
        zero_ns: 0,
        clock_error_ns: 0,
        runs,
        lost_runs: 0,
        threads: classes.iter().map(thread).collect(),
        notes: Vec::new(),
    }
}

/// The lines that the paper prints in section 5.1, of the same times, and in section 5.3.
#[test]
fn the_trace_and_the_latencies_look_as_in_the_paper() {
    let mut run = outcome(
        &[None, None, None],
        "0@0 442323192 443222287 y
         1@0 443224485 444123644 y
         2@0 444125827 445024925 .",
    );
    run.threads[2].samples.push(Sample { due_ns: 1_000_000, woke_ns: 1_097_843 });
    run.threads[0].deadlines = Some(Deadlines { hit: 1001, missed: 0 });
    run.threads[1].deadlines = Some(Deadlines { hit: 143, missed: 142 });
    let all = text(&run, View { cycles: true, ..View::default() });
    let expected = "\
0 442.323192 443.222287 0.899095 -
1 443.224485 444.123644 0.899159 0.002198
2 444.125827 445.024925 0.899098 0.002183
cycles: 0 442323192 443222287 899095
cycles: 1 443224485 444123644 899159
cycles: 2 444125827 445024925 899098
latlate: 97.843000
thread 0: missed 0 deadlines, hit 1001
thread 1: missed 142 deadlines, hit 143
";
    assert!(all.starts_with(expected), "{all}");
    let switches = "gaps: switch, voluntary: 2 of min 2.183 µs, median 2.183 µs, mean ";
    assert!(all.contains(switches), "{all}");
    let summary = text(&run, View { summary: true, ..View::default() });
    assert!(summary.starts_with("thread 0: missed 0 deadlines"), "{summary}");

    // On several CPUs a sixth column says which, and a gap is that of the CPU.
    let two = outcome(&[None, None], "0@0 100 200 !\n1@3 150 250 !\n0@0 260 300 .");
    let two = text(&two, View::default());
    assert!(two.contains("0 0.000260 0.000300 0.000040 0.000060 0\n"), "{two}");
    assert!(two.contains("1 0.000150 0.000250 0.000100 - 3\n"), "{two}");
}

/// Every command line that the paper prints, in its order, without the name of the program.
#[test]
fn the_command_lines_of_the_paper_are_read_as_printed() {
    let printed = include_str!("../../tests/paper/printed.txt").lines().map(parsed);
    let [fig3, switches, yields, latency, receive, native, timers, shorter, exact, more] =
        printed.collect::<Vec<_>>().try_into().expect("ten lines");
    let classes: Vec<_> = fig3.threads.iter().map(|plan| plan.class).collect();
    let nice = |n| Some(Class::Priority(Priority::Nice(n)));
    assert_eq!(classes, [nice(10), nice(0), nice(-10)]);
    assert_eq!(fig3.duration_ns, 5_000 * MS);

    assert_eq!(switches.threads.len(), 10);
    assert!(switches.threads.iter().all(|plan| plan.class == nice(0)));
    let workload = Workload::Cpu { scan_kb: None, yield_after_ns: Some(900_000) };
    assert!(yields.threads.iter().all(|plan| plan.workload == workload));

    assert_eq!(latency.duration_ns, 360_000 * MS);
    assert_eq!(latency.threads[0].workload, Workload::Latency { period_ns: 5_300_000 });
    assert_eq!(latency.threads[0].timer, Timer::Rtc);

    assert_eq!(receive.threads[0].workload, periodic(4 * MS, 5 * MS));
    assert_eq!(receive.threads[0].class, Some(Class::Priority(Priority::Fifo(80))));

    for (pair, amount, timer) in
        [(native, 17, Timer::Native), (timers, 17, Timer::Hr), (shorter, 12, Timer::Native)]
    {
        assert_eq!(pair.duration_ns, 10_000 * MS, "the default of appendix A");
        assert_eq!([pair.threads[0].timer, pair.threads[1].timer], [Timer::Hr, timer]);
        assert_eq!(pair.threads[1].workload, periodic(amount * MS, 33 * MS));
        assert_eq!(pair.threads[1].class, Some(Class::Priority(Priority::Fifo(10))));
    }

    for (reserved, amount_ns) in [(exact, 17_000_000), (more, 17_100_000)] {
        let class = Class::Reservation { amount_ns, period_ns: 33 * MS, soft: false };
        assert_eq!(reserved.threads[1].class, Some(class));
    }
}

#[test]
fn every_option_has_a_long_name_that_means_the_same() {
    let short = "-n 3 -d 2s -e 500 -c -t 1 -p IDLE -w CPU_SCAN 32 -s 100ms -f 1.5s -i HR \
                 -a -w CPU_SCAN_YIELD 64 1ms -t 0 -rh 1ms 10ms -t 2 -rs 2ms 10ms -w CPU_PERIODIC 1ms 5ms";
    let long = "--threads 3 --duration=2s --records 500 --cycles --thread 1 --priority IDLE --workload CPU_SCAN 32 \
                --start 100ms --finish=1.5s --timer HR --all --workload CPU_SCAN_YIELD 64 1ms --thread=0 \
                --reserve-hard 1ms 10ms --thread 2 --reserve-soft 2ms 10ms --workload=CPU_PERIODIC 1ms 5ms";
    assert_eq!(read(&words(short)), read(&words(long)));
    let Ok(Asked::Run(scenario, view)) = read(&words(short)) else { panic!("it is read") };
    assert!(view.cycles && !view.summary && !view.json);
    assert_eq!(scenario.records, 500);
    let plan = &scenario.threads[1];
    let scan = Workload::Cpu { scan_kb: Some(64), yield_after_ns: Some(MS) };
    assert_eq!(plan.workload, scan, "what is said later holds");
    assert_eq!((plan.start_ns, plan.finish_ns), (100 * MS, Some(1_500 * MS)));
    assert_eq!(plan.class, Some(Class::Priority(Priority::Idle)));
    assert_eq!(
        scenario.threads[2].workload,
        Workload::CpuPeriodic { amount_ns: MS, period_ns: 5 * MS }
    );
}

#[test]
fn ours_are_read_beside_those_of_the_paper() {
    let scenario =
        parsed("-n 2 --cpu 0-1 --gap 450ns --lock-memory -t 1 -p nice:-5 --slice 3ms -i TIMERFD");
    assert_eq!(scenario.gap_ns, 450);
    assert!(scenario.lock_memory);
    // Before the first -t an option is for all threads.
    assert!(scenario.threads.iter().all(|plan| plan.cpus == [0, 1]));
    assert_eq!(scenario.threads[1].slice_ns, Some(3 * MS));
    assert_eq!(scenario.threads[1].class, Some(Class::Priority(Priority::Nice(-5))));
    assert_eq!(scenario.threads[1].timer, Timer::Timerfd);
    for (name, priority) in [
        ("idle", Priority::Idle),
        ("HIGHEST", Priority::Nice(-20)),
        ("RTMED", Priority::Fifo(40)),
        ("fifo:99", Priority::Fifo(99)),
    ] {
        let plan = &parsed(&format!("-n 1 -p {name}")).threads[0];
        assert_eq!(plan.class, Some(Class::Priority(priority)));
    }
    assert_eq!(read(&words("--help")), Ok(Asked::Help));
    let Ok(Asked::Run(_, view)) = read(&words("-n 1 --summary --json")) else {
        panic!("it is read")
    };
    assert!(view.summary && view.json);
}

/// What each workload prints is what a command line would have of it.
#[test]
fn workloads_print_as_they_are_read() {
    for text in [
        "CPU",
        "CPU_SCAN 32",
        "CPU_YIELD 900 µs",
        "CPU_SCAN_YIELD 64 1 ms",
        "PERIODIC 3 ms 8 ms",
        "CPU_PERIODIC 10 ms 50 ms",
        "LAT 5.3 ms",
    ] {
        let joined = text.replace(" µs", "µs").replace(" ms", "ms");
        assert_eq!(parsed(&format!("-n 1 -w {joined}")).threads[0].workload.to_string(), text);
    }
}

#[test]
fn bad_lines_get_one_sentence_with_the_remedy() {
    for (line, remedy) in [
        ("", "add -n or --scenario"),
        ("-d 5s", "add -n or --scenario"),
        ("-n", "write it behind the option"),
        ("-n 0", "use 1 to 1024"),
        ("-n 5000", "use 1 to 1024"),
        ("-n -1", "write it behind the option"),
        ("-n two", "use 1 to 1024"),
        ("-n 1 -d 30", "write 30us, 30ms, 30s or 30m"),
        ("-n 1 -d 0s", "at least 1ns"),
        ("-n 1 -d 25h", "a shorter duration"),
        ("-n 1 -e 0", "use 1 to"),
        ("-n 1 -c yes", "`yes` belongs to no option"),
        ("-n 1 --cycles=yes", "leave out `=yes`"),
        ("-n 2 -t 2 -p LOW", "they are 0 to 1"),
        ("-n 2 -t -p LOW", "write it behind the option"),
        ("-n 1 -p URGENT", "use IDLE, LOW, NORMAL"),
        ("-n 1 -p fifo:0", "use 1 to 99"),
        ("-n 1 -p nice:20", "use -20 to 19"),
        ("-n 1 -w SPIN", "use CPU, CPU_SCAN KB"),
        ("-n 1 -w CPU_SCAN", "lacks a size in KB"),
        ("-n 1 -w CPU_SCAN 32KB", "use 1 to 1048576"),
        ("-n 1 -w CPU_SCAN 0", "use 1 to 1048576"),
        ("-n 1 -w CPU_YIELD 5", "write 5us, 5ms"),
        ("-n 1 -w CPU_SCAN_YIELD 5 -p LOW", "lacks an amount"),
        ("-n 1 -w PERIODIC 9ms 8ms", "ask for less, or less often"),
        ("-n 1 -w PERIODIC 8ms", "lacks a period"),
        ("-n 1 -w PERIODIC 0ms 8ms", "at least 1ns"),
        ("-n 1 -w CPU_PERIODIC 9ms 8ms", "ask for less, or less often"),
        ("-n 1 -w LAT 0s", "at least 1ns"),
        ("-n 1 -w LAT 100ns", "make them longer, or the run shorter"),
        ("-n 1 -rh 9ms 8ms", "ask for less, or less often"),
        ("-n 1 -rs 9ms", "lacks a period"),
        ("-n 1 -i MM", "use HR"),
        ("-n 1 -i TSC", "use NATIVE, HR, TIMERFD or RTC"),
        ("-n 1 -s 10s", "let it start earlier"),
        ("-n 1 -s 5s -f 4s", "let it start earlier"),
        ("-n 1 -f 11s", "lengthen the run with -d"),
        ("-n 1 --cpu x", "write their numbers"),
        ("-n 1 --slice 3ms -p RTLOW", "leave out its slice"),
        ("-n 1 --slice 3ms -rh 1ms 2ms", "leave out its slice"),
        ("-n 1 --frobnicate", "--help lists them"),
        ("-n 1 --scenario x", "leave out one"),
        ("--scenario /nowhere", "cannot be read"),
        ("--scenario /nowhere -p LOW", "leave out the options for threads"),
    ] {
        let error = read(&words(line)).unwrap_err();
        assert_eq!(error.exit_status(), 2, "{line}");
        let error = error.to_string();
        assert!(error.contains(remedy) && !error.contains('\n'), "{line}: {error}");
    }
}
