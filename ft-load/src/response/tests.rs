use proptest::prelude::*;

use super::simulation::{Job, play};
use super::*;

fn task(cost_ns: u64, period_ns: u64, jitter_ns: u64, blocking_ns: u64) -> Task {
    Task { cost_ns, period_ns, jitter_ns, blocking_ns }
}

fn line(words: &str) -> Result<String, crate::Error> {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    run(&words).map(|output| output.text)
}

/// Hourglass, section 5.5: tasks of 3 ms in 8 and 17 ms in 33.
#[test]
fn the_two_tasks_of_the_paper_respond_within_3_and_29_ms() {
    let bounds = analyse(&[task(3, 8, 0, 0), task(17, 33, 0, 0)], 0);
    assert_eq!(bounds, [Response::Within(3), Response::Within(29)]);
    // With 12 ms instead, 14 for the sleep that spins, all deadlines are met in spite of 8 ms of jitter.
    let bounds = analyse(&[task(3, 8, 0, 0), task(14, 33, 8, 0)], 0);
    assert_eq!(bounds[1], Response::Within(31));
}

/// Hourglass, section 5.5: release jitter of 8 ms and 19 ms of execution make it 39 ms.
#[test]
fn jitter_makes_it_39_ms_as_in_the_paper() {
    let bounds = analyse(&[task(3, 8, 0, 0), task(19, 33, 8, 0)], 0);
    assert_eq!(bounds[1], Response::Within(39));
}

/// The second job of a busy period is the one that takes longest: 26 in 70 and 62 in 100 (Lehoczky's example).
#[test]
fn the_first_job_need_not_be_the_worst() {
    let bounds = analyse(&[task(26, 70, 0, 0), task(62, 100, 0, 0)], 0);
    assert_eq!(bounds[1], Response::Within(118));
}

#[test]
fn a_full_cpu_has_a_bound_and_a_fuller_one_none() {
    let full = analyse(&[task(4, 8, 0, 0), task(4, 8, 0, 0)], 0);
    assert_eq!(full, [Response::Within(4), Response::Within(8)]);
    let fuller =
        analyse(&[task(4, 8, 0, 0), task(4_000_001, 8_000_000, 0, 0), task(1, 9, 0, 0)], 0);
    assert_eq!(fuller, [Response::Within(4), Response::Unbounded, Response::Unbounded]);
    // Nothing is left over in which to catch up with the switches.
    assert_eq!(analyse(&[task(8, 8, 0, 0)], 1), [Response::Unbounded]);
}

#[test]
fn lengths_that_no_machine_has_do_not_overflow() {
    let huge = task(u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX);
    let bounds = analyse(&[huge, task(1, u64::MAX, u64::MAX, 0)], u64::MAX);
    assert!(bounds.iter().all(|bound| *bound == Response::Unbounded), "{bounds:?}");
    assert_eq!(analyse(&[task(1, 2, u64::MAX, 0)], 0), [Response::NotFound]);
}

#[test]
fn the_command_prints_the_bounds() {
    assert_eq!(
        line("--task 3ms,8ms --task 17ms,33ms").unwrap(),
        "task          C          T          J          B   response  deadline\n\
         0          3 ms       8 ms          0          0       3 ms  met, 5 ms left\n\
         1         17 ms      33 ms          0          0      29 ms  met, 4 ms left\n\
         utilisation 89.0 %\n"
    );
    let text = line("--task 3ms,8ms 19ms,33ms,8ms --switch 5us").unwrap();
    assert!(text.contains("can be missed by 6."), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&line("--json --task=3ms,8ms --task=19ms,33ms,8ms,0ns").unwrap())
            .unwrap();
    assert_eq!(json["tasks"][1]["response_ns"], 39_000_000);
    assert_eq!(json["tasks"][1]["outcome"], "can be missed");
}

#[test]
fn bad_lines_get_one_sentence_with_the_remedy() {
    for (words, remedy) in [
        ("--json", "--task 3ms,8ms 17ms,33ms"),
        ("--task", "write it behind the option"),
        ("--task 3ms", "write execution time, period"),
        ("--task 3ms,8ms,1ms,1ms,1ms", "write execution time, period"),
        ("--task 3,8", "write 3us, 3ms, 3s or 3m"),
        ("--task 9ms,8ms", "less work or a longer period"),
        ("--task 0ms,8ms", "at least 1ns"),
        ("--task 3ms,8ms --switch", "write it behind the option"),
        ("--task 3ms,8ms --tusk", "--help lists them"),
        ("stray", "--help"),
    ] {
        let error = line(words).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        let error = error.to_string();
        assert!(error.contains(remedy) && !error.contains('\n'), "{words}: {error}");
    }
}

/// Up to four small tasks that leave a little time free.
fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let task =
        (1u64..5, 3u64..16, 0u64..10, 0u64..5).prop_map(|(cost, period, jitter, blocking)| {
            task(cost.min(period), period, jitter, blocking)
        });
    prop::collection::vec(task, 1..5)
}

/// Releases of one task from `first` on until `until`.
fn releases(task: &Task, first: i64, until: i64) -> impl Iterator<Item = i64> {
    (first..until).step_by(task.period_ns as usize)
}

proptest! {
    /// The bound is what happens when everything comes together worst: all jobs are ready at 0, after the whole of
    /// their jitter, just when a lower task has begun to block.
    #[test]
    fn the_worst_case_reaches_the_bound(tasks in tasks()) {
        prop_assume!(utilisation(&tasks, 0) < 0.95);
        for (i, bound) in analyse(&tasks, 0).into_iter().enumerate() {
            let Response::Within(bound) = bound else { panic!("{bound:?}") };
            let jobs = |task: &Task| -> Vec<Job> {
                let cost = task.cost_ns as i64;
                let job = |release: i64| Job { release, ready: release.max(0), cost };
                releases(task, -(task.jitter_ns as i64), 2_000).map(job).collect()
            };
            let mut schedule: Vec<Vec<Job>> = tasks[..i].iter().map(jobs).collect();
            // What blocks stands right above the task.
            let blocking = Job { release: 0, ready: 0, cost: tasks[i].blocking_ns as i64 };
            schedule.push(if blocking.cost > 0 { vec![blocking] } else { vec![] });
            schedule.push(jobs(&tasks[i]));
            let worst = play(&schedule, 0);
            prop_assert_eq!(worst[i + 1], bound as i64, "task {}", i);
        }
    }

    /// No phases, no jitter and no switches lead beyond the bound.
    #[test]
    fn no_schedule_exceeds_the_bound(
        tasks in tasks(),
        switch in 0u64..3,
        phases in prop::collection::vec(0i64..16, 4),
        delays in prop::collection::vec(0i64..10, 64),
    ) {
        let jobs = |(t, task): (usize, &Task)| -> Vec<Job> {
            let mut ready = 0;
            let job = |(n, release): (usize, i64)| {
                let delay = delays[(7 * t + n) % delays.len()].min(task.jitter_ns as i64);
                ready = ready.max(release + delay);
                Job { release, ready, cost: task.cost_ns as i64 }
            };
            releases(task, phases[t], 400).enumerate().map(job).collect()
        };
        let schedule: Vec<Vec<Job>> = tasks.iter().enumerate().map(jobs).collect();
        let worst = play(&schedule, switch as i64);
        for (bound, worst) in analyse(&tasks, switch).into_iter().zip(worst) {
            if let Response::Within(bound) = bound {
                prop_assert!(worst <= bound as i64, "{} is longer than {}", worst, bound);
            }
        }
    }
}
