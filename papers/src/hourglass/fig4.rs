//! Figure 4 and section 5.1: what a context switch costs, by the gaps between CPU-bound threads.

use anyhow::Result;
use ft_load::hourglass::{GapKind, Outcome, gaps};
use ft_load::{Summary, Typical};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::bars::{self, Histogram};
use crate::quantity::{digits, ns, percent};
use crate::recorded::Recorded;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-fig4",
    title: "Hourglass, Figure 4 and section 5.1: direct costs of context switches",
    full_minutes: 4.6,
    programs: &["ft-agent", "ft-load"],
    run,
};

/// What runs: a name, the options, and which switches are looked at.
const VARIANTS: [(&str, &str, GapKind); 4] = [
    ("involuntary", "-w CPU", GapKind::Involuntary),
    ("involuntary (slice 0.1 ms)", "-w CPU --slice 0.1ms", GapKind::Involuntary),
    ("involuntary (slice 100 ms)", "-w CPU --slice 100ms", GapKind::Involuntary),
    ("voluntary (yield after 0.9 ms)", "-w CPU_YIELD 0.9ms", GapKind::Voluntary),
];

const PAPER_SECONDS: f64 = 60.0;

/// How long a variant is recorded besides, for which the paper would have taken: long enough for hundreds of switches.
const RECORDED_SECONDS: f64 = 6.0;

/// The switches of a variant.
struct Switches {
    lengths: Vec<u64>,
    per_second: f64,
    /// What they are made of, by a recording of another run.
    made_of: String,
}

fn run(lab: &Lab) -> Result<Finding> {
    let mut csv = Csv::new(["variant", "gap_ns"]);
    let mut histograms = Vec::new();
    let mut all = Vec::new();
    for (name, options, cause) in VARIANTS {
        let line = format!("-n 10 --cpu {} -a -p NORMAL {options}", lab.cpu());
        let outcome = lab.hourglass(PAPER_SECONDS, &line)?;
        let seconds = lab.seconds(RECORDED_SECONDS);
        let recorded = Recorded::hourglass_for(lab, seconds, &line, &["switches"])?;
        let switches = switches(&outcome, cause, made_of(recorded.report("switches"), cause));
        switches.lengths.iter().for_each(|gap_ns| csv.row([&name, gap_ns]));
        let values = switches.lengths.iter().map(|ns| (*ns as f64, 1)).collect();
        histograms.push(Histogram { title: name.into(), values });
        all.push(switches);
    }
    let svg = bars::draw(&histograms, false)?;
    Ok(Finding {
        how: format!(
            "`ft-load hourglass -d 60s -n 10 -a -p NORMAL -w CPU --cpu {0}` and with `-w CPU_YIELD 0.9ms`. Where the paper \
             compares kernels, this compares slices, which are a thread's own choice today. Each line is run once more for {1:.1} s \
             and recorded (`ft-agent record -k sched,irq`), which says what the switches are made of.",
            lab.cpu(),
            lab.seconds(RECORDED_SECONDS)
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&all),
    })
}

fn switches(outcome: &Outcome, cause: GapKind, made_of: String) -> Switches {
    let of_cause = gaps(outcome).into_iter().filter(|gap| gap.cause == cause);
    let mut lengths: Vec<u64> = of_cause.map(|gap| gap.ns).collect();
    lengths.sort_unstable();
    let ran: u64 = outcome.threads.iter().filter_map(|t| t.time).map(|time| time.run_ns).sum();
    let per_second = lengths.len() as f64 / (ran.max(1) as f64 / 1e9);
    Switches { lengths, per_second, made_of }
}

