use super::*;
use ft_analysis::Mark;
use ft_trace::ids::{Cpu, Nanos};
use ft_trace::tables::InferredCause;

#[test]
fn pollers_that_do_not_fit_are_others() {
    let mut gaps = Gaps::default();
    for tid in 1..=MAX_GROUPS as i32 + 2 {
        gaps.add(&Gap {
            ts: Nanos(1),
            dur: 10,
            pid: Pid(1),
            tid: Tid(tid),
            comm: "poller".into(),
            cpu: Cpu(0),
            cause: None,
            culprit: None,
            culprit_tid: None,
            parts: None,
            agent_ns: None,
            inferred: InferredCause::Long,
            mark: Mark::Exact,
        });
    }
    let report = gaps.finish(&Tally::default());
    let others: Vec<_> = report.pollers.iter().filter(|p| p.comm == "(others)").collect();
    assert_eq!(others.iter().map(|p| (p.pid, p.tid, p.total_ns)).collect::<Vec<_>>(), [(0, 0, 20)]);
}
