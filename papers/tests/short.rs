//! Every experiment in its short form, on the running kernel: whatever it measures, its files and its rows belong
//! together. Nothing is said about how a figure should come out.

#[path = "../../tests/common/said.rs"]
mod said;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ft_papers::experiment::named;
use ft_papers::{EXPERIMENTS, Experiment, Finding, Lab, page};

/// Of the papers' times; no run is shorter than a fifth of a second, nor repeated less than three times.
const SHORT: f64 = 0.001;

/// Runs an experiment, checks what holds for all, and then what `check` knows of its values. Where it cannot run here, the
/// test says that it is skipped.
fn short(id: &str, check: impl Fn(&Path, &Finding)) {
    short_beside_steal(id, |dir, finding, _| check(dir, finding));
}

/// The same, for a check of what a hypervisor can spoil: it is told how many of its ticks the host has stolen meanwhile.
fn short_beside_steal(id: &str, check: impl Fn(&Path, &Finding, u64)) {
    // Real-time threads of two experiments would be in each other's way.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let experiment = named(&[id.to_owned()]).unwrap()[0];
    let lab = Lab::new(SHORT, &dir.join("results")).unwrap();
    if let Some(reason) = refused(&lab, experiment) {
        return said::skipped(&reason);
    }
    said::ran();
    let stolen_before = stolen_ticks();
    let finding = (experiment.run)(&lab).unwrap_or_else(|error| panic!("{id}: {error:#}"));
    assert!(!finding.rows.is_empty() && !finding.values.is_empty() && !finding.how.is_empty());
    for name in &finding.values {
        let text = fs::read_to_string(dir.join("results").join(name)).unwrap();
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(text.lines().count() > 1, "{name} is empty");
        assert!(text.lines().all(|line| line.split(',').count() == columns), "{name}");
    }
    for name in &finding.figures {
        let svg = fs::read_to_string(dir.join("results").join(name)).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
    }
    page::put(&dir.join("README.md"), "results", &lab, experiment, &finding).unwrap();
    let page = fs::read_to_string(dir.join("README.md")).unwrap();
    for row in &finding.rows {
        let line = format!("| {} | {} | {} |", row.what, row.paper, row.ours);
        assert!(page.contains(&line), "{row:?}");
    }
    check(dir, &finding, stolen_ticks() - stolen_before);
}

/// What hosts have stolen from all CPUs since they are up, in ticks of 10 ms: eighth figure of the first line (proc_stat(5)).
fn stolen_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let steal = stat.lines().next().and_then(|line| line.split_whitespace().nth(8));
    steal.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Why an experiment cannot run here.
fn refused(lab: &Lab, experiment: &Experiment) -> Option<String> {
    // SAFETY: takes no pointer.
    if unsafe { libc::geteuid() } != 0 {
        return Some("real-time priorities are for root".into());
    }
    experiment.programs.iter().find_map(|name| lab.tool(name).err()).map(|error| error.to_string())
}

/// Columns of a table of values, by name.
fn columns<const N: usize>(dir: &Path, file: &str, names: [&str; N]) -> Vec<[String; N]> {
    let text = fs::read_to_string(dir.join("results").join(file)).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = names.map(|name| head.iter().position(|column| *column == name).expect("a column"));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(',').collect();
            at.map(|n| words[n].to_owned())
        })
        .collect()
}

/// A test for each experiment, by its name.
macro_rules! experiments {
    ($($test:ident $id:literal $check:expr;)*) => {
        $(#[test]
        fn $test() {
            short($id, $check);
        })*

        #[test]
        fn every_experiment_has_a_test() {
            let tested = [RESERVATIONS, $($id),*];
            assert!(EXPERIMENTS.iter().all(|experiment| tested.contains(&experiment.id)));
        }
    };
}

