//! Figures 2, 4 and 6 and Tables 2 and 3: npt's loop untraced, and with a trace point of each tracer.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::lttng::{Lttng, Reader};
use super::passes::Passes;
use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::output;
use crate::plot::bars::{self, Histogram};
use crate::quantity::{digits, ns, percent};
use crate::recorded::{Recorded, leading_json};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "npt-loops",
    title: "npt, Figures 2, 4 and 6, Tables 2 and 3: the loop untraced and traced",
    full_minutes: 12.0,
    programs: &["ft-agent", "ft-load"],
    run,
};

const ROUNDS: usize = 30;

/// Of each run: the kernel may stop a real-time thread that takes more than 0.95 s of a second.
const SECONDS: f64 = 0.6;

const PRIORITY: u32 = 90;

/// Where traces are written: no disk is measured.
const MEMORY: &str = "/dev/shm";

/// More than a trace of one run.
const BACKED_BYTES: u64 = 1 << 30;

/// At most: what LTTng-UST writes of such a loop, so that both trace as much in a second.
const EVENTS_PER_SECOND: u64 = 10_000_000;

/// Who traces: a name, what the paper has, and why ours is what it is, where nothing of the run says so.
const SUBJECTS: [(&str, &str, &str); 6] = [
    ("untraced", "no peaks (Fig. 2), with interrupts switched off", ""),
    ("Feather-Trace, an event in each pass", "–", ""),
    (
        "Feather-Trace, 10 million events a second",
        "–",
        "as many events as LTTng-UST has below; the passes between them have none, so minimum and mean are lower",
    ),
    (
        "the same, with its kernel groups",
        "–",
        "the kernel's events are written by the kernel, on the CPU where they happen",
    ),
    (
        "LTTng-UST, waking its reader",
        "peaks up to 82 µs (standard kernel), 35 µs (RT)",
        "the paper's finding: the writer tells the reader by a system call whenever a sub-buffer is full; not looked into here",
    ),
    (
        "LTTng-UST, read timer 200 µs",
        "up to 7 µs (standard kernel), 6 µs (RT)",
        "the paper's finding: no system call of the writer; not looked into here",
    ),
];

/// So many of them do without LTTng-UST.
const OWN: usize = 4;

/// What one subject has shown, all rounds together.
#[derive(Default)]
struct Shown {
    passes: Passes,
    lost: u64,
}

fn run(lab: &Lab) -> Result<Finding> {
    // Where it is not installed, its rows say so, and those of the others are there.
    let lttng = Lttng::is_installed().then(Lttng::start).transpose()?;
    let here = subjects(lttng.as_ref());
    let rounds = lab.trials(ROUNDS);
    let mut shown: [Shown; 6] = Default::default();
    for _ in 0..rounds {
        for (n, shown) in shown.iter_mut().enumerate().take(here) {
            // Of a try no figure is looked at.
            if n > 0 && !lab.is_try() {
                back_memory()?;
            }
            let (passes, lost) = subject(lab, lttng.as_ref(), n)?;
            shown.passes.merge(&passes);
            shown.lost += lost;
            // What the kernel allows real-time threads is whole again.
            sleep(Duration::from_millis(500));
        }
    }
    let without = lttng.is_none().then_some("`lttng-sessiond` is not installed");
    let peaks = peaks(lab)?;
    let mut csv = Csv::new(["subject", "pass_ns", "count"]);
    let mut histograms = Vec::new();
    for ((name, ..), shown) in SUBJECTS.iter().zip(&shown).take(here) {
        for (ns, count) in shown.passes.values() {
            csv.row([&name.replace(',', ""), &format!("{ns:.1}"), &count]);
        }
        let values = shown.passes.values().collect();
        histograms.push(Histogram { title: (*name).into(), values });
    }
    Ok(Finding {
        how: format!(
            "A loop at `SCHED_FIFO` {PRIORITY} on CPU {} with one trace point in each pass, {rounds} rounds of {:.1} s, by turns: \
             `ft-load npt`, alone and under `ft-agent record` (rings of 32 MiB; `--rate` limits events), and the same loop in C with \
             LTTng-UST 2.13 (32 sub-buffers of 1 MiB). Left out: SystemTap and LTTng's kernel tracer (kernel modules), and PREEMPT_RT. Counts in the \
             drawing are logarithmic.",
            lab.cpu(),
            SECONDS
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &bars::draw(&histograms, true)?)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&shown, &peaks, without),
    })
}

