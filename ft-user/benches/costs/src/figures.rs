//! What the subjects tell, over several rounds.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The figures that one program told.
pub(crate) struct Figures {
    values: BTreeMap<String, f64>,
    /// All that it printed.
    pub(crate) text: String,
}

impl Figures {
    /// Runs a program to its end and takes what it tells.
    pub(crate) fn of(command: &mut Command) -> Result<Figures> {
        let output = command.stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("{command:?} does not start"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            match said.lines().last() {
                Some(last) => bail!("{last}"),
                None => bail!("{command:?}: {}", output.status),
            }
        }
        let figure = |line: &str| {
            let (name, value) = line.strip_prefix("figure ")?.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(Figures { values: text.lines().filter_map(figure).collect(), text })
    }

    /// One figure.
    pub(crate) fn get(&self, name: &str) -> Result<f64> {
        self.values.get(name).copied().with_context(|| format!("the subject tells no {name}"))
    }
}

/// Figures of several rounds.
#[derive(Default)]
pub(crate) struct Samples(BTreeMap<String, Vec<f64>>);

impl Samples {
    /// Adds one value.
    pub(crate) fn add(&mut self, name: &str, value: f64) {
        self.0.entry(name.to_owned()).or_default().push(value);
    }

    /// Adds all figures of a program, their names behind `prefix`.
    pub(crate) fn add_all(&mut self, prefix: &str, figures: &Figures) {
        for (name, &value) in &figures.values {
            self.add(&format!("{prefix}{name}"), value);
        }
    }

    /// The median, if there is any value.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|values| ft_costs::median(values.clone()))
    }

    /// The median of what must have been measured.
    pub(crate) fn must(&self, name: &str) -> Result<f64> {
        self.median(name).with_context(|| format!("there is no value of {name}"))
    }

    /// The highest value.
    pub(crate) fn highest(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.iter().copied().reduce(f64::max)
    }

    /// All values, in the order of the rounds.
    pub(crate) fn all(&self, name: &str) -> &[f64] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}
