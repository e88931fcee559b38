//! Uncontended lock pairs.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::figures::{Figures, Samples};
use crate::table::{Row, number};

/// Runs a subject whose events cost what an acquisition and a release cost at the best; adds `event`.
pub(super) fn add_event(bench: &Bench, samples: &mut Samples) -> Result<()> {
    let on = bench.record(&["-k", "none", "-e", "costs.*"], &["on"])?;
    samples.add("event", on.figures.get("two")?);
    Ok(())
}

/// What a pair may cost while its events are on.
const PAIR_GOAL: &str = "≤ off + 3 events";

pub(super) const WRAPPER: &str = "/usr/lib/x86_64-linux-gnu/liblttng-ust-pthread-wrapper.so";

pub(crate) fn pthread(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    let wrapper = Path::new(WRAPPER);
    let lttng = if wrapper.exists() { bench.lttng()? } else { None };
    let preloaded = |library: &Path, state| {
        let mut command = bench.program("env");
        command.arg(format!("LD_PRELOAD={}", library.display()));
        command.arg(bench.beside("subject")).args(["pthread", state]);
        command
    };
    for _ in 0..bench.rounds(7) {
        add_event(bench, &mut samples)?;
        samples.add_all("plain.", &bench.subject(&["pthread", "off"])?);
        samples.add_all("off.", &Figures::of(&mut preloaded(&bench.preload(), "off"))?);
        let options = ["-k", "none", "-e", "lock.mutex_*", "--preload"];
        let on = bench.record(&options, &["pthread", "on"])?;
        ensure!(on.lost == 0, "{} events were lost", on.lost);
        samples.add_all("on.", &on.figures);
        if let Some(lttng) = &lttng {
            samples.add_all("lttng.off.", &Figures::of(&mut preloaded(wrapper, "off"))?);
            let traced = lttng.record("lttng_ust_pthread:*", &[], &mut preloaded(wrapper, "on"))?;
            samples.add_all("lttng.on.", &traced.figures);
        }
    }
    let (plain, off) = (samples.must("plain.pair")?, samples.must("off.pair")?);
    let (on, event) = (samples.must("on.pair")?, samples.must("event")?);
    Ok(vec![
        Row::new("pthread mutex pair, preload library, off; ns", number(off))
            .goal("≤ plain + 1.5", off <= plain + 1.5)
            .beside([
                ("plain", Some(plain)),
                ("LTTng's wrapper", samples.median("lttng.off.pair")),
            ]),
        Row::new("the same, on", number(on))
            .goal(PAIR_GOAL, on <= off + 3.0 * event)
            .beside([("event", Some(event)), ("LTTng's wrapper", samples.median("lttng.on.pair"))]),
    ])
}

pub(crate) fn rust(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(7) {
        add_event(bench, &mut samples)?;
        samples.add_all("off.", &bench.subject(&["locks", "off"])?);
        let options = ["-k", "none", "-e", "lock.mutex_*"];
        samples.add_all("on.", &bench.record(&options, &["locks", "on"])?.figures);
    }
    let std = samples.median("off.std");
    let (off, on) = (samples.must("off.traced")?, samples.must("on.traced")?);
    let event = samples.must("event")?;
    Ok(vec![
        Row::new("pair of `sync::Mutex`, off; ns", number(off)).beside([("std's Mutex", std)]),
        Row::new("the same, on", number(on))
            .goal(PAIR_GOAL, on <= off + 3.0 * event)
            .beside([("event", Some(event)), ("std's Mutex", std)]),
    ])
}
