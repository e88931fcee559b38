//! An event that is on.

use anyhow::Result;

use super::fifth;
use crate::bench::Bench;
use crate::figures::Samples;
use crate::table::{Row, number};

/// Options of a recording of the subjects' own events, without the kernel.
const OWN: [&str; 4] = ["-k", "none", "-e", "costs.*"];

/// Nothing may be lost: losing is cheaper than recording.
fn remark(samples: &Samples) -> String {
    match samples.highest("lost") {
        Some(lost) if lost > 0.0 => format!("**{lost:.0} events of a run were lost**"),
        _ => String::new(),
    }
}

/// Runs a subject under the agent, and LTTng's under LTTng, in turns. Its figures begin with `lttng.`.
fn side_by_side(bench: &Bench, subject: &str) -> Result<Samples> {
    let mut samples = Samples::default();
    let lttng = bench.lttng()?;
    for _ in 0..bench.rounds(5) {
        let ours = bench.record(&OWN, &[subject])?;
        samples.add_all("", &ours.figures);
        samples.add("lost", ours.lost as f64);
        if let Some(lttng) = &lttng {
            let theirs = lttng.subject(&[], &[subject])?;
            samples.add_all("lttng.", &theirs.figures);
        }
    }
    Ok(samples)
}

pub(crate) fn on(bench: &Bench) -> Result<Vec<Row>> {
    let samples = side_by_side(bench, "on")?;
    let (ours, rdtsc) = (samples.must("two")?, samples.must("rdtsc")?);
    let lttng = samples.median("lttng.lttng");
    let two = Row::new("event of two u64, warm caches, the agent draining; ns", number(ours));
    let two = fifth(two, "≤ rdtsc + 5", ours <= rdtsc + 5.0, ours, lttng)
        .beside([("rdtsc", Some(rdtsc)), ("LTTng-UST", lttng)])
        .remark(&remark(&samples));
    let six = Row::new("event of six u64; ns", number(samples.must("six")?));
    let text = Row::new("event of a u64 and 16 bytes of text; ns", number(samples.must("text")?));
    Ok(vec![two, six, text])
}

pub(crate) fn cold(bench: &Bench) -> Result<Vec<Row>> {
    let samples = side_by_side(bench, "cold")?;
    let (ours, lttng) = (samples.must("cold")?, samples.median("lttng.cold"));
    let most = samples.must("cold.rdtsc")? + 2.0 * samples.must("cold.miss")?;
    let walked = samples.must("cold.walked")? / f64::from(1 << 20);
    let row = Row::new(
        format!("event of two u64, cold caches: {walked:.1} MiB walked before each, net; ns"),
        number(ours),
    );
    Ok(vec![
        fifth(row, "≤ rdtsc and two misses", ours <= most, ours, lttng)
            .beside([
                ("miss", samples.median("cold.miss")),
                ("rdtsc", samples.median("cold.rdtsc")),
                ("rdtsc and 32 bytes stored", samples.median("cold.store")),
                ("LTTng-UST", lttng),
            ])
            .remark(&remark(&samples)),
    ])
}

pub(crate) fn two(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(5) {
        let recorded = bench.record(&OWN, &["two"])?;
        samples.add_all("", &recorded.figures);
        samples.add("lost", recorded.lost as f64);
    }
    let (alone, together) = (samples.must("alone")?, samples.must("together")?);
    Ok(vec![
        Row::new("event of two u64, two threads at once, gross; ns", number(together))
            .goal("≤ 1.10 × one thread", together <= 1.1 * alone)
            .beside([("one thread", Some(alone))])
            .remark(&remark(&samples)),
    ])
}

pub(crate) fn shared(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(5) {
        samples.add_all("", &bench.subject(&["shared"])?);
    }
    let row = |threads: &str, words: &str| -> Result<Row> {
        let ours = samples.must(&format!("ring.{threads}"))?;
        let paper = samples.median(&format!("paper.{threads}"));
        let what = format!("shared multi-writer ring, two u64, {words}; ns a write");
        Ok(Row::new(what, number(ours)).beside([("the paper's buffer", paper)]))
    };
    Ok(vec![row("1", "one thread")?, row("2", "two threads at once")?])
}
