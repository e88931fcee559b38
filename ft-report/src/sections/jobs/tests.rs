use super::*;
use ft_analysis::Rows;
use ft_analysis::timeline::{run, run_by_agent};

fn report(timeline: &str) -> JobsReport {
    report_of(run(true, timeline))
}

fn report_of((rows, tally): (Rows, Tally)) -> JobsReport {
    let mut jobs = Jobs::default();
    rows.workers.into_iter().for_each(|r| jobs.worker(r));
    rows.jobs.iter().for_each(|r| jobs.add(r));
    jobs.finish(&tally)
}

const TIMELINE: &str = "
        0 0 .>a S
        10 worker a 3 4 1
        12 span a 1000 3000 0
        13 demand a 300 1000
        14 bound a 300
        20 0 a>. S
        1030 wake . a 0
        1050 0 .>a S
        1060 poll a 0
        1060 first a 1060
        1070 job a 0 1070 1000
        1100 0 a>X R
        1900 0 X>a S
        1900 gap a 0 1100 1900
        2170 finish a 0 2170
        2170 over a
        2170 job a 1 2170 2000
        2500 finish a 1 2500
        2500 over a
        2600 last a 2600
        2700 done a 2 2 0";

#[test]
fn responses_stand_beside_their_bound_and_their_parts_sum() {
    let report = report(TIMELINE);
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
    let report = report_of(run_by_agent(TIMELINE));
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