experiments! {
    hourglass_figure_3 "hourglass-fig3" one_thread_at_a_time;
    hourglass_figure_4 "hourglass-fig4" |_, _| {};
    hourglass_figure_5 "hourglass-fig5" penalties_are_those_of_the_formula;
    hourglass_table_1 "hourglass-table1" counts_are_those_of_the_values;
    hourglass_table_2_and_figure_6 "hourglass-table2" |_, _| {};
    hourglass_response_times "hourglass-5.5" |_, _| {};
    npt_table_1 "npt-table1" |_, _| {};
    npt_loops_untraced_and_traced "npt-loops" |_, _| {};
    npt_table_4 "npt-table4" |_, _| {};
    feather_trace_applications "feather-trace-3.4" depths_are_all_critical_sections;
    multilevel_figure_2 "multilevel-fig2" turns_are_those_of_the_program;
    multilevel_figure_3 "multilevel-fig3" messages_take_as_long_as_the_program_says;
    multilevel_table_1 "multilevel-table1" |_, _| {};
    multilevel_table_2 "multilevel-table2" |_, _| {};
    beside_cyclictest "cyclictest" |_, _| {};
    beside_rt_app "rt-app" |_, _| {};
}

const RESERVATIONS: &str = "hourglass-5.6";

#[test]
fn hourglass_reservations() {
    short_beside_steal(RESERVATIONS, a_reservation_lasts_as_long_as_it_is_reserved);
}

/// What Figure 3 draws is one CPU.
fn one_thread_at_a_time(dir: &Path, _: &Finding) {
    let runs = columns(dir, "hourglass-fig3.csv", ["scenario", "start_ns", "end_ns", "cpu"]);
    for scenario in ["alone", "beside"] {
        let runs: Vec<_> = runs.iter().filter(|run| run[0] == scenario).collect();
        assert!(!runs.is_empty() && runs.iter().all(|run| run[3] == runs[0][3]));
        let ns = |text: &String| text.parse::<i64>().unwrap();
        assert!(runs.windows(2).all(|pair| ns(&pair[0][2]) <= ns(&pair[1][1])), "{scenario}");
    }
}

/// The penalty times the switches is the time that the work lost took, by other code.
fn penalties_are_those_of_the_formula(dir: &Path, _: &Finding) {
    let names = ["passes_1", "passes_10", "seconds", "switches", "penalty_ns"];
    for trial in columns(dir, "hourglass-fig5.csv", names) {
        let [one, ten, seconds, switches, penalty] = trial.map(|text| text.parse::<f64>().unwrap());
        assert!(one > 0.0 && ten >= 0.0);
        let lost = (1.0 - ten / one) * seconds * 1e9;
        assert!((penalty * switches.max(1.0) - lost).abs() <= lost.abs() * 1e-6 + 1.0);
    }
}

/// What section 5.6 shows, in the kernel's own words, of whatever machine: a job that has reserved no more than its amount uses
/// that up, since it has to be woken, too; and one whose reservation is not used up keeps its CPU, so whatever it misses is
/// not for want of a reservation. How much more than its amount a job needs differs between kernels.
///
/// The kernel tells at a clock interrupt that finds the thread on the CPU (`check_dl_overrun` in
/// kernel/time/posix-cpu-timers.c): jobs of 3 ms in every second tick of 4 ms can lie between the ticks, always. So only what
/// the longer jobs are told is judged. Nor does it charge what the host steals (`update_rq_clock_task`,
/// kernel/sched/core.c), which makes a reservation last longer.
fn a_reservation_lasts_as_long_as_it_is_reserved(dir: &Path, _: &Finding, stolen: u64) {
    let jobs =
        columns(dir, "hourglass-5.6.csv", ["variant", "thread", "start_ns", "finish_ns", "due_ns"]);
    let names = ["variant", "thread", "hit", "overruns", "preempted_ns", "lost", "reserved_ms"];
    let threads = columns(dir, "hourglass-5.6-threads.csv", names);
    assert_eq!(threads.len(), 8, "four variants of two threads");
    let ns = |text: &str| text.parse::<i64>().unwrap();
    for [variant, thread, hit, overruns, preempted, lost, reserved] in &threads {
        let own = || jobs.iter().filter(|job| job[0] == *variant && job[1] == *thread);
        let finished: Vec<_> = own().filter(|job| !job[3].is_empty()).collect();
        let on_time = finished.iter().filter(|job| ns(&job[3]) <= ns(&job[4])).count();
        assert_eq!(ns(hit), on_time as i64, "{variant}, {thread}");
        let (amount, period) = [(3, 8), (17, 33)][ns(thread) as usize];
        // The amount is counted in cycles, whose number in a second is measured twice.
        let least = amount * 999_000;
        assert!(
            finished.iter().all(|job| ns(&job[3]) - ns(&job[2]) >= least),
            "{variant}: {finished:?}"
        );
        // The longest tick is 10 ms.
        if amount <= 10 {
            continue;
        }
        // Where CPUs change their frequency, the kernel charges less than time.
        let charges_time =
            stolen == 0 && !Path::new("/sys/devices/system/cpu/cpu0/cpufreq").exists();
        if variant == "exact" && !charges_time {
            said::skipped(
                "the kernel charges less than time here: that too little is used up is not judged",
            );
        }
        if variant == "exact" && finished.len() > 1 && charges_time {
            assert!(ns(overruns) > 0, "{thread} is not told that it had too little");
        }
        // Whose reservation is used up has no CPU for about the rest of its period.
        let rest = period as f64 - reserved.parse::<f64>().unwrap();
        if variant != "exact soft" && ns(overruns) == 0 && ns(lost) == 0 {
            let lacked = ns(preempted) as f64 / 1e6;
            assert!(lacked < rest, "{variant}, {thread}: {lacked} ms without a CPU");
        }
    }
}