/// What the report `switches` says of the gaps that are inferred to have this cause.
fn made_of(report: &Value, cause: GapKind) -> String {
    let word = serde_json::to_value(cause).unwrap_or_default();
    let mut kinds = report["kinds"].as_array().into_iter().flatten();
    let Some(kind) = kinds.find(|kind| kind["inferred"] == word) else {
        return "a recording of another run has none".into();
    };
    let number = |key: &str| kind[key].as_f64();
    let count = |key: &str| number(key).unwrap_or(0.0);
    let judged = count("judged").max(1.0);
    let mut told = vec![format!(
        "a recording of another run: {} of {} such gaps had one switch of the CPU",
        percent(count("one_switch") / judged),
        count("judged")
    )];
    if let (Some(out_ns), Some(in_ns)) = (number("out_ns"), number("in_ns")) {
        told.push(format!(
            "with {} before it, interrupts and the way into the kernel and through the scheduler, and {} behind it (medians)",
            ns(out_ns),
            ns(in_ns)
        ));
    }
    if let Some(others_ns) = number("others_ns").filter(|_| count("others") > 0.0) {
        told.push(format!(
            "{} had several, of other programs, with {} between the first and the last",
            percent(count("others") / judged),
            ns(others_ns)
        ));
    }
    told.join("; ")
}

fn rows(all: &[Switches]) -> Vec<Row> {
    let typical = |n: usize| {
        let lengths = &all[n].lengths;
        let (Some(typical), Some(summary)) =
            (Typical::of(lengths), Summary::of(&mut lengths.clone()))
        else {
            return "none was seen".to_owned();
        };
        let beyond = typical.outliers as f64 / lengths.len() as f64 * 100.0;
        format!(
            "{} (shortest {}; {} % beyond ten times that)",
            ns(typical.typical_ns as f64),
            ns(summary.min_ns as f64),
            digits(beyond)
        )
    };
    let rate = |n: usize| digits(all[n].per_second);
    vec![
        Row::new(
            "voluntary switch",
            "2.2 µs (the lines of section 5.1)",
            typical(3),
            format!("the paper's CPU had 0.85 GHz; {}", all[3].made_of),
        ),
        Row::new(
            "involuntary switch",
            "on the order of 10 µs (section 5.2); FreeBSD over 30 µs",
            typical(0),
            format!("a clock interrupt besides; {}", all[0].made_of),
        ),
        Row::new("the same, slice 0.1 ms", "–", typical(1), &*all[1].made_of),
        Row::new("the same, slice 100 ms", "–", typical(2), &*all[2].made_of),
        Row::new(
            "involuntary switches per second of running",
            "18 (2.4.17), 50 (TimeSys, Windows, FreeBSD), 7 (RedHat 6.2)",
            rate(0),
            "a slice of EEVDF, 0.7 to 2.8 ms by default, ends with the first clock interrupt behind it",
        ),
        Row::new(
            "the same, slice 0.1 ms",
            "–",
            rate(1),
            "no slice ends before a clock interrupt does it",
        ),
        Row::new(
            "the same, slice 100 ms",
            "–",
            rate(2),
            "longer slices are kept, as 60 ms were then",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_switches_are_made_of_is_told_as_far_as_it_is_known() {
        let report = json!({ "kinds": [
            { "inferred": "involuntary", "judged": 10, "one_switch": 4, "others": 6, "out_ns": 19_900, "in_ns": 2_030, "others_ns": 40_000 },
            { "inferred": "voluntary", "judged": 2, "one_switch": 2, "others": 0, "out_ns": null, "in_ns": null, "others_ns": null },
        ] });
        let text = made_of(&report, GapKind::Involuntary);
        assert!(text.contains("40.0 % of 10 such gaps had one switch"), "{text}");
        assert!(text.contains("19.9 µs before it") && text.contains("2.03 µs behind it"), "{text}");
        assert!(
            text.ends_with(
                "60.0 % had several, of other programs, with 40.0 µs between the first and the last"
            ),
            "{text}"
        );
        let text = made_of(&report, GapKind::Voluntary);
        assert!(text.ends_with("100.0 % of 2 such gaps had one switch of the CPU"), "{text}");
        assert_eq!(made_of(&json!({}), GapKind::Voluntary), "a recording of another run has none");
    }
}
