use super::*;
use crate::document::{Block, Figure, Kind, Value};
use ft_analysis::Mark;
use ft_trace::ids::{Cpu, Nanos};
use ft_trace::tables::{GapCause, InferredCause};

fn gap(tid: i32, cause: GapCause) -> Gap {
    Gap {
        ts: Nanos(1),
        dur: 1_000 + i64::from(tid),
        pid: Pid(1),
        tid: Tid(tid),
        comm: "poller".into(),
        cpu: Cpu(0),
        cause: Some(cause),
        culprit: None,
        culprit_tid: None,
        parts: None,
        agent_ns: None,
        inferred: InferredCause::Long,
        mark: Mark::Exact,
    }
}

#[test]
fn threads_of_one_name_are_told_apart() {
    let mut gaps = Gaps::default();
    for tid in [41, 42] {
        gaps.add(&gap(tid, GapCause::Blocked));
    }
    let section = gaps.finish(&Tally { kernel: true, ..Tally::default() }).section();
    let tables = section.blocks.iter().filter_map(|block| match block {
        Block::Table(t) if t.columns[0].kind == Kind::Thread => Some(t),
        _ => None,
    });
    let mut told = 0;
    for table in tables {
        let tid = table.columns.iter().position(|column| column.title == "tid");
        let tid = tid.unwrap_or_else(|| panic!("no tid in {:?}", table.title));
        let found: Vec<_> = table.rows.iter().map(|row| row.cells[tid].clone()).collect();
        assert!(found.contains(&Value::Number(41)) && found.contains(&Value::Number(42)));
        told += 1;
    }
    assert_eq!(told, 3, "by thread, by cause, and the longest");
    let figures = section.blocks.iter().filter_map(|block| match block {
        Block::Figure(Figure { data: Data::Histograms { each, .. }, .. }) => Some(each),
        _ => None,
    });
    let names: Vec<_> = figures.flatten().map(|h| h.of.clone()).collect();
    let named = |name: &str| Thread::named(name).value();
    assert_eq!(names, [named("all"), named("poller 42"), named("poller 41")]);
}

#[test]
fn pollers_that_do_not_fit_are_others() {
    let mut gaps = Gaps::default();
    for tid in 1..=MAX_GROUPS as i32 + 2 {
        gaps.add(&Gap { dur: 10, cause: None, ..gap(tid, GapCause::Blocked) });
    }
    let report = gaps.finish(&Tally::default());
    let others: Vec<_> = report.pollers.iter().filter(|p| p.comm == "(others)").collect();
    assert_eq!(others.iter().map(|p| (p.pid, p.tid, p.total_ns)).collect::<Vec<_>>(), [(0, 0, 20)]);
}
