//! What a process pays that embeds the tracer, without an agent.

use anyhow::Result;

use crate::bench::Bench;
use crate::figures::{Figures, Samples};
use crate::table::{Row, number};

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(101) {
        for name in ["startup", "startup_many"] {
            let mut program = bench.program(bench.beside(name));
            samples.add_all(&format!("{name}."), &Figures::of(&mut program)?);
        }
    }
    let row = |name: &str| -> Result<Row> {
        let (init, sites) =
            (samples.must(&format!("{name}.init"))?, samples.must(&format!("{name}.sites"))?);
        Ok(Row::new(format!("start-up without an agent, {sites} sites; µs"), number(init))
            .goal("< 100", init < 100.0))
    };
    Ok(vec![row("startup")?, row("startup_many")?])
}
