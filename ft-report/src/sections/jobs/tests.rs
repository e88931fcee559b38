use super::*;
use ft_analysis::Rows;
use ft_analysis::timeline::{LATE_JOB, run, run_by_agent};

fn report(timeline: &str) -> JobsReport {
    report_of(run(true, timeline))
}

fn report_of((rows, tally): (Rows, Tally)) -> JobsReport {
    let mut jobs = Jobs::default();
    rows.workers.into_iter().for_each(|r| jobs.worker(r));
    rows.jobs.iter().for_each(|r| jobs.add(r));
    jobs.finish(&tally)
}

#[test]
fn responses_stand_beside_their_bound_and_their_parts_sum() {
    let report = report(LATE_JOB);
    let [w] = &report.workers[..] else { panic!("{:?}", report.workers) };
    assert_eq!((w.worker.id.worker, w.hit, w.missed, w.jobs), (3, 1, 1, 2));
    assert_eq!((w.bound_ns, w.tail.max_ns, w.all.total_ns), (Some(300), 1170, 1670));
    let parts = w.all.parts;
    assert_eq!((w.all.backlog_ns, w.all.backlog_ns + parts.total_ns()), (170, 1670));
    assert_eq!((parts.preempted_ns, parts.blocked_ns, parts.running_ns), (800, 30, 630));
    // Of the two the first was late, and began with nothing left of another.
    assert_eq!((w.late.total_ns, w.late.backlog_ns, w.late.parts.preempted_ns), (1170, 0, 800));
    let culprits = report.culprits.iter().map(|c| (&*c.culprit, c.jobs, c.late, c.total_ns));
    assert_eq!(culprits.collect::<Vec<_>>(), [("X", 1, 1, 800)]);
    let numbers = report.longest.iter().map(|l| (l.number, l.deadline));
    assert_eq!(numbers.collect::<Vec<_>>(), [(0, "missed"), (1, "hit")]);
    let text = format!("{:120}", report.section());
    for line in [
        "2 jobs, all exact",
        "bound",
        "beyond",
        "870 ns",
        "finished too late",
        "The longest responses",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn what_of_a_response_is_the_recordings_own_stands_beside_it() {
    let report = report_of(run_by_agent(LATE_JOB));
    let [w] = &report.workers[..] else { panic!("{:?}", report.workers) };
    assert_eq!((w.all.agent_ns, w.late.agent_ns), (Own(Some(800)), Own(Some(800))));
    let text = format!("{:160}", report.section());
    // Of all responses, of those of late jobs, and of the longest, which is the late one.
    for (share, times) in [("47.9 %", 1), ("68.4 %", 2)] {
        assert!(text.matches(share).count() >= times, "{share}: {text}");
    }
    assert!(text.contains("Recording: the share of a row's time"), "{text}");
}

#[test]
fn without_a_load_there_is_a_sentence() {
    let text = format!("{:120}", report("0 0 .>a S").section());
    assert!(text.contains("No periodic worker was recorded"), "{text}");
}
