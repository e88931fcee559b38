//! The trace that a command reads, whole unless its user wants what is left of it.

use std::path::{Path, PathBuf};

use ft_agent::status_line;
use ft_trace::store::Trace;
use ft_trace::warning::Warning;

use super::Result;

/// A trace.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TraceArg {
    /// Directory of the trace.
    #[arg(value_name = "DIR")]
    pub(super) trace: PathBuf,
    #[command(flatten)]
    pub(super) rest: Rest,
}

/// Whether what is left of a trace is enough.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Rest {
    /// Go on without parts of the trace that are missing or are not what was written, and say so.
    #[arg(long)]
    incomplete: bool,
}

impl TraceArg {
    pub(super) fn open(&self) -> Result<Trace> {
        self.rest.of(&self.trace, Trace::open)
    }
}

impl Rest {
    /// Opens a trace by `whole`, or what is left of it.
    pub(super) fn of(
        self,
        dir: &Path,
        whole: fn(&Path) -> ft_trace::store::Result<Trace>,
    ) -> Result<Trace> {
        if !self.incomplete {
            return Ok(whole(dir)?);
        }
        let trace = Trace::open_incomplete(dir)?;
        let left_out = |warning: &&Warning| matches!(warning, Warning::LeftOut { .. });
        if let Some(warning) = trace.meta().warnings.iter().find(left_out) {
            status_line::say(&format!("ft-agent: warning: {warning}"));
        }
        Ok(trace)
    }
}