/// How many of [`SUBJECTS`] there are here.
fn subjects(lttng: Option<&Lttng>) -> usize {
    if lttng.is_some() { SUBJECTS.len() } else { OWN }
}

fn subject(lab: &Lab, lttng: Option<&Lttng>, n: usize) -> Result<(Passes, u64)> {
    let record = |kernel: &str, rate: Option<u64>| recorded(lab, kernel, rate);
    let traced = |reader| {
        let lttng = lttng.context("LTTng-UST is not there")?;
        lttng.run(reader, lab.cpu(), PRIORITY, SECONDS * 1e9, hz(lab)?)
    };
    match n {
        0 => Ok((passes(&leading_json(&output(npt(lab)?.arg("--json"))?)?.0)?, 0)),
        1 => record("none", None),
        2 => record("none", Some(EVENTS_PER_SECOND)),
        3 => record("sched,irq,task", Some(EVENTS_PER_SECOND)),
        4 => traced(Reader::Woken),
        _ => traced(Reader::Timer(200)),
    }
}

/// Has the host of a virtual machine give as much memory as a trace takes: otherwise who writes a trace waits for it.
fn back_memory() -> Result<()> {
    let path = Path::new(MEMORY).join(format!("ft-papers-backed-{}", std::process::id()));
    let written = fs::File::create(&path)
        .and_then(|file| std::io::copy(&mut std::io::repeat(1).take(BACKED_BYTES), &mut &file));
    let _ = fs::remove_file(&path);
    written.map(drop).with_context(|| format!("{MEMORY} has no room for {BACKED_BYTES} bytes"))
}

/// The words of `ft-load` for the time of a run.
fn words(lab: &Lab) -> String {
    let ms = (SECONDS * 1e3).round();
    format!("npt --loops 100000000000 --max-time {ms}ms --rt {PRIORITY} --cpu {}", lab.cpu())
}

fn npt(lab: &Lab) -> Result<Command> {
    let mut command = Command::new(lab.tool("ft-load")?);
    command.args(words(lab).split(' '));
    Ok(command)
}

/// What passes of the untraced loop took too long for, by a recording that has an event for these passes alone.
fn peaks(lab: &Lab) -> Result<String> {
    let recorded = Recorded::new(lab, &words(lab), &["npt"])?;
    let report = recorded.report("npt");
    let causes = report["causes"].as_array().into_iter().flatten().map(|cause| {
        format!(
            "{} by {}, {} at most",
            cause["peaks"],
            cause["cause"].as_str().unwrap_or("?"),
            ns(cause["max_ns"].as_f64().unwrap_or(0.0))
        )
    });
    let causes: Vec<String> = causes.collect();
    Ok(match causes.is_empty() {
        true => "a recorded run had no pass above 5 µs".into(),
        false => format!(
            "interrupts stay on here; passes above 5 µs of a recorded run: {}; what is unexplained has no record of the kernel, as \
             time has that the host of a virtual machine takes",
            causes.join(", ")
        ),
    })
}

fn recorded(lab: &Lab, kernel: &str, rate: Option<u64>) -> Result<(Passes, u64)> {
    let trace = Path::new(MEMORY).join(format!("ft-papers-npt-{}", std::process::id()));
    let npt = npt(lab)?;
    let mut record = Command::new(lab.tool("ft-agent")?);
    record.args(["record", "--no-convert", "--ring-size", "32M", "-k", kernel, "-o"]).arg(&trace);
    record.args(["-e", "npt.pass", "--"]);
    record.arg(npt.get_program()).args(npt.get_args()).args(["--tracepoint", "--json"]);
    record.args(rate.map(|rate| format!("--rate={rate}")));
    let text = output(&mut record);
    let _ = fs::remove_dir_all(&trace);
    let text = text?;
    let (json, rest) = leading_json(&text)?;
    Ok((passes(&json)?, lost(rest)))
}

