//! `--to`: where finished traces are brought.

use std::path::Path;

use ft_agent::status_line;
use ft_catalogue::{Catalogue, CatalogueError, Label, Labels};

use super::Result;
use super::error::CommandError;

/// Flags of the commands that finish a trace.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ToArgs {
    /// Bring the finished trace into this catalogue, too (`ft-agent catalogue`).
    ///
    /// A directory that only this user can write to, as a path or file:///PATH, or an object store, s3://BUCKET/PREFIX, with
    /// AWS_ACCESS_KEY_ID and the like in the environment.
    #[arg(long, value_name = "URL", hide_short_help = true, help_heading = "The trace")]
    to: Option<String>,

    /// Label of the trace in the catalogue: build=1.4.2; may be given more than once.
    #[arg(
        long,
        value_name = "NAME=VALUE",
        requires = "to",
        hide_short_help = true,
        help_heading = "The trace"
    )]
    label: Vec<Label>,
}

/// A catalogue, and the labels of what is brought.
pub(crate) struct To {
    url: String,
    /// None while its store cannot be reached.
    catalogue: Option<Catalogue>,
    labels: Vec<Label>,
}

impl ToArgs {
    /// Opens the catalogue, if one was named: before anything that takes long.
    pub(crate) fn open(self) -> Result<Option<To>> {
        let Some(url) = self.to else { return Ok(None) };
        let catalogue = Some(Catalogue::open(&url)?);
        Ok(Some(To { url, catalogue, labels: self.label }))
    }

    /// The same for what cannot wait: a store that is away is tried again when there is a trace.
    pub(crate) fn open_later(self) -> Result<Option<To>> {
        let Some(url) = self.to else { return Ok(None) };
        let catalogue = match Catalogue::open(&url) {
            Err(error @ CatalogueError::Away { .. }) => {
                status_line::say(&format!(
                    "ft-agent: warning: {error}; the trace stays here until it is brought"
                ));
                None
            }
            opened => Some(opened?),
        };
        Ok(Some(To { url, catalogue, labels: self.label }))
    }
}

impl To {
    /// Brings a trace, and says where it is.
    pub(crate) fn put(&self, trace: &Path) -> Result<()> {
        let labels: Labels =
            self.labels.iter().cloned().map(|label| (label.name, label.value)).collect();
        let put = match &self.catalogue {
            Some(catalogue) => catalogue.put(trace, &labels),
            None => Catalogue::open(&self.url).and_then(|catalogue| catalogue.put(trace, &labels)),
        };
        let put = put.map_err(|source| CommandError::NotBrought {
            trace: trace.to_owned(),
            source,
            again: self.again(trace),
        })?;
        let what = if put.is_new { "brought to" } else { "was there already:" };
        status_line::say(&format!("ft-agent: {what} {}/{}", self.url, put.key.path()));
        Ok(())
    }

    /// The command that brings it later.
    fn again(&self, trace: &Path) -> String {
        let mut command = format!(
            "ft-agent convert {} --to {}",
            quoted(&trace.to_string_lossy()),
            quoted(&self.url)
        );
        for Label { name, value } in &self.labels {
            command += &format!(" --label {}", quoted(&format!("{name}={value}")));
        }
        command
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_was_not_brought_is_brought_with_its_labels_later() {
        let label = Label { name: "note".into(), value: "it's slow".into() };
        let to = To { url: "s3://fleet/a".into(), catalogue: None, labels: vec![label] };
        assert_eq!(
            to.again(Path::new("a b")),
            r"ft-agent convert 'a b' --to s3://fleet/a --label 'note=it'\''s slow'"
        );
    }
}
