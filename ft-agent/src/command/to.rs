//! `--to`: where finished traces are brought.

use std::path::Path;

use ft_agent::status_line;
use ft_catalogue::{Catalogue, Label, Labels};

use super::Result;
use super::error::CommandError;

/// Flags of the commands that finish a trace.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ToArgs {
    /// Bring the finished trace into this catalogue, too (`ft-agent catalogue`): a directory that only this user can write to, as
    /// a path or file:///PATH.
    #[arg(long, value_name = "URL")]
    to: Option<String>,

    /// What is known of the trace, for the catalogue: build=1.4.2; may be given more than once.
    #[arg(long, value_name = "NAME=VALUE", requires = "to")]
    label: Vec<Label>,
}

/// A catalogue that is there, and the labels of what is brought.
pub(crate) struct To {
    url: String,
    catalogue: Catalogue,
    labels: Labels,
}

impl ToArgs {
    /// Opens the catalogue, if one was named: before anything that takes long.
    pub(crate) fn open(self) -> Result<Option<To>> {
        let Some(url) = self.to else { return Ok(None) };
        let catalogue = Catalogue::open(&url)?;
        let labels = self.label.into_iter().map(|label| (label.name, label.value)).collect();
        Ok(Some(To { url, catalogue, labels }))
    }
}

impl To {
    /// Brings a trace, and says where it is.
    pub(crate) fn put(&self, trace: &Path) -> Result<()> {
        let put = self.catalogue.put(trace, &self.labels);
        let put =
            put.map_err(|source| CommandError::NotBrought { trace: trace.to_owned(), source })?;
        let what = if put.is_new { "brought to" } else { "was there already:" };
        status_line::say(&format!("ft-agent: {what} {}/{}", self.url, put.key.path()));
        Ok(())
    }
}
