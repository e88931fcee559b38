//! Figure 4 and section 5.1: what a context switch costs, by the gaps between CPU-bound threads.

use anyhow::Result;
use ft_load::hourglass::{Cause, Outcome, gaps};
use ft_load::{Summary, Typical};

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::bars::{self, Histogram};
use crate::quantity::{digits, ns};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-fig4",
    title: "Hourglass, Figure 4 and section 5.1: direct costs of context switches",
    full_minutes: 4.1,
    programs: &[],
    run,
};

/// What runs: a name, the options, and which switches are looked at.
const VARIANTS: [(&str, &str, Cause); 4] = [
    ("involuntary", "-w CPU", Cause::Involuntary),
    ("involuntary (slice 0.1 ms)", "-w CPU --slice 0.1ms", Cause::Involuntary),
    ("involuntary (slice 100 ms)", "-w CPU --slice 100ms", Cause::Involuntary),
    ("voluntary (yield after 0.9 ms)", "-w CPU_YIELD 0.9ms", Cause::Voluntary),
];

/// The switches of a variant.
struct Switches {
    lengths: Vec<u64>,
    per_second: f64,
}

fn run(lab: &Lab) -> Result<Finding> {
    let mut csv = Csv::new(["variant", "gap_ns"]);
    let mut histograms = Vec::new();
    let mut all = Vec::new();
    for (name, options, cause) in VARIANTS {
        let outcome =
            lab.hourglass(60.0, &format!("-n 10 --cpu {} -a -p NORMAL {options}", lab.cpu()))?;
        let switches = switches(&outcome, cause);
        switches.lengths.iter().for_each(|gap_ns| csv.row([&name, gap_ns]));
        let values = switches.lengths.iter().map(|ns| (*ns as f64, 1)).collect();
        histograms.push(Histogram { title: name.into(), values });
        all.push(switches);
    }
    let svg = bars::draw(&histograms, false)?;
    Ok(Finding {
        how: format!(
            "`ft-load hourglass -d 60s -n 10 -a -p NORMAL -w CPU --cpu {0}` and with `-w CPU_YIELD 0.9ms`. Where the paper \
             compares kernels, this compares slices, which are a thread's own choice today.",
            lab.cpu()
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&all),
    })
}

fn switches(outcome: &Outcome, cause: Cause) -> Switches {
    let of_cause = gaps(outcome).into_iter().filter(|gap| gap.cause == cause);
    let mut lengths: Vec<u64> = of_cause.map(|gap| gap.ns).collect();
    lengths.sort_unstable();
    let ran: u64 = outcome.threads.iter().filter_map(|t| t.time).map(|time| time.run_ns).sum();
    let per_second = lengths.len() as f64 / (ran.max(1) as f64 / 1e9);
    Switches { lengths, per_second }
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
            "a faster CPU, 2.6 GHz instead of 0.85",
        ),
        Row::new(
            "involuntary switch",
            "on the order of 10 µs (section 5.2); FreeBSD over 30 µs",
            typical(0),
            "a clock interrupt besides, which alone takes tens of µs in this virtual machine (`local_timer` in a recording)",
        ),
        Row::new("the same, slice 0.1 ms", "–", typical(1), "the switch itself is the same"),
        Row::new("the same, slice 100 ms", "–", typical(2), "the switch itself is the same"),
        Row::new(
            "involuntary switches per second of running",
            "18 (2.4.17), 50 (TimeSys, Windows, FreeBSD), 7 (RedHat 6.2)",
            rate(0),
            "a slice of EEVDF, 1.4 ms by default on two CPUs, ends with the first clock interrupt behind it: after 4 ms",
        ),
        Row::new(
            "the same, slice 0.1 ms",
            "–",
            rate(1),
            "no slice ends before a clock interrupt does it, every 4 ms",
        ),
        Row::new(
            "the same, slice 100 ms",
            "–",
            rate(2),
            "longer slices are kept, as 60 ms were then",
        ),
    ]
}
