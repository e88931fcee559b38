//! What an experiment is, and which there are.

use anyhow::{Result, bail};

use crate::lab::Lab;
use crate::{feather_trace, hourglass, multilevel, npt, peers};

/// An experiment of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line, and that of its files.
    pub id: &'static str,
    /// Its heading on the page: paper, place, subject.
    pub title: &'static str,
    /// How long its full form takes, minutes.
    pub full_minutes: f64,
    /// Programs that it runs, of others and ours.
    pub programs: &'static [&'static str],
    /// Runs it. It leaves its files in the lab, and no process.
    pub run: fn(&Lab) -> Result<Finding>,
}

/// What an experiment has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// What was run, in sentences.
    pub how: String,
    /// Drawings, by the names of their files.
    pub figures: Vec<String>,
    /// Tables of values, by the names of their files.
    pub values: Vec<String>,
    /// The comparison.
    pub rows: Vec<Row>,
}

/// A row of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What is compared.
    pub what: String,
    /// What the paper has; `–` where its text has no figure.
    pub paper: String,
    /// What was measured here.
    pub ours: String,
    /// Why they differ, or agree.
    pub why: String,
}

impl Row {
    /// A row.
    pub fn new(
        what: impl Into<String>,
        paper: impl Into<String>,
        ours: impl Into<String>,
        why: impl Into<String>,
    ) -> Row {
        Row { what: what.into(), paper: paper.into(), ours: ours.into(), why: why.into() }
    }
}

/// All experiments, in the order of the page.
pub const EXPERIMENTS: &[Experiment] = &[
    hourglass::fig3::EXPERIMENT,
    hourglass::fig4::EXPERIMENT,
    hourglass::fig5::EXPERIMENT,
    hourglass::table1::EXPERIMENT,
    hourglass::table2::EXPERIMENT,
    hourglass::responses::EXPERIMENT,
    hourglass::reservations::EXPERIMENT,
    npt::table1::EXPERIMENT,
    npt::loops::EXPERIMENT,
    npt::table4::EXPERIMENT,
    feather_trace::applications::EXPERIMENT,
    multilevel::fig2::EXPERIMENT,
    multilevel::fig3::EXPERIMENT,
    multilevel::table1::EXPERIMENT,
    multilevel::table2::EXPERIMENT,
    peers::cyclictest::EXPERIMENT,
    peers::deadline::EXPERIMENT,
];

/// Those with these names, or all.
///
/// # Errors
///
/// For a name that none has.
pub fn named(ids: &[String]) -> Result<Vec<&'static Experiment>> {
    if ids.is_empty() {
        return Ok(EXPERIMENTS.iter().collect());
    }
    let of = |id: &String| match EXPERIMENTS.iter().find(|experiment| experiment.id == id) {
        Some(experiment) => Ok(experiment),
        None => bail!(
            "there is no experiment `{}`; `cargo xtask paper --list` names them",
            id.escape_debug()
        ),
    };
    ids.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused() {
        assert_eq!(named(&[]).unwrap().len(), EXPERIMENTS.len());
        assert_eq!(named(&["hourglass-fig3".into()]).unwrap()[0].id, "hourglass-fig3");
        let error = named(&["fig99".into()]).unwrap_err().to_string();
        assert!(error.contains("--list"), "{error}");
        for (n, experiment) in EXPERIMENTS.iter().enumerate() {
            assert!(EXPERIMENTS[..n].iter().all(|other| other.id != experiment.id));
        }
    }
}
