//! The machine values of a comparison: every row, with every digit.

use serde::Serialize;

use super::permute::{ALPHA, MAX_LABELINGS, SEED};
use super::row::Row;
use super::subject::{Subject, ValueUnit};
use super::{Comparison, Run, Verdict};
use crate::stats::own::Own;
use ft_analysis::Mark;

/// The machine values of the head.
#[derive(Serialize)]
pub(super) struct HeadValues {
    a: Vec<RunValues>,
    b: Vec<RunValues>,
    program: Option<(String, String)>,
    moved: Vec<(String, String)>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct RunValues {
    trace: String,
    host: String,
    kernel: String,
    kernel_groups: Vec<String>,
    begin_ns: i64,
    length_ns: i64,
    events: u64,
    lost_user_events: u64,
    lost_kernel_records: u64,
    /// Holds and waits without begin or end; in no row.
    censored: u64,
    /// Intervals of locks without a name and a place; in no row.
    nameless: u64,
    /// Intervals of subjects that did not fit; in no row.
    no_room: u64,
}

impl HeadValues {
    pub(super) fn of(comparison: &Comparison) -> HeadValues {
        let run = |run: &Run| RunValues {
            trace: run.trace.clone(),
            host: run.host.0.clone(),
            kernel: run.kernel.clone(),
            kernel_groups: run.kernel_groups.clone(),
            begin_ns: run.begin_ns,
            length_ns: run.length_ns,
            events: run.events,
            lost_user_events: run.lost_user_events,
            lost_kernel_records: run.lost_kernel_records,
            censored: run.censored,
            nameless: run.nameless,
            no_room: run.no_room,
        };
        let [a, b] = comparison.sides.each_ref().map(|runs| runs.iter().map(run).collect());
        let warnings = comparison.warnings().iter().map(ToString::to_string).collect();
        let (program, moved) = (comparison.program.clone(), comparison.moved.clone());
        HeadValues { a, b, program, moved, warnings }
    }
}

/// The machine values of the section.
#[derive(Serialize)]
pub(super) struct Values {
    /// `recording` or `slice`.
    unit: &'static str,
    /// Units of A and of B.
    units: [usize; 2],
    test: &'static str,
    /// Chance that a comparison of what does not differ names any row.
    alpha: f64,
    labelings: usize,
    all_labelings: bool,
    most_labelings: usize,
    seed: u64,
    rows: Vec<RowValues>,
    only_in_a: Vec<SubjectValues>,
    only_in_b: Vec<SubjectValues>,
    conditions: Vec<ConditionValues>,
}

#[derive(Serialize)]
struct SubjectValues {
    class: &'static str,
    process: String,
    name: String,
    kind: String,
    place: String,
    thread: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<u64>,
}

#[derive(Serialize)]
struct RowValues {
    #[serde(flatten)]
    subject: SubjectValues,
    quantity: &'static str,
    unit: ValueUnit,
    a: Option<f64>,
    b: Option<f64>,
    /// (b - a) / a; null when a is 0.
    change: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    /// Adjusted for all rows; null where the row was not tested. `t`: the difference in its standard errors.
    p: Option<f64>,
    t: Option<f64>,
    differs: bool,
    logarithmic: bool,
    not_tested: Option<&'static str>,
    units: [usize; 2],
    intervals: [u64; 2],
    left_out: [u64; 2],
    /// How long threads of the agent had the CPU in the time of each side's intervals, `of_ns`.
    agent_ns: [Own; 2],
    of_ns: [i64; 2],
    mark: Mark,
}

#[derive(Serialize)]
struct ConditionValues {
    condition: String,
    verdict: &'static str,
    met: bool,
    judged: bool,
    of: Vec<JudgedValues>,
}

#[derive(Serialize)]
struct JudgedValues {
    subject: String,
    a: Option<f64>,
    b: Option<f64>,
    change: Option<f64>,
    bound: Option<f64>,
    met: bool,
}

fn subject(subject: &Subject, intervals: Option<u64>) -> SubjectValues {
    let Subject { class, process, name, kind, place, thread } = subject;
    let [process, name, kind, place, thread] =
        [process, name, kind, place, thread].map(ToString::to_string);
    SubjectValues { class: class.word(), process, name, kind, place, thread, intervals }
}

impl Values {
    pub(super) fn of(c: &Comparison) -> Values {
        let finite = |v: Option<f64>| v.filter(|v| v.is_finite());
        let row = |row: &Row| RowValues {
            subject: subject(&row.subject, None),
            quantity: row.quantity.word(),
            unit: row.quantity.unit(),
            a: row.sides[0],
            b: row.sides[1],
            change: finite(row.change),
            at_least: row.interval.map(|ends| ends[0]),
            at_most: row.interval.map(|ends| ends[1]),
            p: row.p,
            t: finite(row.t),
            differs: row.differs,
            logarithmic: row.logarithmic,
            not_tested: row.untested.map(|why| why.word()),
            units: row.units,
            intervals: row.counts,
            left_out: row.left_out,
            agent_ns: row.recording.map(|recording| recording.own),
            of_ns: row.recording.map(|recording| recording.of_ns),
            mark: row.mark,
        };
        let alone = |side: usize| {
            c.unmatched[side].iter().map(|(s, n)| subject(s, Some(*n))).collect::<Vec<_>>()
        };
        let conditions = c.outcomes.iter().map(|outcome| ConditionValues {
            condition: outcome.condition.clone(),
            verdict: outcome.verdict.word(),
            met: outcome.verdict == Verdict::Met,
            judged: outcome.verdict.is_judged(),
            of: outcome
                .of
                .iter()
                .map(|judged| JudgedValues {
                    subject: judged.label.clone(),
                    a: judged.sides[0],
                    b: judged.sides[1],
                    change: finite(judged.change),
                    bound: judged.bound,
                    met: judged.met,
                })
                .collect(),
        });
        Values {
            unit: if c.slices == 1 { "recording" } else { "slice" },
            units: [0, 1].map(|side| c.sides[side].len() * c.slices),
            test: "permutation of units, maximum of |t| over all rows",
            alpha: ALPHA,
            labelings: c.labelings.0,
            all_labelings: c.labelings.1,
            most_labelings: MAX_LABELINGS,
            seed: SEED,
            rows: c.rows.iter().map(row).collect(),
            only_in_a: alone(0),
            only_in_b: alone(1),
            conditions: conditions.collect(),
        }
    }
}
