//! What a poll of an async task costs.

use anyhow::{Result, ensure};

use super::locks::add_event;
use crate::bench::Bench;
use crate::figures::Samples;
use crate::table::{Row, number};

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(7) {
        add_event(bench, &mut samples)?;
        samples.add_all("off.", &bench.subject(&["tasks", "off"])?);
        let on = bench.record(&["-k", "none", "-e", "async.*"], &["tasks", "on"])?;
        ensure!(on.lost == 0, "{} events were lost", on.lost);
        samples.add_all("on.", &on.figures);
    }
    let (off, on) = (samples.must("off.traced")?, samples.must("on.traced")?);
    Ok(vec![
        Row::new("a poll of a pending task, `task::named`, off; ns", number(off)).beside([
            ("the future alone", samples.median("off.plain")),
            ("in a span of `tracing` without a subscriber", samples.median("off.span")),
        ]),
        Row::new("the same, on: two events", number(on)).beside([
            ("an event of two u64", samples.median("event")),
            ("where nobody keeps its waker", samples.median("on.traced.forgets")),
        ]),
        Row::new("the same, woken in its poll: three", number(samples.must("on.traced.woken")?))
            .beside([
                ("off", samples.median("off.traced.woken")),
                ("the future alone", samples.median("off.plain.woken")),
            ]),
    ])
}