/// What `ft-load npt --json` has printed.
fn passes(json: &Value) -> Result<Passes> {
    let mut passes = Passes::default();
    for bin in json["histogram"].as_array().context("npt's histogram")? {
        passes.add(bin[0].as_f64().unwrap_or(0.0), bin[1].as_u64().unwrap_or(0));
    }
    Ok(passes)
}

/// The number in `…, N events lost`, as a recording ends.
fn lost(text: &str) -> u64 {
    let before = text.split(" events lost").next().filter(|before| *before != text);
    let digits = before.and_then(|before| before.rsplit(' ').next()).unwrap_or("0");
    digits.replace(',', "").parse().unwrap_or(0)
}

/// The counter's frequency, as npt has it.
fn hz(lab: &Lab) -> Result<f64> {
    let mut command = Command::new(lab.tool("ft-load")?);
    command.args(["npt", "--loops", "1000", "--json", "--no-lock-memory"]);
    let json: Value = serde_json::from_str(&output(&mut command)?)?;
    json["tsc_hz"].as_f64().context("npt tells no frequency")
}

/// How many events a second were kept of a loop that has one in each pass.
fn kept(passes: &Passes, lost: u64) -> String {
    let per_second = |events: u64| digits(events as f64 / passes.seconds().max(1e-9) / 1e6);
    format!(
        "an event is a few stores, and the loop never calls the kernel; {} million events a second are written, and the one \
         thread that reads a ring copied {} million, of 32 bytes each",
        per_second(passes.count()),
        per_second(passes.count().saturating_sub(lost))
    )
}

/// A row for each subject; `without` is why there is no LTTng-UST.
fn rows(shown: &[Shown; 6], peaks: &str, without: Option<&str>) -> Vec<Row> {
    SUBJECTS
        .iter()
        .zip(shown)
        .enumerate()
        .map(|(n, ((name, paper, why), Shown { passes, lost }))| {
            if let Some(why) = without.filter(|_| n >= OWN) {
                return Row::new(*name, *paper, "not run", format!("no LTTng-UST here: {why}"));
            }
            let why = match n {
                0 => peaks.to_owned(),
                1 => kept(passes, *lost),
                _ => (*why).to_owned(),
            };
            let lost = *lost as f64 / passes.count().max(1) as f64;
            let ours = format!(
                "min {}, mean {}, max {}; variance {} ns², standard deviation {}; p99.99 {}; {} a second above 5 µs; {} lost",
                ns(passes.min_ns()),
                ns(passes.mean_ns()),
                ns(passes.max_ns()),
                digits(passes.variance_ns2()),
                ns(passes.variance_ns2().sqrt()),
                ns(passes.percentile_ns(99.99)),
                digits(passes.longer_per_second(5e3)),
                percent(lost)
            );
            Row::new(*name, *paper, ours, why)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_read() {
        assert_eq!(lost("\nrecorded  16.0 MiB, 21,586,860 events lost\nspool x"), 21_586_860);
        assert_eq!(lost("recorded  16.0 MiB\n"), 0);
    }

    #[test]
    fn without_lttng_its_rows_say_why_and_the_others_are_there() {
        assert_eq!(subjects(None), OWN);
        let mut shown: [Shown; 6] = Default::default();
        shown[..OWN].iter_mut().for_each(|shown| shown.passes.add(10.0, 3));
        let why = "`lttng-sessiond` cannot be started";
        for (n, row) in rows(&shown, "peaks", Some(why)).iter().enumerate() {
            let is_left_out = row.ours == "not run" && row.why.contains(why);
            assert_eq!(
                (row.what.starts_with("LTTng"), is_left_out),
                (n >= OWN, n >= OWN),
                "{row:?}"
            );
        }
        assert!(rows(&shown, "peaks", None).iter().all(|row| row.ours != "not run"));
    }

    #[test]
    fn passes_are_those_of_the_histogram() {
        let json = serde_json::json!({ "histogram": [[10.0, 3], [20.0, 1]] });
        assert_eq!(passes(&json).unwrap().count(), 4);
        assert!(passes(&Value::Null).is_err());
    }
}
