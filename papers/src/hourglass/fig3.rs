//! Figure 3: execution traces of three threads of different priority, alone and beside a program that wakes often.

use std::process::Command;

use anyhow::Result;
use ft_load::hourglass::Outcome;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::Load;
use crate::plot::lanes::{self, Panel};
use crate::quantity::{digits, ns, percent};
use crate::trace::{Turn, clock_hz, lanes as lanes_of, turns};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-fig3",
    title: "Hourglass, Figure 3: execution traces",
    full_minutes: 0.2,
    programs: &["cyclictest"],
    run,
};

const NAMES: [&str; 3] = ["LOW", "NORMAL", "HIGH"];

/// Longer gaps than this are no interrupt.
const INTERRUPT_NS: i64 = 500_000;

fn run(lab: &Lab) -> Result<Finding> {
    let line = format!("-n 3 --cpu {} -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH", lab.cpu());
    let alone = lab.hourglass(5.0, &line)?;
    // Stands for the sound card that had 700 interrupts a second.
    let mut player = Command::new("cyclictest");
    player.args(["-q", "-m", "-t1", "-p50", "-i1428", "-a"]).arg(lab.cpu().to_string());
    let mut player = Load::start(&mut player)?;
    let beside = lab.hourglass(5.0, &line)?;
    player.check("cyclictest")?;
    drop(player);

    let panel = |title: &str, outcome: &Outcome, length: f64| Panel {
        title: title.into(),
        lanes: lanes_of(outcome, |thread| NAMES[thread].into()),
        window: middle(lab.seconds(5.0) * 1e3, length),
    };
    let svg = lanes::draw(&[
        panel("alone, 500 ms", &alone, 500.0),
        panel("beside a program that wakes 700 times a second, 100 ms", &beside, 100.0),
    ])?;

    let mut csv = Csv::new(["scenario", "thread", "start_ns", "end_ns", "cpu"]);
    for (name, outcome) in [("alone", &alone), ("beside", &beside)] {
        for run in &outcome.runs {
            let (start, end) = (outcome.ns(run.start_tsc), outcome.ns(run.end_tsc));
            csv.row([&name, &NAMES[run.thread as usize], &start, &end, &run.cpu]);
        }
    }
    Ok(Finding {
        how: format!(
            "`ft-load hourglass {line} -d 5s`, alone and beside `cyclictest -i1428`, which stands for the paper's audio \
             player. Windows 2000 and FreeBSD are left out. A dark line is a gap narrower than the line."
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&alone, &beside),
    })
}

/// That many milliseconds in the middle of a run, or all of it.
fn middle(whole: f64, length: f64) -> std::ops::Range<f64> {
    let from = ((whole - length) / 2.0).max(0.0).round();
    from..(from + length).min(whole)
}

fn rows(alone: &Outcome, beside: &Outcome) -> Vec<Row> {
    let tick = clock_hz(alone).map_or("no grid among the gaps".to_owned(), |hz| {
        format!("every {}", ns(1e9 / f64::from(hz)))
    });
    let turns = turns(alone, INTERRUPT_NS);
    let of = |thread: u32| -> Vec<&Turn> { turns.iter().filter(|t| t.thread == thread).collect() };
    let sum = |turns: &[&Turn]| turns.iter().map(|t| t.end_ns - t.start_ns).sum::<i64>() as f64;
    let mean = |thread| match of(thread) {
        turns if turns.is_empty() => "–".to_owned(),
        turns => ns(sum(&turns) / turns.len() as f64),
    };
    let count = |thread| of(thread).len().to_string();
    let total = sum(&turns.iter().collect::<Vec<_>>()).max(1.0);
    let share = |thread| percent(sum(&of(thread)) / total);
    let list = |each: &dyn Fn(u32) -> String| [0, 1, 2].map(each).join(" : ");
    let cuts = |outcome: &Outcome| {
        let runs = outcome.runs.windows(2);
        let gap = |pair: &[ft_load::hourglass::Run]| {
            outcome.ns(pair[1].start_tsc) - outcome.ns(pair[0].end_tsc)
        };
        let short =
            runs.filter(|pair| gap(pair) < INTERRUPT_NS && pair[0].thread == pair[1].thread);
        let ran = outcome.threads.iter().filter_map(|t| t.time).map(|t| t.run_ns).sum::<u64>();
        digits(short.count() as f64 / (ran.max(1) as f64 / 1e9))
    };
    vec![
        Row::new("clock interrupts", "every 10 ms", tick, "`CONFIG_HZ` of the kernel, 100 then"),
        Row::new(
            "mean turn, LOW : NORMAL : HIGH",
            "the higher, the longer",
            list(&mean),
            "Linux 2.4 gave longer time slices to higher priorities; EEVDF gives all the same slice, and to the heavier ones several of \
             them, one after the other",
        ),
        Row::new(
            "turns, LOW : NORMAL : HIGH",
            "as many",
            list(&count),
            "by weight, LOW is due so seldom that HIGH can have many slices before",
        ),
        Row::new(
            "share of the time, LOW : NORMAL : HIGH",
            "–",
            list(&share),
            "weights of nice 10, 0, −10: 1 : 9 : 90",
        ),
        Row::new(
            "gaps within turns, per second of running: alone",
            "100 (clock)",
            cuts(alone),
            "clock, and what a virtual machine and other programs add",
        ),
        Row::new(
            "the same beside the program",
            "about 820 (clock, sound, disk)",
            cuts(beside),
            "each waking is one gap, as each interrupt of the sound card was",
        ),
    ]
}