/// The samples later than 1, 5, 10 and 50 ms of Table 1, counted by other code.
fn counts_are_those_of_the_values(dir: &Path, finding: &Finding) {
    let late = columns(dir, "hourglass-table1.csv", ["scenario", "late_ns"]);
    for (row, scenario) in finding.rows.iter().zip(["alone", "contention"]) {
        let of = || late.iter().filter(|sample| sample[0] == scenario);
        let later =
            |ms: u64| of().filter(|s| s[1].parse::<u64>().unwrap() > ms * 1_000_000).count();
        let told = [1, 5, 10, 50].map(|ms| later(ms).to_string()).join(", ");
        assert_eq!(row.ours, format!("{told} of {}", of().count()));
    }
}

/// What is recorded of where tasks ran is what the executor itself has counted.
fn turns_are_those_of_the_program(dir: &Path, finding: &Finding) {
    let names = ["executor", "turns", "moves", "recorded_turns", "recorded_moves"];
    for [executor, turns, moves, recorded_turns, recorded_moves] in
        columns(dir, "multilevel-fig2-turns.csv", names)
    {
        let is_whole = finding.rows.iter().all(|row| !row.ours.contains("missing"));
        let same = (&turns, &moves) == (&recorded_turns, &recorded_moves);
        assert!(
            same || !is_whole,
            "{executor}: {turns}, {moves}: {recorded_turns}, {recorded_moves}"
        );
    }
}

/// From its event to that of its answer a message is on its way a little shorter than between the program's readings of the
/// clock around both.
fn messages_take_as_long_as_the_program_says(dir: &Path, _: &Finding) {
    let names = ["executor", "listener", "recorded_ns", "own_ns"];
    let messages = columns(dir, "multilevel-fig3.csv", names);
    for listener in ["asks", "woken"] {
        for executor in ["shared", "own"] {
            let is_own = |m: &&[String; 4]| m[0] == executor && m[1] == listener;
            assert!(messages.iter().filter(is_own).count() > 0, "{executor}, {listener}");
        }
    }
    for message in messages {
        let [recorded, own] = [2, 3].map(|n| message[n].parse::<i64>().unwrap());
        // Both clocks agree to microseconds.
        assert!(recorded > 0 && recorded <= own + 100_000, "{message:?}");
    }
}

/// Each critical section has one depth, and no curve of lengths falls or has more.
fn depths_are_all_critical_sections(dir: &Path, finding: &Finding) {
    let names = ["application", "load", "figure", "critical_sections"];
    let values = columns(dir, "feather-trace-3.4.csv", names);
    for row in &finding.rows {
        let (application, load) = row.what.split_once(", ").unwrap();
        let of = |figure: &str| -> Vec<u64> {
            let own =
                values.iter().filter(|v| v[0] == application && v[1] == load && v[2] == figure);
            own.map(|value| value[3].parse().unwrap()).collect()
        };
        let (depths, shorter) = (of("nesting depth"), of("shorter than (ns)"));
        let all: u64 = depths.iter().sum();
        assert!(all > 0 && row.ours.contains(&format!(" of {all} not nested")), "{row:?}");
        assert!(shorter.is_sorted() && shorter.last().is_some_and(|last| *last <= all), "{row:?}");
    }
}
